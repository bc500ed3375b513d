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
HARDLY_MOVED_R = 0.5
STRETCHED = 0.85
LATE_RANGE = 0.8
NEVER_WORKED_R = 0.25
HELD_UP_R = 0.75
BARELY_STOPPED_R = -1.25
BEYOND_PLAN_R = -1.25

Predicate = Callable[[Episode], bool]


def _rank(episode: Episode, name: str) -> float | None:
    """One rank of the fingerprint in [0, 1]; None when the episode recorded none."""
    position = FINGERPRINT.index(name)
    return episode.fingerprint[position] if position < len(episode.fingerprint) else None


def _at_least(episode: Episode, name: str, limit: float) -> bool:
    rank = _rank(episode, name)
    return rank is not None and rank >= limit


def _trend(episode: Episode) -> str:
    return episode.regime.partition("/")[0]


def _with_trend(episode: Episode) -> bool:
    return _trend(episode) == WITH_TREND[episode.direction]


def _broke_out(episode: Episode) -> bool:
    """A break was traded, by the structure label or by the playbook's id (its activation comes later)."""
    return episode.structure == BREAK_OF[episode.direction] or BREAK_WORD in episode.playbook_id


def is_news_whipsaw(episode: Episode) -> bool:
    """A violent move within two bars: the loss ran past the stop, or the range was extreme."""
    ran_past = episode.mae_r <= WHIPSAW_R
    wild = episode.exit_reason is ExitReason.STOP and _at_least(episode, "range_rank", WILD_RANGE)
    return episode.hold_bars <= WHIPSAW_BARS and (ran_past or wild)


def is_low_volume_breakout(episode: Episode) -> bool:
    """Entered on a break in its direction, with volume in the lower third of its year."""
    volume = _rank(episode, "volume_rank")
    return _broke_out(episode) and volume is not None and volume < THIN_VOLUME


def is_false_breakout(episode: Episode) -> bool:
    """Entered on a break in its direction, which never carried half an R."""
    return _broke_out(episode) and episode.mfe_r < HARDLY_MOVED_R


def is_late_entry(episode: Episode) -> bool:
    """Entered with the trend behind an expanded bar, and price turned at once."""
    return (
        _with_trend(episode)
        and _at_least(episode, "range_rank", LATE_RANGE)
        and episode.mfe_r < NEVER_WORKED_R
    )


def is_trend_exhaustion(episode: Episode) -> bool:
    """Entered with a trend as strong as it has been all year, which then gave less than one R."""
    return _with_trend(episode) and _at_least(episode, "trend_rank", STRETCHED) and episode.mfe_r < 1.0


def is_stop_too_tight(episode: Episode) -> bool:
    """Stopped, barely, after it had been clearly in profit: the noise was wider than the stop."""
    return (
        episode.exit_reason is ExitReason.STOP
        and episode.mfe_r >= HELD_UP_R
        and episode.mae_r >= BARELY_STOPPED_R
    )


def is_chop(episode: Episode) -> bool:
    """Price went nowhere: less than half an R in favour, in a sideways market or until time ran out."""
    directionless = _trend(episode) == Trend.SIDEWAYS or episode.exit_reason is ExitReason.TIME_STOP
    return directionless and episode.mfe_r < HARDLY_MOVED_R


def is_gap_through_stop(episode: Episode) -> bool:
    """Lost a quarter more than was planned: price jumped over the stop."""
    return episode.r <= BEYOND_PLAN_R


def is_gave_back(episode: Episode) -> bool:
    """Was half an R or more in profit and kept none of it: the entry was right, the exit was not."""
    return episode.mfe_r >= HARDLY_MOVED_R


def is_thesis_failed(episode: Episode) -> bool:
    """Left because its invalidation came true before it was half an R in profit."""
    return episode.exit_reason is ExitReason.INVALIDATION and episode.mfe_r < HARDLY_MOVED_R


def is_never_worked(episode: Episode) -> bool:
    """Went against the entry from the start: never a quarter R in profit."""
    return episode.mfe_r < NEVER_WORKED_R


PREDICATES: tuple[tuple[FailureMode, Predicate], ...] = (
    (FailureMode.NEWS_WHIPSAW, is_news_whipsaw),
    (FailureMode.LOW_VOLUME_BREAKOUT, is_low_volume_breakout),
    (FailureMode.FALSE_BREAKOUT, is_false_breakout),
    (FailureMode.LATE_ENTRY, is_late_entry),
    (FailureMode.TREND_EXHAUSTION, is_trend_exhaustion),
    (FailureMode.STOP_TOO_TIGHT, is_stop_too_tight),
    (FailureMode.CHOP, is_chop),
    (FailureMode.GAP_THROUGH_STOP, is_gap_through_stop),
    (FailureMode.GAVE_BACK, is_gave_back),
    (FailureMode.THESIS_FAILED, is_thesis_failed),
    (FailureMode.NEVER_WORKED, is_never_worked),
)


def classify(episode: Episode) -> FailureMode | None:
    """The first mode whose predicate holds, `unclassified` for another loser, None for a win or a scratch."""
    if episode.outcome != "loss":
        return None
    for mode, matches in PREDICATES:
        if matches(episode):
            return mode
    return FailureMode.UNCLASSIFIED
