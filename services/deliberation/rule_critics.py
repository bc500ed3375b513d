"""Critics and a reviser without a model: of news, the question, the next step, the end of a text, its words.

Each critic answers one question of a text and is asked in the same way as a model. What they score is what
they can count; none says whether a text is well written. The reviser puts stored values in the place of false
ones and strikes the rest.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from schemas.deliberation import Critique, CritiqueSource, TextCandidate, TextFinding
from schemas.fact_check import CheckedClaim, FactCheck
from schemas.vocabulary import Severity
from services.deliberation.budget import Budget
from services.deliberation.numerals import COUNT_WORDS
from services.deliberation.policies import OF_WEIGHT, Round
from services.deliberation.refine import NOTHING_LEFT, Critic, Draft, Task
from services.model_calls.asking import NoReply
from services.text.claim_words import words
from services.text.claims import sentences
from services.text.news import unknown_names, unknown_numbers

WORD = re.compile(r"[^\W\d_]{4,}")
NO_TOPIC = frozenset(
    re.findall(
        r"\w+",
        "what which when where does have this that with from your should would could about were been they "
        "them their there then than into over under please tell give show explain write report text answer",
    )
)
STEM = 5
ENOUGH = 0.5
WANTS_ACTION = re.compile(
    r"\b(?:recommend\w*|should|next|action\w*|strateg\w+|plan|advise|advice|what to do|decide|decision)\b",
    re.I,
)
ACTION = re.compile(
    r"\b(?:recommend\w*|hold|keep|replan\w*|retire\w*|reduc\w+|rais\w+|lower\w*|adjust\w*|policy_adjust|ban|"
    r"lift|add|cut|clos\w+|wait|monitor\w*|research_experiment|experiment\w*|test|review|check|do nothing|"
    r"no change|nothing changes|before more)\b",
    re.I,
)
UNFINISHED = re.compile(
    r"(?:[,;:(\[]|\b(?:and|or|but|the|(?-i:a)|an|of|to|in|for|with|by|from|that|which|is|was))\s*$", re.I
)
END_MARK = re.compile(r"[.!?…:)\]\"'”’`*|»«›。！？؟।॥」』】）]\s*$")
LIST_LINE = re.compile(r"\s*(?:[-*•|#>]|\d+[.)])\s")
PAIRS = (("(", ")"), ("[", "]"), ("“", "”"))
PROSE_WORDS = 4
# Whoever writes "no one" or "one of them" brings no number.
AMOUNTS = words(
    "dozens hundreds thousand thousands million millions billion billions twice thrice doubled tripled half "
    "halved third thirds quarter quarters"
)
TOKEN = re.compile(r"\w+")
COUNTED = {*COUNT_WORDS, *AMOUNTS} - {"zero", "one"}
Finder = Callable[[Task, TextCandidate], tuple[float | None, Sequence[TextFinding]]]
ONE_FIGURE = re.compile(r"[-+−]?[$€£]?\d[\d,.]*\s?(?:%|R|percent|bars?|days?|trades?)?", re.I)
REPLACED = frozenset({"number", "percent", "count", "grade"})  # another name would be another claim


def critique_of(
    name: str,
    source: CritiqueSource,
    candidate: TextCandidate,
    dimension: str,
    score: float | None,
    findings: Sequence[TextFinding],
) -> Critique:
    """A rule's critique: it wants a revision where a finding has weight, and is sure of it."""
    return Critique(
        critic=name,
        source=source,
        candidate=candidate.number,
        verdict="revise" if any(found.severity in OF_WEIGHT for found in findings) else "accept",
        scores={} if score is None else {dimension: round(score, 9)},
        overall=None if score is None else round(score, 9),
        explanation="; ".join(found.message for found in findings),
        findings=tuple(findings),
    )


@dataclass(frozen=True)
class RuleCritic:
    """A critic that is one function of task and text."""

    name: str
    dimension: str
    find: Finder
    source: ClassVar[CritiqueSource] = "rule"

    async def critique(
        self, task: Task, candidate: TextCandidate, rounds: Sequence[Round], budget: Budget
    ) -> Critique | NoReply:
        """What the function finds."""
        score, findings = self.find(task, candidate)
        return critique_of(self.name, self.source, candidate, self.dimension, score, findings)


