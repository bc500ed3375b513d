"""A policy in the engine's terms: rule columns by index, levels and counts of bars."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from schemas.errors import InvariantViolation
from trading_core.kernel.records import MAX_SCALE_OUTS, NO_PROGRAM
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
        repeats: a position does not spend it.
        stop_pct, target_pct: levels as fractions, where there is no column.
        entry_kind: market, or a limit or stop order at the price column `entry`.
        trail: price column of a trailing stop.
        break_even_r: favourable move in R at which the stop goes to the entry price; NaN never.
        scale_outs: advance in R, ascending, and share of the position that is closed there.
        add_at_r, add_share: at the close at that many R the share of the first quantity is added; NaN never.
        target_moves: the target's column is read anew at each close.
        volatility: price column that sizing by volatility divides by.
        exit_rule: condition, as steps, that closes the position; see `rules.programs`.
        trail_rule: trailing stop, as steps, where it reads the position; then `trail` is -1.
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
    repeats: bool = False
    stop_pct: float = float("nan")
    target_pct: float = float("nan")
    entry_kind: EntryKind = "market"
    entry: int = -1
    refines_entry: bool = False
    trail: int = -1
    break_even_r: float = float("nan")
    scale_outs: tuple[tuple[float, float], ...] = ()
    add_at_r: float = float("nan")
    add_share: float = float("nan")
    target_moves: bool = False
    volatility: int = -1
    exit_rule: "npt.NDArray[np.float64]" = field(default_factory=NO_PROGRAM.copy)
    trail_rule: "npt.NDArray[np.float64]" = field(default_factory=NO_PROGRAM.copy)


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
    shares = [share for _, share in orders.scale_outs]
    if len(shares) > MAX_SCALE_OUTS or not all(share > 0.0 for share in shares) or not sum(shares) < 1.0:
        raise InvariantViolation(
            f"policy {orders.tag.policy_id!r} scales out {shares!r} of the position: at most "
            f"{MAX_SCALE_OUTS} shares, each above 0, must leave a rest"
        )
    if orders.target_moves and orders.target < 0:
        raise InvariantViolation(f"policy {orders.tag.policy_id!r} moves a target that has no price column")
