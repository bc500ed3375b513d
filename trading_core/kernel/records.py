"""Layouts of everything the kernel reads and writes.

State is data, so a snapshot of the engine is a copy of it.

All records are plain structured numpy arrays; the kernel never allocates. `t` is a row of the bar arrays,
`own` counts a symbol's own present bars, prices are in quote currency, fractions of equity are plain
numbers.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from schemas.vocabulary import ExitReason, TickEventKind

MAX_BUCKETS: Final = 16
MAX_ENTRIES_PER_HOUR: Final = 64
MAX_REFUSALS: Final = 16
NEVER: Final = 1 << 62  # an own bar that never comes
NO_EDGES: Final = np.empty(0, dtype=np.int64)  # of blocks of entries: all bars are one

MAX_SCALE_OUTS: Final = 4
MOST_STEPS: Final = 32  # of a rule that reads the position, see `rules.programs`
STACK: Final = MOST_STEPS // 2  # values that so many steps of two operands hold at once
STEP_CONSTANT, STEP_NUMBER, STEP_TRUTH, STEP_POSITION = (
    -1.0,
    -2.0,
    -3.0,
    -4.0,
)  # others are `features.nodes.Op`
NO_PROGRAM: Final = np.zeros(2 * MOST_STEPS)
_PROGRAM: Final = (2 * MOST_STEPS,)

# One record per symbol.
SYMBOL: Final = np.dtype(
    [
        ("state", "i8"),
        ("own", "i8"),  # number of this symbol's bars seen so far
        ("last_t", "i8"),
        ("last_close", "f8"),
        ("last_evaluation", "i8"),  # own bar of the last evaluation: the heartbeat counts from here
        ("last_beat", "i8"),  # own bar of the last heartbeat event
        ("beat_suppressed", "i8"),  # 1 when that event fell into a suppressed state
        ("gap", "i8"),  # rows missed just before the last present bar
        ("requested", "i8"),  # 1: open a boundary at the next present close
        ("held", "i8"),  # boundary bits of rows on which the symbol was absent
        ("bits", "i8"),  # boundary bits of the bar just finished
        ("armed_own", "i8"),
        ("setup_high", "f8"),
        ("setup_low", "f8"),
        ("armed_stop", "f8"),  # refined stop of the armed thesis, NaN when none
        # the accepted entry order
        ("order", "i8"),  # 1 while an entry order rests
        ("order_kind", "i8"),  # position in ENTRY_KINDS
        ("order_t", "i8"),
        ("order_price", "f8"),  # of a limit or stop entry
        ("order_quantity", "f8"),
        ("order_base", "f8"),  # the price that stop and target were measured from at acceptance
        ("order_stop", "f8"),
        ("order_target", "f8"),
        ("order_risk", "f8"),
        # the open position and its one exit authority
        ("direction", "i8"),  # +1 long, -1 short, 0 flat
        ("quantity", "f8"),
        ("entry_quantity", "f8"),  # an added entry included
        ("first_quantity", "f8"),  # without it: the risk of this one is what R counts
        ("entry_price", "f8"),
        ("entry_t", "i8"),
        ("entry_own", "i8"),
        ("entry_inside", "i8"),  # 0 at the open or close of its bar, 1 by a limit inside it, 2 by a stop
        ("costs", "f8"),  # fees and carry so far
        ("carry", "f8"),  # funding and borrow so far
        ("signal_t", "i8"),
        ("stop", "f8"),
        ("target", "f8"),
        ("near", "f8"),  # the nearer of target and scale-out level
        ("risk", "f8"),  # planned risk per unit, > 0
        ("highest", "f8"),  # price since entry, the entry included
        ("lowest", "f8"),
        ("due_own", "i8"),  # own bar of the time stop
        ("exit_reason", "i8"),  # queued exit at the next open, -1 none
        ("exit_own", "i8"),
        ("position_policy", "i8"),
        ("position_invalidation", "i8"),
        ("position_trail", "i8"),
        ("break_even_r", "f8"),
        ("managed", "i8"),  # 1 when the stop may move at a close
        ("position_target", "i8"),  # column of a target that moves
        ("scale_price", "f8"),  # of the next scale-out before the target; NaN: none
        ("scale_step", "i8"),  # scale-outs done
        ("scale_prices", "f8", (MAX_SCALE_OUTS,)),
        ("scale_shares", "f8", (MAX_SCALE_OUTS,)),
        ("add_r", "f8"),  # NaN: nothing to add, or done
        ("add_share", "f8"),
        ("adding", "f8"),  # quantity that is added at the next open
        ("scaled_quantity", "f8"),
        ("scaled_value", "f8"),
        # the frozen policy in force
        ("policy", "i8"),  # reference of the owner, -1 none
        ("policy_direction", "i8"),
        ("policy_first_t", "i8"),
        ("policy_expires_own", "i8"),
        ("policy_window", "i8"),
        ("policy_horizon", "i8"),
        ("policy_risk", "f8"),
        ("policy_immediate", "i8"),  # the setup itself orders, without an activation
        ("policy_never_ends", "i8"),  # never spent and never expires
        ("policy_repeats", "i8"),  # a position does not spend it
        ("policy_stop_pct", "f8"),
        ("policy_target_pct", "f8"),
        ("policy_entry", "i8"),  # position in ENTRY_KINDS
        ("policy_refines_entry", "i8"),  # 1: the refinement is a better limit, 0: a tighter stop
        ("policy_break_even_r", "f8"),
        ("policy_scale_r", "f8", (MAX_SCALE_OUTS,)),
        ("policy_scale_share", "f8", (MAX_SCALE_OUTS,)),
        ("policy_target_moves", "i8"),
        ("policy_add_r", "f8"),
        ("policy_add_share", "f8"),
        ("k_setup", "i8"),
        ("k_activation", "i8"),
        ("k_invalidation", "i8"),
        ("k_stop", "i8"),
        ("k_target", "i8"),
        ("k_refinement", "i8"),
        ("k_entry", "i8"),
        ("k_trail", "i8"),
        ("k_volatility", "i8"),
        # the symbol's own limits
        ("buckets", "i8"),  # bit b: member of correlation bucket b
        ("losses", "i8"),  # losing trades in a row
        ("pause_own", "i8"),  # no entry before this own bar
        # rules of the position and of the policy as steps: large, and behind what every bar reads
        ("exit_rule", "f8", _PROGRAM),  # read at every close; no step: none
        ("trail_rule", "f8", _PROGRAM),  # a trailing stop that reads the position
        ("policy_exit", "f8", _PROGRAM),
        ("policy_trail", "f8", _PROGRAM),
    ]
)

# One record for the portfolio.
PORTFOLIO: Final = np.dtype(
    [
        ("cash", "f8"),
        ("equity", "f8"),
        ("gross", "f8"),
        ("net", "f8"),
        ("positions", "i8"),
        ("orders", "i8"),
        ("peak", "f8"),
        ("day", "i8"),
        ("day_ends", "i8"),  # ns
        ("day_start", "f8"),
        ("halt_day", "i8"),  # halted until the day after this one, -1 none
        ("halt_until", "i8"),  # halted until this row after a drawdown, -1 none
        ("recovery_from", "i8"),  # row of the release after a drawdown, -1 none
        ("recovery_high", "f8"),
        ("kill", "i8"),
        ("kill_seen", "i8"),
        ("exposure_halt", "i8"),
        ("losses", "i8"),  # losing trades in a row, over all symbols
        ("fees", "f8"),  # carry included
        ("carry", "f8"),  # of them, funding and borrow of closed positions
        ("entries", "i8"),  # orders accepted
        ("refused", "i8", (MAX_REFUSALS,)),  # orders refused, by position in REFUSALS
        ("recent", "i8", (MAX_ENTRIES_PER_HOUR,)),  # closes of the last accepted orders, a ring
        ("block_ends", "i8"),  # close, ns, of the first bar that the block no longer holds
        ("block_entries", "i8"),  # orders accepted in the block, with those that rested when it began
        ("bars", "i8"),  # symbol-bars validated
        ("stack", "f8", (STACK,)),  # of the rule that is carried out; zeros between two
        ("fault", "i8"),
    ]
)

EVENT: Final = np.dtype(
    [("t", "i8"), ("s", "i8"), ("kind", "i8"), ("a", "i8"), ("b", "i8"), ("x", "f8", (6,))]
)

TRADE: Final = np.dtype(
    [
        ("s", "i8"),
        ("policy", "i8"),
        ("direction", "i8"),
        ("signal_t", "i8"),
        ("entry_t", "i8"),
        ("exit_t", "i8"),
        ("entry_price", "f8"),
        ("exit_price", "f8"),
        ("quantity", "f8"),
        ("fees", "f8"),
        ("pnl", "f8"),
        ("r", "f8"),
        ("mae_r", "f8"),
        ("mfe_r", "f8"),
        ("bars_held", "i8"),
        ("reason", "i8"),
    ]
)

# Limits of the envelope that the kernel takes as they are: its name, type, and the setting's name.
LIMITS: Final = (
    ("max_risk", "f8", "risk_fraction"),
    ("max_gross", "f8", "max_gross_exposure"),
    ("max_net", "f8", "max_net_exposure"),
    ("max_symbol", "f8", "max_symbol_exposure"),
    ("max_daily_loss", "f8", "max_daily_loss"),
    ("max_drawdown", "f8", "max_drawdown"),
    ("release_bars", "i8", "drawdown_release_bars"),
    ("recovery_bars", "i8", "recovery_bars"),
    ("max_losses", "i8", "max_consecutive_losses"),
    ("max_symbol_losses", "i8", "max_symbol_losses"),
    ("loss_pause", "i8", "loss_pause_bars"),
    ("max_entries", "i8", "max_entries_per_hour"),  # 0: any number
    ("max_block_entries", "i8", "max_entries_per_block"),  # 0: any number
    ("cooldown", "i8", "cooldown_bars"),
)

PARAMETERS: Final = np.dtype(
    [
        ("fee", "f8"),  # fraction of notional per side, of an order that takes liquidity
        ("maker_fee", "f8"),  # the same of an order that gives it
        ("fee_per_fill", "f8"),
        ("fee_rounding", "f8"),  # 0: none
        ("slippage", "f8"),
        ("passive_target", "i8"),  # 1: a target is a resting limit order, 0: a market order when touched
        ("tick", "f8"),  # 0: none
        ("lot", "f8"),  # 0: none
        ("carry", "i8"),  # 1 when funding or borrow is charged
        ("funding", "f8"),  # per bar and notional: longs pay, shorts receive
        ("borrow", "f8"),  # per bar and notional: shorts pay
        ("fill_close", "i8"),
        ("base_fill", "i8"),
        ("entry_bar_exits", "i8"),
        ("both_hit", "i8"),
        ("gap_open", "i8"),
        ("through", "i8"),  # 1: a limit fills only when the bar trades through its price
        ("time_exit", "i8"),  # position in TIME_EXITS
        ("reentry", "i8"),
        ("sizing", "i8"),  # position in SIZINGS
        ("fixed_quantity", "f8"),
        ("volatility_multiple", "f8"),
        ("least_reward", "f8"),  # reward to risk of an entry after the costs of both sides; 0: any
        ("side_cost", "f8"),  # fraction of notional that a side costs, for it
        ("limited", "i8"),  # 0: rule research and shadow ledgers, which no envelope limits
        *((name, kind) for name, kind, _ in LIMITS),
        ("buckets", "i8"),
        ("bucket_caps", "f8", (MAX_BUCKETS,)),
        ("gross_breach", "f8"),
        ("net_breach", "f8"),
        ("bucket_breach", "f8"),  # a multiple of the cap
        ("heartbeat", "i8"),  # own bars, 0 never
        ("stale_bars", "i8"),  # missed rows after which data of a held symbol count as stale
        ("stale_ns", "i8"),  # the same in time, for holes of the whole feed
        ("emit", "i8"),
        ("boundaries", "i8"),  # 0: never stop for a policy event
    ]
)


class Out(NamedTuple):
    """Where the kernel writes what happened.

    Attributes:
        events: EVENT records.
        count: int64 (1,), fill of `events`.
        trades: TRADE records.
        n_trades: int64 (1,), fill of `trades`.
        on: 1 when events are wanted.
    """

    events: Any
    count: Any
    trades: Any
    n_trades: Any
    on: int


BOTH_HIT: Final = ("stop", "target", "ohlc", "near", "color")
ENTRY_KINDS: Final = ("market", "limit", "stop")
TIME_EXITS: Final = ("open", "after_stops", "close")
SIZINGS: Final = ("risk", "volatility", "fixed")
STOP_SOURCES: Final = ("policy", "trail", "break_even")
REFUSALS: Final = (
    "wrong_side",
    "no_planned_risk",
    "halted",
    "no_capacity",
    "level_unknown",
    "envelope",
    "retired",
    "throttled",
    "no_trade_window",
    "paused_after_losses",
    "unfilled",
    "invalidated",
    "reward_to_risk",
)
CLAMPS: Final = (
    "risk_cap",
    "gross_exposure",
    "recovery_half_risk",
    "net_exposure",
    "symbol_exposure",
    "bucket_exposure",
)
BREACHES: Final = (
    "daily_loss",
    "drawdown",
    "gross_exposure",
    "kill_switch",
    "net_exposure",
    "bucket_exposure",
    "consecutive_losses",
    "symbol_losses",
    "account_gone",
)

BIT_REGIME, BIT_BAND, BIT_OPENED, BIT_CLOSED, BIT_HEARTBEAT = 1, 2, 4, 8, 16
BIT_INVALIDATION, BIT_ENVELOPE, BIT_KILL, BIT_STALE, BIT_SHOCK, BIT_REPLAN = 32, 64, 128, 256, 512, 1_024
BIT_CONFLICT = 2_048
FLAG_REGIME, FLAG_BAND, FLAG_SHOCK, FLAG_NO_TRADE = 1, 2, 4, 8


def code(names: Sequence[str], name: str) -> Any:
    """Position of a name, as a constant of the kernel.

    A numpy integer, because a Python constant would be a type of its own to the compiler, which would compile
    whatever takes it once for every value.
    """
    return np.int64(names.index(name))


KIND: Final[dict[TickEventKind, Any]] = {
    kind: np.int64(position) for position, kind in enumerate(TickEventKind)
}
EXIT: Final[dict[ExitReason, Any]] = {
    reason: np.int64(position) for position, reason in enumerate(ExitReason)
}
