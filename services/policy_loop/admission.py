"""The gate of the policy loop.

A pure function from the facts of a boundary to an admission or to typed skips.

Order: disabled events, warming up, single flight, draining, state suppression, minimum interval. An override
opens a boundary in every state. One skip per policy event; a skip changes no fact, so it can neither extend
an interval nor block the next slot.
"""

from dataclasses import dataclass

from schemas.settings import PolicyLoopSettings
from schemas.vocabulary import OverrideReason, PolicyEventKind, PolicyState, SkipReason

BYPASS_INTERVAL = frozenset(
    {PolicyEventKind.POSITION_OPENED, PolicyEventKind.POSITION_CLOSED, PolicyEventKind.REPLAN}
)
SUPPRESSED = {
    PolicyState.THESIS_ARMED: SkipReason.THESIS_ARMED,
    PolicyState.HOLD_LOCK: SkipReason.HOLD_LOCK,
}


@dataclass(frozen=True)
class BoundaryFacts:
    """What the gate may know. Bars are the symbol's own; `draining`: those that are out come first."""

    state: PolicyState
    events: tuple[PolicyEventKind, ...]
    overrides: tuple[OverrideReason, ...]
    own_bar: int
    last_evaluation_bar: int | None
    warming_up: bool
    in_flight: bool = False
    draining: bool = False


@dataclass(frozen=True)
class EventSkip:
    """One policy event that does not start an evaluation; `bars_to_wait` None: not a matter of time."""

    event: PolicyEventKind
    reason: SkipReason
    bars_to_wait: int | None


@dataclass(frozen=True)
class Admission:
    """Admitted events (empty: no evaluation), the overrides that opened the boundary, and the skips."""

    admitted: tuple[PolicyEventKind, ...]
    overrides: tuple[OverrideReason, ...]
    skips: tuple[EventSkip, ...]

    @property
    def evaluate(self) -> bool:
        """Whether an evaluation starts."""
        return bool(self.admitted or self.overrides)


def decide(facts: BoundaryFacts, settings: PolicyLoopSettings, timeframe: str) -> Admission:
    """Admit or skip each event of one boundary."""
    disabled = tuple(event for event in facts.events if event not in settings.events)
    enabled = tuple(event for event in facts.events if event in settings.events)
    skips = [EventSkip(event, SkipReason.EVENT_DISABLED, None) for event in disabled]
    reason = _shut(facts)
    if reason is not None:
        skips += [EventSkip(event, reason, None) for event in enabled]
        if facts.overrides and not enabled:
            skips.append(EventSkip(PolicyEventKind.SAFETY_OVERRIDE, reason, None))
        return Admission((), (), tuple(skips))
    if facts.overrides:
        return Admission(enabled, facts.overrides, tuple(skips))
    if facts.state in SUPPRESSED:
        skips += [EventSkip(event, SUPPRESSED[facts.state], None) for event in enabled]
        return Admission((), (), tuple(skips))
    wait = _bars_to_wait(facts, settings.minimum_bars(timeframe))
    if wait > 0 and not BYPASS_INTERVAL.intersection(enabled):
        skips += [EventSkip(event, SkipReason.MINIMUM_INTERVAL, wait) for event in enabled]
        return Admission((), (), tuple(skips))
    return Admission(enabled, (), tuple(skips))


def _shut(facts: BoundaryFacts) -> SkipReason | None:
    """Why not even an override opens the boundary."""
    if facts.warming_up:
        return SkipReason.WARMING_UP
    if facts.in_flight:
        return SkipReason.SINGLE_FLIGHT
    return SkipReason.DRAINING if facts.draining else None


def _bars_to_wait(facts: BoundaryFacts, minimum: int) -> int:
    if facts.last_evaluation_bar is None:
        return 0
    return max(0, facts.last_evaluation_bar + minimum - facts.own_bar)
