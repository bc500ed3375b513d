"""Does a text say what the run says? Each claim against the facts as of one moment; the rest is struck.

A figure is true if a stored value rounds to it at the decimals it is given with. A claim that names no
question of the catalogue, or one that the run has no answer to, is unverifiable, which is an answer of its
own. Lines that the run itself wrote, or that a tool told of its rows, may be quoted whole.
"""

import re
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from schemas.canonical import content_hash
from schemas.deliberation import Critique, CritiqueSource, TextCandidate, TextFinding
from schemas.errors import StoreError
from schemas.fact_check import CheckedClaim, FactCheck
from schemas.vocabulary import Severity
from services.deliberation.budget import Budget
from services.deliberation.check_figures import (
    check_difference,
    check_figure,
    check_interval,
    check_share,
    check_zero,
)
from services.deliberation.check_names import check_advice, check_day, check_name, check_period, check_version
from services.deliberation.check_portions import (
    check_absent,
    check_is_of,
    check_members,
    check_part,
    check_portion,
    check_unanswered,
    members_of,
)
from services.deliberation.check_rankings import (
    check_comparison,
    check_direction,
    check_extreme,
    check_grade,
    check_ratio,
)
from services.deliberation.claim import NAMING, Claim
from services.deliberation.claims import read_sentence
from services.deliberation.held import UNREAD, Held, judge_claim, unknown
from services.deliberation.layout import Mention
from services.deliberation.mentions import Lexicon
from services.deliberation.policies import Round
from services.deliberation.refine import FACTS_FAILED, Task
from services.deliberation.report_claims import ReportStatements, leading
from services.deliberation.rule_critics import critique_of
from services.evidence.facts import Subject
from services.evidence.run_facts import RunFacts, moment_of
from services.model_calls.asking import NoReply
from services.text.claims import Span, sentences

OPENS, CLOSES = re.compile(r"(?:\n|[-*] |[.!?;:] )$"), re.compile(r"[.!?;]?(?:\s|$)")
THEN = re.compile(
    r"\b(?:as (?:of|at)|as known on|report (?:of|known (?:at|on)|dated|from)|known (?:at|on))(?: the)?\s*$",
    re.I,
)
AS_OF_THE_REPORT = re.compile(r"\bas (?:of|at|known at) (?:the|its|this) (?:\w+ ){0,2}report\b", re.I)
SHORTEST_QUOTE = 12
# Only a text without a word and a figure claims nothing that a run could answer: any word may be a claim.
MAY_CLAIM = re.compile(r"\d|[A-Za-z]{2}|\w_\w")
Check = Callable[[Claim, Subject, RunFacts], Held]


def check_facts(text: str, facts: RunFacts, only: frozenset[str] | None = None) -> FactCheck:
    """Every claim of a text with its verdict, and the text without the sentences that do not hold.

    What rests on a sentence that is gone ("It lost ...") is read again, until all that is left holds. `only`
    reads figures of these questions alone, where the facts have an answer; the rest claims nothing then.
    """
    return FactReader(facts, only).check(text)


class CheckedSentence(NamedTuple):
    """What came of a sentence: its claims with their verdicts, and whom a pronoun of the next one means."""

    text: str
    claims: tuple[tuple[Claim, Held, float], ...]
    last: Subject
    fails: bool

    def list_claims(self, start: int) -> Iterator[CheckedClaim]:
        """The claims in a text in which the sentence begins at a place."""
        return (_place_claim(self.text, claim, held, sure, start) for claim, held, sure in self.claims)


SAYS = re.compile(r"\w")
WHOM = frozenset({"playbook", "symbol", "regime"})