class ClaimCritic(Critic, Protocol):
    """A critic that holds claims of a text against the facts of a run, and keeps each check."""

    @property
    def names(self) -> tuple[str, ...]:
        """Playbooks and symbols of the run; none where no facts were read."""
        ...

    def check(self, text: str) -> FactCheck | None:
        """The check of a text; None where no facts were read."""
        ...

    async def read_for(self, text: str) -> NoReply | None:
        """Read the facts where a text may claim something; why they could not be read, or None."""
        ...


@dataclass(frozen=True)
class NewsCritic:
    """Refuses numbers and names that neither the first text, nor the task, nor the run has."""

    facts: ClaimCritic | None = None
    name: str = "news"
    source: ClassVar[CritiqueSource] = "rule"

    async def critique(
        self, task: Task, candidate: TextCandidate, rounds: Sequence[Round], budget: Budget
    ) -> Critique | NoReply:
        """A finding for each new number and name; the first text brings none."""
        if not rounds:
            return critique_of(self.name, self.source, candidate, "accuracy", None, ())
        verified = " ".join(self._list_verified(candidate.text))
        known = f"{rounds[0].candidate.text}\n{task.question}\n{task.material} {verified}"
        found = [("new_number", word) for word in unknown_numbers(candidate.text, known)]
        found += [("new_number", word) for word in _unknown_counts(candidate.text, known)]
        found += [("new_name", word) for word in unknown_names(candidate.text, known)]
        findings = [
            TextFinding(
                code=code,
                severity=Severity.MAJOR,
                dimension="accuracy",
                message=f"{word!r} stands neither in the first text nor in what was given",
                said=word,
            )
            for code, word in found
        ]
        return critique_of(self.name, self.source, candidate, "accuracy", None, findings)

    def _list_verified(self, text: str) -> list[str]:
        checked = None if self.facts is None else self.facts.check(text)
        claims = () if checked is None else checked.claims
        return [claim.said for claim in claims if claim.verdict == "verified"]


def _unknown_counts(text: str, source: str) -> list[str]:
    """Numbers in words of a text that its source has neither as words nor as figures."""
    said = dict.fromkeys(word for word in map(str.casefold, TOKEN.findall(text)) if word in COUNTED)
    known = set(map(str.casefold, TOKEN.findall(source))) if said else set()
    new = [word for word in said if word not in known]
    return [word for word in new if word in AMOUNTS or unknown_numbers(str(COUNT_WORDS[word]), source)]


def find_uncovered(task: Task, candidate: TextCandidate) -> tuple[float | None, Sequence[TextFinding]]:
    """Words of the question that the text never takes up, by their first letters."""
    asked = {word.casefold() for word in WORD.findall(task.question)} - NO_TOPIC
    if not asked:
        return None, ()
    said = {word.casefold()[:STEM] for word in WORD.findall(candidate.text)}
    missing = sorted(word for word in asked if word[:STEM] not in said)
    score = 1.0 - len(missing) / len(asked)
    if score >= ENOUGH:
        return score, ()
    message = f"the text does not take up: {', '.join(missing)}"
    return score, (_finding("not_covered", Severity.MINOR, "completeness", message),)


def find_no_action(task: Task, candidate: TextCandidate) -> tuple[float | None, Sequence[TextFinding]]:
    """Whether a question of what to do gets something to do."""
    if not WANTS_ACTION.search(task.question):
        return None, ()
    if ACTION.search(candidate.text):
        return 1.0, ()
    message = "the question asks what to do, and the text names no action"
    return 0.4, (_finding("no_action", Severity.MINOR, "actionability", message),)


def find_cut_off(task: Task, candidate: TextCandidate) -> tuple[float | None, Sequence[TextFinding]]:
    """Whether the text ends in the middle: of a sentence, a fence or a bracket."""
    reason = cut_off(candidate.text)
    if reason is None:
        return None, ()
    return 0.3, (_finding("cut_off", Severity.MAJOR, "completeness", reason),)


