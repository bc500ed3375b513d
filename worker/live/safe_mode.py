"""Safe mode: when in doubt no entries, while stops and every other exit run on.

A pure state machine. Something raises a reason; a soft one ends when it is gone, a hard one only when the
operator says so after it is gone, because no other can know that the run is whole. Whoever drives it
journals the changes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class SafeModeReason(StrEnum):
    """Why no entries are taken."""

    STORE_AWAY = "store_away"  # what is decided could be lost
    FEED_STALE = "feed_stale"  # no symbol has bars
    CLOCK_JUMP = "clock_jump"  # wall and monotonic clock disagree, until the feed agrees with the wall clock
    CRASH_LOOP = "crash_loop"  # too many starts after a crash


HARD = frozenset({SafeModeReason.CRASH_LOOP})


@dataclass(frozen=True)
class Held:
    """A reason in force: since when, what was seen, and whether a hard one is known to be gone."""

    reason: SafeModeReason
    since: int
    detail: str = ""
    gone: bool = False


@dataclass(frozen=True)
class Change:
    """One step, to be told once.

    The first reason is `entered`, a further one `raised`; one that is over while others hold is `ended`, the
    last one `left`.
    """

    kind: Literal["entered", "raised", "gone", "ended", "left"]
    at: int
    reason: SafeModeReason
    detail: str = ""


@dataclass(frozen=True)
class SafeMode:
    """Reasons in force, in the order of their names; each at most once."""

    held: tuple[Held, ...] = ()

    @property
    def active(self) -> bool:
        """Whether entries are blocked; exits never are."""
        return bool(self.held)

    @property
    def summary(self) -> str | None:
        """The reasons in words; None outside safe mode."""
        return "; ".join(_words(hold) for hold in self.held) or None

    def raise_reason(
        self, reason: SafeModeReason, at: int, detail: str = ""
    ) -> tuple["SafeMode", tuple[Change, ...]]:
        """With a reason in force. One that is in force already keeps its beginning and is no change."""
        before = self._of(reason)
        if before is not None and not before.gone:
            return self, ()
        since = at if before is None else before.since
        change = Change("raised" if self.active else "entered", at, reason, detail)
        return self._with(reason, Held(reason, since, detail)), (change,)

    def clear_reason(self, reason: SafeModeReason, at: int) -> tuple["SafeMode", tuple[Change, ...]]:
        """With a reason found gone: a soft one ends, a hard one then waits for the operator."""
        before = self._of(reason)
        if before is None or before.gone:
            return self, ()
        if reason in HARD:
            waits = Held(reason, before.since, before.detail, gone=True)
            return self._with(reason, waits), (Change("gone", at, reason),)
        return self._end({reason}, at)

    def release(self, at: int) -> tuple["SafeMode", tuple[Change, ...]]:
        """With the hard reasons ended that are gone: the operator's word. What still holds stays."""
        return self._end({hold.reason for hold in self.held if hold.gone}, at)

    def _end(self, reasons: Iterable[SafeModeReason], at: int) -> tuple["SafeMode", tuple[Change, ...]]:
        ended = sorted(reasons)
        if not ended:
            return self, ()
        left = SafeMode(tuple(hold for hold in self.held if hold.reason not in ended))
        last = None if left.active else ended[-1]
        return left, tuple(Change("left" if reason == last else "ended", at, reason) for reason in ended)

    def _of(self, reason: SafeModeReason) -> Held | None:
        return next((hold for hold in self.held if hold.reason == reason), None)

    def _with(self, reason: SafeModeReason, held: Held) -> "SafeMode":
        others = [hold for hold in self.held if hold.reason != reason]
        return SafeMode(tuple(sorted([*others, held], key=lambda hold: hold.reason)))


def _words(held: Held) -> str:
    detail = f" ({held.detail})" if held.detail else ""
    return f"{held.reason}{detail}{', gone, waits for the operator' if held.gone else ''}"
