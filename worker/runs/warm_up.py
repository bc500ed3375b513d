"""Compile the engine before the clock of a run starts, and say how long that took.

Everything compiled is called once on a few bars, so that loading from the disk cache, or compiling on a
fresh machine, is measured apart from the engine.
"""

import hashlib
import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

import numpy as np
import numpy.typing as npt

from services.memory.scan import LANES, count, nothing_found, scan
from services.memory.store import room
from services.statistics.blocks import Trades
from services.statistics.track import Bounds, Track
from trading_core.bars import BarSeries
from trading_core.compiled import EngineImage, try_out
from trading_core.compiled_cache import full_mark, why_nothing_is_kept
from trading_core.features.program import NodeProgram
from trading_core.features.registry import resolve
from trading_core.kernel.execution import on_tick
from trading_core.regime import regime_columns
from trading_core.research.simulation import simulate
from trading_core.research.sweep import run_sets

BARS = 300
DAY_NS = 86_400_000_000_000
DIGITS = 6  # of what the engine says: the last bits of a logarithm are the machine's

UNKNOWN = -1e9


@cache
def compile_engine() -> float:
    """Wall seconds until kernel, features, memory and gate are ready; 0 when they were before."""
    started, tell = time.perf_counter(), logging.getLogger(__name__).warning
    if reason := why_nothing_is_kept():
        tell("%s: set THINKTWICE_CACHE_DIR to a folder that stays", reason)
    try_out(call_everything, EngineImage(tell=tell))
    with suppress(OSError):  # a folder that takes no mark keeps no compiled code either
        full_mark().touch()
    return time.perf_counter() - started


def call_everything() -> str:
    """Digest of what everything compiled says of a few bars: the same wherever it computes rightly."""
    bars, digest = _few_bars(), hashlib.sha256()
    for values in (*_regimes(bars), *_trades(bars), *_cases(), *_blocks(), *_nodes(bars)):
        rounded = np.round(np.asarray(values, dtype=np.float64), DIGITS) + 0.0
        digest.update(np.nan_to_num(rounded, nan=UNKNOWN).tobytes())
    return digest.hexdigest()[:16]


def _regimes(bars: BarSeries) -> Iterator[npt.ArrayLike]:
    yield from vars(regime_columns(bars)).values()


def _trades(bars: BarSeries) -> Iterator[npt.ArrayLike]:
    found = simulate(bars, "crosses_above(ema_5, sma_10)", trail="low - atr_14", exit="bars_held > 9")
    yield from (found.records[name] for name in found.records.dtype.names or ())
    yield found.values
    yield run_sets(bars, [{"entry": "crosses_above(ema_5, sma_10)"}])[0].excess
    yield on_tick(100.07, 0.25)


def _cases() -> Iterator[npt.ArrayLike]:
    cases, found = room(LANES, 1), nothing_found(np.full(3, 4, dtype=np.int64))
    cases.points[0, 0], cases.day[:], cases.kind[:] = (
        _uneven(LANES) / 100.0,
        np.arange(LANES),
        np.arange(LANES) % 3,
    )
    scan(cases, found, np.full(1, 0.5), 0, 0, LANES)
    count(cases, found.counts, 0, 0, LANES)
    yield from (found.rows, found.distances, found.counts)


def _blocks() -> Iterator[npt.ArrayLike]:
    entries = np.arange(BARS, dtype=np.int64) * DAY_NS
    track = Track(Trades(entries, entries, _uneven(BARS) / 50.0 - 0.9), "day", 0.0, Bounds(-3.0, 4.0))
    found = track.interval(track.at(BARS * DAY_NS).blocks)
    yield from (found.lower or 0.0, found.upper or 0.0)


def _nodes(bars: BarSeries) -> Iterator[npt.ArrayLike]:
    program = NodeProgram([resolve("ema_5").node])
    yield program.advance(bars.close.T.copy(), program.initial_state())


def _uneven(count: int) -> npt.NDArray[np.float64]:
    """Whole numbers from 0 to 100 that go up and down, (count,)."""
    steps = np.arange(count, dtype=np.int64)
    return (steps * steps * 7 % 101).astype(np.float64)


def _few_bars() -> BarSeries:
    close = (100.0 + np.cumsum(_uneven(BARS) - 50.0) / 25.0).reshape(-1, 1)
    present = np.ones((BARS, 1), dtype=np.bool_)
    times = np.arange(BARS, dtype=np.int64) * DAY_NS
    return BarSeries(
        times, ("X",), "1d", "open", close, close + 1.0, close - 1.0, close.copy(), close.copy(), present
    )
