"""A trigger engine on a hand-made market, with rule columns given as plain lists instead of rule texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from schemas.config import EnvelopeSettings, ExecutionSettings
from schemas.reflection import TickValidationEvent
from trading_core.bars import BarSeries
from trading_core.kernel.fresh import parameter_record
from trading_core.tick_events import PolicyTag, TickEventDecoder
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import Advance, PolicyOrders, TriggerEngine

NO_COSTS = ExecutionSettings(fee_bps=0.0, slippage_bps=0.0)


def engine_on(
    bars: BarSeries,
    *,
    flags: Any = None,
    heartbeat: int = 0,
    execution: ExecutionSettings = NO_COSTS,
    envelope: EnvelopeSettings | None = None,
    cash: float = 100_000.0,
) -> TriggerEngine:
    """An engine before its first bar."""
    parameters = parameter_record(
        execution, envelope or EnvelopeSettings(), heartbeat=heartbeat, emit_events=True
    )
    shape = bars.shape
    flags = np.zeros(shape, dtype=np.uint8) if flags is None else np.asarray(flags, dtype=np.uint8)
    return TriggerEngine(
        bars, flags, parameters, cash, TickGuard(), TickEventDecoder(bars, "config", "paper")
    )


def install(
    engine: TriggerEngine,
    *,
    s: int = 0,
    direction: int = 1,
    setup: Sequence[int] = (),
    activation: Sequence[int] | None = None,
    invalidation: Sequence[int] = (),
    stop: float | Sequence[float] = 95.0,
    target: float | Sequence[float] = 110.0,
    refinement: Sequence[float] | None = None,
    window: int = 3,
    horizon: int = 20,
    name: str = "policy",
    **more: Any,
) -> tuple[TickValidationEvent, ...]:
    """Install a policy whose rules are true at the given rows."""
    rows = engine.bars.shape[0]
    bank = engine.columns

    def truth(role: str, where: Sequence[int] | None) -> int:
        if where is None:
            return -1
        column = np.zeros(rows, dtype=np.int8)
        column[list(where)] = 1
        return bank.truth((f"{name} {role}", s), column)

    def number(role: str, value: float | Sequence[float] | None) -> int:
        if value is None:
            return -1
        return bank.number(
            (f"{name} {role}", s), np.broadcast_to(np.asarray(value, dtype=np.float64), (rows,)).copy()
        )

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
            window=window,
            horizon=horizon,
            risk_fraction=0.005,
            **more,
        ),
    )


def run_all(engine: TriggerEngine, until: int | None = None) -> list[Advance]:
    """Advance to the end, boundary by boundary."""
    end = engine.bars.shape[0] if until is None else until
    steps = []
    while engine.t < end:
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
