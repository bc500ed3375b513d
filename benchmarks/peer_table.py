"""Every engine on the same bars with the same strategy: CPU seconds, memory, and whose trades are equal."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pandas as pd

from benchmarks.comparison import compare
from benchmarks.crossing import COMMON, simulate_trades
from benchmarks.engine import SEED, SIZES, TICK
from benchmarks.peer_runs import Peer, PeerRun, TooSlow, install, run_peer
from benchmarks.peer_settings import PEERS
from benchmarks.walks import walk, walks
from tools.docs_pages import table
from trading_core.bars import BarSeries

CAP_S = 240.0  # wall seconds of one process
MANY = 10
MANY_SIZE = 20_000
PRICE_TOLERANCE = 1e-9

SLOW = frozenset({"backtesting", "nautilus", "backtrader"})


@dataclass(frozen=True)
class Row:
    """One engine on one set of bars; `run` is None when it took too long.

    Attributes:
        peer: the engine.
        run: what it made.
        common: share of its trades equal to this engine's under `COMMON`.
        own: the same with this engine set to the peer's semantics.
    """

    peer: Peer
    run: PeerRun | None
    common: float = 0.0
    own: float = 0.0


@dataclass(frozen=True)
class Block:
    """All engines on one set of bars, this one first."""

    bars: int
    symbols: int
    rows: tuple[Row, ...]


def worlds() -> Iterator[BarSeries]:
    """One symbol at every size, then ten symbols."""
    for size in SIZES:
        yield walk(SEED, size, tick=TICK)
    yield walks(SEED, MANY_SIZE, MANY, tick=TICK)


def repeats_of(peer: Peer, bars: BarSeries) -> int:
    """Runs in one process: few where a run takes seconds."""
    if peer.name not in SLOW:
        return 6
    return 1 if bars.bar_count > 200_000 else 3


def time_peers(tell: Callable[[str], object]) -> list[Block]:
    """Every engine on every world, one process each.

    Args:
        tell: hears what is being timed.
    """
    for peer in PEERS:
        install(peer)
    return [time_world(bars, tell) for bars in worlds()]


def time_world(bars: BarSeries, tell: Callable[[str], object]) -> Block:
    """Every engine on these bars."""
    common = simulate_trades(bars, COMMON)
    rows = []
    for peer in PEERS:
        tell(f"{peer.title}: {bars.shape[0]:,} bars of {bars.shape[1]} symbol(s)")
        rows.append(time_one(peer, bars, common))
    return Block(bars.shape[0], bars.shape[1], tuple(rows))


def time_one(peer: Peer, bars: BarSeries, common: pd.DataFrame) -> Row:
    """One engine on these bars, held against this engine's trades."""
    try:
        run = run_peer(peer, bars, repeats=repeats_of(peer, bars), cap_s=CAP_S)
    except TooSlow:
        return Row(peer, None)
    own = common if peer.switches == COMMON else simulate_trades(bars, peer.switches)
    shares = [compare(ours, run.trades, PRICE_TOLERANCE).share for ours in (common, own)]
    return Row(peer, run, *shares)


def peer_tables(blocks: list[Block]) -> str:
    """One table a world; ratios are CPU seconds over those of this engine."""
    return "\n\n".join(_title(block) for block in blocks)


HEAD = (
    "engine", "CPU s, median", "bars per CPU s", "times this engine's", "first run, CPU s", "peak MB",
    "trades", "equal, same settings", "equal, its settings",
)  # fmt: skip


def _title(block: Block) -> str:
    word = "symbol" if block.symbols == 1 else "symbols"
    base = block.rows[0].run
    unit = base.median_s if base is not None else float("nan")
    lines = [_line(row, block.bars * block.symbols, unit) for row in block.rows]
    return f"### {block.bars:,} bars, {block.symbols} {word}\n\n{table(HEAD, lines)}"


def _line(row: Row, count: int, unit: float) -> tuple[str, ...]:
    run = row.run
    if run is None:
        return (row.peer.title, f"more than {CAP_S:.0f} s wall", *("" for _ in HEAD[2:]))
    return (
        f"{row.peer.title} {run.version}",
        f"{run.median_s:.4f}",
        f"{count / run.median_s:,.0f}",
        f"{run.median_s / unit:,.1f}",
        f"{run.first_s:.2f}",
        f"{run.peak_mb:,.0f}",
        f"{len(run.trades):,}",
        f"{row.common:.1%}",
        f"{row.own:.1%}",
    )
