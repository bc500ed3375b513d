"""Compile the engine before the clock of a run starts, and say how long that took.

Everything compiled is called once on a few bars, so that loading from the disk cache, or compiling on a
fresh machine, is measured apart from the engine.
"""

import time
from contextlib import suppress
from functools import cache

import numpy as np

from schemas.settings import EnvelopeSettings, ExecutionSettings
from services.memory.scan import LANES, nothing_found, scan
from services.memory.store import room
from services.statistics.blocks import Trades
from services.statistics.track import Bounds, Track
from trading_core.bars import BarSeries
from trading_core.compiled_cache import full_mark
from trading_core.kernel.flags import event_flags
from trading_core.kernel.fresh import parameter_record
from trading_core.regime import regime_columns
from trading_core.tick_events import TickEventDecoder
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import TriggerEngine

BARS = 8
DAY_NS = 86_400_000_000_000


@cache
def compile_engine() -> float:
    """Wall seconds until kernel, features, memory and gate are ready; 0 when they were before."""
    started = time.perf_counter()
    bars = _few_bars()
    regimes = regime_columns(bars)
    decoder = TickEventDecoder(bars, "", "")
    parameters = parameter_record(ExecutionSettings(), EnvelopeSettings(), heartbeat=0, emit_events=True)
    engine = TriggerEngine(bars, event_flags(regimes.flags), parameters, 1.0, TickGuard(), decoder)
    while not engine.done:
        engine.advance()
    scan(room(LANES, 1), nothing_found(np.ones(3, dtype=np.int64)), np.zeros(1), 0, 0, 0)
    _weigh_a_few_blocks()
    with suppress(OSError):  # a folder that takes no mark keeps no compiled code either
        full_mark().touch()
    return time.perf_counter() - started


def _weigh_a_few_blocks() -> None:
    entries = np.arange(BARS, dtype=np.int64) * DAY_NS
    outcomes = np.where(np.arange(BARS) < BARS // 2, 1.0, -1.0)
    track = Track(Trades(entries, entries, outcomes), "day", 0.0, Bounds(-3.0, 4.0))
    track.interval(track.at(BARS * DAY_NS).blocks)


def _few_bars() -> BarSeries:
    close = np.linspace(100.0, 101.0, BARS).reshape(-1, 1)
    present = np.ones((BARS, 1), dtype=np.bool_)
    times = np.arange(BARS, dtype=np.int64) * DAY_NS
    return BarSeries(
        times, ("X",), "1d", "open", close, close + 1.0, close - 1.0, close.copy(), close.copy(), present
    )