class FactReader:
    """The check of texts against one run as of one moment: no sentence is read twice in the same light."""

    def __init__(self, facts: RunFacts, only: frozenset[str] | None) -> None:
        self.facts, self._only = facts, only
        self._lexicon = Lexicon(facts)
        self._then: dict[int, RunFacts] = {}
        self._of_reports: dict[int, ReportStatements] = {}
        self._known: dict[tuple[object, ...], dict[Subject | None, CheckedSentence]] = {}

    def check(self, text: str) -> FactCheck:
        """As `check_facts`."""
        named = _name_mentions(list(sentences(text)), self._lexicon.mentions(text))
        read = self._read(text, named)
        claims = tuple(claim for start, known in read for claim in known.list_claims(start))
        struck = text
        while failed := {start for start, known in read if known.fails}:
            shorter = strike(struck, failed)
            if len(shorter) == len(struck):
                break
            struck = shorter
            read = self._read(struck, named)
        return FactCheck(known_at=self.facts.known_at, claims=claims, struck_text=struck)

    def _read(self, text: str, named: Mapping[str, tuple[Mention, ...]]) -> list[tuple[int, CheckedSentence]]:
        """Where each sentence of a text begins, and what comes of it."""
        quoted, read, carried = _find_quotes(text, self.facts), list[tuple[int, CheckedSentence]](), Subject()
        for sentence in sentences(text):
            lines = {
                (start - sentence.start, end - sentence.start): held
                for (start, end), held in quoted.items()
                if start < sentence.end and sentence.start < end
            }
            mentions = named.get(sentence.text)
            mentions = tuple(self._lexicon.mentions(sentence.text)) if mentions is None else mentions
            known = self._sentence(sentence.text, mentions, carried, lines)
            read.append((sentence.start, known))
            carried = known.last
        return read

    def _sentence(
        self, text: str, named: tuple[Mention, ...], carried: Subject, lines: Mapping[tuple[int, int], Held]
    ) -> CheckedSentence:
        """A sentence with the verdicts of its claims; `carried` is whom the one before was about."""
        light = text, named, tuple((place, held.found, held.rows) for place, held in lines.items())
        of_whom = self._known.setdefault(light, {})
        known = of_whom.get(None) or of_whom.get(carried)
        if known is None:
            then = self._known_then(text, named)
            stated = self._statements_of(then).of(text)
            lines = {**stated, **lines}
            rest, left = _rest_of(text, named, stated)
            read = read_sentence(Span(0, len(text), rest), left, carried, list(lines))
            claims = [*_with_stated(text, read.claims, stated), *_silent(text, read.claims, stated)]
            claims = sorted(claims, key=lambda claim: claim.start) if stated else claims
            checked = tuple(self._check_claims(claims, lines, then))
            fails = any(held.verdict != "verified" for _, held, _ in checked)
            known = CheckedSentence(text, checked, read.last, fails)
            of_whom[carried if read.rests else None] = known
        return known

    def _statements_of(self, then: RunFacts) -> ReportStatements:
        """The reader of the report that was the newest one then."""
        return self._of_reports.setdefault(then.known_at, ReportStatements(then))

    def _known_then(self, text: str, named: Sequence[Mention]) -> RunFacts:
        """The facts as of the day that a sentence names, "as of 2001-09-20", or as of the report."""
        days = [m for m in named if m.kind == "date" and THEN.search(text[: m.start])]
        newest = self.facts.report
        if newest is None:
            return self.facts
        if not days and AS_OF_THE_REPORT.search(text):
            moment = newest.known_at
        elif len(days) == 1 and days[0].value[1] <= newest.known_at:
            moment = days[0].value[1] - 1
        else:
            return self.facts
        if moment not in self._then:
            self._then[moment] = self.facts.as_of(moment)
        return self._then[moment] if self._then[moment].report is not None else self.facts

    def _check_claims(
        self, claims: Sequence[Claim], quoted: Mapping[tuple[int, int], Held], facts: RunFacts
    ) -> Iterator[tuple[Claim, Held, float]]:
        """The claims of a sentence with verdict and confidence, by the facts of the moment it speaks of."""
        known = _of_one_basis(claims, facts)
        for claim in claims:
            if self._only is not None and not (claim.questions and self._only.issuperset(claim.questions)):
                continue
            line = next((q for q in quoted if q[0] <= claim.start and claim.end <= q[1]), None)
            if line is not None:
                held, confidence = quoted[line], 1.0
            else:
                held, confidence = known.get(id(claim)) or _hold_claim(claim, facts), claim.confidence
            if self._only is None or held.verdict != "unverifiable":
                yield claim, held, confidence


def _rest_of(
    text: str, named: Sequence[Mention], stated: Iterable[tuple[int, int]]
) -> tuple[str, tuple[Mention, ...]]:
    """A sentence and its names without its first statements about a report, but for whom these are of."""
    places = list(leading(text, stated))
    inside = [m for m in named if any(b <= m.start and m.end <= e for b, e in places)]
    whom = [m for m in inside if m.kind in WHOM]
    marks = list(text)
    for begin, end in places:
        marks[begin:end] = " " * (end - begin)
    for mention in whom:
        marks[mention.start : mention.end] = text[mention.start : mention.end]
    for _, end in places[:-1] if places and places[-1][1] == len(text) else places:
        marks[end - 1 : end] = ";"
    return "".join(marks), tuple(m for m in named if m not in inside or m in whom)


