"""The other engines, and the settings of `simulate` that come nearest to how each of them fills.

Read by the benchmark, by the page docs/explanation/other-engines.md and by the parity command.
"""

from benchmarks.crossing import COMMON, Switches
from benchmarks.peer_runs import Peer
from tools.docs_pages import table

TICK = 0.01
CENT = 0.01

# On the bar where time is up these two look at stop and target before the exit that is due at the open, and
# both know the position only from the bar after its entry.
_VECTORBT: Switches = {**COMMON, "entry_bar_exits": False, "time_exit": "after_stops"}
_BACKTRADER: Switches = {**COMMON, "entry_bar_exits": False}
_NAUTILUS: Switches = {
    **COMMON,
    "fill": "close",
    "both_hit": "ohlc",
    "gap": "level",
    "time_exit": "close",
    "tick_size": TICK,
    "fee_rounding": CENT,
}

US = Peer("thinktwice", "thinktwice", switches=COMMON)
BACKTRADER = Peer("backtrader", "backtrader", switches=_BACKTRADER)
VECTORBT = Peer("vectorbt, numba signal function", "vectorbt", form="numba_function", switches=_VECTORBT)
BACKTESTING = Peer("backtesting.py", "backtesting", switches=COMMON)
NAUTILUS = Peer("nautilus_trader", "nautilus", switches=_NAUTILUS, tick=TICK)
PEERS = (
    US,
    Peer("vectorbt, Rust", "vectorbt", form="rust", switches=_VECTORBT),
    Peer("vectorbt, numba", "vectorbt", form="numba", switches=_VECTORBT),
    VECTORBT,
    BACKTESTING,
    NAUTILUS,
    BACKTRADER,
)


def switches_table() -> str:
    """What to pass to `simulate`, one line per engine."""
    rows = [(peer.title, _arguments(peer)) for peer in PEERS if peer is not US and peer.form != "numba"]
    return table(("engine", "arguments of `simulate`"), rows)


def _arguments(peer: Peer) -> str:
    given = {name: value for name, value in peer.switches.items() if name != "cash"}
    return ", ".join(f"`{name}={value!r}`" for name, value in given.items())
