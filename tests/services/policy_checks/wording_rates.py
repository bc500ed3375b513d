"""How texts are read, by bank: `uv run python -m tests.services.policy_checks.wording_rates`."""

import asyncio
import json
from dataclasses import dataclass
from functools import lru_cache

from schemas.reflection import PolicyLevelReflectionRequest, PolicyLevelReflectionResult
from schemas.settings import ReflectionSettings
from schemas.vocabulary import Direction, ReflectionStatus
from services.model_calls.language_model import ModelReply
from services.policy_checks.stated_stance import words_against
from services.policy_level_reflection_service import PolicyLevelReflectionService
from tests.services.policy_checks import wordings_fresh as fresh
from tests.services.policy_checks import wordings_whole as whole
from tests.services.policy_checks.plans import changed, playbook_named, right_request

Texts = dict[tuple[str, Direction], tuple[str, ...]]
RIGHT_BANKS: dict[str, tuple[Texts, Texts]] = {
    "whole": (dict(whole.RIGHT), {key: (*whole.AGAINST[key], *whole.DENIED[key]) for key in whole.AGAINST}),
    "fresh": (fresh.RIGHT, fresh.CONTRARY),
}
HEADER = (
    "| bank | right | refused by rules | contrary | found by rules | sent back by a reader that quotes"
    " | sent back on a quotation that is not there |"
)


@dataclass(frozen=True)
class Rates:
    """Texts of one bank, and what became of them."""

    right: int
    right_refused: int
    contrary: int
    contrary_found: int
    sent_back_by_reader: int
    sent_back_on_false_quotation: int

    def row(self, name: str) -> str:
        """One row of the table."""
        figures = (
            self.right, self.right_refused, self.contrary, self.contrary_found, self.sent_back_by_reader,
            self.sent_back_on_false_quotation,
        )  # fmt: skip
        return f"| {name} | {' | '.join(map(str, figures))} |"


class Reader:
    """A second reader that objects to one text, with a quotation from it."""

    def __init__(self, quotation: str) -> None:
        """Take the words that it quotes."""
        self._reply = {
            "verdict": "block",
            "summary": "The text argues against its plan.",
            "findings": [],
            "quotations": [{"text": quotation, "code": "text_contradicts_direction"}],
        }

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        """The objection, whatever is asked."""
        return ModelReply(json.dumps(self._reply), "scripted", 1, 1, 0.0)


def reflected(
    requests: list[PolicyLevelReflectionRequest], reader: Reader | None = None
) -> list[PolicyLevelReflectionResult]:
    """The verdicts on requests, in order."""
    settings = ReflectionSettings(mode="deterministic" if reader is None else "full")
    service = PolicyLevelReflectionService(settings, model=reader)

    async def all_of_them() -> list[PolicyLevelReflectionResult]:
        return [await service.reflect(request, source="heartbeat") for request in requests]

    return asyncio.run(all_of_them())


@lru_cache(maxsize=8)
def rates(name: str) -> Rates:
    """Every rate of one bank."""
    right, contrary = RIGHT_BANKS[name]
    right_requests = [_request(key, text, keeps_terms=False) for key in right for text in right[key]]
    texts = [(key, text) for key in contrary for text in contrary[key]]
    refused = [result for result in reflected(right_requests) if result.status is not ReflectionStatus.PASS]
    found = [bool(words_against(text, key[1])) for key, text in texts]
    return Rates(
        right=len(right_requests),
        right_refused=len(refused),
        contrary=len(texts),
        contrary_found=sum(found),
        sent_back_by_reader=sum(_sent_back(key, text, _first_words(text)) for key, text in texts),
        sent_back_on_false_quotation=sum(
            _sent_back(key, text, "the moon is made of cheese") for key, text in texts
        ),
    )


def _sent_back(key: tuple[str, Direction], text: str, quotation: str) -> bool:
    (result,) = reflected([_request(key, text, keeps_terms=True)], Reader(quotation))
    return result.status is ReflectionStatus.REVISE


def _first_words(text: str) -> str:
    return " ".join(text.split()[:6])


def _request(key: tuple[str, Direction], text: str, *, keeps_terms: bool) -> PolicyLevelReflectionRequest:
    """The right plan of a playbook and direction with this rationale; a thesis that names terms, or none."""
    request = right_request(playbook_named(key[0]), key[1])
    thesis = request.proposal.thesis if keeps_terms else "See the rationale."
    spoken: PolicyLevelReflectionRequest = changed(
        request, {"proposal.thesis": thesis, "proposal.rationale": text}
    )
    return spoken


def main() -> None:
    """Print the table, one row for each bank."""
    print(HEADER)
    print("| --- |" + " ---: |" * 6)
    for name in RIGHT_BANKS:
        print(rates(name).row(name))


if __name__ == "__main__":
    main()