def _silent(text: str, claims: Sequence[Claim], stated: Iterable[tuple[int, int]]) -> Iterator[Claim]:
    """What follows the first statements about a report in a sentence, where nothing of it was read."""
    places = list(leading(text, stated))
    end = places[-1][1] if places else len(text)
    read = [claim for claim in claims if claim.start >= end and claim.said not in NAMING]
    if SAYS.search(text, end) and not read and not any(b >= end for b, _ in stated):
        yield Claim("name", end, len(text), Span(0, len(text), text), (Subject(),), 0.8, "unread")


def _with_stated(text: str, claims: Sequence[Claim], stated: Iterable[tuple[int, int]]) -> list[Claim]:
    """The claims of a sentence, and each statement about a record of a report as one instead of its parts."""
    places, whole = sorted(stated), Span(0, len(text), text)
    kept = [claim for claim in claims if not any(b <= claim.start and claim.end <= e for b, e in places)]
    return [*kept, *(Claim("name", b, e, whole, (Subject(),), 1.0, "unread") for b, e in places)]


def _name_mentions(spans: Sequence[Span], mentions: Sequence[Mention]) -> dict[str, tuple[Mention, ...]]:
    """What each sentence of a text names, at places of its own."""
    starts, found = [mention.start for mention in mentions], {}
    for span in spans:
        inside = mentions[bisect_left(starts, span.start) : bisect_left(starts, span.end)]
        found[span.text] = tuple(mention.move(-span.start) for mention in inside)
    return found


def strike(text: str, places: set[int]) -> str:
    """The text without every sentence that holds one of the places."""
    kept, last, ordered = [], 0, sorted(places)
    for sentence in sentences(text):
        following = bisect_left(ordered, sentence.start)
        if following < len(ordered) and ordered[following] < sentence.end:
            kept.append(text[last : sentence.start])
            last = sentence.end
    return re.sub(r"[ \t]+\n", "\n", "".join([*kept, text[last:]])).strip() if places else text


def _place_claim(text: str, claim: Claim, held: Held, confidence: float, start: int) -> CheckedClaim:
    return CheckedClaim(
        text=claim.sentence.text.strip(),
        start=start + claim.start,
        end=start + claim.end,
        kind=claim.kind,
        said=text[claim.start : claim.end].strip(),
        verdict=held.verdict,
        confidence=round(confidence, 6),
        found=held.found,
        rows=held.rows,
        would_pass=held.would_pass,
    )


def _find_quotes(text: str, facts: RunFacts) -> dict[tuple[int, int], Held]:
    """Places of the run's own lines in a text, each from boundary to boundary, with what bears them out."""
    report = Held("verified", "a line of the report", (facts.report_row,))
    lines = {line: report for line in facts.texts}
    lines |= {line: Held("verified", "what these rows hold", rows) for line, rows in facts.told.items()}
    found = dict[tuple[int, int], Held]()
    for line, held in lines.items():
        if len(line) < SHORTEST_QUOTE:
            continue
        place = text.find(line)
        while place >= 0:
            end = place + len(line)
            opens = place == 0 or OPENS.search(text, max(0, place - 2), place) is not None
            if opens and CLOSES.match(text, end):
                found[place, end] = held
            place = text.find(line, place + 1)
    return found


def _hold_claim(claim: Claim, facts: RunFacts) -> Held:
    """The verdict on a claim: of each subject where each is meant, and else of one that may be meant."""
    if claim.every:
        held = [CHECKS[claim.said](claim, subject, facts) for subject in claim.every]
        return next((item for item in held if item.verdict != "verified"), held[0])
    best: Held | None = None
    for subject in claim.subjects:
        held_of_one = CHECKS[claim.said](claim, subject, facts)
        if held_of_one.verdict == "verified":
            return _alone(claim, subject, held_of_one, facts) if claim.alone else held_of_one
        if best is None or best.verdict == "unverifiable":
            best = held_of_one
    return best or unknown()


def _of_one_basis(claims: Sequence[Claim], facts: RunFacts) -> dict[int, Held]:
    """Verdicts on claims whose times may be of entries or of exits: all of the one, or all of the other."""
    either = [claim for claim in claims if {"entry", "exit"} <= {subject.basis for subject in claim.subjects}]
    if len(either) < 2:
        return {}
    entered = [_hold_claim(_by("entry", claim), facts) for claim in either]
    left = entered
    if any(held.verdict != "verified" for held in entered):
        left = [_hold_claim(_by("exit", claim), facts) for claim in either]
    chosen = left if _count_verified(left) > _count_verified(entered) else entered
    return {id(claim): held for claim, held in zip(either, chosen, strict=True)}


def _count_verified(some: Sequence[Held]) -> int:
    return sum(held.verdict == "verified" for held in some)


def _by(basis: str, claim: Claim) -> Claim:
    subjects = tuple(subject for subject in claim.subjects if subject.basis in (None, basis))
    return replace(claim, subjects=subjects)


