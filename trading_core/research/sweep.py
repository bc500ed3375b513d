"""Many parameter sets of one rule through the backtest's kernel, equal to `simulate` trade by trade.

Sets share the bars, their features and one program that makes every rule's column; each set is a call of the
kernel on state of its own, so it has its own account and equity. What a set cannot be costs that set alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from schemas.errors import ConfigError, DataError, InvariantViolation, RuleError
from trading_core.accounting import bars_per_year
from trading_core.bars import BarSeries
from trading_core.kernel import records as rec
from trading_core.kernel.loop import FAULT, advance
from trading_core.kernel.returns import sum_returns
from trading_core.research.simulation import Plan, bare_engine, find_setups, plan_of
from trading_core.rules.columns import RuleColumns, rule_of_kind
from trading_core.rules.grammar import parse

PERIODS: Final = 512  # most stretches of bars whose returns are kept of each set
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
class _Start:
    """A plan in force before the first bar; `state` and `portfolio` are traded on and made anew each time.

    `setups` is a view of `state`; `fresh` holds bytes of both records with those of the first time.
    """

    plan: Plan
    state: npt.NDArray[Any]
    portfolio: npt.NDArray[Any]
    setups: RowArray
    fresh: tuple[tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]], ...]

    def again(self, setups: list[int]) -> None:
        """Both as they were, with the columns of another entry."""
        for records, fresh in self.fresh:
            records[:] = fresh
        self.setups[:] = setups


class _Sweep:
    """Sets over one series; `times` are the labels that rows and periods are counted by."""

    def __init__(self, bars: BarSeries, times: RowArray) -> None:
        self.bars, self.columns = bars, RuleColumns(bars)
        rows, symbols = bars.shape
        self._plans: dict[str, Plan] = {}  # by what they were made of
        self._starts: dict[int, _Start] = {}  # by plan
        self._known: set[str] = set()  # features that can be had
        self._flags = np.zeros(bars.shape, dtype=np.uint8)
        self._events, self._count = np.zeros(1, dtype=rec.EVENT), np.zeros(1, dtype=np.int64)
        self._trades = np.empty((rows + 1) * symbols, dtype=rec.TRADE)  # one a bar and symbol at most
        self._closed = np.zeros(1, dtype=np.int64)
        self._equity, self._gross = np.empty(rows), np.zeros(rows)
        self._prices = _prices(bars)
        self._inverse = 1.0 / self._prices
        self._rows = np.searchsorted(times, bars.times)
        first = np.searchsorted(self._rows[1:], period_starts(times.size) + 1)
        self._edges = np.append(first, rows - 1)
        self._holding = np.empty(len(first))
        sum_returns(self._prices, self._gross, self._inverse, self._edges, self._holding, np.empty(2))
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
        found = self._figures([item for item in made if isinstance(item, tuple)])
        return [next(found) if isinstance(item, tuple) else item for item in made]

    def trade(self, start: _Start, setups: list[int]) -> npt.NDArray[Any]:
        """TRADE records, a view that the next call overwrites; equity and gross exposure are written."""
        b, bank = self.bars, self.columns.bank
        start.again(setups)
        self._closed[0] = 0
        _, code = advance(
            0, b.shape[0], b.open, b.high, b.low, b.close, b.present, b.close_times, self._flags, bank.truths,
            bank.numbers, start.state, start.portfolio, start.plan.parameters, self._events, self._count,
            self._trades, self._closed, self._equity, self._gross, rec.NO_EDGES,
        )  # fmt: skip
        if code == FAULT:
            raise InvariantViolation("a set made an illegal transition")
        return self._trades[: self._closed[0]]

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
        if new := {name for text in texts for name in parse(text).features} - self._known:
            self.columns.features.check(sorted(new))
            self._known |= new

    def _job(self, entry: Any, plan: Plan) -> tuple[_Start, list[int]]:
        """A set as `trade` takes it."""
        setups = find_setups(self.columns, entry)
        if id(plan) not in self._starts:
            engine = bare_engine(self.columns, plan)
            plan.install(engine, self.columns, setups)
            records = engine.state, engine.portfolio
            engine.portfolio["cash"] = 0.0  # beside cash the last digits of a small price would be lost
            # Bytes at once: numpy copies records field by field, which takes longer than their run.
            views = [each.view(np.uint8) for each in records]
            fresh = tuple((view, view.copy()) for view in views)
            self._starts[id(plan)] = _Start(plan, *records, engine.state["k_setup"], fresh)
        return self._starts[id(plan)], setups

    def _figures(self, jobs: Sequence[tuple[_Start, list[int]]]) -> Iterator[SetRow]:
        """The row of each job."""
        rows, n, sums = self.bars.shape[0], self.bars.shape[0] - 1, np.empty(2)
        held = np.empty(len(self._holding))
        for start, setups in jobs:
            plan, closed = start.plan, self.trade(start, setups)
            quantity, r = plan.quantity, closed["r"].copy()
            excess = np.empty(len(held))
            sum_returns(self._equity, self._gross, self._inverse, self._edges, excess, sums)
            # Set by set: periods of one fit the processor's nearest cache, those of all do not.
            excess /= quantity
            mean = float(np.add.reduce(excess)) / n
            squares, exposure = sums.tolist()
            spread = sqrt(max(squares / (quantity * quantity) - n * mean * mean, 0.0) / max(n - 1, 1))
            sharpe = float(mean / spread * self._year) if spread > 1e-12 * abs(mean) else np.nan
            exposure /= quantity * rows if plan.direction == "long" else -quantity * rows
            np.multiply(self._holding, exposure, out=held)
            excess -= held
            gain = float(self._equity[-1] / (quantity * self._prices[0]))
            entries, exits = self._rows[closed["entry_t"]], self._rows[closed["exit_t"]]
            total = float(np.add.reduce(r))
            yield SetRow(len(r), total, gain, sharpe, exposure, entries, exits, r, excess)


def _or_problem(make: Callable[..., Made], *given: Any) -> Made | SetRow:
    try:
        return make(*given)
    except Refused as error:
        return SetRow(problem=str(error))


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
