"""A text of claims: each looked up, what holds written in words, what does not refused with what is so."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
    RefusedClaim,
    Section,
    ShareClaim,
    SignClaim,
    Statement,
    ValueClaim,
    WrittenSection,
)
from services.claims.check import ClaimResult, check
from services.claims.measures import MEASURES, SUFFIX, Figure, name_measure
from services.claims.subjects import regimes
from services.claims.words import PLURALS, predicate, words_of
from services.evidence.run_facts import RunFacts
from services.model_calls import quoting

PLACES = ("", "second ", "third ", "fourth ", "fifth ")
OPENINGS = ("the ", "every ")  # any other word is a name of the run
OPEN = "?"
FIGURES = {"share": 3, "compare": 2}  # in a sentence; one in any other
RELATIONS = {"more": "higher than", "less": "lower than", "same": "the same as"}


@dataclass(frozen=True)
class WrittenText:
    """Sections whose claims hold, and what was left out of them.

    Attributes:
        refused: claims that do not hold, in the order of the text.
        dropped_comments: comments with a figure, a name of the run, or too many characters.
    """

    sections: tuple[WrittenSection, ...] = ()
    refused: tuple[RefusedClaim, ...] = ()
    dropped_comments: int = 0

    @property
    def accuracy(self) -> float | None:
        """Share of the claims that hold; None without any."""
        held = sum(len(section.statements) for section in self.sections)
        return held / (held + len(self.refused)) if held or self.refused else None

    @property
    def text(self) -> str:
        """The statements of each section under its topic; comments left out."""
        return text_of(self.sections)


def write_sections(sections: Sequence[Section], facts: RunFacts) -> WrittenText:
    """The sections in words, each claim held against the facts."""
    written, refused, dropped = [], [], 0
    for section in sections:
        statements = []
        for claim in section.claims:
            result = check(claim, facts)
            if isinstance(result, ClaimResult):
                statements.append(Statement(claim=claim, text=render(claim, result), rows=result.rows))
            else:
                refused.append(RefusedClaim(claim=claim, so=result.so, known=result.known))
        comment = keep_comment(section.comment, facts)
        dropped += section.comment is not None and comment is None
        written.append(WrittenSection(topic=section.topic, statements=tuple(statements), comment=comment))
    return WrittenText(tuple(written), tuple(refused), dropped)


def keep_comment(comment: str | None, facts: RunFacts) -> str | None:
    """A writer's own words, if they bring no figure and no name of the run; else None."""
    names = {*facts.symbols, *facts.playbook_ids, *facts.parameters, *regimes(facts)}
    return quoting.keep_comment(comment, names)


def rename_symbols(sections: Sequence[Section], names: Mapping[str, str]) -> tuple[Section, ...]:
    """The sections with each symbol by its other name; a comment stays as it is."""

    def rename(value: Any, key: str = "", by: str = "") -> Any:
        if isinstance(value, dict):
            return {name: rename(item, name, value.get("by", "")) for name, item in value.items()}
        if isinstance(value, list):
            return [rename(item, key, by) for item in value]
        is_symbol = key == "symbol" or by == "symbol" and key in ("who", "without", "but")
        return names.get(value, value) if is_symbol and isinstance(value, str) else value

    renamed = ((section, rename([claim.payload() for claim in section.claims])) for section in sections)
    return tuple(
        Section.model_validate({"topic": section.topic, "claims": claims, "comment": section.comment})
        for section, claims in renamed
    )


def text_of(sections: Iterable[WrittenSection]) -> str:
    """Sections as plain text: the topic, and a line for each statement."""
    lines = []
    for section in sections:
        if section.statements:
            lines += [f"{section.topic}:", *(f"- {statement.text}" for statement in section.statements)]
    return "\n".join(lines)


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
    among = f"of the {PLURALS[claim.by]} with trades"
    among += f" without {_join_names(claim.without)}" if claim.without else ""
    among += f" in {words_of(claim.within)}" if claim.within != WHOLE else ""
    noun = MEASURES[claim.measure].noun
    return f"{claim.who} had the {place}{claim.counted_from} {noun} {among}: {result.figures[0].text}"


@_render.register
def _(claim: EveryClaim, result: ClaimResult) -> str:
    but = f" but {_join_names(claim.but)}" if claim.but else ""
    within = f" in {words_of(claim.within)}" if claim.within != WHOLE else ""
    noun = MEASURES[claim.measure].noun
    whose = f"every {claim.by.replace('_', ' ')} with trades{within}{but}"
    return f"{whose} had a {noun} {claim.relation} {claim.bound}"


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
    figures = tuple(_FigureRead(0.0, "count", 0, reply) for reply in words)
    return render(claim, ClaimResult(figures, ()))
