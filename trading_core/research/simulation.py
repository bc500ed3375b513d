"""`simulate`: one rule on bars, through the backtest's kernel; the public entry for rule research."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import nan
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from schemas.errors import ConfigError, nearest
from schemas.order_terms import FAR_R, OrderTerms
from schemas.playbook import DirectionRules
from schemas.settings import MAX_COUNT, ExecutionSettings
from trading_core.bars import BarSeries, BoolArray
from trading_core.kernel.fresh import parameter_record
from trading_core.kernel.records import REFUSALS
from trading_core.policy_orders import PolicyOrders
from trading_core.rules.columns import RuleColumns, SharedColumns, rule_of_kind
from trading_core.rules.orders import SymbolColumns, compile_orders
from trading_core.tick_events import REASONS, PolicyTag, TickEventDecoder
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import TriggerEngine

if TYPE_CHECKING:
    import pandas as pd

MAX_AMOUNT = 1e15
FAR_PCT: Final = 1e6  # of a long's target that stands for none
MANAGED: Final = (
    "entry_kind", "refinement_kind", "break_even_r", "scale_out_r", "scale_out_share", "add_at_r",
    "add_share", "target_moves",
)  # fmt: skip
READ: Final = ("stop", "target", "exit", "trail", "invalidation", "activation", "refinement", "entry")
WRITTEN: Final = {"entry": "entry_at"}  # rules by what the caller writes, where that is another name
YES_OR_NO: Final = ("entry_bar_exits", "reentry")
SWITCHES: Final = (
    *YES_OR_NO, "fee_bps", "slippage_bps", "fill", "level_base", "both_hit", "gap", "limit_fill", "time_exit",
    "tick_size", "lot_size", "maker_fee_bps", "fee_per_trade", "fee_rounding", "funding_bps", "borrow_bps",
)  # fmt: skip
Read = TypeVar("Read", ExecutionSettings, OrderTerms)


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """Trades of one simulation and its equity at every bar close; tables of pandas are made when read.

    Attributes:
        refused: orders that were not accepted, by reason; reasons without one are left out.
        symbols: of the bars, as `records` counts them.
        times: int64 (T,), UTC ns, the labels of the bars.
        records: `records.TRADE` of each closed position, in order of exit.
        values: float64 (T,), mark-to-market value at every close.
    """

    refused: dict[str, int]
    symbols: tuple[str, ...] = field(repr=False)
    times: npt.NDArray[np.int64] = field(repr=False)
    records: npt.NDArray[Any] = field(repr=False)
    values: npt.NDArray[np.float64] = field(repr=False)

    @cached_property
    def trades(self) -> "pd.DataFrame":
        """One row per closed position, in order of exit; times are the input's labels (aware UTC).

        `pnl` is net of fees, `r` is pnl over the planned risk, `mae_r` <= 0 <= `mfe_r`.
        """
        import pandas as pd

        trades = self.records
        names = pd.array(list(self.symbols), dtype="str")
        sides = pd.array(["short", "long"], dtype="str")
        reasons = pd.array([str(reason) for reason in REASONS], dtype="str")
        return pd.DataFrame(
            {
                "symbol": names.take(trades["s"]),
                "direction": sides.take((trades["direction"] > 0).astype(np.int64)),
                "entry_time": _labels(self.times[trades["entry_t"]]),
                "entry_price": trades["entry_price"],
                "exit_time": _labels(self.times[trades["exit_t"]]),
                "exit_price": trades["exit_price"],
                "quantity": trades["quantity"],
                "fees": trades["fees"],
                "pnl": trades["pnl"],
                "r": trades["r"],
                "mae_r": trades["mae_r"],
                "mfe_r": trades["mfe_r"],
                "bars_held": trades["bars_held"],
                "exit_reason": reasons.take(trades["reason"]),
            }
        )

    @cached_property
    def equity(self) -> "pd.Series[float]":
        """Mark-to-market value by bar label."""
        import pandas as pd

        return pd.Series(self.values, index=_labels(self.times), name="equity")


@dataclass(frozen=True, eq=False)
class Plan:
    """What a rule trades by, checked: one for every symbol and every entry that shares its terms.

    Attributes:
        rules: price rules and conditions beside the entry; levels may be fractions instead.
        terms: how a position is entered and managed.
        parameters: the kernel's parameter record (1,).
        cash: at the start.
        quantity: units per trade.
        direction: long or short.
        horizon: own bars of the time stop.
        window: own bars within which an activation has to come; 0: the entry itself orders.
        stop_pct, target_pct: fractions of the level base; NaN where a rule says the level.
    """

    rules: DirectionRules
    terms: OrderTerms
    parameters: npt.NDArray[Any]
    cash: float
    quantity: float
    direction: Literal["long", "short"]
    horizon: int
    window: int
    stop_pct: float
    target_pct: float

    @property
    def texts(self) -> list[str]:
        """Its rules without the entry."""
        return [text for role in READ if (text := getattr(self.rules, role)) is not None]

    def install(self, engine: TriggerEngine, columns: RuleColumns, setups: list[int]) -> None:
        """Put the plan in force for every symbol of an engine before its first bar.

        Args:
            engine: reads the columns where they stand.
            columns: hold what `texts` says.
            setups: index of each symbol's column of the entry.
        """
        bank = SharedColumns(columns)

        def orders_of(s: int) -> PolicyOrders:
            orders = compile_orders(
                self.rules, self.terms, SymbolColumns(columns, bank, s), tag=PolicyTag("", ""),
                window=self.window, risk_fraction=0.0, setup=setups[s], never_ends=True,
                direction=self.direction, horizon=self.horizon,
            )  # fmt: skip
            return replace(orders, stop_pct=self.stop_pct, target_pct=self.target_pct)

        if self.texts:
            for s in range(len(setups)):
                engine.install(s, orders_of(s))
        else:
            engine.install_everywhere(orders_of(0), setups)


def plan_of(
    *,
    direction: Literal["long", "short"] = "long",
    stop_pct: float = 0.02,
    target_pct: float | None = 0.04,
    time_stop_bars: int = 50,
    activation_window_bars: int = 0,
    quantity: float = 1.0,
    cash: float = 100_000.0,
    **terms: Any,
) -> Plan:
    """The terms of `simulate` beside its entry, checked.

    Args:
        direction: long or short.
        stop_pct: distance of the stop as a fraction of the level base.
        target_pct: distance of the target as a fraction of the level base; None: no target.
        time_stop_bars: exit at the open that many bars after the entry bar, before stops.
        activation_window_bars: own bars that an entry waits for its `activation`.
        quantity: units per trade.
        cash: starting cash.
        terms: rules, by name: `stop` and `target` (prices, read at the close that orders, instead of the
            fractions), `exit` (closes an open position at the next open), `trail` (a price that the stop
            follows; it and `exit` may read the position), `invalidation` (closes too, and at its truth
            nothing is ordered), `activation` and `refinement`, as in a playbook, and `entry_at`, the price of
            a limit or stop entry; how the position is managed: `MANAGED`, as in a playbook; and how orders
            fill and what they cost: `SWITCHES`, as `ExecutionSettings` describes and has them by default.

    Raises:
        RuleError: a rule cannot be read, or is of the wrong kind.
        ConfigError: a number is out of range.
        TypeError: a term that is none.
    """
    switches = {name: terms.pop(name) for name in SWITCHES if name in terms}
    texts = {WRITTEN.get(role, role): terms.pop(WRITTEN.get(role, role), None) for role in READ}
    _check_switches(**{name: switches[name] for name in YES_OR_NO if name in switches})
    _check_rules(**texts)
    _check(direction, stop_pct, 0.5 if target_pct is None else target_pct, time_stop_bars, quantity, cash)
    target = texts["target"]
    if target is None and terms.get("target_moves"):
        raise ConfigError(
            "target_moves is true, yet there is no rule that it reads: give target, a price rule"
        )
    far = 1.0 - 1.0 / FAR_R if direction == "short" else FAR_PCT
    rules = {role: texts[WRITTEN.get(role, role)] for role in READ}
    parameters = parameter_record(
        _execution(**switches), None, heartbeat=0, emit_events=False, fixed_quantity=quantity
    )
    return Plan(
        DirectionRules.model_construct(setup="", **rules), _order_terms(terms), parameters, cash, quantity,
        direction, time_stop_bars, activation_window_bars,
        stop_pct=stop_pct if texts["stop"] is None else nan,
        target_pct=nan if target is not None else far if target_pct is None else target_pct,
    )  # fmt: skip


def simulate(
    bars: BarSeries, entry: str | BoolArray = "crosses_above(sma_10, sma_30)", **terms: Any
) -> SimulationResult:
    """Trade every true `entry` with a bracket, one position per symbol.

    Rule research: no envelope and no margin, so cash may go below zero and nothing limits a position.

    Args:
        bars: bars of any number of symbols.
        entry: boolean rule, evaluated at each close; acts at the next open (or at the close). Or its truths,
            bool (T, S).
        terms: see `plan_of`.

    Raises:
        RuleError: a rule cannot be read, or is of the wrong kind.
        ConfigError: a number is out of range.
        TypeError: a term that is none.
    """
    _check_types(bars, entry)
    plan, columns = plan_of(**terms), RuleColumns(bars)
    engine = bare_engine(columns, plan)
    columns.load([entry, *plan.texts] if isinstance(entry, str) else plan.texts)
    plan.install(engine, columns, find_setups(columns, entry))
    trades = []
    while not engine.done:
        trades.append(engine.advance().trades)
    counts = zip(REFUSALS, engine.portfolio["refused"][0].tolist(), strict=False)
    refused = {reason: count for reason, count in counts if count}
    return SimulationResult(refused, bars.symbols, bars.times, np.concatenate(trades), engine.equity)


def bare_engine(columns: RuleColumns, plan: Plan) -> TriggerEngine:
    """An engine before its first bar that reads the columns where they stand; `Plan.install` gives it one."""
    bars = columns.bars
    flags, decoder = np.zeros(bars.shape, dtype=np.uint8), TickEventDecoder(bars, "", "")
    return TriggerEngine(
        bars, flags, plan.parameters, plan.cash, TickGuard(), decoder, columns=SharedColumns(columns)
    )


def find_setups(columns: RuleColumns, entry: str | BoolArray) -> list[int]:
    """Index of each symbol's column of an entry: 1 true, 0 false, -1 unknown or absent."""
    bars, symbols = columns.bars, range(columns.bars.shape[1])
    if isinstance(entry, str):
        rule_of_kind(entry, "boolean")
        return [columns.place(entry, s).index for s in symbols]
    truths = np.where(bars.present, entry, -1).astype(np.int8)
    setups = [columns.bank.new(truth=True).index for _ in symbols]
    columns.bank.truths[setups, : bars.shape[0]] = truths.T
    return setups


