"""The portfolio envelope, compiled: when entries are blocked, what breaks a limit, and how a halt ends.

Every breach is an event of the bar in which it happened.
"""

from typing import Any, Final

from trading_core.compiled import compiled, inlined
from trading_core.kernel.records import BREACHES, NEVER

BREACH_DAILY: Final = BREACHES.index("daily_loss")
BREACH_DRAWDOWN: Final = BREACHES.index("drawdown")
BREACH_GROSS: Final = BREACHES.index("gross_exposure")
BREACH_KILL: Final = BREACHES.index("kill_switch")
BREACH_NET: Final = BREACHES.index("net_exposure")
BREACH_BUCKET: Final = BREACHES.index("bucket_exposure")
BREACH_LOSSES: Final = BREACHES.index("consecutive_losses")
HOUR_NS: Final = 3_600_000_000_000
_NEVER: Final = NEVER


@compiled
def is_halted(port: Any, t: int) -> bool:
    """Whether entries are blocked at row t of the portfolio's present UTC day."""
    blocked: bool = port.kill == 1 or port.halt_day >= port.day or port.halt_until >= t
    return blocked


@inlined
def is_gone(port: Any, p: Any) -> bool:
    """Whether nothing is left at this close; rule research and shadow ledgers have no account to lose."""
    gone: bool = p.limited == 1 and port.equity <= 0.0
    return gone


@compiled
def is_throttled(port: Any, moment: int, p: Any) -> bool:
    """Whether the last hour, or the block of the bar, has had as many accepted orders as it may have."""
    if p.max_block_entries > 0 and port.block_entries >= p.max_block_entries:
        return True
    if p.max_entries == 0 or port.entries < p.max_entries:
        return False
    oldest = port.recent[(port.entries - p.max_entries) % port.recent.shape[0]]
    within: bool = moment - oldest < HOUR_NS
    return within


@compiled
def count_entry(port: Any, moment: int) -> None:
    """Remember when an order was accepted."""
    port.recent[port.entries % port.recent.shape[0]] = moment
    port.entries += 1
    port.block_entries += 1


@compiled
def start_block(port: Any, edges: Any, closes_at: int) -> None:
    """A new block: accepted orders count from here, and what rests already counts, as it may fill in it.

    Args:
        port: portfolio record.
        edges: int64 (E,), ascending: closes, ns, from which a bar belongs to the next block.
        closes_at: ns, close of the block's first bar.
    """
    port.block_entries = port.orders
    first, last = 0, edges.shape[0]
    while first < last:
        middle = (first + last) // 2
        if edges[middle] <= closes_at:
            first = middle + 1
        else:
            last = middle
    port.block_ends = edges[first] if first < edges.shape[0] else _NEVER


@compiled
def fullest_bucket(state: Any, p: Any) -> float:
    """Largest bucket exposure as a multiple of its cap, before dividing by equity."""
    most = 0.0
    for bucket in range(p.buckets):
        held = 0.0
        for s in range(state.shape[0]):
            st = state[s]
            if st.direction != 0 and st.buckets >> bucket & 1:
                held += st.quantity * st.last_close
        most = max(most, held / p.bucket_caps[bucket])
    return most


@inlined
def needs_attention(port: Any, p: Any) -> bool:
    """Whether anything but the running peak may have changed; the quick look of every bar."""
    equity = port.equity
    attention: bool = port.kill == 1 or (
        p.limited == 1
        and (
            port.day_start - equity >= p.max_daily_loss * port.day_start
            or port.peak - equity >= p.max_drawdown * port.peak
            or port.gross > p.gross_breach * equity
            or abs(port.net) > p.net_breach * equity
            or port.losses >= p.max_losses
            or port.recovery_from >= 0
            or port.exposure_halt == 1
            or p.buckets > 0
        )
    )
    return attention


@compiled
def breach_of(state: Any, port: Any, t: int, p: Any) -> int:
    """Index into `BREACHES` of a limit newly broken at this close, or -1. Called after marking to market."""
    if port.kill == 1:
        return BREACH_KILL if port.kill_seen == 0 else -1
    if port.halt_day < port.day and port.day_start - port.equity >= p.max_daily_loss * port.day_start:
        return BREACH_DAILY
    if port.recovery_from <= t and port.peak - port.equity >= p.max_drawdown * port.peak:
        return BREACH_DRAWDOWN
    if port.losses >= p.max_losses:
        return BREACH_LOSSES
    if port.exposure_halt == 1:
        return -1
    if port.gross > p.gross_breach * port.equity:
        return BREACH_GROSS
    if abs(port.net) > p.net_breach * port.equity:
        return BREACH_NET
    if p.buckets > 0 and fullest_bucket(state, p) > p.bucket_breach * port.equity:
        return BREACH_BUCKET
    return -1


@compiled
def start_halt(port: Any, breach: int, t: int, p: Any) -> None:
    """Block entries as the breach demands.

    The day, a number of bars, or until the operator releases the switch.
    """
    if breach == BREACH_KILL:
        port.kill_seen = 1
    elif breach == BREACH_DAILY:
        port.halt_day = port.day
    elif breach == BREACH_DRAWDOWN:
        port.halt_until = max(port.halt_until, t + p.release_bars)
        port.recovery_from = t + p.release_bars
        port.recovery_high = 0.0
    elif breach == BREACH_LOSSES:
        port.losses = 0
        port.halt_until = max(port.halt_until, t + p.loss_pause)
    else:
        port.exposure_halt = 1
        port.halt_until = max(port.halt_until, t + 1)


@compiled
def follow_recovery(state: Any, port: Any, t: int, p: Any) -> bool:
    """Keep the books of a drawdown's aftermath; True on the bar of the release.

    From the release the peak starts anew, and risk stays halved until equity passes its high of the release
    and the `recovery_bars` bars after it. An exposure halt ends below every cap.
    """
    if (
        port.exposure_halt == 1
        and port.gross <= p.max_gross * port.equity
        and abs(port.net) <= p.max_net * port.equity
        and (p.buckets == 0 or fullest_bucket(state, p) <= port.equity)
    ):
        port.exposure_halt = 0
    if port.recovery_from < 0 or t < port.recovery_from:
        return False
    if t == port.recovery_from:
        port.peak = port.equity
        port.recovery_high = port.equity
        return True
    if t <= port.recovery_from + p.recovery_bars:
        port.recovery_high = max(port.recovery_high, port.equity)
    elif port.equity > port.recovery_high:
        port.recovery_from = -1
    return False
