"""Critics and a reviser without a model, for texts of claims: whether they hold, what they cover and advise.

What they score is what they can count; none says whether a text is well written. A text that they see holds
true statements alone: a claim that is not so was left out of it and is a finding, with what is so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from schemas.canonical import canonical_json
from schemas.claims import (
    AdviceClaim,
    CheckedClaim,
    Claim,
    FactCheck,
    GradeClaim,
    Section,
    ShareClaim,
    ValueClaim,
)
from schemas.deliberation import Author, CallUsage, Critique, CritiqueSource, TextCandidate, TextFinding
from schemas.vocabulary import Severity
from services.claims.sections import WrittenText, keep_comment, rename_symbols, write_sections
from services.deliberation.budget import Budget
from services.deliberation.policies import OF_WEIGHT, Round
from services.deliberation.refine import CLAIM_REFUSED, NOTHING_LEFT, Draft, Task, sections_of
from services.evidence.run_facts import RunFacts
from services.model_calls.asking import NoReply

# Measures that say what would have to be seen before more could be advised.
WHAT_WOULD_CHANGE_IT = frozenset({"detectable_r", "e_value", "blocks", "track_record", "lower_r", "upper_r"})
ADVICE = "recommendation"  # the topic under which something is advised
OTHER = "other"
NOTHING_HOLDS = NoReply(NOTHING_LEFT, "no claim of the text holds")


@dataclass(frozen=True)
class ClaimText:
    """Writes the claims of a text in words, and keeps what it found of them.

    Attributes:
        facts: of the run that the text is about, with the symbols by their own names.
        symbols: name of each symbol by what the writer calls it; none: by its name.
        topics: what a section may be about; whatever else a writer calls it is shown as `other`.
    """

    facts: RunFacts
    symbols: Mapping[str, str] = field(default_factory=dict)
    topics: tuple[str, ...] = ()

    def draft(
        self,
        sections: Sequence[Section],
        *,
        reasoning: str = "",
        usage: CallUsage | None = None,
        author: Author = "model",
    ) -> Draft:
        """A writer's sections as a text; empty where no claim of them holds."""
        named = self.name(sections)
        text = self.write(named).text
        return Draft(text, author, reasoning, usage or CallUsage(), source=named)

    def name(self, sections: Sequence[Section]) -> tuple[Section, ...]:
        """The sections with each symbol by its own name, under the topics that there are.

        Of a comment that is not kept nothing is left but that there was one: it is empty.
        """
        named = rename_symbols(sections, self.symbols) if self.symbols else sections
        return tuple(
            part.model_copy(
                update={
                    "topic": part.topic if part.topic in self.topics else OTHER,
                    "comment": part.comment and (keep_comment(part.comment, self.facts) or ""),
                }
            )
            for part in named
        )

    def write(self, sections: Sequence[Section]) -> WrittenText:
        """The sections in words, by their own names."""
        return write_sections(sections, self.facts)

    def check(self, sections: Sequence[Section]) -> FactCheck:
        """Every claim of the sections with its verdict."""
        text = self.write(sections)
        return FactCheck(
            known_at=self.facts.known_at,
            claims=tuple(_list_checked(text)),
            dropped_comments=text.dropped_comments,
        )


def _list_checked(text: WrittenText) -> Iterator[CheckedClaim]:
    for section in text.sections:
        for statement in section.statements:
            yield CheckedClaim(
                claim=statement.claim, verdict="verified", text=statement.text, rows=statement.rows
            )
    for refused in text.refused:
        yield CheckedClaim(
            claim=refused.claim, verdict="contradicted" if refused.known else "unverifiable", so=refused.so
        )


@dataclass(frozen=True)
class ClaimCritic:
    """One question about the claims of a text, answered by counting; `name` is that of its finder."""

    name: str
    claims: ClaimText
    source: ClassVar[CritiqueSource] = "data"

    async def critique(
        self, task: Task, candidate: TextCandidate, rounds: Sequence[Round], budget: Budget
    ) -> Critique | NoReply:
        """What is found: it wants a revision where a finding has weight, and is sure of it."""
        dimension, find = FINDERS[self.name]
        score, findings = find(task, self.claims.write(sections_of(candidate)))
        overall = None if score is None else round(score, 9)
        return Critique(
            critic=self.name,
            source=self.source,
            candidate=candidate.number,
            verdict="revise" if any(found.severity in OF_WEIGHT for found in findings) else "accept",
            scores={} if overall is None else {dimension: overall},
            overall=overall,
            explanation="; ".join(found.message for found in findings),
            findings=tuple(findings),
        )


