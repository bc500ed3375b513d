"""Levels for hypotheses that come one after the other, of unknown number: e-LOND.

    level_k = alpha x gamma_k x (D + 1),   gamma_k = 1 / (k (k + 1)),   k = 1, 2, ...

with D the discoveries before hypothesis k began. The gammas sum to one, so without any discovery all levels
together spend at most alpha; each discovery lets the later ones spend more, and the expected false share of
all discoveries stays at most alpha under any dependence. D is taken when a hypothesis begins, which can only
make its level smaller than at its end. Source: Xu and Ramdas, "Online multiple testing with e-values"
(AISTATS 2024). Read when a shadow trial of a candidate begins.
"""

from schemas.errors import InvariantViolation


def online_level(alpha: float, number: int, discoveries: int) -> float:
    """Level of the hypothesis that is the `number`-th to begin (from 1), after so many discoveries.

    Raises:
        InvariantViolation: the count does not start at one, or more was discovered than began.
    """
    if number < 1 or not 0 <= discoveries < number:
        raise InvariantViolation(f"hypothesis {number} cannot follow {discoveries} discoveries")
    return alpha * (discoveries + 1) / (number * (number + 1))
