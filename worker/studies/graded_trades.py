"""The slow loop's gate on a table of resolved trades, and the document of what it found."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.canonical import ns_to_datetime
from schemas.errors import ConfigError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.high_level.drift import LEVEL_SHOWN
from services.high_level.table_gate import (
    GradedCluster,
    GradedTable,
    counted_looks,
    entries_per_block,
    grade_table,
    scheduled_looks,
)
from services.high_level.trade_bounds import bounds_of, reference_of
from services.statistics.drift import ARL
from services.statistics.multiplicity import CLAIMS
from worker.feeds.files.bar_table import BarTable
from worker.feeds.files.tables import read_table
from worker.studies.trade_file import TradeFile, read_trades, trade_columns

SCHEDULES = ("daily", "weekly", "monthly")
SIGNIFICANT_DIGITS = 9


@dataclass(frozen=True)
class Grading:
    """How a table is graded.

    Attributes:
        settings: the configuration in force.
        looks: a schedule, or a number of trades as text; None: those of the table, or one at the end.
        reference: what trades are held against, in R; None: as table and playbooks have it.
        books: playbooks whose declared cells join the tested family.
    """

    settings: Settings
    looks: str | None = None
    reference: float | None = None
    books: tuple[PlaybookDefinition, ...] = ()

    @property
    def definitions(self) -> dict[str, PlaybookDefinition]:
        """The playbooks by id."""
        return {item.id: item for item in self.books}

    def read(self, given: Path | BarTable) -> TradeFile:
        """The resolved trades of a table.

        Raises:
            DataError: it cannot be used; see `read_trades`.
        """
        gate, most = self.settings.gate, self.settings.runtime.max_bytes
        if not isinstance(given, BarTable):
            given = read_table(given, "at least one trade", most, trade_columns)
        usual = {name: reference_of(item, gate) for name, item in self.definitions.items()}
        usual = {"": gate.reference_r, **usual}
        return read_trades(given, self.settings.runtime.tz, self.reference, usual)

    def grade(
        self, trades: TradeFile, watched: Callable[[Iterable[int]], Iterator[int]] = iter
    ) -> GradedTable:
        """Every cluster with its grade; `watched` passes the looks on.

        Raises:
            ConfigError: the looks are neither a schedule nor a number of trades.
        """
        settings, definitions = self.settings, self.definitions
        times, most = _looks(self.looks, trades, settings), settings.envelope.max_entries_per_block
        named = sorted({*definitions, *trades.trades.playbooks})
        bounds = {name: bounds_of(definitions.get(name), settings.gate, most) for name in named}
        return grade_table(trades.trades, settings.gate, times, definitions, watched, bounds)


def _looks(option: str | None, file: TradeFile, settings: Settings) -> tuple[int, ...]:
    exits = file.trades.exit_ns
    if option is None:
        return file.looks or (int(exits.max()),)
    if file.looks is not None:
        raise ConfigError("the table has a column 'looks': leave --looks out, or remove the column")
    if option in SCHEDULES:
        return scheduled_looks(exits, option, settings.high_level.minimum_episodes)
    if option.isascii() and option.isdigit() and int(option) > 0:
        return counted_looks(exits, int(option))
    raise ConfigError(
        f"--looks {option!r} is not {', '.join(SCHEDULES)} or a number of trades: write --looks weekly"
    )


def gate_document(graded: GradedTable, settings: Settings, file: TradeFile) -> dict[str, Any]:
    """The JSON document: the family with its selection, and every cluster at the last look.

    Args:
        graded: the clusters with their grades.
        settings: the configuration in force.
        file: the table that was read: what was left out of it, and which rows were one position.
    """
    family, positions = graded.family, file.positions
    limit = settings.envelope.max_entries_per_block
    limited = {"entries_per_block": entries_per_block(file.trades, settings.gate, limit)} if limit else {}
    return {
        "family": {
            "id": family.family_id,
            "size": len(family),
            "q": family.q,
            "spent": _round(family.q * CLAIMS * float(family.charged.sum())),
            "selected": list(graded.selected),
            "mode": settings.gate.mode,
            "looks": len(graded.looks),
            "last_look": ns_to_datetime(graded.looks[-1]).isoformat(),
        },
        "clusters": [_cluster(item) for item in graded.clusters],
        **({} if file.no_learn is None else {"left_out": {"no_learn": file.no_learn}}),
        "positions": {**vars(positions), "merged": positions.merged},
        **limited,
    }


def _cluster(item: GradedCluster) -> dict[str, Any]:
    seen, decision = item.measured.sample, item.verdict.decision
    first = item.first_significant_at
    return {
        "playbook": item.cluster.playbook_id,
        "regime": item.cluster.regime,
        "timeframe": item.cluster.timeframe,
        "grade": str(decision.grade),
        "n": seen.n,
        "blocks": seen.blocks,
        "block": seen.unit,
        "counted": seen.counted,
        "claim": item.verdict.claim,
        "leaning": seen.leaning,
        "mean": seen.mean_r,
        "mean_raw": seen.mean_raw,
        "mean_otherwise": None if seen.otherwise is None else seen.otherwise.mean_r,
        "reference": seen.reference,
        "e_value": seen.e_value,
        "e_losing": seen.e_values[0],
        "e_gaining": seen.e_values[1],
        "lower": item.shown.interval.lower,
        "upper": item.shown.interval.upper,
        "interval_kind": item.shown.interval.kind,
        "fixed_time": None if item.shown.fixed_time is None else list(item.shown.fixed_time),
        "smallest_detectable": item.shown.smallest_detectable,
        "alpha": _round(item.verdict.alpha or 0.0),
        "decay": _decay(item),
        "strongest_action": str(decision.strongest_action),
        "reason": item.reason,
        "first_significant_at": None if first is None else ns_to_datetime(first).isoformat(),
    }


def _decay(item: GradedCluster) -> dict[str, Any] | None:
    decay = item.measured.decay
    if decay is None:
        return None
    return {
        "level": _round(min(decay.level, LEVEL_SHOWN)),
        "highest": _round(min(decay.highest, LEVEL_SHOWN)),
        "limit": ARL,
        "alarmed_at": None if item.alarm is None else ns_to_datetime(item.alarm.known_at).isoformat(),
    }


def _round(value: float) -> float:
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
