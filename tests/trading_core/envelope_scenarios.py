"""Markets made by hand in which the limits of the envelope break; each scenario plays one to its end."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from schemas.settings import CorrelationBucket, EnvelopeSettings
from schemas.tick_validation import TickValidationEvent
from tests.trading_core.engine_bench import FLAT, WIDE, engine_on, install, run_all
from tests.trading_core.market import Row, panel
from trading_core.kernel.records import FLAG_NO_TRADE
from trading_core.trigger_engine import TriggerEngine

Rows = list[Row | None]
Played = tuple[TriggerEngine, list[TickValidationEvent]]
FAR: dict[str, Any] = {"stop": 50.0, "target": 200.0, "horizon": 90}
LOW, HIGH = (90.0, 91.0, 89.0, 90.0), (130.0, 131.0, 129.0, 130.0)
FALL, RISE = (100.0, 100.0, 89.0, 90.0), (100.0, 131.0, 100.0, 130.0)
NAN = float("nan")


def limits_of(**limits: Any) -> EnvelopeSettings:
    """Limits that no market reaches, but for the given ones."""
    return WIDE.model_copy(update={"cooldown_bars": 1, **limits})


def flat(count: int) -> Rows:
    """Bars on which nothing happens."""
    return [FLAT] * count


def engine_of(
    markets: dict[str, Rows], timeframe: str = "1d", cash: float = 100_000.0, **limits: Any
) -> TriggerEngine:
    """An engine before its first bar, under these limits alone."""
    return engine_on(panel(markets, timeframe), envelope=limits_of(**limits), cash=cash)


def order(engine: TriggerEngine, symbol: str, rows: list[int], **policy: Any) -> None:
    """A policy that orders at the close of the given rows, as long as it is in force.

    By itself it is ten units at 100 for an account of 100,000.
    """
    install(
        engine,
        s=engine.bars.symbols.index(symbol),
        setup=rows,
        **{"immediate": True, "name": f"policy of {symbol}", **FAR, **policy},
    )


def rest_of(engine: TriggerEngine, until: int | None = None) -> Iterator[TickValidationEvent]:
    """Events of the bars that are left, up to a row."""
    for step in run_all(engine, until):
        yield from step.events


def daily_loss() -> Played:
    """A fall within the day; the next day may trade again."""
    engine = engine_of({"X": [*flat(4), FALL, *[LOW] * 4], "Y": flat(9)}, "4h", max_daily_loss=0.0005)
    order(engine, "X", [2])
    order(engine, "Y", [5, 6])
    return engine, [*rest_of(engine)]


def drawdown() -> Played:
    """A fall that halts for three bars, after which risk is halved."""
    limits: dict[str, Any] = {"max_drawdown": 0.0005, "drawdown_release_bars": 3, "recovery_bars": 2}
    engine = engine_of({"X": [*flat(4), FALL, *[LOW] * 8], "Y": flat(13)}, **limits)
    order(engine, "X", [2])
    order(engine, "Y", [7, 8])
    return engine, [*rest_of(engine)]


def losses_in_a_row() -> Played:
    """Two symbols lose on one bar, a third is flattened, a fourth waits."""
    limits: dict[str, Any] = {"max_consecutive_losses": 2, "loss_pause_bars": 3}
    markets = {"X": [*flat(4), FALL, *[LOW] * 5], "Y": [*flat(4), FALL, *[LOW] * 5]}
    engine = engine_of({**markets, "W": flat(10), "Z": flat(10)}, **limits)
    for symbol in ("X", "Y"):
        order(engine, symbol, [2], stop=95.0)
    order(engine, "W", [2])
    order(engine, "Z", [7, 8])
    return engine, [*rest_of(engine)]


def losses_of_a_symbol() -> Played:
    """One loss pauses its symbol and no other."""
    limits: dict[str, Any] = {"max_symbol_losses": 1, "loss_pause_bars": 3}
    engine = engine_of({"X": [*flat(4), (100.0, 101.0, 94.0, 100.0), *flat(5)], "Y": flat(10)}, **limits)
    order(engine, "X", [2, 5, 6, 7], stop=95.0, never_ends=True)
    order(engine, "Y", [5])
    return engine, [*rest_of(engine)]


def drifts(**limits: Any) -> Played:
    """X rises beyond what Y leaves room for."""
    engine = engine_of({"X": [*flat(4), RISE, *[HIGH] * 4], "Y": flat(9)}, **limits)
    order(engine, "X", [2])
    order(engine, "Y", [4, 5, 6])
    return engine, [*rest_of(engine)]


def gross_exposure() -> Played:
    """Of X alone."""
    return drifts(max_gross_exposure=0.009)


def net_exposure() -> Played:
    """Of X alone."""
    return drifts(max_net_exposure=0.009)


def bucket_exposure() -> Played:
    """Of X and Y together."""
    return drifts(
        correlation_buckets=(CorrelationBucket(name="both", symbols=("X", "Y"), max_exposure=0.009),)
    )


def symbol_exposure() -> Played:
    """Each symbol has a cap of its own."""
    engine = engine_of({"X": flat(5), "Y": flat(5)}, max_symbol_exposure=0.009)
    for symbol in ("X", "Y"):
        order(engine, symbol, [2])
    return engine, [*rest_of(engine)]


def net_exposure_of_both_sides() -> Played:
    """A short makes room for a long."""
    engine = engine_of({"X": flat(6), "Y": flat(6)}, max_net_exposure=0.009)
    order(engine, "X", [2], direction=-1, stop=150.0, target=50.0)
    order(engine, "Y", [3], risk_fraction=0.0085)
    return engine, [*rest_of(engine)]


def risk_cap() -> Played:
    """Four times the risk that a trade may take."""
    engine = engine_of({"X": flat(5)}, risk_fraction=0.005)
    order(engine, "X", [2], risk_fraction=0.02)
    return engine, [*rest_of(engine)]


def throttle() -> Played:
    """Two orders an hour."""
    engine = engine_of({name: flat(9) for name in "XYZ"}, "15m", max_entries_per_hour=2)
    for symbol, rows in {"X": [2], "Y": [3], "Z": [3, 5, 6]}.items():
        order(engine, symbol, rows)
    return engine, [*rest_of(engine)]


def kill_switch() -> Played:
    """X holds, Y rests, Z is armed; the switch goes on after row 5 and off after row 8."""
    engine = engine_of({name: flat(12) for name in "WXYZ"})
    order(engine, "X", [2])
    order(engine, "Y", [4], entry_kind="limit", entry=80.0, window=9)
    order(engine, "Z", [4], immediate=False, activation=[7])
    order(engine, "W", [7, 9])
    events = [*rest_of(engine, 6)]
    engine.set_kill_switch(True)
    events += rest_of(engine, 9)
    engine.set_kill_switch(False)
    return engine, [*events, *rest_of(engine)]


def kill_switch_before_the_fill() -> Played:
    """The order of the last bar is never filled."""
    engine = engine_of({"X": flat(7)})
    order(engine, "X", [3])
    events = [*rest_of(engine, 4)]
    engine.set_kill_switch(True)
    return engine, [*events, *rest_of(engine)]


def everything_at_once() -> Played:
    """A short against a rise: the day, the drawdown and the exposure."""
    engine = engine_of(
        {"X": [*flat(4), FALL, *[LOW] * 3]}, max_daily_loss=0.0005, max_drawdown=0.0005,
        max_gross_exposure=0.02, max_exposure_drift=0.0,
    )  # fmt: skip
    order(engine, "X", [2], direction=-1, stop=190.0, target=20.0, risk_fraction=0.02)
    engine.bars.close[4, 0] = engine.bars.high[4, 0] = engine.bars.open[5, 0] = engine.bars.high[5, 0] = 120.0
    return engine, [*rest_of(engine)]


def account_gone() -> Played:
    """A short against a bar that opens a hundred times as high: nothing is left, whatever else broke."""
    engine = engine_of({"X": [*flat(4), (10_200.0, 10_300.0, 10_100.0, 10_200.0), *[LOW] * 3]})
    order(engine, "X", [2], direction=-1, stop=190.0, target=20.0, risk_fraction=0.02)
    return engine, [*rest_of(engine)]


def levels() -> Played:
    """Four policies whose levels cannot be."""
    engine = engine_of({name: flat(6) for name in "UVXY"})
    order(engine, "U", [2], stop=101.0)
    order(engine, "V", [2], stop=100.0)
    order(engine, "X", [2], stop=NAN)
    order(engine, "Y", [2], target=NAN)
    return engine, [*rest_of(engine)]


def too_little_reward() -> Played:
    """Three units of risk for two of reward, where a reward of 0.8 is asked for."""
    engine = engine_on(panel({"X": flat(6)}), envelope=limits_of(), least_reward=0.8)
    order(engine, "X", [2], stop=97.0, target=102.0)
    return engine, [*rest_of(engine)]


def added_to_and_ended_by_a_rule() -> Played:
    """A position that is added to at one R, then ended by its exit rule."""
    ahead: Rows = [(100.0, 105.0, 99.5, 105.0), (105.0, 106.0, 104.0, 105.0)]
    engine = engine_of({"X": [*flat(4), *ahead, *[ahead[1]] * 3]})
    order(engine, "X", [2], stop=95.0, add_at_r=1.0, add_share=0.5, exit_rule=[6])
    return engine, [*rest_of(engine)]


def resting_orders() -> Played:
    """One runs out of time, one is invalidated, one meets a no-trade window, one is retired."""
    bars = panel({name: flat(8) for name in "UVXY"})
    flags = np.zeros(bars.shape, dtype=np.uint8)
    flags[4, 2] = FLAG_NO_TRADE
    engine = engine_on(bars, envelope=limits_of(), flags=flags)
    limit: dict[str, Any] = {"entry_kind": "limit", "entry": 90.0, "window": 2}
    order(engine, "U", [2], **limit)
    order(engine, "V", [2], **limit, invalidation=[4])
    order(engine, "X", [2], **limit)
    order(engine, "Y", [2], **limit)
    events = [*rest_of(engine, 4)]
    return engine, [*events, *engine.retire(3), *rest_of(engine)]


def a_whole_life() -> Played:
    """Arming, refinement, activation, break-even, scale-out and target; then a policy that never trades."""
    rows: Rows = [*flat(5), (100.0, 107.0, 99.5, 106.0), (106.0, 111.0, 105.0, 110.0), *flat(9)]
    engine = engine_of({"X": rows, "Y": [*flat(4), (100.0, 101.0, 40.0, 100.0), *flat(11)]})
    install(
        engine, setup=[1], activation=[3], refinement=96.0, break_even_r=1.0, scale_outs=((1.0, 0.25),),
    )  # fmt: skip
    order(engine, "Y", [2])
    events = [*rest_of(engine, 8)]
    install(engine, setup=[9], activation=[], window=1, horizon=3, name="second")
    events += rest_of(engine, 13)
    order(engine, "Y", [13], horizon=1, name="third")
    return engine, [*events, *rest_of(engine)]
