"""Which labels a feed may have, and when the bar of a label is over."""

from dataclasses import dataclass
from typing import Literal

from schemas.timeframes import TIMEFRAME_SECONDS

NS = 1_000_000_000
_QUARTER_NS = 900 * NS  # sessions begin, and zones lie, at whole quarters of an hour
_FIRST = -(2**62)


@dataclass(frozen=True)
class LabelGrid:
    """The time axis of a feed."""

    timeframe: str
    label: Literal["open", "close"]  # whether a label is the open or the close of its bar
    # the market never pauses: labels are whole multiples of the timeframe since 1970, and one without any bar
    # is a gap. Otherwise sessions may begin at any quarter of an hour and end any time.
    continuous: bool

    @property
    def bar_ns(self) -> int:
        """Length of a bar."""
        return TIMEFRAME_SECONDS[self.timeframe] * NS

    def close(self, label: int) -> int:
        """The ns at which the bar of a label is over."""
        return label if self.label == "close" else label + self.bar_ns

    def has(self, label: int) -> bool:
        """Whether a bar can have this label."""
        step = self.bar_ns if self.continuous else min(self.bar_ns, _QUARTER_NS)
        return label > _FIRST and label % step == 0

    def count_between(self, before: int, label: int) -> int:
        """How many labels lie between two where there should be none."""
        return max(0, (label - before) // self.bar_ns - 1) if self.continuous else 0
