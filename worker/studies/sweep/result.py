"""A sweep and what it found: its worth first, then a row for each set."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schemas.canonical import canonical_json, ns_to_datetime
from schemas.errors import ConfigError
from trading_core.bars import BarSeries
from trading_core.research.sweep import SetRow, hold_returns, run_sets
from worker.runs.out_folder import replace_file
from worker.studies.sweep.sets import FIGURES, PROBLEM, Family
from worker.studies.sweep.worth import EVEN, Looking, Worth, best_of, worth_of

if TYPE_CHECKING:
    import pandas as pd

    from services.store import Store

CHUNK_CELLS = 12_600_000  # bars x sets of one task: 10,000 sets of 1,260 bars
SEARCHED = "sweep"  # in place of a set of playbooks, in the ledger of a store
Chunk = Sequence[Mapping[str, Any]]
SetRows = Iterator[list[SetRow]]
RunChunks = Callable[[BarSeries, Sequence[Chunk]], SetRows]


def run_serially(bars: BarSeries, chunks: Sequence[Chunk]) -> Iterator[list[SetRow]]:
    """The rows of each chunk, one after another in this process."""
    return (run_sets(bars, chunk) for chunk in chunks)


def sweep_bars(
    bars: BarSeries, family: Family, looking: Looking, *, before: int = 0, run: RunChunks = run_serially
) -> "SweepResult":
    """Trade every set of a family.

    Args:
        bars: at least two rows.
        family: the sets.
        looking: how the search is looked at out of sample.
        before: hypotheses that a store knows of on these bars.
        run: gives the rows of each chunk in order; a chunk is a task for any process.
    """
    points = family.points()
    made: list[dict[str, Any] | SetRow] = []
    for point in points:
        try:
            made.append(family.set_of(point))
        except ConfigError as error:
            made.append(SetRow(problem=str(error)))
    sets = [item for item in made if not isinstance(item, SetRow)]
    size = max(1, CHUNK_CELLS // bars.shape[0])
    chunks = [sets[start : start + size] for start in range(0, len(sets), size)]
    found = (row for rows in run(bars, chunks) for row in rows)
    rows = tuple(item if isinstance(item, SetRow) else next(found) for item in made)
    return SweepResult(bars, family, tuple(points), rows, looking, before)


async def enter_sweep(store: "Store", bars: BarSeries, family: Family) -> int:
    """Enter a family in the ledger of a store before it is tried: one row, with the number of its sets.

    What comes back is how many hypotheses were tried on such bars before.

    Raises:
        StoreError: the store cannot be written.
    """
    from services.store.trials import TriedOn

    first = int(bars.times[0])
    on = TriedOn(
        family.hash, SEARCHED, bars.select(end_ns=first).sha256, bars.timeframe, tuple(bars.symbols), first,
        int(bars.times[-1]),
    )  # fmt: skip
    return (await store.trials.note_sweep(on, len(family))).hypotheses


@dataclass(frozen=True, eq=False)
class SweepResult:
    """Every set that was tried, and what the search is worth.

    Attributes:
        family: what was varied.
        points: values of each set by name.
        rows: what each traded, in the same order.
        looking: how the search is looked at.
        before: hypotheses that a store knew of on these bars.
    """

    bars: BarSeries = field(repr=False)
    family: Family = field(repr=False)
    points: tuple[dict[str, Any], ...] = field(repr=False)
    rows: tuple[SetRow, ...] = field(repr=False)
    looking: Looking = Looking()
    before: int = 0

    @cached_property
    def table(self) -> "pd.DataFrame":
        """A row for each set: its values, `trades`, `total_r`, `return`, `sharpe`, and any `problem`.

        `return` is pnl over the price of one unit of each symbol at the first bar; `sharpe` is annualised.
        """
        import pandas as pd

        values = {name: [point[name] for point in self.points] for name in self.family.grid}
        figures = {name: [getattr(row, key) for row in self.rows] for name, key in FIGURES.items()}
        problems = [row.problem for row in self.rows]
        return pd.DataFrame({**values, **figures, **({PROBLEM: problems} if any(problems) else {})})

    @cached_property
    def worth(self) -> Worth:
        """What the search is worth; computed when it is first read."""
        return worth_of(self.bars, self.rows, self.looking, self.before)

    @property
    def hold(self) -> float:
        """What one unit of each symbol returned from the first close to the last."""
        return float(np.prod(1.0 + hold_returns(self.bars)) - 1.0)

    def best(self, *, i_know: bool = False) -> "pd.Series[Any]":
        """The row of the set whose R lies furthest above zero for its scatter; its figures are too good.

        Args:
            i_know: show it although the best of such a search is more likely to disappoint than not.

        Raises:
            ConfigError: the search is overfitted (`worth.pbo` above one half), or nothing traded.
        """
        pbo = self.worth.pbo
        if not i_know and (pbo is None or pbo > EVEN):
            shown = "unknown" if pbo is None else f"{pbo:.2f}"
            raise ConfigError(
                f"the probability of overfitting is {shown}: the best of these sets is not expected to be "
                "good again. Read .worth; best(i_know=True), or --i-know, shows it all the same"
            )
        number = best_of(self.rows)
        if number is None:
            raise ConfigError("no set traded: there is no best one")
        return self.table.iloc[number]

    def heatmap(self, x: str | None = None, y: str | None = None, value: str = "sharpe") -> "pd.DataFrame":
        """Mean of a figure over all sets with two values: a plateau can be trusted further than a peak.

        Args:
            x: name of the columns; None: the last name with more than one value.
            y: name of the rows; None: the one before it.
            value: a figure of the table.

        Raises:
            ConfigError: a name that is not in the table, or fewer than two names.
        """
        grid = self.family.grid
        names = [name for name, values in grid.items() if len(values) > 1]
        across = x or (names[-1] if names else None)
        down = y or next((name for name in names[::-1] if name != across), None)
        if across not in grid or down not in grid or across == down or value not in FIGURES:
            raise ConfigError(
                f"heatmap of {value!r} by {across!r} and {down!r}: give two of {', '.join(grid)}, and "
                f"one of {', '.join(FIGURES)}"
            )
        return self._flat.pivot_table(index=down, columns=across, values=value, aggfunc="mean", sort=False)

    def document(self, *, i_know: bool = False) -> dict[str, Any]:
        """For machines: worth first, then every set in order; `best` where it may be shown."""
        sets = [_plain(row) for row in self.table.to_dict("records")]
        first, last = (ns_to_datetime(int(self.bars.times[at])).isoformat() for at in (0, -1))
        best = best_of(self.rows)
        may = best is not None and (i_know or (self.worth.pbo is not None and self.worth.pbo <= EVEN))
        return {
            "worth": self.worth.document(),
            "family": self.family.hash,
            "data": {
                "symbols": list(self.bars.symbols), "timeframe": self.bars.timeframe, "start": first,
                "end": last, "bars": self.bars.bar_count, "sha256": self.bars.sha256,
            },
            "hold": round(self.hold, 9),
            "best": sets[best] if may and best is not None else None,
            "sets": sets,
        }  # fmt: skip

    def page(self, path: str | Path) -> Path:
        """Write the page: what the search is worth, the heat map, and every set.

        Raises:
            ConfigError: it cannot be written.
        """
        with _writing(path):
            replace_file(Path(path), self.html())
        return Path(path)

    def html(self) -> str:
        """The text of the page."""
        from worker.pages.sweep_page import sweep_html

        names = [name for name, values in self.family.grid.items() if len(values) > 1]
        return sweep_html(self.document(), self.lines(), self.heatmap() if len(names) > 1 else None)

    def lines(self) -> list[str]:
        """What the search is worth, the verdict first."""
        bad = sum(row.problem is not None for row in self.rows)
        lost = [f"{bad:,} sets could not be traded: see `problem` of each"] if bad else []
        return [*self.worth.lines(self.hold), *lost]

    def to_parquet(self, path: str | Path) -> Path:
        """Write the table; values that have no common type, and lists, as JSON text.

        Raises:
            ConfigError: it cannot be written.
        """
        with _writing(path):
            self._flat.to_parquet(path)
        return Path(path)

    @property
    def _flat(self) -> "pd.DataFrame":
        """The table with values of one type a column, which can be compared and grouped."""
        table = self.table.copy()
        for name, values in self.family.grid.items():
            if table[name].dtype == object or None in values:
                table[name] = [canonical_json(point[name]) for point in self.points]
        return table

    def __str__(self) -> str:
        return "\n".join([*self.lines(), "every set: .table, .heatmap(), .page(path)"])


@contextmanager
def _writing(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{str(path)!r} cannot be written ({error.strerror}): name another") from error


def _plain(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        str(name): None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in row.items()
    }
