"""ClockWatch: whether our clock can be believed, and what time it is at the source.

Compares the wall clock with the steady one, and with the source's. Both clocks are given, so that a test can
own them. Bars stay ordered by their labels whatever it finds; it only blocks entries until the source agrees,
so that a wrong clock can neither open a position nor keep a stop from being seen.
"""

from collections.abc import Callable
from typing import NamedTuple

from services.feeds.port import BlockReason, FeedAnomaly, FeedAnomalyKind

NS = 1_000_000_000


class SourceTime(NamedTuple):
    """The time at the source as far as it is known, ns: it lies between the two."""

    earliest: int
    latest: int


class ClockWatch:
    """The clocks of one feed."""

    def __init__(self, limit_s: float, wall: Callable[[], int], steady: Callable[[], int]) -> None:
        """Begin with trust; `steady` only moves forward.

        Clocks disagree from `limit_s` on. Slewing and leap smearing stay below a second.
        """
        self._limit = int(limit_s * NS)
        self.wall, self.steady = wall, steady
        self._last: tuple[int, int] | None = None  # wall, steady
        self._anchor: tuple[int, int] | None = None  # a time to be believed, and the steady time of it
        self._doubt = False
        self._jumped = False  # since the anchor was set

    @property
    def blocked(self) -> BlockReason | None:
        """Why no symbol may enter at present."""
        return BlockReason.CLOCK if self._doubt else None

    @property
    def jumped(self) -> bool:
        """Whether the wall clock jumped since the source was heard: what it says is over may not be."""
        return self._jumped

    def observe(self) -> list[FeedAnomaly]:
        """Note both of our clocks; an anomaly if the wall clock jumped since the last time.

        A suspended machine is such a jump: its steady clock stands still meanwhile.
        """
        wall, steady = self.wall(), self.steady()
        jump = 0 if self._last is None else (wall - self._last[0]) - (steady - self._last[1])
        self._last = wall, steady
        if abs(jump) > self._limit:
            self._doubt = self._jumped = True
            return [_anomaly("jump", jump)]
        if self._anchor is None:
            self._anchor = self._last
        return []

    def compare(self, source: SourceTime) -> list[FeedAnomaly]:
        """Note what the source says of its own clock; a disagreement and its end are told once.

        What is over at the earliest is over: a slow answer may not make a running candle a closed one.
        """
        self._anchor = source.earliest, self.steady()
        self._jumped = False
        apart = self._apart(source)
        if bool(apart) is self._doubt:
            return []
        self._doubt = bool(apart)
        return [_anomaly("source differs" if apart else "source agrees", apart)]

    def confirm(self, source: SourceTime) -> list[FeedAnomaly]:
        """Note the time that new bars suggest: it ends a doubt, but begins none, since bars may be late."""
        if not self._doubt or self._apart(source):
            return []
        self._doubt = self._jumped = False
        self._anchor = self.wall(), self.steady()
        return [_anomaly("source agrees", 0)]

    def now(self) -> int:
        """The time at the source, ns.

        It runs on the steady clock, so a wall clock that is set back does not turn closed bars into open
        ones. After a jump the later of the two counts: after a suspension only the wall clock is right.
        """
        if self._anchor is None:
            return self.wall()
        since = self._anchor[0] + self.steady() - self._anchor[1]
        return max(since, self.wall()) if self._jumped else since

    def _apart(self, source: SourceTime) -> int:
        """By how much our clock is ahead of the source's; 0 within the limit."""
        wall = self.wall()
        ahead, later = wall - source.latest, source.earliest - wall
        return ahead if ahead > self._limit else -later if later > self._limit else 0


def _anomaly(reason: str, ahead: int) -> FeedAnomaly:
    measured = {"ahead_s": round(ahead / NS, 3)} if ahead else {}
    return FeedAnomaly(FeedAnomalyKind.CLOCK, None, None, {"reason": reason}, measured)
