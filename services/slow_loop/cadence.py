"""Whether the slow loop is due: a pure function of facts, with no clock and no memory of its own.

A run needs both gates: the interval has passed since the slot of the last run, and enough episodes have been
resolved since then. Skips do not count towards an interval, so no skip can extend one. A full batch and
accumulated surprise are two conditions that bring an examination forward; surprise opens neither gate. Called
by the backtest runner and the live worker at each slot, when the batch is reached, and when surprise has
accumulated; never from a tick.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from schemas.episode import Episode
from schemas.settings import Settings
from schemas.vocabulary import OverrideReason, SlowSkipReason
from services.statistics.slots import DAY_NS, INTERVAL_NS, Interval, is_slot, next_slot

ORDINARY_MINIMUM = 20  # a playbook that asks for no more is counted as its trades come
SURPRISE_LIMIT = 1.0
SAFETY_OVERRIDES = frozenset({OverrideReason.ENVELOPE_BREACH, OverrideReason.KILL_SWITCH})

Trigger = Literal["slot", "batch", "surprise"]


@dataclass(frozen=True)
class CadenceFacts:
    """What is known when a run is considered; times in ns UTC.

    Attributes:
        now: the time of the examination; a slot, or the bar close at which batch or surprise was reached.
        started_at: when the loop began; stands for the last run until there is one.
        last_run: slot of the last successful run.
        last_attempt: slot of the last run that was begun, whatever came of it.
        last_structural: slot of the last run that led to a structural change; an experiment is none.
        new_episodes: episodes resolved since the last successful run, by playbook.
        playbook_minimum: minimum of single playbooks, where it differs from `minimum_episodes`.
        surprise: accumulated since the last run; every whole number that it passes asks for one early
            examination.
        surprise_seen: how much of it the last examination knew, at a slot or before one.
        safety_override: a listed override that lets a structural change come before its interval.
    """

    now: int
    interval: Interval
    started_at: int
    last_run: int | None = None
    last_attempt: int | None = None
    last_structural: int | None = None
    new_episodes: Mapping[str, int] = field(default_factory=dict)
    minimum_episodes: int = 20
    playbook_minimum: Mapping[str, int] = field(default_factory=dict)
    surprise: float = 0.0
    surprise_seen: float = 0.0
    structural_interval_days: int = 7
    safety_override: OverrideReason | None = None
    enabled: bool = True


@dataclass(frozen=True)
class Run:
    """A run is due at `slot`. `override` is set when only a safety override allows structural changes."""

    slot: int
    trigger: Trigger
    structural_allowed: bool
    override: OverrideReason | None = None


@dataclass(frozen=True)
class Skip:
    """No run; the earliest slot at which the failed gate may be examined again, None when switched off.

    `trigger` is what asked: a slot, or surprise between two of them.
    """

    slot: int
    reason: SlowSkipReason
    next_eligible: int | None
    counted: int
    needed: int
    trigger: Trigger = "slot"


def _count_episodes(facts: CadenceFacts) -> int:
    # A playbook with a minimum of its own counts only once it has reached it; the others as they come.
    return sum(
        count for name, count in facts.new_episodes.items() if count >= facts.playbook_minimum.get(name, 0)
    )


def _find_opening(facts: CadenceFacts) -> int:
    if facts.last_run is None:  # the first slot after the start
        return next_slot(facts.started_at, facts.interval)
    return facts.last_run + INTERVAL_NS[facts.interval]


def structural_permission(facts: CadenceFacts) -> tuple[bool, OverrideReason | None]:
    """Whether structural changes may be recommended, and the override if that is the only reason.

    At most one structural run in `structural_interval_days`; overrides outside `SAFETY_OVERRIDES` change
    nothing.
    """
    wait_ns = facts.structural_interval_days * DAY_NS
    if facts.last_structural is None or facts.now - facts.last_structural >= wait_ns:
        return True, None
    if facts.safety_override in SAFETY_OVERRIDES:
        return True, facts.safety_override
    return False, None


def trigger_of(facts: CadenceFacts) -> Trigger:
    """What asked for this examination: the slot itself, surprise, or the batch that was reached."""
    if is_slot(facts.now, facts.interval):
        return "slot"
    return "surprise" if facts.surprise >= SURPRISE_LIMIT else "batch"


def due(facts: CadenceFacts) -> Run | Skip:
    """Run, or skip with the reason and the next slot that may be examined."""
    counted, opens = _count_episodes(facts), _find_opening(facts)
    following = next_slot(facts.now, facts.interval)

    def skip(reason: SlowSkipReason, next_eligible: int | None) -> Skip:
        return Skip(facts.now, reason, next_eligible, counted, facts.minimum_episodes, trigger_of(facts))

    if not facts.enabled:
        return skip(SlowSkipReason.DISABLED, None)
    if facts.now < opens:
        return skip(SlowSkipReason.INTERVAL_NOT_ELAPSED, next_slot(opens - 1, facts.interval))
    if counted < facts.minimum_episodes:
        return skip(SlowSkipReason.INSUFFICIENT_EPISODES, following)
    allowed, override = structural_permission(facts)
    return Run(facts.now, trigger_of(facts), allowed, override)


def examine_early(facts: CadenceFacts) -> bool:
    """Whether a moment between two slots is examined: a batch is full, or surprise asks for it.

    What is examined is decided by `due`: a full batch runs, surprise before it leaves a skip with its reason.
    After a failure nothing is examined before the next slot.
    """
    return batch_is_full(facts) or _surprise_asks(facts)


def batch_is_full(facts: CadenceFacts) -> bool:
    """Whether both gates stand open between two slots, and no attempt has failed since the last one."""
    return isinstance(due(facts), Run) and not _waits_out_a_failure(facts)


def _surprise_asks(facts: CadenceFacts) -> bool:
    """Whether surprise has passed a whole limit that no examination has seen."""
    passed = math.floor(facts.surprise / SURPRISE_LIMIT) > math.floor(facts.surprise_seen / SURPRISE_LIMIT)
    return facts.enabled and passed and not _waits_out_a_failure(facts)


def early_moment(facts: CadenceFacts, resolved: Sequence[tuple[int, str]]) -> int | None:
    """The moment at which both gates came to stand open, or None while they do not.

    It depends on the facts alone and not on when it is asked, so that it can name a slot.

    Args:
        facts: as of the present.
        resolved: `known_at` (ns) and playbook of the new episodes, by time.
    """
    if not batch_is_full(facts):
        return None
    counts: dict[str, int] = {}
    for known_at, playbook_id in resolved:
        counts[playbook_id] = counts.get(playbook_id, 0) + 1
        if _count_episodes(replace(facts, new_episodes=counts)) >= facts.minimum_episodes:
            return max(known_at, _find_opening(facts))
    return None


def surprise_moment(facts: CadenceFacts, surprises: Sequence[tuple[int, float]]) -> int | None:
    """When surprise first passed a whole limit that no examination has seen, ns; None when it does not ask.

    Args:
        facts: as of the present.
        surprises: `known_at` (ns) of the new episodes by time, and what each adds.
    """
    if not _surprise_asks(facts):
        return None
    seen, total = math.floor(facts.surprise_seen / SURPRISE_LIMIT), 0.0
    for known_at, each in surprises:
        total += each
        if math.floor(total / SURPRISE_LIMIT) > seen:
            return known_at
    return None


def surprises(fresh: Sequence[Episode], settings: Settings) -> list[tuple[int, float]]:
    """When each new outcome was known (ns), and its distance from the reference, as a share of the limit."""
    limit, reference = settings.high_level.surprise_limit_r, settings.gate.reference_r
    return [(episode.known_at, abs(episode.r - reference) / limit) for episode in fresh]


def _waits_out_a_failure(facts: CadenceFacts) -> bool:
    attempt = facts.last_attempt
    if attempt is None or (facts.last_run is not None and attempt <= facts.last_run):
        return False
    return facts.now < next_slot(attempt, facts.interval)
