"""How large an entry may be: risk at the stop, volatility or a fixed quantity, clamped by the envelope.

Every clamp is an event of the bar in which it happened.
"""

from typing import Any, Final

import numpy as np

from trading_core.compiled import compiled
from trading_core.kernel.execution import whole_lots
from trading_core.kernel.records import CLAMPS, SIZINGS

CLAMP_RISK: Final = CLAMPS.index("risk_cap")
CLAMP_GROSS: Final = CLAMPS.index("gross_exposure")
CLAMP_RECOVERY: Final = CLAMPS.index("recovery_half_risk")
CLAMP_NET: Final = CLAMPS.index("net_exposure")
CLAMP_SYMBOL: Final = CLAMPS.index("symbol_exposure")
CLAMP_BUCKET: Final = CLAMPS.index("bucket_exposure")
BY_VOLATILITY: Final = SIZINGS.index("volatility")
FIXED: Final = SIZINGS.index("fixed")
SMALLEST_SHARE: Final = 0.01


@compiled
def notional(st: Any) -> float:
    """What a symbol holds and has reserved, signed by its direction."""
    if st.direction != 0:
        return float(st.direction * (st.quantity + st.adding) * st.last_close)
    if st.order == 1:
        return float(st.policy_direction * st.order_quantity * st.order_base)
    return 0.0


@compiled
def wanted_quantity(equity: float, risk: float, volatility: float, fraction: float, half: int, p: Any) -> Any:
    """What was asked for, the quantity before the exposure caps, and which clamps applied.

    Args:
        equity: portfolio value at the close of the signal bar.
        risk: planned risk per unit, > 0.
        volatility: volatility per unit in quote currency; read only when sizing by it.
        fraction: risk fraction of the policy.
        half: 1 while risk is halved after a drawdown.
        p: engine parameters.
    """
    unit = p.volatility_multiple * volatility if p.sizing == BY_VOLATILITY else risk
    capped, clamps = min(fraction, p.max_risk), 0
    request, wanted = equity * fraction / unit, equity * capped / unit
    if p.sizing == FIXED:
        request, wanted = p.fixed_quantity, p.fixed_quantity
    if p.limited == 0:
        return request, wanted, clamps
    most = equity * p.max_risk / risk
    if wanted > most or (p.sizing != FIXED and fraction > p.max_risk):
        wanted = min(wanted, most)
        clamps |= 1 << CLAMP_RISK
    if half:
        wanted *= 0.5
        clamps |= 1 << CLAMP_RECOVERY
    return request, wanted, clamps


@compiled
def exposure_room(state: Any, s: int, direction: int, equity: float, p: Any) -> Any:
    """Notional that an entry of symbol `s` may add, and the cap that leaves the least of it."""
    if p.limited == 0:
        return np.inf, CLAMP_GROSS
    gross, net = 0.0, 0.0
    for other in range(state.shape[0]):
        value = notional(state[other])
        gross += abs(value)
        net += value
    room, cap = p.max_gross * equity - gross, CLAMP_GROSS
    left = p.max_net * equity - direction * net
    if left < room:
        room, cap = left, CLAMP_NET
    left = p.max_symbol * equity - abs(notional(state[s]))
    if left < room:
        room, cap = left, CLAMP_SYMBOL
    for bucket in range(p.buckets):
        if state[s].buckets >> bucket & 1:
            held = 0.0
            for other in range(state.shape[0]):
                if state[other].buckets >> bucket & 1:
                    held += abs(notional(state[other]))
            left = p.bucket_caps[bucket] * equity - held
            if left < room:
                room, cap = left, CLAMP_BUCKET
    return room, cap


@compiled
def size_entry(
    state: Any,
    s: int,
    direction: int,
    price: float,
    risk: float,
    volatility: float,
    half: int,
    port: Any,
    p: Any,
) -> Any:
    """Quantity of an entry and which clamps applied.

    Args:
        state: symbol records, for what is held and reserved.
        s: symbol.
        direction: +1 long, -1 short.
        price: what the levels are measured from.
        risk: planned risk per unit, > 0.
        volatility: per unit, in quote currency.
        half: 1 while risk is halved after a drawdown.
        port: portfolio record.
        p: engine parameters.

    Returns:
        (asked, quantity, clamps): asked is what the sizing rule alone gives; quantity 0 when less than 1 % of
        the wanted size, or less than a lot, has room; bit k of clamps is set when `CLAMPS[k]` applied.
    """
    request, wanted, clamps = wanted_quantity(port.equity, risk, volatility, state[s].policy_risk, half, p)
    room, cap = exposure_room(state, s, direction, port.equity, p)
    room /= price
    if not wanted > 0.0 or not room >= SMALLEST_SHARE * wanted:
        return request, 0.0, clamps
    if wanted > room:
        return request, whole_lots(room, p.lot), clamps | 1 << cap
    return request, whole_lots(wanted, p.lot), clamps


@compiled
def size_addition(state: Any, s: int, close: float, half: int, port: Any, p: Any) -> Any:
    """Quantity of an added entry, as `size_entry` gives that of a first one.

    All that the position would lose at its stop, the added part included, stays below the risk cap.
    """
    st = state[s]
    request = st.first_quantity * st.add_share
    wanted, clamps = request, 0
    at_stop = max(0.0, (st.entry_price - st.stop) * st.direction) * st.quantity
    most = (port.equity * p.max_risk - at_stop) / ((close - st.stop) * st.direction)
    if wanted > most:
        wanted = most
        clamps |= 1 << CLAMP_RISK
    if half:
        wanted *= 0.5
        clamps |= 1 << CLAMP_RECOVERY
    room, cap = exposure_room(state, s, st.direction, port.equity, p)
    room /= close
    if wanted > room:
        wanted = room
        clamps |= 1 << cap
    if not wanted >= SMALLEST_SHARE * request:
        return request, 0.0, clamps
    return request, whole_lots(wanted, p.lot), clamps
