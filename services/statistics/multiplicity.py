"""The registered family: every hypothesis that may be tested, named before its outcomes, and what that costs.

Weighted e-BH selects from it (Wang and Ramdas, "False discovery rate control with e-values", JRSS-B 2022):
with values E and weights w that sum to at most one, k_hat is the largest k for which k members have
w E >= 1 / (q k), and those are selected. Their expected false share is at most q under any dependence between
clusters. Parents weigh more than their children, because trades pool upward and a parent decides years
earlier. A member in a later epoch is charged a smaller share of its weight, see `share`.

Levels for hypotheses that come one after the other, of unknown number: e-LOND.

    level_k = alpha x gamma_k x (D + 1),   gamma_k = 1 / (k (k + 1)),   k = 1, 2, ...

with D the discoveries before hypothesis k began. The gammas sum to one, so without any discovery all levels
together spend at most alpha; each discovery lets the later ones spend more, and the expected false share of
all discoveries stays at most alpha under any dependence. D is taken when a hypothesis begins, which can only
make its level smaller than at its end. Source: Xu and Ramdas, "Online multiple testing with e-values"
(AISTATS 2024).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from schemas.canonical import content_id
from schemas.errors import DataError, InvariantViolation
from services.statistics.blocks import Floats

LEVEL_WEIGHTS = (4.0, 2.0, 1.0)
CLAIMS = 2
MOST_EPOCHS = 60  # beyond, the level is below anything that an e-value of a report can reach
WHOLE = "*"  # all open cells of a playbook together, where epochs tell them from single cells
ROUNDING = 1e-9  # e-values are printed to nine digits, and the judge selects again from print


@dataclass(frozen=True)
class Family:
    """Registered hypotheses with weights that sum to one, the epoch of each, and the false share `q`.

    `tried_before` configurations with `hypotheses_before` in all were tried on the same bars before: they
    share the false share with this one.
    """

    members: tuple[str, ...]
    weights: tuple[float, ...]
    q: float
    epochs: tuple[int, ...]
    tried_before: int = 0
    hypotheses_before: int = 0

    @cached_property
    def family_id(self) -> str:
        """Content id over members, weights, epochs and q, and how much was tried before."""
        shown = ("members", "weights", "q", "epochs", "tried_before")
        return content_id({name: getattr(self, name) for name in shown})

    def __len__(self) -> int:
        return len(self.members)

    def alpha(self, member: str, selected: int = 1) -> float:
        """Level of one claim of a member when `selected` are: q x weight / 2 x share of its epoch x selected.

        A member is selected by e-BH exactly when E reaches 1 / alpha at the number that e-BH selects.

        Raises:
            InvariantViolation: the hypothesis was never registered.
        """
        if member not in self._position:
            raise InvariantViolation(f"hypothesis {member!r} is not registered in family {self.family_id}")
        return self.q * float(self.charged[self._position[member]]) * max(selected, 1)

    def __contains__(self, member: str) -> bool:
        return member in self._position

    @cached_property
    def charged(self) -> Floats:
        """What each of a member's two claims, losing and gaining, may spend: half its weight's share.

        The share is that of its epoch; both claims of all members together sum to at most one half,
        divided by the configurations so far, this one included: together they spend no more than one.
        """
        alone = np.array([w * share(epoch) for w, epoch in zip(self.weights, self.epochs, strict=True)])
        return alone / CLAIMS / (1 + self.tried_before)

    @property
    def variants(self) -> int:
        """Hypotheses that were tried on these bars in all."""
        return len(self) + self.hypotheses_before

    @cached_property
    def _position(self) -> dict[str, int]:
        return {member: index for index, member in enumerate(self.members)}


def level_weight(member: str) -> float:
    """Weight before scaling: playbook 4, playbook|regime 2, below and grid trials 1."""
    if member.startswith("grid|"):
        return LEVEL_WEIGHTS[-1]
    return LEVEL_WEIGHTS[min(member.count("|"), len(LEVEL_WEIGHTS) - 1)]


def register_family(
    members: Sequence[str],
    q: float,
    *,
    weights: Mapping[str, float] | None = None,
    epochs: Mapping[str, int] | None = None,
    tried_before: int = 0,
    hypotheses_before: int = 0,
) -> Family:
    """A family in name order.

    Args:
        members: names of hypotheses, `playbook|regime|timeframe` from the left, or `grid|...`.
        q: false share that the family spends over all its epochs.
        weights: None weighs by level; scaled to sum to one either way.
        epochs: changes so far, by playbook; `playbook|*` is that of the playbook as a whole and
            `playbook|regime` that of one cell, where they differ. 0 where missing.
        tried_before: other configurations tried on the same bars: each member is charged 1 + that many times.
        hypotheses_before: how many hypotheses those had.

    Raises:
        DataError: no members, a member twice, or a weight missing or not positive.
    """
    names = sorted(members)
    if not names or len(set(names)) != len(names):
        raise DataError(f"a family needs distinct members, got {len(names)} with {len(set(names))} different")
    raw = [level_weight(name) if weights is None else weights.get(name, 0.0) for name in names]
    if min(raw) <= 0:
        raise DataError(f"hypothesis {names[raw.index(min(raw))]!r} needs a positive weight")
    total = sum(raw)
    begun = tuple(epoch_of(name, epochs or {}) for name in names)
    shares = tuple(weight / total for weight in raw)
    return Family(tuple(names), shares, q, begun, tried_before, hypotheses_before)


def epoch_of(member: str, epochs: Mapping[str, int]) -> int:
    """Epoch of a hypothesis: its own, else that of its cell, else that of its playbook."""
    parts = member.split("|")
    name = playbook_of(member)
    own = f"{name}|{WHOLE}" if len(parts) == 1 else "|".join(parts[:2])
    return epochs.get(own, epochs.get(name, 0))


def playbook_of(member: str) -> str:
    """Playbook that a hypothesis is about."""
    parts = member.split("|")
    return parts[1] if parts[0] == "grid" and len(parts) > 1 else parts[0]


def e_bh_counts(scaled: Floats, q: float) -> NDArray[np.int64]:
    """How many weighted e-BH selects, for each row of log(w E), shape (..., K) to (...)."""
    ranked = -np.sort(-scaled, axis=-1)
    ranks = np.arange(1, scaled.shape[-1] + 1)
    passing = ranked + np.log(ranks) >= -np.log(q) - ROUNDING
    return np.asarray(np.where(passing, ranks, 0).max(axis=-1, initial=0), dtype=np.int64)


def e_bh_rows(scaled: Floats, q: float) -> NDArray[np.bool_]:
    """What weighted e-BH selects in each row of log(w E), shape (..., K)."""
    counts = e_bh_counts(scaled, q)[..., None]
    selected: NDArray[np.bool_] = (counts > 0) & (
        scaled + np.log(np.maximum(counts, 1)) >= -np.log(q) - ROUNDING
    )
    return selected


def e_bh(family: Family, log_e: Mapping[str, float]) -> tuple[str, ...]:
    """Members selected by weighted e-BH, in name order; members without a value count as E = 1.

    Raises:
        InvariantViolation: a value belongs to no member.
    """
    for name in log_e:
        family.alpha(name)
    values = np.array([log_e.get(name, 0.0) for name in family.members])
    selected = e_bh_rows(values + np.log(family.charged), family.q)
    return tuple(name for name, taken in zip(family.members, selected, strict=True) if taken)


def share(epoch: int) -> float:
    """The part of q that epoch `epoch` (from 0) may spend: a half, a quarter, ...; from 60 on the same.

    An accepted change closes the e-process of its playbook. Trades after it start a new one, in epoch k, and
    are charged q_k = q / 2^(k + 1), so all epochs that may ever come stay below q, whatever made them begin.
    """
    return 0.5 ** (min(max(epoch, 0), MOST_EPOCHS) + 1)


def online_level(alpha: float, number: int, discoveries: int) -> float:
    """Level of the hypothesis that is the `number`-th to begin (from 1), after so many discoveries.

    Raises:
        InvariantViolation: the count does not start at one, or more was discovered than began.
    """
    if number < 1 or not 0 <= discoveries < number:
        raise InvariantViolation(f"hypothesis {number} cannot follow {discoveries} discoveries")
    return alpha * (discoveries + 1) / (number * (number + 1))
