"""The one table of legal state transitions: the source for the kernel, the documentation and the tests.

A symbol starts IDLE. The kernel looks every change up in `LEGAL` and stops with a fault on one that is not
there.
"""

from typing import Any, Final

import numpy as np

from schemas.vocabulary import PolicyState

STATES: Final = tuple(PolicyState)
_CODES: Final[Any] = np.arange(len(STATES))  # numpy integers: see `records.code`
IDLE, THESIS_ARMED, POSITION_OPEN, HOLD_LOCK, COOLDOWN, INVALIDATED = _CODES

TRANSITIONS: Final[dict[tuple[PolicyState, PolicyState], str]] = {
    (
        PolicyState.IDLE,
        PolicyState.THESIS_ARMED,
    ): "the setup of the frozen policy is true at a close, its invalidation is not",
    (
        PolicyState.THESIS_ARMED,
        PolicyState.IDLE,
    ): "the activation window timed out, or the policy was retired",
    (PolicyState.THESIS_ARMED, PolicyState.INVALIDATED): "the invalidation is true before activation",
    (PolicyState.THESIS_ARMED, PolicyState.POSITION_OPEN): "the activated order filled",
    (
        PolicyState.POSITION_OPEN,
        PolicyState.HOLD_LOCK,
    ): "the bar after the entry bar: one evaluation has passed",
    (
        PolicyState.POSITION_OPEN,
        PolicyState.INVALIDATED,
    ): "the invalidation is true at the close of the entry bar",
    (PolicyState.POSITION_OPEN, PolicyState.COOLDOWN): "the position closed on its entry bar",
    (PolicyState.HOLD_LOCK, PolicyState.INVALIDATED): "the invalidation is true: exit at the next open",
    (PolicyState.HOLD_LOCK, PolicyState.COOLDOWN): "the position closed",
    (PolicyState.INVALIDATED, PolicyState.COOLDOWN): "the position of the invalidated thesis closed",
    (
        PolicyState.INVALIDATED,
        PolicyState.IDLE,
    ): "the evaluation after an invalidation without position has passed",
    (PolicyState.COOLDOWN, PolicyState.IDLE): "the cooldown has lasted its bars",
}


def legal_matrix() -> "np.ndarray[tuple[int, int], np.dtype[np.uint8]]":
    """uint8 (6, 6): 1 where the transition row -> column is legal."""
    matrix = np.zeros((len(STATES), len(STATES)), dtype=np.uint8)
    for source, target in TRANSITIONS:
        matrix[STATES.index(source), STATES.index(target)] = 1
    return matrix


LEGAL: Final = legal_matrix()
