"""A claim in the words of code before it is looked up: what was taken from a text, so or not."""

from dataclasses import dataclass

from schemas.claims import Claim, ShareClaim, ValueClaim
from services.claims.check import ClaimResult
from services.claims.measures import MEASURES, SUFFIX, Figure
from services.claims.sections import render

OPEN = "?"
FIGURES = {"share": 3, "compare": 2}  # in a sentence; one in any other


@dataclass(frozen=True)
class _FigureRead(Figure):
    """A figure as a text states it."""

    words: str = OPEN

    @property
    def text(self) -> str:
        return self.words


def describe_claim(claim: Claim) -> str:
    """The sentence of a claim, each figure as it was stated, or `?` where none was."""
    words = [OPEN] * FIGURES.get(claim.kind, 1)
    if isinstance(claim, ValueClaim) and claim.stated is not None:
        words[0] = claim.stated + SUFFIX.get(MEASURES[claim.measure].unit, "")
    if isinstance(claim, ShareClaim) and claim.stated is not None:
        words[2 if claim.stated.endswith("%") else 0] = claim.stated
    figures = tuple(_FigureRead(0.0, "count", 0, said) for said in words)
    return render(claim, ClaimResult(figures, ()))
