"""Many parameter sets of one rule through the backtest's kernel, equal to `simulate` trade by trade.

Sets share the bars, their features and one program that makes every rule's column; each set is a call of the
kernel on state of its own, so it has its own account and equity. What a set cannot be costs that set alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from schemas.errors import ConfigError, DataError, InvariantViolation, RuleError
from trading_core.accounting import bars_per_year
from trading_core.bars import BarSeries
from trading_core.kernel import records as rec
from trading_core.kernel.loop import FAULT, advance
from trading_core.research.simulation import Plan, bare_engine, find_setups, plan_of
from trading_core.rules.columns import RuleColumns, rule_of_kind
from trading_core.rules.grammar import parse

PERIODS: Final = 512  # most stretches of bars whose returns are kept of each set
_BLOCK_CELLS: Final = 65_536  # of equity that is turned into figures at once: it stays in the cache
FloatArray = npt.NDArray[np.float64]
RowArray = npt.NDArray[np.int64]
Made = TypeVar("Made")
Refused = (RuleError, ConfigError, DataError, TypeError)


@dataclass(frozen=True, eq=False)
class SetRow:
    """What one parameter set traded; without trades where there is a `problem`.

    Attributes:
        trades: closed positions.
        total_r: sum of their R.
        gain: pnl over the price of what one trade holds (of each symbol one) at the first bar.
        sharpe: of returns a bar on that price at the bar before, annualised; NaN without any spread.
        exposure: mean of what was held over that price, negative for a short.
        entry_rows, exit_rows: int64 (n,), rows of the bars; in order of exit.
        r: float64 (n,).
        excess: float64 (P,), sums of returns a bar over `period_starts`, less `exposure` times
            those of holding.
        problem: why it could not be traded.
    """

    trades: int = 0
    total_r: float = 0.0
    gain: float = 0.0
    sharpe: float = np.nan
    exposure: float = 0.0
    entry_rows: RowArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    exit_rows: RowArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    r: FloatArray = field(default_factory=lambda: np.empty(0))
    excess: FloatArray = field(default_factory=lambda: np.empty(0))
    problem: str | None = None


def period_starts(rows: int) -> RowArray:
    """int64 (P,): where each period begins among the `rows` - 1 returns from bar to bar."""
    returns = max(rows - 1, 1)
    count = min(PERIODS, returns)
    return np.arange(count, dtype=np.int64) * returns // count


def hold_returns(bars: BarSeries) -> FloatArray:
    """float64 (T - 1,): returns from bar to bar of one unit of each symbol."""
    prices = _prices(bars)
    returns: FloatArray = np.diff(prices) / prices[:-1]
    return returns


def run_sets(bars: BarSeries, sets: Sequence[Mapping[str, Any]]) -> list[SetRow]:
    """A row for each set, in order: a pure function of the two, which other processes may call for a part.

    Args:
        bars: at least two rows.
        sets: each `entry`, `symbols` (None: all, as one account), and what `simulate` takes beside.

    Raises:
        DataError: fewer than two bars.
    """
    _demand_bars(bars)
    found: dict[int, SetRow] = {}
    groups: dict[tuple[str, ...] | None, list[int]] = {}
    for k, given in enumerate(sets):
        symbols = given.get("symbols")
        chosen = (symbols,) if isinstance(symbols, str) else None if symbols is None else tuple(symbols)
        groups.setdefault(chosen, []).append(k)
    for chosen, members in groups.items():
        try:
            series = bars if chosen is None else bars.select(symbols=chosen)
            _demand_bars(series)
            made = _Sweep(series, bars.times).rows([sets[k] for k in members])
            found.update(zip(members, made, strict=True))
        except Refused as error:
            found.update({k: SetRow(problem=str(error)) for k in members})
    return [found[k] for k in range(len(sets))]


@dataclass(frozen=True, eq=False)
class _Job:
    plan: Plan
    state: npt.NDArray[Any]  # with the plan in force
    portfolio: npt.NDArray[Any]


class _Sweep:
    """Sets over one series; `times` are the labels that rows and periods are counted by."""

    def __init__(self, bars: BarSeries, times: RowArray) -> None:
        self.bars, self.columns = bars, RuleColumns(bars)
        rows, symbols = bars.shape
        self._plans: dict[str, Plan] = {}  # by what they were made of
        self._fresh: dict[int, Any] = {}  # an engine's first state, by plan
        self._known: set[str] = set()  # features that can be had
        self._flags = np.zeros(bars.shape, dtype=np.uint8)
        self._events, self._count = np.zeros(1, dtype=rec.EVENT), np.zeros(1, dtype=np.int64)
        self._trades = np.empty((rows + 1) * symbols, dtype=rec.TRADE)  # one a bar and symbol at most
        self._closed = np.zeros(1, dtype=np.int64)
        prices = _prices(bars)
        self._prices, self._inverse = prices, 1.0 / prices
        self._rows = np.searchsorted(times, bars.times)
        starts = period_starts(times.size)
        self._starts = np.searchsorted(self._rows[1:], starts + 1)
        self._is_bare = np.diff(self._starts, append=rows - 1) == 0  # no bar of these symbols falls into it
        held = np.append(np.diff(prices), 0.0) * self._inverse
        self._holding = self._periods(held[np.newaxis])[0]
        self._year = np.sqrt(bars_per_year(bars.times))

    def rows(self, sets: Sequence[Mapping[str, Any]]) -> list[SetRow]:
        """The row of each set; their columns are made together."""
        read = [_or_problem(self._read, given) for given in sets]
        texts = dict.fromkeys(
            item[0] for item in read if isinstance(item, tuple) and isinstance(item[0], str)
        )
        texts |= dict.fromkeys(text for plan in self._plans.values() for text in plan.texts)
        self.columns.load(texts)
        made = [_or_problem(self._job, *item) if isinstance(item, tuple) else item for item in read]
        jobs = [item for item in made if isinstance(item, _Job)]
        rows, size = self.bars.shape[0], max(1, _BLOCK_CELLS // self.bars.shape[0])
        work = np.zeros((3, min(size, len(jobs)), rows))
        starts = range(0, len(jobs), size)
        found = (row for start in starts for row in self._block(jobs[start : start + size], work))
        return [next(found) if isinstance(item, _Job) else item for item in made]

    def trade(self, job: _Job, equity: FloatArray, gross: FloatArray) -> npt.NDArray[Any]:
        """TRADE records, a view that the next call overwrites; equity and gross exposure are written."""
        b, bank = self.bars, self.columns.bank
        self._closed[0] = 0
        _, code = advance(
            0, b.shape[0], b.open, b.high, b.low, b.close, b.present, b.close_times, self._flags, bank.truths,
            bank.numbers, job.state, job.portfolio, job.plan.parameters, self._events, self._count,
            self._trades, self._closed, equity, gross, rec.NO_EDGES,
        )  # fmt: skip
        if code == FAULT:
            raise InvariantViolation("a set made an illegal transition")
        return self._trades[: self._closed[0]]

    def _periods(self, returns: FloatArray) -> FloatArray:
        """Sums of returns (n, T), the last of which is none, over the periods."""
        sums: FloatArray = np.add.reduceat(returns, self._starts, axis=1)
        sums[:, self._is_bare] = 0.0
        return sums

    def _read(self, given: Mapping[str, Any]) -> tuple[Any, Plan]:
        """Entry and plan of a set, whose features can be had from these bars."""
        terms = {name: value for name, value in given.items() if name not in ("entry", "symbols")}
        key, entry = repr(sorted(terms.items())), given["entry"]
        if key not in self._plans:
            plan = plan_of(**terms)
            self._demand(plan.texts)
            self._plans[key] = plan
        if isinstance(entry, str):
            rule_of_kind(entry, "boolean")
            self._demand([entry])
        return entry, self._plans[key]

    def _demand(self, texts: Sequence[str]) -> None:
        new = {name for text in texts for name in parse(text).features} - self._known
        self.columns.features.check(sorted(new))
        self._known |= new

    def _job(self, entry: Any, plan: Plan) -> _Job:
        setups = find_setups(self.columns, entry)
        if id(plan) not in self._fresh:
            engine = bare_engine(self.columns, plan)
            plan.install(engine, self.columns, setups)
            self._fresh[id(plan)] = engine.state, engine.portfolio
        state, portfolio = (_copy(records) for records in self._fresh[id(plan)])
        state["k_setup"] = setups
        return _Job(plan, state, portfolio)

    def _block(self, jobs: Sequence[_Job], work: FloatArray) -> Iterator[SetRow]:
        """Rows of sets that are figured together; `work` (3, n, T) is for what is gone afterwards."""
        equity, gross, returns = work[:, : len(jobs)]
        logs = []
        for k, job in enumerate(jobs):
            closed = self.trade(job, equity[k], gross[k])
            logs.append((self._rows[closed["entry_t"]], self._rows[closed["exit_t"]], closed["r"].copy()))
        quantity = np.array([job.plan.quantity for job in jobs])
        # The last column stays zero: a period may begin behind all bars.
        np.subtract(equity[:, 1:], equity[:, :-1], out=returns[:, :-1])
        returns *= self._inverse
        excess = self._periods(returns) / quantity[:, np.newaxis]
        n = returns.shape[1] - 1
        mean = excess.sum(axis=1) / n
        # Sums by einsum: BLAS gives other bits by the number of its threads.
        squares = np.einsum("ij,ij->i", returns, returns) / quantity**2 - n * mean**2
        spread = np.sqrt(np.maximum(squares, 0.0) / max(n - 1, 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            sharpe = np.where(spread > 1e-12 * np.abs(mean), mean / spread, np.nan) * self._year
        sides = np.array([1.0 if job.plan.direction == "long" else -1.0 for job in jobs])
        exposure = sides * np.einsum("ij,j->i", gross, self._inverse) / (quantity * gross.shape[1])
        excess -= exposure[:, np.newaxis] * self._holding
        gain = (equity[:, -1] - np.array([job.plan.cash for job in jobs])) / (quantity * self._prices[0])
        figures = zip(gain.tolist(), sharpe.tolist(), exposure.tolist(), strict=True)
        for own, log, periods in zip(figures, logs, excess, strict=True):
            yield SetRow(len(log[2]), float(log[2].sum()), *own, *log, periods)


def _or_problem(make: Callable[..., Made], *given: Any) -> Made | SetRow:
    try:
        return make(*given)
    except Refused as error:
        return SetRow(problem=str(error))


def _copy(records: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same bytes; numpy copies records field by field, which takes longer than their run."""
    copied: npt.NDArray[Any] = records.view(np.uint8).copy().view(records.dtype)
    return copied


def _demand_bars(bars: BarSeries) -> None:
    if bars.shape[0] < 2:
        raise DataError(f"{bars.shape[0]} bar: a sweep needs at least 2")


def _prices(bars: BarSeries) -> FloatArray:
    """float64 (T,): what one unit of each symbol costs, by the last close, or the first before it came."""
    closes = bars.close.copy()
    for s in range(bars.shape[1]):
        rows = np.flatnonzero(bars.present[:, s])
        last = np.maximum(np.searchsorted(rows, np.arange(bars.shape[0]), side="right") - 1, 0)
        closes[:, s] = closes[rows[last], s]
    total: FloatArray = closes.sum(axis=1)
    return total
