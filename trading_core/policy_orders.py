"""A policy in the engine's terms: rule columns by index, levels and counts of bars."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from schemas.errors import InvariantViolation
from trading_core.tick_events import PolicyTag

EntryKind = Literal["market", "limit", "stop"]


@dataclass(frozen=True)
class PolicyOrders:
    """A policy in the engine's terms.

    Rule columns by index, -1 where there is none (see `TriggerEngine.columns`).

    Attributes:
        tag: the owner.
        direction: +1 long, -1 short.
        setup, activation, invalidation: conditions.
        stop, target: price columns.
        refinement: price column; a tighter stop while armed, or a better limit when `refines_entry`.
        window: own bars that the thesis stays armed, and that an order rests.
        horizon: own bars of the time stop, and until the policy expires.
        risk_fraction: of equity at the stop.
        immediate: the setup itself orders.
        never_ends: never spent and never expires.
        stop_pct, target_pct: levels as fractions, where there is no column.
        entry_kind: market, or a limit or stop order at the price column `entry`.
        trail: price column of a trailing stop.
        break_even_r: favourable move in R at which the stop goes to the entry price; NaN never.
        scale_out_r, scale_out_share: at that many R the share of the position is closed; NaN never.
        volatility: price column that sizing by volatility divides by.
    """

    tag: PolicyTag
    direction: int
    setup: int
    activation: int
    invalidation: int
    stop: int
    target: int
    refinement: int
    window: int
    horizon: int
    risk_fraction: float
    immediate: bool = False
    never_ends: bool = False
    stop_pct: float = float("nan")
    target_pct: float = float("nan")
    entry_kind: EntryKind = "market"
    entry: int = -1
    refines_entry: bool = False
    trail: int = -1
    break_even_r: float = float("nan")
    scale_out_r: float = float("nan")
    scale_out_share: float = float("nan")
    volatility: int = -1


def check_orders(orders: PolicyOrders) -> None:
    """Refuse what the kernel, which reads columns by index and shares as they are, cannot carry out.

    Raises:
        InvariantViolation: a column that the policy needs is missing, or a scale-out closes all or nothing.
    """
    if orders.setup < 0:
        raise InvariantViolation(f"policy {orders.tag.policy_id!r} has no setup column")
    if orders.entry_kind != "market" and orders.entry < 0:
        raise InvariantViolation(
            f"policy {orders.tag.policy_id!r} enters by {orders.entry_kind} and has no price column for it"
        )
    if not np.isnan(orders.scale_out_r) and not 0.0 < orders.scale_out_share < 1.0:
        raise InvariantViolation(
            f"policy {orders.tag.policy_id!r} scales out {orders.scale_out_share!r} of the position: the "
            "share must lie between 0 and 1"
        )