Found = tuple[float | None, Sequence[TextFinding]]


def find_refused(task: Task, text: WrittenText) -> Found:
    """The share of the claims that hold, and each that does not, with what is so."""
    findings = [
        _finding(
            CLAIM_REFUSED, Severity.MAJOR, "accuracy", refused.so, canonical_json(refused.claim.payload())
        )
        for refused in text.refused
    ]
    return text.accuracy, findings


def find_uncovered(task: Task, text: WrittenText) -> Found:
    """The share of the topics asked for that have a statement, and the others."""
    if not task.topics:
        return None, ()
    covered = {section.topic for section in text.sections if section.statements}
    missing = [topic for topic in task.topics if topic not in covered]
    message = f"no statement on: {', '.join(missing)}"
    findings = [_finding("not_covered", Severity.MINOR, "completeness", message)] if missing else []
    return 1.0 - len(missing) / len(task.topics), findings


def find_advice(task: Task, text: WrittenText) -> Found:
    """Whether an action is advised, for whom, and what would change it, where advice is asked for."""
    if ADVICE not in task.topics:
        return None, ()
    claims = list(claims_of(text))
    advised = [claim for claim in claims if isinstance(claim, AdviceClaim)]
    names_subject = any(claim.of.playbook is not None for claim in advised)
    valued = (claim for claim in claims if isinstance(claim, ValueClaim))
    says_more = any(claim.measure in WHAT_WOULD_CHANGE_IT for claim in valued)
    score = (bool(advised) + names_subject + says_more) / 3
    message = "the text advises no action"
    return score, [] if advised else [_finding("no_action", Severity.MINOR, "actionability", message)]


def find_overstated(task: Task, text: WrittenText) -> Found:
    """The share of the grades that are stated as they are; None where none is stated."""
    held = sum(isinstance(claim, GradeClaim) for claim in claims_of(text))
    wrong = sum(isinstance(refused.claim, GradeClaim) for refused in text.refused)
    return (held / (held + wrong) if held or wrong else None), ()


def find_repeats(task: Task, text: WrittenText) -> Found:
    """Statements that stand twice."""
    seen: set[str] = set()
    findings = []
    for section in text.sections:
        for statement in section.statements:
            if statement.text in seen:
                findings.append(
                    _finding("repeats_itself", Severity.MINOR, "clarity", "it stands twice", statement.text)
                )
            seen.add(statement.text)
    return None, findings


FINDERS = {
    "facts": ("accuracy", find_refused),
    "coverage": ("completeness", find_uncovered),
    "actionability": ("actionability", find_advice),
    "grades": ("confidence", find_overstated),
    "consistency": ("clarity", find_repeats),
}
OF_A_SECTION = ("facts", "grades", "consistency")  # none of which is asked of the whole alone


def claim_critics(claims: ClaimText | None, names: Sequence[str] = tuple(FINDERS)) -> tuple[ClaimCritic, ...]:
    """The critics without a model, facts first; none without facts."""
    return () if claims is None else tuple(ClaimCritic(name, claims) for name in names)


def claims_of(text: WrittenText) -> Iterator[Claim]:
    """Every claim of a text that holds."""
    for section in text.sections:
        for statement in section.statements:
            yield statement.claim


def _finding(code: str, severity: Severity, dimension: str, message: str, said: str = "") -> TextFinding:
    return TextFinding(code=code, severity=severity, dimension=dimension, message=message, said=said)


@dataclass(frozen=True)
class RuleReviser:
    """Puts stored figures in the place of false ones, and leaves out what holds in no way or stands twice."""

    claims: ClaimText

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """The text that is left, or why nothing is."""
        draft = self.claims.draft(self.repair(sections_of(rounds[-1].candidate)), author="rules")
        return draft if draft.text else NOTHING_HOLDS

    def repair(self, sections: Sequence[Section]) -> tuple[Section, ...]:
        """The sections with claims that hold, each once."""
        seen: set[Claim] = set()
        repaired = []
        for section in sections:
            kept = []
            for claim in map(_leave_figure_out, section.claims):
                single = section.model_copy(update={"claims": (claim,)})
                if claim not in seen and not self.claims.write([single]).refused:
                    kept.append(claim)
                seen.add(claim)
            repaired.append(section.model_copy(update={"claims": tuple(kept)}))
        return tuple(repaired)


def _leave_figure_out(claim: Claim) -> Claim:
    """A claim without the figure that its writer gave: code looks the figure up."""
    return claim.model_copy(update={"stated": None}) if isinstance(claim, ValueClaim | ShareClaim) else claim
