"""Intervals of time that are neither traded on nor learnt from."""

from typing import Self

from pydantic import Field, model_validator

from schemas.contract import Contract, Nanoseconds


class NoLearnZone(Contract):
    """A declared interval [start, end) (halt, feed gap, split day) whose outcomes teach nothing.

    With `end` at `start` it is that one moment.
    """

    start: Nanoseconds
    end: Nanoseconds
    symbol: str | None = Field(default=None, description="None: every symbol")
    reason: str

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Self:
        if self.end < self.start:
            raise ValueError(f"a zone must not end before it starts, got {self.start!r} to {self.end!r}")
        return self

    def touches(self, symbol: str, start: int, end: int) -> bool:
        """Whether [start, end) of a symbol, in ns, shares a moment with the zone.

        The interval of a bar goes from its open time to its close time, whatever its label says.
        """
        shared = self.start < end and (start < self.end or start <= self.start)
        return shared and self.symbol in (None, symbol)
