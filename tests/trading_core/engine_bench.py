"""A trigger engine on a hand-made market, with rule columns given as plain lists instead of rule texts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.settings import EnvelopeSettings, ExecutionSettings
from schemas.tick_validation import TickValidationEvent
from tests.trading_core.market import Row, mirrored, series
from trading_core.bars import BarSeries
from trading_core.kernel.fresh import bucket_bits, parameter_record
from trading_core.kernel.records import NO_PROGRAM, STEP_TRUTH
from trading_core.policy_orders import EntryKind, PolicyOrders
from trading_core.rules.columns import RuleColumns
from trading_core.rules.orders import SymbolColumns
from trading_core.tick_events import PolicyTag, TickEventDecoder
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import Advance, TriggerEngine

NO_COSTS = ExecutionSettings(fee_bps=0.0, slippage_bps=0.0)
FLAT = (100.0, 101.0, 99.0, 100.0)
Level = float | Sequence[float] | npt.NDArray[np.float64] | None


def engine_on(
    bars: BarSeries,
    *,
    flags: Any = None,
    heartbeat: int = 0,
    execution: ExecutionSettings = NO_COSTS,
    envelope: EnvelopeSettings | None = None,
    cash: float = 100_000.0,
    **rewards: float,
) -> TriggerEngine:
    """An engine before its first bar; `rewards` are `least_reward` and `side_cost` of the parameters."""
    envelope = envelope or EnvelopeSettings()
    parameters = parameter_record(execution, envelope, heartbeat=heartbeat, emit_events=True, **rewards)
    shape = bars.shape
    flags = np.zeros(shape, dtype=np.uint8) if flags is None else np.asarray(flags, dtype=np.uint8)
    return TriggerEngine(
        bars, flags, parameters, cash, TickGuard(), TickEventDecoder(bars, "config", "paper"),
        buckets=bucket_bits(bars.symbols, envelope.correlation_buckets),
    )  # fmt: skip


def install(
    engine: TriggerEngine,
    *,
    s: int = 0,
    direction: int = 1,
    setup: Sequence[int] | None = (),
    activation: Sequence[int] | None = None,
    invalidation: Sequence[int] = (),
    stop: Level = 95.0,
    target: Level = 110.0,
    refinement: Level = None,
    entry: Level = None,
    entry_kind: EntryKind = "market",
    trail: Level | str = None,
    exit_rule: str | Sequence[int] | None = None,
    volatility: Level = None,
    window: int = 3,
    horizon: int = 20,
    risk_fraction: float = 0.005,
    name: str = "policy",
    **more: Any,
) -> tuple[TickValidationEvent, ...]:
    """Install a policy whose rules are true at the given rows and whose levels are given by row.

    An exit or trail that is a text is a rule over the bars and the position.
    """
    rows = engine.bars.shape[0]
    bank = engine.columns

    def truth(role: str, where: Sequence[int] | None) -> int:
        if where is None:
            return -1
        column = np.zeros(rows, dtype=np.int8)
        column[list(where)] = 1
        return bank.truth((f"{name} {role}", s), column)

    def number(role: str, value: Level) -> int:
        if value is None:
            return -1
        return bank.number(
            (f"{name} {role}", s), np.broadcast_to(np.asarray(value, dtype=np.float64), (rows,)).copy()
        )

    place = SymbolColumns(RuleColumns(engine.bars), bank, s)
    if isinstance(trail, str):
        more["trail_rule"], trail = place.program(trail, "number"), None
    if isinstance(exit_rule, str):
        more["exit_rule"] = place.program(exit_rule, "boolean")
    elif exit_rule is not None:
        more["exit_rule"] = NO_PROGRAM.copy()
        more["exit_rule"][:2] = STEP_TRUTH, truth("exit", exit_rule)
    return engine.install(
        s,
        PolicyOrders(
            tag=PolicyTag(name, "playbook"),
            direction=direction,
            setup=truth("setup", setup),
            activation=truth("activation", activation),
            invalidation=truth("invalidation", invalidation),
            stop=number("stop", stop),
            target=number("target", target),
            refinement=number("refinement", refinement),
            entry=number("entry", entry),
            entry_kind=entry_kind,
            trail=number("trail", trail),
            volatility=number("volatility", volatility),
            window=window,
            horizon=horizon,
            risk_fraction=risk_fraction,
            **more,
        ),
    )


def run_all(engine: TriggerEngine, until: int | None = None) -> list[Advance]:
    """Advance to the end, of the bars or of the account, boundary by boundary."""
    end = engine.bars.shape[0] if until is None else until
    steps = []
    while engine.t < end and not engine.done:
        steps.append(engine.advance(end))
    return steps


def kinds(steps: list[Advance]) -> list[str]:
    """Event kinds in order, state transitions spelled FROM>TO."""
    found = []
    for step in steps:
        for event in step.events:
            detail = event.detail
            found.append(
                f"{detail['from']}>{detail['to']}" if event.kind == "state_transition" else str(event.kind)
            )
    return found


@dataclass(frozen=True)
class Play:
    """One policy of one symbol on a hand-made market, after its last bar."""

    engine: TriggerEngine
    direction: int
    steps: list[Advance]

    @property
    def trades(self) -> npt.NDArray[Any]:
        """Closed trades."""
        return np.concatenate([step.trades for step in self.steps])

    def details(self, kind: str) -> list[dict[str, Any]]:
        """Details of the events of a kind."""
        return [dict(event.detail) for step in self.steps for event in step.events if event.kind == kind]

    def story(self) -> list[str]:
        """See `story`; prices of a short are mirrored back, so that both sides tell the same."""
        shown = story(self.engine, self.steps, lambda price: price if self.direction > 0 else 200.0 - price)
        return [line.replace(" X ", " ", 1) for line in shown]


def story(
    engine: TriggerEngine,
    events: Iterable[Advance | TickValidationEvent],
    shown: Callable[[float], float] = float,
) -> list[str]:
    """What happened to orders, positions and limits, one line each: row, symbol, what, numbers."""
    rows = {int(label): t for t, label in enumerate(engine.bars.times.tolist())}
    lines = []
    for entry in events:
        for event in entry.events if isinstance(entry, Advance) else (entry,):
            line = _shown(str(event.kind), dict(event.detail), shown)
            if line is not None:
                lines.append(
                    " ".join([str(rows[event.bar_label]), *([event.symbol] if event.symbol else []), line])
                )
    return lines


def _shown(kind: str, detail: dict[str, Any], shown: Callable[[float], float]) -> str | None:
    price = {
        name: f"{shown(value):.10g}"
        for name, value in detail.items()
        if name in ("price", "stop", "entry") and value is not None
    }
    if kind == "entry_filled":
        return f"entry {price['price']}"
    if kind == "exit_filled":
        return f"exit {detail['reason']} {price['price']}"
    if kind == "add_filled":
        return f"added {price['price']} x{detail['quantity']:.10g}"
    if kind == "scale_out_filled":
        return f"scaled {price['price']} x{detail['quantity']:.10g}"
    if kind == "order_refused":
        return f"refused {detail['reason']}"
    if kind == "exit_rule_hit":
        return "exit rule"
    if kind == "order_clamped":
        return f"clamped {' '.join(detail['clamps'])}"
    if kind == "stop_tightened":
        return f"stop {price['stop']} by {detail['by']}"
    if kind == "entry_refined":
        level = "entry" if "entry" in detail else "stop"
        return f"refined {level} {price[level]}"
    if kind in ("envelope_breach", "envelope_released"):
        return f"{kind.removeprefix('envelope_')} {detail['limit']}"
    return {"thesis_expired": "expired", "invalidation_hit": "invalidated"}.get(kind)


def play(
    rows: Sequence[Row],
    direction: int = 1,
    *,
    flags: Any = None,
    execution: dict[str, Any] | None = None,
    envelope: EnvelopeSettings | None = None,
    timeframe: str = "1d",
    rewards: dict[str, Any] | None = None,
    until: int | None = None,
    **policy: Any,
) -> Play:
    """Two flat bars with the setup at row 1, then `rows`; row 2 is the first of them.

    The activation is true at row 2 unless told otherwise, so the order meets the bar of row 3. A short trades
    the market mirrored at 100, with its levels mirrored too.
    """
    given: dict[str, Any] = {"setup": [1], "activation": [2], "stop": 95.0, "target": 110.0, **policy}
    market = [FLAT, FLAT, *rows]
    if direction < 0:
        market = mirrored(market)
        for name in ("stop", "target", "refinement", "entry", "trail"):
            if given.get(name) is not None and not isinstance(given[name], str):
                given[name] = 200.0 - np.asarray(given[name], dtype=np.float64)
    bars = series(market, timeframe=timeframe)
    settings = ExecutionSettings(**{"fee_bps": 0.0, "slippage_bps": 0.0, **(execution or {})})
    engine = engine_on(bars, flags=flags, execution=settings, envelope=envelope or WIDE, **(rewards or {}))
    install(engine, direction=direction, **given)
    return Play(engine, direction, run_all(engine, until))


# Limits that no hand-made market of one symbol reaches: what they do is tested on its own.
WIDE = EnvelopeSettings(
    risk_fraction=0.02, max_gross_exposure=10.0, max_net_exposure=10.0, max_symbol_exposure=10.0,
    max_daily_loss=0.9, max_drawdown=0.9,
)  # fmt: skip