def _alone(claim: Claim, subject: Subject, held: Held, facts: RunFacts) -> Held:
    """Whether a claim that is true of a subject is true of no other member of its kind."""
    within = subject.without(claim.alone, "basis")
    mine = getattr(subject, claim.alone)
    also = [
        _write_member(getattr(member, claim.alone))
        for member in members_of(claim.alone, within, facts)
        if getattr(member, claim.alone) != mine and _is_so_of(claim, member, mine, facts)
    ]
    return (
        held
        if not also
        else judge_claim(False, f"so is {', '.join(also)}", held.rows, (_write_member(mine),))
    )


def _write_member(member: Any) -> str:
    """A name as it stands, a period as its year."""
    return str(moment_of(member[0]).year) if isinstance(member, tuple) else str(member)


def _is_so_of(claim: Claim, member: Subject, mine: object, facts: RunFacts) -> bool:
    other = claim.other
    if other is not None and getattr(other, claim.alone) == mine:
        other = other.merge(Subject(**{claim.alone: getattr(member, claim.alone)}))
    moved = replace(claim, other=other)
    return CHECKS[claim.said](moved, member, facts).verdict == "verified"


def _unread(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    return unknown(claim.value or UNREAD)


CHECKS: dict[str, Check] = {
    "figure": check_figure,
    "share_figure": check_share,
    "difference": check_difference,
    "interval": check_interval,
    "zero": check_zero,
    "portion": check_portion,
    "part": check_part,
    "absent": check_absent,
    "unanswered": check_unanswered,
    "members": check_members,
    "is_of": check_is_of,
    "direction": check_direction,
    "comparison": check_comparison,
    "ratio": check_ratio,
    "extreme": check_extreme,
    "grade": check_grade,
    "name": check_name,
    "advice": check_advice,
    "version": check_version,
    "day": check_day,
    "period": check_period,
    "unread": _unread,
}


def findings_of(checked: FactCheck) -> list[TextFinding]:
    """A finding for each claim that is not verified."""
    return [
        TextFinding(
            code=f"{claim.verdict}_{claim.kind}",
            severity=Severity.MAJOR,
            dimension="accuracy",
            message=f"{claim.said!r} is {claim.verdict}" + (f": {claim.found}" if claim.found else ""),
            said=claim.said,
            within=claim.text,
            would_pass=claim.would_pass,
        )
        for claim in checked.failures
    ]


@dataclass
class FactCritic:
    """Holds every claim of a text against the facts of a run; keeps each check, and each sentence read.

    `facts` may be a function: then they are read when the first text that may claim something needs them.
    `only` holds figures of these questions alone against them; None: everything.
    """

    facts: RunFacts | Callable[[], Awaitable[RunFacts]]
    name: str = "facts"
    checks: dict[str, FactCheck] = field(default_factory=dict)
    only: frozenset[str] | None = None
    _reader: FactReader | None = field(default=None, init=False, repr=False)
    source: ClassVar[CritiqueSource] = "data"

    def check(self, text: str) -> FactCheck | None:
        """The check of a text, made once; None where no facts were read."""
        if not isinstance(self.facts, RunFacts):
            return None
        if self._reader is None or self._reader.facts is not self.facts:
            self._reader, self.checks = FactReader(self.facts, self.only), {}
        key = content_hash(text)
        if key not in self.checks:
            self.checks[key] = self._reader.check(text)
        return self.checks[key]

    @property
    def names(self) -> tuple[str, ...]:
        """Playbooks and symbols of the run; none where no facts were read."""
        known = self.facts if isinstance(self.facts, RunFacts) else None
        return () if known is None else (*known.playbook_ids, *known.symbols)

    async def read_for(self, text: str) -> NoReply | None:
        """Read the facts where a text may claim something; why they could not be read, or None."""
        if isinstance(self.facts, RunFacts) or not MAY_CLAIM.search(text):
            return None
        try:
            self.facts = await self.facts()
        except StoreError as error:
            return NoReply(FACTS_FAILED, str(error))
        return None

    async def critique(
        self, task: Task, candidate: TextCandidate, rounds: Sequence[Round], budget: Budget
    ) -> Critique | NoReply:
        """A finding for each claim that is not verified; the score is the share of those that are."""
        failed = await self.read_for(candidate.text)
        if failed is not None:
            return failed
        checked = self.check(candidate.text)
        if checked is None:
            return critique_of(self.name, self.source, candidate, "accuracy", None, ())
        score = None if not checked.claims else checked.count("verified") / len(checked.claims)
        return critique_of(self.name, self.source, candidate, "accuracy", score, findings_of(checked))