def cut_off(text: str) -> str | None:
    """How a text breaks off; None where it does not."""
    if text.count("```") % 2:
        return "a code fence is open at the end"
    last = text.rstrip().rpartition("\n")[2]
    if not last or LIST_LINE.match(last):
        return None
    for opening, closing in PAIRS:
        if last.count(opening) > last.count(closing):
            return f"a {opening!r} is open at the end"
    if UNFINISHED.search(last):
        return f"the text ends in the middle of a sentence: {last[-40:]!r}"
    if not END_MARK.search(last) and len(last.split()) >= PROSE_WORDS and re.search(r"[.!?](?:\s|$)", text):
        return f"the last sentence has no end: {last[-40:]!r}"
    return None


def find_repeats(task: Task, candidate: TextCandidate) -> tuple[float | None, Sequence[TextFinding]]:
    """Sentences that stand twice."""
    seen: set[str] = set()
    findings = []
    for sentence in sentences(candidate.text):
        words = " ".join(sentence.text.casefold().split())
        if words in seen and len(words.split()) >= PROSE_WORDS:
            findings.append(
                _finding("repeats_itself", Severity.MINOR, "clarity", "a sentence stands twice", words)
            )
        seen.add(words)
    return None, tuple(findings)


def _finding(code: str, severity: Severity, dimension: str, message: str, said: str = "") -> TextFinding:
    return TextFinding(code=code, severity=severity, dimension=dimension, message=message, said=said)


def rule_critics(facts: ClaimCritic | None = None) -> tuple[RuleCritic | ClaimCritic | NewsCritic, ...]:
    """All of them, facts first; without a run, those that need none."""
    return (
        *section_critics(facts),
        RuleCritic("coverage", "completeness", find_uncovered),
        RuleCritic("actionability", "actionability", find_no_action),
    )


def section_critics(facts: ClaimCritic | None = None) -> tuple[RuleCritic | ClaimCritic | NewsCritic, ...]:
    """Those that look at one section of a text: none of them answers the whole question."""
    plain = (
        NewsCritic(facts),
        RuleCritic("truncation", "completeness", find_cut_off),
        RuleCritic("consistency", "clarity", find_repeats),
    )
    return plain if facts is None else (facts, *plain)


@dataclass(frozen=True)
class RuleReviser:
    """Replaces, then strikes, then ends the text where its last sentence ends."""

    facts: ClaimCritic | None = None

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """The text that is left, or why nothing is."""
        text = self.repair(rounds[-1].candidate.text)
        return Draft(text, "rules") if text else NoReply(NOTHING_LEFT, "nothing of the text holds")

    def repair(self, text: str) -> str:
        """The text with stored values, without what still fails, and without its unfinished end."""
        checked = None if self.facts is None else self.facts.check(text)
        if self.facts is not None and checked is not None:
            again = self.facts.check(replace_values(text, checked.failures, self.facts.names))
            text = text if again is None else again.struck_text
        return end_whole(text)


def replace_values(text: str, failures: Sequence[CheckedClaim], names: Sequence[str]) -> str:
    """The text with the one value that would pass in each place where there is one.

    Only in a sentence that names one of `names`: of "the account" a figure may be of another whole.
    """
    for claim in sorted(failures, key=lambda claim: claim.start, reverse=True):
        if claim.verdict == "contradicted" and claim.kind in REPLACED and _fits(claim, names):
            text = text[: claim.start] + claim.would_pass[0] + text[claim.end :]
    return text


def _fits(claim: CheckedClaim, names: Sequence[str]) -> bool:
    """Whether there is one value that would pass, and it reads in the place of what was said."""
    if len(claim.would_pass) != 1 or not any(name in claim.text for name in names):
        return False
    return claim.kind == "grade" or all(map(ONE_FIGURE.fullmatch, (claim.said, claim.would_pass[0])))


def end_whole(text: str) -> str:
    """The text up to the end of its last whole sentence; as it is where it does not break off."""
    if cut_off(text) is None:
        return text
    shorter = (text[: span.start].rstrip() for span in reversed(list(sentences(text))))
    return next((part for part in shorter if cut_off(part) is None), "")
