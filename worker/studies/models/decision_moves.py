"""How do decisions move between two askings of the same questions? Counts, moves and a paired test.

For more than two kinds of decision the test is McNemar's of each kind, exact: are as many questions lost by
a kind as it wins? Its p-values are adjusted by Holm, so the smallest one is that of "nothing moved in any
direction". Kinds that nothing left or entered say nothing and are not tested. Pure; called by the comparison
of prompts.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from worker.studies.models.model_comparison import sign_test

Move = tuple[str, str]
TWO_KINDS = 2


def distribution(decisions: Sequence[str]) -> dict[str, int]:
    """How often each decision was made, by name."""
    return dict(sorted(Counter(decisions).items()))


def moves(pairs: Sequence[Move]) -> list[dict[str, Any]]:
    """Moves from one decision to another, the most frequent first."""
    moved = Counter(pair for pair in pairs if pair[0] != pair[1])
    ordered = sorted(moved.items(), key=lambda item: (-item[1], item[0]))
    return [{"from": before, "to": after, "count": count} for (before, after), count in ordered]


def paired_test(pairs: Sequence[Move]) -> dict[str, Any]:
    """The test over all kinds, and of each; `p_value` None when nothing moved."""
    moved = [pair for pair in pairs if pair[0] != pair[1]]
    left, entered = Counter(one for one, _ in moved), Counter(other for _, other in moved)
    kinds = sorted({*left, *entered})
    tested = {kind: sign_test(entered[kind], left[kind]) for kind in kinds}
    raw = {kind: p_value for kind, p_value in tested.items() if p_value is not None}
    # What one of two kinds loses the other wins: that is one test.
    adjusted = raw if len(kinds) <= TWO_KINDS else holm(raw)
    return {
        "name": "exact McNemar of each decision, Holm",
        "p_value": min(adjusted.values(), default=None),
        "by_decision": [
            {
                "decision": kind,
                "left": left[kind],
                "entered": entered[kind],
                "p_value": raw[kind],
                "p_adjusted": adjusted[kind],
            }
            for kind in kinds
        ],
    }


def holm(p_values: dict[str, float]) -> dict[str, float]:
    """P-values adjusted by Holm's step-down procedure; source: Holm 1979."""
    adjusted, highest = {}, 0.0
    for rank, (name, p_value) in enumerate(sorted(p_values.items(), key=lambda item: (item[1], item[0]))):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_value))
        adjusted[name] = highest
    return adjusted
