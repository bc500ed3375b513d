"""Where a value lies on an axis, and which values deserve a tick."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, log10

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
NO_WIDTH = 1e-6  # of the values: it cannot be seen, and ticks could not be told apart


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` to `high` onto `start` to `end`; logarithmic when `log`; clamps at both ends."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value."""
        return self.start + self._share(value) * (self.end - self.start)

    def inside(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return self.low <= value <= self.high

    def ticks(self, wanted: int = 6) -> tuple[float, ...]:
        """Round values inside, about as many as wanted; powers of ten on a logarithmic axis."""
        if self.log:
            powers = range(ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9) + 1)
            return tuple(10.0**power for power in powers)
        step = _step((self.high - self.low) / wanted)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return tuple(round(number * step, 10) + 0.0 for number in range(first, last + 1))

    def _share(self, value: float) -> float:
        held = min(max(value, self.low), self.high)
        if self.log:
            return (log10(held) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (held - self.low) / (self.high - self.low)


def spanning(values: Iterable[float], start: float, end: float, *, room: float = 0.06) -> Scale:
    """A linear scale over all values with a little room at both ends; never of (next to) no width."""
    known = [*values]
    low, high = min(known, default=0.0), max(known, default=1.0)
    width = high - low
    if width < NO_WIDTH * max(1.0, abs(low), abs(high)):
        width = 1.0
    return Scale(low - room * width, high + room * width, start, end)


def _step(least: float) -> float:
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in STEPS if step * power >= least - 1e-12)
