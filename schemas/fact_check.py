"""What a text claims, and what the run says of it: claims with their place, facts with their rows."""

from typing import Literal

from pydantic import Field

from schemas.contract import Contract

ClaimKind = Literal[
    "number", "percent", "count", "name", "date", "direction", "comparison", "quantifier", "grade"
]
ClaimVerdict = Literal["verified", "contradicted", "unverifiable"]
CLAIM_VERDICTS: tuple[ClaimVerdict, ...] = ("verified", "contradicted", "unverifiable")


class FactRow(Contract):
    """A journal row that a fact stands in; `seq` is None for a report that is not stored yet."""

    seq: int | None
    kind: str


class CheckedClaim(Contract):
    """One claim of a text; `start` and `end` count characters of the text.

    Attributes:
        text: the sentence or row that makes the claim.
        said: the words that claim it.
        found: what the run has in its place, as a text would write it; None where it has nothing.
        would_pass: values that would have been verified.
    """

    text: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    kind: ClaimKind
    said: str
    verdict: ClaimVerdict
    confidence: float = Field(ge=0, le=1, description="how surely the words name what they are held against")
    found: str | None = None
    rows: tuple[FactRow, ...] = ()
    would_pass: tuple[str, ...] = ()


class FactCheck(Contract):
    """All claims of one text, held against one run as of `known_at`."""

    known_at: int
    claims: tuple[CheckedClaim, ...] = ()
    struck_text: str = Field(default="", description="the text without the sentences that do not hold")

    def count(self, verdict: ClaimVerdict) -> int:
        """Claims with this verdict."""
        return sum(claim.verdict == verdict for claim in self.claims)

    @property
    def counts(self) -> dict[str, int]:
        """Claims by verdict."""
        return {verdict: self.count(verdict) for verdict in CLAIM_VERDICTS}

    @property
    def holds(self) -> bool:
        """Whether every claim is verified."""
        return all(claim.verdict == "verified" for claim in self.claims)

    @property
    def failures(self) -> tuple[CheckedClaim, ...]:
        """Claims that are not verified, in the order of the text."""
        return tuple(claim for claim in self.claims if claim.verdict != "verified")
