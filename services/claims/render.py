"""The words of a claim that is so: one sentence of each kind, its figures as they were looked up."""

from functools import singledispatch
from typing import Any

from schemas.claims import (
    WHOLE,
    AdviceClaim,
    Claim,
    CompareClaim,
    EveryClaim,
    GradeClaim,
    RankClaim,
    ShareClaim,
    SignClaim,
    ValueClaim,
)
from services.claims.check import ClaimResult
from services.claims.measures import MEASURES, name_measure
from services.claims.subjects import PLURALS, predicate, words_of

PLACES = ("", "second ", "third ", "fourth ", "fifth ")
OPENINGS = ("the ", "every ")  # any other word is a name of the run
RELATIONS = {"more": "higher than", "less": "lower than", "same": "the same as"}


def render(claim: Claim, result: ClaimResult) -> str:
    """One sentence, with its point."""
    text = _render(claim, result)
    return f"{text[:1].upper() if text.startswith(OPENINGS) else text[:1]}{text[1:]}."


@singledispatch
def _render(claim: Any, result: ClaimResult) -> str:
    raise TypeError(f"no words for {type(claim).__name__}")


@_render.register
def _(claim: ValueClaim, result: ClaimResult) -> str:
    over = "" if result.trades is None else f" over {result.trades:,} trade{'s' * (result.trades != 1)}"
    return f"{name_measure(claim.measure, claim.of)} was {result.figures[0].text}{over}"


@_render.register
def _(claim: ShareClaim, result: ClaimResult) -> str:
    count, whole, share = (figure.text for figure in result.figures)
    of_whole = "trades" if claim.whole == WHOLE else f"trades ({words_of(claim.whole)})"
    return f"{count} of {whole} {of_whole} {predicate(claim.part) or 'were made'}: {share}"


@_render.register
def _(claim: CompareClaim, result: ClaimResult) -> str:
    left, right = (figure.text for figure in result.figures)
    than = f"{RELATIONS[claim.relation]} that of {words_of(claim.right)}"
    return f"{name_measure(claim.measure, claim.left)} was {than}: {left} and {right}"


@_render.register
def _(claim: RankClaim, result: ClaimResult) -> str:
    place = PLACES[claim.place - 1] if claim.place <= len(PLACES) else f"{claim.place}th "
    among = f"of the {PLURALS[claim.by]}"
    among += f" without {_join_names(claim.without)}" if claim.without else ""
    among += f" in {words_of(claim.within)}" if claim.within != WHOLE else ""
    noun = MEASURES[claim.measure].noun
    return f"{claim.who} had the {place}{claim.counted_from} {noun} {among}: {result.figures[0].text}"


@_render.register
def _(claim: EveryClaim, result: ClaimResult) -> str:
    but = f" but {_join_names(claim.but)}" if claim.but else ""
    within = f" in {words_of(claim.within)}" if claim.within != WHOLE else ""
    noun = MEASURES[claim.measure].noun
    return f"every {claim.by.replace('_', ' ')}{but}{within} had a {noun} {claim.relation} {claim.bound}"


@_render.register
def _(claim: SignClaim, result: ClaimResult) -> str:
    return f"{name_measure(claim.measure, claim.of)} was {claim.sign}: {result.figures[0].text}"


@_render.register
def _(claim: GradeClaim, result: ClaimResult) -> str:
    return f"the evidence on {words_of(claim.of)} is graded {claim.grade}"


@_render.register
def _(claim: AdviceClaim, result: ClaimResult) -> str:
    on = "" if claim.of == WHOLE else f" for {words_of(claim.of)}"
    return f"the report recommends {claim.action}{on}"


def _join_names(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
