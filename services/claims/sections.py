"""A text of claims: each looked up, what holds written in words, what does not refused with what is so."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.claims import RefusedClaim, Section, Statement, WrittenSection
from services.claims.check import ClaimResult, check
from services.claims.render import render
from services.claims.subjects import regimes
from services.evidence.run_facts import RunFacts
from services.model_calls import quoting


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
