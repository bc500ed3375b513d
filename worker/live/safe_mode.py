"""Safe mode: when in doubt no entries, while stops and every other exit run on.

What the feed says of a symbol holds besides. The reasons of a row are stored with its bars, so a replay
blocks what was blocked without asking why again.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from services.feeds.port import BarRow, BlockReason
from services.slow_loop.run_state import SAFE_MODE
from worker.operations.logs import EventSink


class SafeModeReason(StrEnum):
    """Why no entries are taken."""

    STORE_AWAY = "store_away"  # what is decided could be lost
    FEED_STALE = "feed_stale"  # no symbol has bars
    CLOCK_JUMP = "clock_jump"  # wall and monotonic clock disagree, until the feed agrees with the wall clock
    CRASH_LOOP = "crash_loop"  # too many starts after a crash; the operator alone knows that the run is whole


class EntryGuard:
    """Keeps safe mode from what is known of store, feed and earlier crashes.

    Args:
        symbols: of the run.
        note: told of each change. The first reason is `entered`, a further one `raised`; one that is over
            while others hold is `ended`, the last one `left`.
    """

    def __init__(self, symbols: tuple[str, ...], note: EventSink) -> None:
        self._symbols = symbols
        self._note = note
        self._reasons: dict[SafeModeReason, str] = {}

    @property
    def reasons(self) -> tuple[SafeModeReason, ...]:
        """What is in force, by name; entries are blocked while anything is, exits never are."""
        return tuple(sorted(self._reasons))

    @property
    def summary(self) -> str | None:
        """The reasons in words; None outside safe mode."""
        words = (f"{why} ({self._reasons[why]})" if self._reasons[why] else why for why in self.reasons)
        return "; ".join(words) or None

    def hold(self, reason: SafeModeReason, detail: str = "") -> None:
        """A reason is in force; one that is already is no change."""
        if reason not in self._reasons:
            change = "raised" if self._reasons else "entered"
            self._reasons[reason] = detail
            self._note("safe_mode", {"change": change, "reason": str(reason), "detail": detail})

    def release(self, reason: SafeModeReason = SafeModeReason.CRASH_LOOP) -> None:
        """A reason is over; that of crashes by the word of the operator, who takes the run as it is."""
        if self._reasons.pop(reason, None) is not None:
            change = "ended" if self._reasons else "left"
            self._note("safe_mode", {"change": change, "reason": str(reason), "detail": ""})

    def weigh_store(self, *, following: bool) -> None:
        """Whether entries have to wait for the store, on the next row or between two."""
        self._weigh(SafeModeReason.STORE_AWAY, following)

    def guard_row(self, row: BarRow, *, store_behind: bool) -> BarRow:
        """The row as it is traded: in safe mode no symbol may enter on it."""
        self.weigh_store(following=store_behind)
        self._weigh(SafeModeReason.FEED_STALE, self._all(row.blocked, BlockReason.STALE))
        self._weigh(SafeModeReason.CLOCK_JUMP, self._all(row.blocked, BlockReason.CLOCK))
        return replace(row, blocked=self._shut(row.blocked)) if self._reasons else row

    def in_force(self, blocked: Mapping[str, str]) -> dict[str, str]:
        """Who may not enter now: as on the last row, with safe mode as it is by now."""
        of_feed = {symbol: why for symbol, why in blocked.items() if not why.startswith(SAFE_MODE)}
        return dict(sorted(self._shut(of_feed).items()))

    def _shut(self, blocked: Mapping[str, str]) -> dict[str, str]:
        shut = self._symbols if self._reasons else ()
        return {**dict.fromkeys(shut, f"{SAFE_MODE}: {', '.join(self.reasons)}"), **blocked}

    def _all(self, blocked: Mapping[str, str], reason: BlockReason) -> bool:
        return all(blocked.get(symbol) == reason for symbol in self._symbols)

    def _weigh(self, reason: SafeModeReason, holds: bool) -> None:
        if holds:
            self.hold(reason)
        else:
            self.release(reason)
