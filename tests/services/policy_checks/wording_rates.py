"""How often texts are read right, by bank: `uv run python -m tests.services.policy_checks.wording_rates`."""

import asyncio
from dataclasses import dataclass

from schemas.config import ReflectionSettings
from schemas.reflection import PolicyLevelReflectionRequest, PolicyLevelReflectionResult
from services.policy_checks.direction_words import read_direction
from services.policy_level_reflection_service import PolicyLevelReflectionService
from tests.services.policy_checks import wordings_whole as whole
from tests.services.policy_checks.plans import PLANS, changed, right_request
from tests.services.policy_checks.right_plans import right_plans
from tests.services.policy_checks.wording import PhraseBank, worded
from tests.services.policy_checks.wordings_first import FIRST
from tests.services.policy_checks.wordings_held_out import HELD_OUT
from tests.services.policy_checks.wordings_second import SECOND
from tests.services.policy_checks.wordings_third import THIRD
from tests.services.policy_checks.wordings_tuned import TUNED

BANKS = {"tuned": TUNED, "first": FIRST, "second": SECOND, "third": THIRD, "held_out": HELD_OUT}
WHOLE = "whole"
SERVICE = PolicyLevelReflectionService(ReflectionSettings())


@dataclass(frozen=True)
class Share:
    """How many of how many."""

    found: int
    of: int

    def __str__(self) -> str:
        return f"{self.found} of {self.of}"


def reflected(requests: list[PolicyLevelReflectionRequest]) -> list[PolicyLevelReflectionResult]:
    """The verdicts on requests, in order."""

    async def all_of_them() -> list[PolicyLevelReflectionResult]:
        return [await SERVICE.reflect(request, source="heartbeat") for request in requests]

    return asyncio.run(all_of_them())


def passing(name: str) -> Share:
    """Right plans worded from a bank that pass."""
    requests = [plan.request for plan in right_plans(name, BANKS[name])] if name != WHOLE else right_whole()
    results = reflected(requests)
    return Share(sum(result.status.value == "pass" for result in results), len(results))


def contradicting(sentences: tuple[str, ...], *, after_terms: bool = False) -> Share:
    """Sentences against a plan that are read so, over every playbook and direction.

    `after_terms` lets each follow what the rules say for the plan: its direction and the playbook's terms.
    """
    found = []
    for sentence in sentences:
        for playbook, direction in PLANS:
            own, other = _terms(playbook, direction)
            text = worded(sentence, playbook, direction)
            said = _listed(own, direction) + text if after_terms else text
            found.append(read_direction(said, direction, own, other))
    return Share(sum(reading.contradicts for reading in found), len(found))


def right_whole() -> list[PolicyLevelReflectionRequest]:
    """A right plan for each whole rationale that argues for it."""
    return [
        changed(right_request(playbook, direction), {"proposal.rationale": text})
        for playbook, direction in PLANS
        for text in whole.RIGHT[playbook.id, direction]
    ]


def contradicting_whole(texts: whole.Texts, *, after_terms: bool = False) -> Share:
    """Whole rationales against their plan that are read so."""
    found = []
    for playbook, direction in PLANS:
        own, other = _terms(playbook, direction)
        for text in texts[playbook.id, direction]:
            said = _listed(own, direction) + text if after_terms else text
            found.append(read_direction(said, direction, own, other))
    return Share(sum(reading.contradicts for reading in found), len(found))


def rates(name: str) -> dict[str, Share]:
    """Every rate of one bank."""
    if name == WHOLE:
        return {
            "right plans that pass": passing(name),
            "against": contradicting_whole(whole.AGAINST),
            "against after the terms": contradicting_whole(whole.AGAINST, after_terms=True),
            "negated": contradicting_whole(whole.DENIED),
        }
    bank: PhraseBank = BANKS[name]
    return {
        "right plans that pass": passing(name),
        "against": contradicting(bank.against),
        "against after the terms": contradicting(bank.against, after_terms=True),
        "negated": contradicting(bank.negated),
    }


def _listed(terms, direction):
    return f"Go {direction}: {', '.join(terms)}. "


def _terms(playbook, direction):
    other = "short" if direction == "long" else "long"
    return playbook.rationale_terms[direction], playbook.rationale_terms[other]


def main() -> None:
    """Print one line for each bank."""
    for name in (*BANKS, WHOLE):
        print(f"{name:<9}", ", ".join(f"{what}: {share}" for what, share in rates(name).items()))


if __name__ == "__main__":
    main()
