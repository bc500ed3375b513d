"""How sure somebody said to be, and whether it came true: pairs that the rows of a run hold.

An episode is joined with the frozen policy that opened it by the policy's id, as lineage joins them; what a
model critic stated is held against the verdict that the rule critics gave on the same candidate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from schemas.errors import StoreError
from services.journal.index import Event, JournalIndex

KINDS = frozenset({"policy_frozen", "episode", "deliberation"})


@dataclass(frozen=True)
class ConfidenceLabels:
    """Labels of one source in the order of their rows: what was stated, and whether it came true."""

    name: str
    forecasts: tuple[float, ...]
    outcomes: tuple[bool, ...]


def stated_confidence(index: JournalIndex) -> tuple[ConfidenceLabels, ...]:
    """Every source, also one without labels.

    `conviction` is that of the policies behind the episodes of the account, true where an episode made R > 0;
    `critic` is the confidence of model critics, true where the rule critics gave the same verdict.

    Raises:
        StoreError: a row is not what was written, or names a policy that the run does not have.
    """
    found: dict[str, list[tuple[float, bool]]] = {"conviction": [], "critic": []}
    for event in index.events:
        try:
            if event.row.kind == "episode":
                found["conviction"].append(_conviction(index, event))
            elif event.row.kind == "deliberation":
                found["critic"] += _critiques(event.payload["critiques"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreadable(event, "is not what was written") from error
    return tuple(
        ConfidenceLabels(name, tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs))
        for name, pairs in found.items()
    )


def _conviction(index: JournalIndex, event: Event) -> tuple[float, bool]:
    episode = event.payload["episode"]
    frozen = index.get("policy_frozen", episode["policy_id"])
    if frozen is None:
        raise _unreadable(event, f"names policy {episode['policy_id']!r}, which the run does not have")
    return _probability(frozen.payload["policy"]["proposal"]["conviction"]), float(episode["r"]) > 0.0


def _critiques(critiques: list[dict[str, Any]]) -> Iterator[tuple[float, bool]]:
    """Of models alone, where one gave a verdict with its confidence and rules had a verdict to compare.

    A critique that is a score (`overall`) is no verdict: a threshold of ours decides what follows from it.
    """
    for critique in critiques:
        agreed, confidence = critique["agreed"], critique["confidence"]
        scored = critique.get("overall") is not None
        if critique["source"] == "model" and not scored and agreed is not None and confidence is not None:
            yield _probability(confidence), bool(agreed)


def _probability(value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{value!r} is no probability")
    return float(value)


def _unreadable(event: Event, problem: str) -> StoreError:
    return StoreError(f"row {event.row.seq} ({event.row.kind}) {problem}: see `thinktwice verify`")
