"""The registered family: every hypothesis that may be tested, named before its outcomes, and what that costs.

First form of the gate: a hypothesis is significant at E >= 1 / (q w), which is K / q at equal weights.
Weighted e-BH (Wang and Ramdas 2022) selects a superset and is reported beside it. Both hold under any
dependence between clusters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schemas.canonical import content_id
from schemas.errors import DataError, InvariantViolation


@dataclass(frozen=True)
class Family:
    """Registered hypotheses with weights that sum to one; `q` is the false share that the family spends."""

    members: tuple[str, ...]
    weights: tuple[float, ...]
    q: float
    epoch: int = 0

    @cached_property
    def family_id(self) -> str:
        """Content id over members, weights, q and epoch."""
        return content_id(
            {"members": self.members, "weights": self.weights, "q": self.q, "epoch": self.epoch}
        )

    def __len__(self) -> int:
        return len(self.members)

    def alpha(self, member: str) -> float:
        """Level at which one member is tested: q times its weight.

        Raises:
            InvariantViolation: the hypothesis was never registered.
        """
        if member not in self._position:
            raise InvariantViolation(f"hypothesis {member!r} is not registered in family {self.family_id}")
        return self.q * self.weights[self._position[member]]

    def __contains__(self, member: str) -> bool:
        return member in self._position

    @cached_property
    def _position(self) -> dict[str, int]:
        return {member: index for index, member in enumerate(self.members)}


def register_family(
    members: Sequence[str], q: float, *, weights: Mapping[str, float] | None = None, epoch: int = 0
) -> Family:
    """A family in name order; equal weights unless given, and scaled to sum to one.

    Raises:
        DataError: no members, a member twice, or a weight missing or not positive.
    """
    names = sorted(members)
    if not names or len(set(names)) != len(names):
        raise DataError(f"a family needs distinct members, got {len(names)} with {len(set(names))} different")
    raw = [1.0 if weights is None else weights.get(name, 0.0) for name in names]
    if min(raw) <= 0:
        raise DataError(f"hypothesis {names[raw.index(min(raw))]!r} needs a positive weight")
    total = sum(raw)
    return Family(tuple(names), tuple(weight / total for weight in raw), q, epoch)


def reaches(log_e: float, alpha: float) -> bool:
    """Whether E >= 1 / alpha, compared in logs with a tolerance of 1e-12 for rounding."""
    return bool(log_e >= -np.log(alpha) - 1e-12)


def e_bh(family: Family, log_e: Mapping[str, float]) -> tuple[str, ...]:
    """Members selected by weighted e-BH, in name order; members without a value count as E = 1.

    With K members and weighted values K w E sorted downwards, the first k_hat are selected, where k_hat is
    the largest k with k (K w E)_(k) / K >= 1/q.

    Raises:
        InvariantViolation: a value belongs to no member.
    """
    for name in log_e:
        family.alpha(name)
    scaled = np.array(
        [log_e.get(name, 0.0) + np.log(w) for name, w in zip(family.members, family.weights, strict=True)]
    )
    order = np.argsort(-scaled, kind="stable")
    ranks = np.arange(1, len(scaled) + 1)
    passing = np.flatnonzero(scaled[order] + np.log(ranks) >= -np.log(family.q) - 1e-12)
    if not len(passing):
        return ()
    return tuple(sorted(family.members[index] for index in order[: passing[-1] + 1]))
