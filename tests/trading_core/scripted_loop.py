"""A policy loop without judgement: what it does at a boundary follows from seed, row and symbol.

It drives engines over rules of random worlds: one engine over all bars, or one that grows row by row. Two
engines that see the same bars have to end in the same bits.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from schemas.settings import CorrelationBucket, EnvelopeSettings, ExecutionSettings, NoTradeWindow
from schemas.tick_validation import TickValidationEvent
from tests.trading_core.market import random_series
from trading_core.bars import BarSeries
from trading_core.kernel.execution import on_tick
from trading_core.kernel.flags import event_flags
from trading_core.kernel.fresh import bucket_bits, parameter_record
from trading_core.live.growing_bars import Bar, GrowingBars
from trading_core.live.step import LiveStep
from trading_core.market import Market
from trading_core.policy_orders import EntryKind, PolicyOrders
from trading_core.regime import RegimeTracker
from trading_core.rules import RuleColumns
from trading_core.rules.columns import SharedColumns
from trading_core.rules.grammar import parse
from trading_core.rules.programs import Program, compile_program
from trading_core.tick_events import PolicyTag, TickEventDecoder
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import Advance, TriggerEngine

CONDITIONS = (
    "close > prev(close, 1)", "close < prev(close, 1)", "close > open", "sma_3 > sma_7", "rsi_7 < 55",
    "high > prev(high, 2)",
)  # fmt: skip
INVALIDATIONS = ("close < prev(low, 4)", "close > prev(high, 4)", "rsi_7 > 80")
EXIT_RULES = (
    "open_r > 0.8 and bars_held >= 2", "mfe_r >= 1 and open_r < mfe_r / 2 or mae_r < -0.7",
    "close < best_price * 0.99 and worst_price > 0",
    "close * (1 + 0 * bars_held) > prev(high, 4) and close > entry_price", "rsi_7 > 70",
)  # fmt: skip
BLOCK_ROWS = 9
WINDOW = NoTradeWindow(reason="lunch", from_minute=720, to_minute=840)
OFF = float("nan")

executions = st.builds(
    ExecutionSettings,
    fee_bps=st.sampled_from([0.0, 5.0]),
    maker_fee_bps=st.sampled_from([None, -1.0, 2.0]),
    fee_per_trade=st.sampled_from([0.0, 0.5]),
    fee_rounding=st.sampled_from([0.0, 0.01]),
    slippage_bps=st.sampled_from([0.0, 2.0]),
    spread_bps=st.just(4.0),
    slippage_spread_fraction=st.sampled_from([0.0, 0.5]),
    funding_bps=st.sampled_from([0.0, 1.0, -1.0]),
    borrow_bps=st.sampled_from([0.0, 1.0]),
    fill=st.sampled_from(["next_open", "close"]),
    level_base=st.sampled_from(["fill", "signal_close"]),
    entry_bar_exits=st.booleans(),
    both_hit=st.sampled_from(["stop", "target", "ohlc", "near", "color"]),
    gap=st.sampled_from(["open", "level"]),
    limit_fill=st.sampled_from(["touch", "through"]),
    time_exit=st.sampled_from(["open", "after_stops", "close"]),
    reentry=st.booleans(),
    tick_size=st.sampled_from([0.0, 0.05]),
    lot_size=st.sampled_from([0.0, 1.0]),
    sizing=st.sampled_from(["risk", "volatility", "fixed"]),
    fixed_quantity=st.just(40.0),
)
envelopes = st.builds(
    EnvelopeSettings,
    max_gross_exposure=st.sampled_from([0.5, 1.0, 3.0]),
    max_net_exposure=st.sampled_from([0.4, 3.0]),
    max_symbol_exposure=st.sampled_from([0.3, 3.0]),
    correlation_buckets=st.sampled_from(
        [(), (CorrelationBucket(name="pair", symbols=("S00", "S01"), max_exposure=0.4),)]
    ),
    max_exposure_drift=st.sampled_from([0.0, 0.25]),
    max_daily_loss=st.sampled_from([0.005, 0.5]),
    max_drawdown=st.sampled_from([0.01, 0.5]),
    drawdown_release_bars=st.just(5),
    recovery_bars=st.just(6),
    max_consecutive_losses=st.sampled_from([2, 50]),
    max_symbol_losses=st.sampled_from([2, 50]),
    loss_pause_bars=st.just(4),
    max_entries_per_hour=st.sampled_from([0, 1]),
    max_entries_per_block=st.sampled_from([0, 1, 3]),
    cooldown_bars=st.sampled_from([0, 1, 3]),
    no_trade_windows=st.sampled_from([(), (WINDOW,)]),
)


@dataclass(frozen=True)
class World:
    """Bars, settings and the seed of the script."""

    seed: int
    bars: BarSeries
    execution: ExecutionSettings
    envelope: EnvelopeSettings

    def engine(self) -> TriggerEngine:
        """An engine over all bars, before the first one."""
        columns = RuleColumns(self.bars)
        regime = RegimeTracker(self.bars, features=columns.features)
        flags = event_flags(regime.columns.flags, self.bars, self.envelope.no_trade_windows)
        return self._on(self.bars, columns, flags)

    def live(self, history: int) -> LiveStep:
        """A step whose engine has the first rows and has validated none of them."""
        bars = GrowingBars(first_rows(self.bars, history))
        market, windows = Market.of(bars), self.envelope.no_trade_windows
        engine = self._on(bars, market.columns, event_flags(market.regimes.flags, bars, windows))
        return LiveStep(market, engine, windows)

    def _on(self, bars: BarSeries, columns: RuleColumns, flags: Any) -> TriggerEngine:
        parameters = parameter_record(self.execution, self.envelope, heartbeat=6, emit_events=True)
        return TriggerEngine(
            bars, flags, parameters, 100_000.0, TickGuard(), TickEventDecoder(bars, "config", "paper"),
            columns=SharedColumns(columns),
            buckets=bucket_bits(bars.symbols, self.envelope.correlation_buckets),
            block_edges=self.bars.close_times[::BLOCK_ROWS],
        )  # fmt: skip


@st.composite
def worlds(draw: st.DrawFn, rows: int = 70) -> World:
    """Two or three symbols with gaps, wide and missing bars, under any settings."""
    seed = draw(st.integers(0, 10_000))
    missing = draw(st.sampled_from([0.0, 0.2]))
    bars = random_series(seed, rows, draw(st.integers(2, 3)), missing=missing, timeframe="15m")
    return World(seed, bars, draw(executions), draw(envelopes))


def first_rows(full: BarSeries, rows: int) -> BarSeries:
    """A copy of the first rows."""
    kept = {entry.name: getattr(full, entry.name) for entry in fields(full)}
    cut = {name: value[:rows].copy() for name, value in kept.items() if isinstance(value, np.ndarray)}
    return BarSeries(**{**kept, **cut})


def with_future(full: BarSeries, rows: int, factor: float) -> BarSeries:
    """The same bars up to `rows`, and other ones after."""
    other = first_rows(full, full.shape[0])
    for name in ("open", "high", "low", "close"):
        getattr(other, name)[rows:] *= factor
    return other


def row_of(full: BarSeries, t: int) -> tuple[int, dict[str, Bar]]:
    """Label and bars of one row, as a feed would bring them."""
    values = [getattr(full, name)[t].tolist() for name in ("open", "high", "low", "close", "volume")]
    bars = zip(full.symbols, zip(*values, strict=True), strict=True)
    return int(full.times[t]), {
        symbol: Bar(*bar) for s, (symbol, bar) in enumerate(bars) if full.present[t, s]
    }


@dataclass
class Script:
    """What the loop does at boundaries; call it after every `Advance`."""

    seed: int
    installed: int = 0
    done: list[TickValidationEvent] = field(default_factory=list)

    def __call__(self, engine: TriggerEngine, step: Advance) -> list[TickValidationEvent]:
        """Act on the boundaries of a step; the events that acting made."""
        made: list[TickValidationEvent] = []
        for boundary in step.boundaries:
            rng = np.random.default_rng([self.seed, boundary.t, boundary.s])
            made += self._act(engine, boundary.s, rng)
        return made

    def _act(self, engine: TriggerEngine, s: int, rng: np.random.Generator) -> list[TickValidationEvent]:
        engine.set_kill_switch(bool(rng.random() < 0.03))
        if rng.random() < 0.2:
            engine.request_boundary(s)
        if rng.random() < 0.7:
            engine.mark_evaluated(s)
        st_ = engine.state[s]
        direction, stop, close = int(st_["direction"]), float(st_["stop"]), float(st_["last_close"])
        if direction != 0:
            request = close - (close - stop) * rng.uniform(0.3, 0.9)
            level = float(on_tick(request, float(engine.parameters["tick"][0])))
            if rng.random() < 0.5 and (level - stop) * direction > 0.1 < (close - level) * direction:
                return [engine.tighten_stop(s, level)]
            return []
        choice = rng.random()
        if choice < 0.15:
            return list(engine.retire(s))
        if choice < 0.9:
            self.installed += 1
            return list(engine.install(s, random_orders(engine, s, rng, f"policy {self.installed}")))
        return []


def random_orders(engine: TriggerEngine, s: int, rng: np.random.Generator, name: str) -> PolicyOrders:
    """A policy of any kind, with levels near the market."""
    d = 1 if rng.random() < 0.5 else -1
    near, far = rng.uniform(0.002, 0.008), rng.uniform(0.008, 0.02)

    def truth(texts: tuple[str, ...], share: float = 1.0) -> int:
        text = texts[int(rng.integers(len(texts)))]
        return engine.columns.truth((text, s), _NONE) if rng.random() < share else -1

    def level(move: float, share: float = 1.0) -> int:
        text = f"close * {round(1.0 + d * move, 3)}"
        return engine.columns.number((text, s), _NONE) if rng.random() < share else -1

    def program(texts: tuple[str, ...]) -> Program:
        rule = parse(texts[int(rng.integers(len(texts)))])
        columns = engine.columns
        return compile_program(
            rule, lambda text: columns.truth((text, s), _NONE), lambda text: columns.number((text, s), _NONE)
        )

    kinds: tuple[EntryKind, ...] = ("market", "limit", "stop")
    kind = kinds[int(rng.integers(3))]
    entry = {"market": 0.0, "limit": -near / 2, "stop": near / 2}[kind]
    orders = PolicyOrders(
        tag=PolicyTag(name, "playbook"), direction=d, setup=truth(CONDITIONS),
        activation=truth(CONDITIONS, 0.7), invalidation=truth(INVALIDATIONS, 0.6), stop=level(-far),
        target=level(rng.uniform(0.006, 0.03)), refinement=level(-near / 2, 0.5),
        window=int(rng.integers(1, 5)), horizon=int(rng.integers(1, 12)),
        risk_fraction=float(rng.choice([0.002, 0.005, 0.02])), immediate=bool(rng.random() < 0.3),
        refines_entry=bool(rng.random() < 0.5), entry_kind=kind,
        entry=level(entry) if kind != "market" else -1,
        trail=level(-far * 0.7, 0.4), break_even_r=float(rng.choice([OFF, 0.5, 1.0])),
        volatility=engine.columns.number(("atr_7", s), _NONE),
    )  # fmt: skip
    if rng.random() < 0.4:
        orders = replace(orders, exit_rule=program(EXIT_RULES))
    if rng.random() < 0.3:
        orders = replace(orders, trail=-1, trail_rule=program((f"entry_price * {1.0 - d * far}",)))
    at = float(rng.uniform(0.3, 1.5))
    scales = ((at, 0.4), (at + 0.3, 0.25), (at + 0.4, 0.2))
    if rng.random() < 0.5:
        orders = replace(orders, scale_outs=scales[: int(rng.integers(1, 4))])
    if rng.random() < 0.4:
        orders = replace(orders, add_at_r=float(rng.uniform(0.1, 0.8)), add_share=0.5)
    if rng.random() < 0.3:
        orders = replace(orders, repeats=True)
    if rng.random() < 0.3:
        orders = replace(orders, target_moves=True)
    elif rng.random() < 0.3:
        orders = replace(orders, stop=-1, stop_pct=far, target=-1, target_pct=float(rng.uniform(0.006, 0.03)))
    return orders


_NONE: Any = None  # shared columns compute what they are asked for


def drive(
    engine: TriggerEngine, script: Script, blocks: Iterator[int] | None = None
) -> tuple[list[dict[str, Any]], bytes]:
    """Payloads of all events, and the trades, of an engine driven to its end in blocks of the given sizes."""
    payloads: list[dict[str, Any]] = []
    trades = b""
    while not engine.done:
        step = engine.advance(None if blocks is None else engine.t + next(blocks))
        trades += step.trades.tobytes()
        payloads += [event.payload() for event in (*step.events, *script(engine, step))]
    return payloads, trades


def drive_live(world: World, step: LiveStep, script: Script) -> tuple[list[dict[str, Any]], bytes]:
    """The same, the bars after the history of the step arriving one row at a time."""
    payloads, trades = drive(step.engine, script)
    for t in range(step.bars.shape[0], world.bars.shape[0]):
        for done in step(*row_of(world.bars, t)):
            trades += done.trades.tobytes()
            payloads += [event.payload() for event in (*done.events, *script(step.engine, done))]
    return payloads, trades


def bits(engine: TriggerEngine) -> tuple[bytes, bytes, bytes, bytes]:
    """Everything the engine has computed: symbols, portfolio, equity and exposure of every bar."""
    return (
        engine.state.tobytes(), engine.portfolio.tobytes(), engine.equity.tobytes(), engine.gross.tobytes(),
    )  # fmt: skip
