"""An order as a plan with rules of its own, whose levels are numbers."""

from schemas.guard import Order
from schemas.proposal import OWN, PolicyProposal

HORIZON_BARS = 20  # of an order that names none


def playbook_id(strategy: str) -> str:
    """The id of a plan with its own rules that a strategy's orders have."""
    return OWN + "".join(sign if sign.isalnum() else "_" for sign in strategy.lower())


def plan_of(order: Order, close: float, why: str = "") -> PolicyProposal:
    """The order as a plan that orders at this close; a limit that the market has reached is at market."""
    price = order.price
    waits = order.kind != "market" and price is not None
    if order.kind == "limit" and price is not None:
        waits = (price - close) * order.sign < 0
    # A plan needs a way out beside its stop; an order without a target has none but a close beyond it.
    beyond = f"close {'<' if order.sign > 0 else '>'} {order.stop!r}"
    levels = {"exit": beyond} if order.target is None else {"target": repr(order.target)}
    if waits:
        levels |= {"entry": repr(price), "entry_kind": order.kind}
    return PolicyProposal.model_validate(
        {
            "playbook_id": playbook_id(order.strategy),
            "direction": order.direction,
            "thesis": why[:2_000],
            "rationale": order.reasons,
            "setup": f"close >= {close!r}",
            "activation_window_bars": 0,
            "stop": repr(order.stop),
            "horizon_bars": order.horizon_bars or HORIZON_BARS,
            "conviction": order.conviction or 0.0,
            **levels,
        }
    )
