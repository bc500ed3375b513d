"""Claims in a stranger's text: by the small reader of figures, or by a model that gives the words of each.

Whoever reads them, code holds them against the run. Sentences of which no claim was read are listed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from schemas.claims import CheckedClaim, Claim, ClaimVerdict, FactCheck
from services.claims.check import ClaimResult, Refusal, check
from services.claims.reading import read_sentences
from services.deliberation.budget import Budget
from services.deliberation.forms import EXTRACTION, ExtractionReply, read_text_reply
from services.deliberation.text_models import TextModels, read_as
from services.evidence.run_facts import RunFacts
from services.model_calls.asking import NoReply
from services.model_calls.quoting import quoted_json

TOKENS = 2_000
SENTENCE = re.compile(r"[^.!?\n]+(?:\.(?=\d)[^.!?\n]*)*[.!?]?")


@dataclass(frozen=True)
class ReadClaim:
    """A claim and the words that make it: `start` and `end` count characters of the text."""

    claim: Claim
    start: int
    end: int


@dataclass(frozen=True)
class ReadClaims:
    """What was read of a text.

    Attributes:
        by_model: whether a model read it.
        failed: why a model that was asked read nothing, so that the small reader did.
        unplaced: claims of a model whose words do not stand in the text; they are dropped.
    """

    claims: tuple[ReadClaim, ...]
    not_read: tuple[str, ...]
    by_model: bool = False
    failed: str | None = None
    unplaced: int = 0


async def extract_claims(text: str, facts: RunFacts, models: TextModels | None, budget: Budget) -> ReadClaims:
    """The claims of a text, read by a model where there is one, else by the small reader."""
    if models is None or not models.has(EXTRACTION):
        return read_by_rules(text, facts)
    reply = await models.ask(EXTRACTION, TOKENS, budget, text=quoted_json(text))
    answer_given = read_as(reply, lambda answer: read_text_reply(answer, ExtractionReply))
    if isinstance(answer_given, NoReply):
        ruled = read_by_rules(text, facts)
        return ReadClaims(ruled.claims, ruled.not_read, failed=f"{answer_given.kind}: {answer_given.detail}")
    placed = [
        ReadClaim(item.claim, text.index(item.quote), text.index(item.quote) + len(item.quote))
        for item in answer_given.claims
        if item.quote and item.quote in text
    ]
    unplaced = len(answer_given.claims) - len(placed)
    return ReadClaims(tuple(placed), tuple(_unread(text, placed)), by_model=True, unplaced=unplaced)


def read_by_rules(text: str, facts: RunFacts) -> ReadClaims:
    """What the small reader reads: figures with subject, measure and unit."""
    claims = tuple(
        ReadClaim(claim, sentence.start, sentence.end)
        for sentence in read_sentences(text, facts)
        for claim in sentence.claims
    )
    return ReadClaims(claims, tuple(_unread(text, claims)))


def check_read(text: str, read: ReadClaims, facts: RunFacts) -> FactCheck:
    """Each claim that was read with its verdict, in the order of the text."""
    claims = tuple(_check(text, found, facts) for found in read.claims)
    return FactCheck(known_at=facts.known_at, claims=claims)


def _check(text: str, found: ReadClaim, facts: RunFacts) -> CheckedClaim:
    result = check(found.claim, facts)
    return CheckedClaim(
        claim=found.claim,
        verdict=_verdict(result),
        so=result.so if isinstance(result, Refusal) else None,
        rows=() if isinstance(result, Refusal) else result.rows,
        text=text[found.start : found.end],
        start=found.start,
        end=found.end,
    )


def _verdict(result: ClaimResult | Refusal) -> ClaimVerdict:
    if not isinstance(result, Refusal):
        return "verified"
    return "contradicted" if result.known else "unverifiable"


def _unread(text: str, claims: "list[ReadClaim] | tuple[ReadClaim, ...]") -> Iterator[str]:
    for found in SENTENCE.finditer(text):
        words = found[0].strip()
        if words and not any(claim.start < found.end() and claim.end > found.start() for claim in claims):
            yield words
