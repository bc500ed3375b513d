"""A family: one feature with its lengths left open, and the intervals its values lie in.

Conventions that differ between libraries are said in the family's sentence. To add a feature, add a family to
the module of its subject, and its oracle to the tests: a family without one fails them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from trading_core.features.nodes import Node

INFINITY = float("inf")
ANY = (-INFINITY, INFINITY)
NOT_NEGATIVE = (0.0, INFINITY)
UNIT_INTERVAL = (0.0, 1.0)
PERCENT = (0.0, 100.0)


@dataclass(frozen=True)
class FeatureFamily:
    """A feature with its lengths left open.

    Attributes:
        pattern: the name with capital letters for the lengths.
        build: graph for given lengths.
        unit: price, fraction, percent, ratio, rank, shares, bars or calendar.
        doc: one sentence, with the convention where several are in use.
        defaults: lengths of the example name.
        minimum: smallest length allowed.
        bounds: closed interval of possible values.
        ascending: whether the first length must be below the second.
        width: of its bands in deviations or ATR, the last argument of `build`, where it has bands; a name in
            call form gives another: `bollinger_upper(20, 2.5)`.
    """

    pattern: str
    build: Callable[..., Node]
    unit: str
    doc: str
    defaults: tuple[int, ...] = ()
    minimum: int = 1
    bounds: tuple[float, float] = ANY
    ascending: bool = False
    width: float | None = None

    @cached_property
    def stem(self) -> str:
        """The name without lengths."""
        return re.sub(r"(_[A-Z])+$", "", self.pattern)

    @cached_property
    def words(self) -> list[str]:
        """The words of the stem, sorted."""
        return sorted(self.stem.split("_"))

    def node(self, lengths: Sequence[int], width: float | None = None) -> Node:
        """The graph for given lengths, and of bands for a width, None: the usual one."""
        if self.width is None:
            return self.build(*lengths)
        return self.build(*lengths, self.width if width is None else width)

    @property
    def example(self) -> str:
        """The name with its default lengths."""
        return "_".join([self.stem, *map(str, self.defaults)])