def _check_types(bars: BarSeries, entry: str | BoolArray) -> None:
    if not isinstance(bars, BarSeries):
        raise ConfigError(
            f"bars is a {type(bars).__name__}: make a series of it with BarSeries.from_frame(...)"
        )
    is_truths = isinstance(entry, np.ndarray) and entry.dtype == bool and entry.shape == bars.shape
    if not isinstance(entry, str) and not is_truths:
        raise ConfigError(
            f"entry is of type {type(entry).__name__}, not the text of a rule or a Series of booleans by the "
            "times of the bars: write pd.Series(entry, index=df.index)"
        )


def _check_switches(**switches: bool) -> None:
    for name, switch in switches.items():
        if not isinstance(switch, (bool, np.bool_)):
            raise ConfigError(f"{name} {switch!r} is neither True nor False")


def _check_rules(**rules: str | None) -> None:
    for name, rule in rules.items():
        if not isinstance(rule, str | None):
            raise ConfigError(
                f"{name} is of type {type(rule).__name__}, not the text of a rule: write it as text, in "
                "which x.NAME reads a column of numbers of the bars"
            )


def _check(
    direction: str, stop_pct: float, target_pct: float, time_stop_bars: int, quantity: float, cash: float
) -> None:
    if direction not in ("long", "short"):
        raise ConfigError(f"direction {direction!r} is neither 'long' nor 'short'")
    for name, number in (
        ("stop_pct", stop_pct),
        ("target_pct", target_pct),
        ("quantity", quantity),
        ("cash", cash),
    ):
        if isinstance(number, bool) or not isinstance(number, (int, float, np.number)):
            raise ConfigError(f"{name} {number!r} is not a number")
    if isinstance(time_stop_bars, bool) or not isinstance(time_stop_bars, (int, np.integer)):
        raise ConfigError(f"time_stop_bars {time_stop_bars!r} is not a whole number of bars")
    for name, value, limit in (("stop_pct", stop_pct, 1.0), ("target_pct", target_pct, np.inf)):
        if not 0.0 < value < limit:
            raise ConfigError(
                f"{name} {value!r} must lie between 0 and {limit:g}: it is a fraction of the price"
            )
    if direction == "short" and target_pct >= 1.0:
        raise ConfigError(
            f"target_pct {target_pct!r} must lie below 1 for a short: a price cannot fall below zero"
        )
    if not 1 <= time_stop_bars <= MAX_COUNT:
        raise ConfigError(f"time_stop_bars {time_stop_bars!r} must lie between 1 and {MAX_COUNT}")
    if not 0.0 < quantity <= MAX_AMOUNT or not 0.0 < cash <= MAX_AMOUNT:
        raise ConfigError(
            f"quantity {quantity!r} and cash {cash!r} must be above zero and at most {MAX_AMOUNT:g}"
        )


def _execution(**switches: Any) -> ExecutionSettings:
    for name, value in switches.items():
        if isinstance(value, bool) and name not in YES_OR_NO:
            raise ConfigError(f"{name} {value!r} is not a number")
    return _read(ExecutionSettings, switches)


def _order_terms(given: dict[str, Any]) -> OrderTerms:
    if unknown := [name for name in given if name not in MANAGED]:
        raise TypeError(
            f"simulate has no argument {unknown[0]!r}.{nearest(unknown[0], (*MANAGED, *SWITCHES))}"
        )
    return _read(OrderTerms, given)


def _read(kind: type[Read], given: dict[str, Any]) -> Read:
    try:
        return kind(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"][:1]))
        raise ConfigError(f"{name} {given[name]!r}: {first['msg']}" if name else first["msg"]) from error


def _labels(times: npt.NDArray[np.int64]) -> "pd.DatetimeIndex":
    import pandas as pd

    return pd.DatetimeIndex(times, dtype=pd.DatetimeTZDtype("ns", "UTC"))
