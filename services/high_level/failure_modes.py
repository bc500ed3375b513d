"""How a losing trade failed: predicates over the recorded facts of one episode, asked in a fixed order.

Only what was recorded counts: labels and ranks at the decision, the excursions, the hold and the exit. Modes
that name the market come first, those that only name the shape of the path last. A loser that no predicate
matches is `unclassified`, and its share is shown. Called when an episode is built, so memory sees the mode.
"""

from collections.abc import Callable

from schemas.episode import Episode
from schemas.regime import FINGERPRINT
from schemas.vocabulary import ExitReason, FailureMode, Structure, Trend

WITH_TREND = {"long": Trend.UP, "short": Trend.DOWN}
BREAK_OF = {"long": Structure.BREAKOUT, "short": Structure.BREAKDOWN}
BREAK_WORD = "breakout"

WHIPSAW_BARS = 2
WHIPSAW_R = -1.5
WILD_RANGE = 0.9
THIN_VOLUME = 0.35
HARDLY_MOVED_R = 0.5  # in favour
STRETCHED = 0.85
LATE_RANGE = 0.8
NEVER_WORKED_R = 0.25
HELD_UP_R = 0.75
BARELY_STOPPED_R = -1.25
BEYOND_PLAN_R = -1.25

Predicate = Callable[[Episode], bool]


def _rank(episode: Episode, name: str, unknown: float) -> float:
    position = FINGERPRINT.index(name)
    return episode.fingerprint[position] if position < len(episode.fingerprint) else unknown


def _trend(episode: Episode) -> str:
    return episode.regime.partition("/")[0]


def _with_trend(episode: Episode) -> bool:
    return _trend(episode) == WITH_TREND[episode.direction]


def _broke_out(episode: Episode) -> bool:
    # The structure label, or the playbook's id: its activation comes later than the label.
    return episode.structure == BREAK_OF[episode.direction] or BREAK_WORD in episode.playbook_id


def _was_violent(episode: Episode) -> bool:
    wild = episode.exit_reason is ExitReason.STOP and _rank(episode, "range_rank", 0.0) >= WILD_RANGE
    return episode.hold_bars <= WHIPSAW_BARS and (episode.mae_r <= WHIPSAW_R or wild)


PREDICATES: tuple[tuple[FailureMode, Predicate], ...] = (
    # A violent move within two bars: the loss ran past the stop, or the range was extreme.
    (FailureMode.NEWS_WHIPSAW, _was_violent),
    # Entered on a break in its direction, with volume in the lower third of its year.
    (
        FailureMode.LOW_VOLUME_BREAKOUT,
        lambda trade: _broke_out(trade) and _rank(trade, "volume_rank", 1.0) < THIN_VOLUME,
    ),
    # Entered on a break in its direction, which never carried half an R.
    (FailureMode.FALSE_BREAKOUT, lambda trade: _broke_out(trade) and trade.mfe_r < HARDLY_MOVED_R),
    # Entered with the trend behind an expanded bar, and price turned at once.
    (
        FailureMode.LATE_ENTRY,
        lambda trade: (
            _with_trend(trade)
            and _rank(trade, "range_rank", 0.0) >= LATE_RANGE
            and trade.mfe_r < NEVER_WORKED_R
        ),
    ),
    # Entered with a trend as strong as it has been all year, which then gave less than one R.
    (
        FailureMode.TREND_EXHAUSTION,
        lambda trade: (
            _with_trend(trade) and _rank(trade, "trend_rank", 0.0) >= STRETCHED and trade.mfe_r < 1.0
        ),
    ),
    # Stopped, barely, after it had been clearly in profit: the noise was wider than the stop.
    (
        FailureMode.STOP_TOO_TIGHT,
        lambda trade: (
            trade.exit_reason is ExitReason.STOP
            and trade.mfe_r >= HELD_UP_R
            and trade.mae_r >= BARELY_STOPPED_R
        ),
    ),
    # Price went nowhere, in a sideways market or until time ran out.
    (
        FailureMode.CHOP,
        lambda trade: (
            (_trend(trade) == Trend.SIDEWAYS or trade.exit_reason is ExitReason.TIME_STOP)
            and trade.mfe_r < HARDLY_MOVED_R
        ),
    ),
    # Lost a quarter more than was planned: price jumped over the stop.
    (FailureMode.GAP_THROUGH_STOP, lambda trade: trade.r <= BEYOND_PLAN_R),
    # Was half an R or more in profit and kept none of it: the entry was right, the exit was not.
    (FailureMode.GAVE_BACK, lambda trade: trade.mfe_r >= HARDLY_MOVED_R),
    # Left because its invalidation came true before it was half an R in profit.
    (
        FailureMode.THESIS_FAILED,
        lambda trade: trade.exit_reason is ExitReason.INVALIDATION and trade.mfe_r < HARDLY_MOVED_R,
    ),
    # Went against the entry from the start: never a quarter R in profit.
    (FailureMode.NEVER_WORKED, lambda trade: trade.mfe_r < NEVER_WORKED_R),
)


def classify(episode: Episode) -> FailureMode | None:
    """The first mode whose predicate holds, `unclassified` for another loser, None for a win or a scratch."""
    if episode.outcome != "loss":
        return None
    return next((mode for mode, matches in PREDICATES if matches(episode)), FailureMode.UNCLASSIFIED)
