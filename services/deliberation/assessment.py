"""A critique in words: PASS or NEEDS CORRECTION, with how sure it is; anything else is UNKNOWN.

The closed reply is asked for first. Who answers in prose is read here, and where a text says both, or
neither, it says nothing: the text that it is of stays as it is.
"""

import re
from dataclasses import dataclass
from typing import Literal

from services.model_calls.reply_text import strip_fence

Verdict = Literal["PASS", "NEEDS CORRECTION", "UNKNOWN"]
NOT = r"(?:\b(?:not|never|no|nothing|none|cannot|without)|n['’]t)\s+(?:\w+\s+)?"
WANTS = r"(?:needs?[ _-](?:any )?corrections?|corrections? (?:is |are )?(?:needed|required|necessary))"
NEEDS_NONE = re.compile(rf"{NOT}{WANTS}\b", re.I)
FAILS = re.compile(rf"(?:{NOT}|\bfails? to )pass(?:es|ed)?\b", re.I)
NEEDS = re.compile(rf"\b{WANTS}\b", re.I)
PASSES = re.compile(r"\bpass(?:es|ed)?\b", re.I)
CONFIDENCE = re.compile(r"\bconfiden(?:ce|t)\b\D{0,12}?(-?\d+(?:\.\d+)?)\s*(%|percent\b|/\s*100\b)?", re.I)
EXPLANATION = re.compile(r"\b(?:explanation|issues?|reason)\s*[:=-]\s*(.+)", re.I | re.S)
UNSAID = 0.5
FEWEST_PERCENT = 2.0  # a confidence without its unit is a percentage from here on; less is out of bounds
LONGEST = 600


@dataclass(frozen=True)
class Assessment:
    """A critique as it was read; `confidence` is between 0 and 1 whatever was written."""

    verdict: Verdict
    confidence: float
    explanation: str | None


def clamped(value: float) -> float:
    """A share between 0 and 1; what is no number is none."""
    return min(1.0, max(0.0, value)) if value == value else 0.0


def parse_assessment(text: str) -> Assessment:
    """The assessment in a critique that is no closed reply."""
    plain = strip_fence(text.encode("utf-8", "replace").decode())  # no contract takes half a surrogate pair
    rest = NEEDS_NONE.sub(" ", FAILS.sub(" ", plain))
    needs = bool(FAILS.search(plain) or NEEDS.search(rest))
    passes = bool(NEEDS_NONE.search(plain) or PASSES.search(rest))
    verdict: Verdict = "UNKNOWN"
    if needs != passes:
        verdict = "NEEDS CORRECTION" if needs else "PASS"
    said = EXPLANATION.search(plain)
    explanation = (said[1] if said else plain).strip()[:LONGEST]
    return Assessment(verdict, _confidence(plain), None if verdict == "PASS" else explanation)


def _confidence(text: str) -> float:
    found = CONFIDENCE.search(text)
    if found is None:
        return UNSAID
    value = float(found[1])
    return clamped(value / 100.0 if found[2] or value >= FEWEST_PERCENT else value)
