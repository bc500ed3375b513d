"""One sentence while it is read: its words, its subjects, and which of its words a claim has taken up."""

import re
from typing import Any

from schemas.fact_check import ClaimKind
from services.deliberation.claim import Claim
from services.deliberation.figures import FigureReader
from services.deliberation.layout import Mention, SentenceLayout
from services.deliberation.noun_phrases import NounPhrases
from services.deliberation.said_of import SubjectFinder
from services.evidence.facts import Subject

TOGETHER = re.compile(
    r"\b(?:together|combined|between them|jointly|in combination|taken together|added up)\b", re.I
)
MEMBERS: dict[str, str] = {
    "playbooks": "playbook",
    "symbols": "symbol",
    "regimes": "regime",
    "clusters": "cluster",
    "years": "period",
    "failures": "failure_mode",
    "exits": "exit_reason",
}
Subjects = tuple[tuple[Subject, ...], float]


class SentenceReading:
    """The state that the readers of one sentence share."""

    def __init__(self, layout: SentenceLayout, carried: Subject) -> None:
        self.layout, self.mentions = layout, layout.mentions  # in order
        self._places = {mention.start: i for i, mention in enumerate(self.mentions)}
        self.figures = FigureReader(layout)
        self.subjects = SubjectFinder(layout, carried)
        self.used: set[int] = set()
        self.last_part: tuple[tuple[str, ...], Subject] | None = None
        self.last_portion: tuple[Subject, Subject] | None = None  # of whom, and which trades of them
        self.counted: Subject | None = None  # the trades that were counted last
        self.counted_at: int | None = None  # where their number begins

    @property
    def nouns(self) -> NounPhrases:
        """What is counted in the sentence."""
        return self.figures.nouns

    def index(self, mention: Mention) -> int:
        """Index of a mention."""
        return self._places[mention.start]

    def use(self, *mentions: Mention) -> None:
        """Mark mentions as read."""
        self.used.update(mention.start for mention in mentions)

    def is_used(self, mention: Mention) -> bool:
        """Whether a claim has taken a mention up."""
        return mention.start in self.used

    def clause(self, mention: Mention, *kinds: str) -> list[Mention]:
        """Mentions of these kinds in the clause of a mention, in order."""
        number = self.layout.clause_of(mention.start)
        return [
            m
            for m in self.mentions
            if m.kind in kinds and m is not mention and self.layout.clause_of(m.start) == number
        ]

    def of(self, start: int, end: int, noun_end: int | None = None) -> Subjects:
        """Whom something is said of; a time means entries, and where that is not so, exits."""
        found, sure = self.subjects.of(start, end, noun_end)
        return date_subjects(found), sure

    def list_beside(self, subject: Subject) -> tuple[Subject, ...]:
        """The subjects of the list that a subject stands in; none where it stands alone."""
        found = tuple(group.subject for group in self.subjects.list_with(subject))
        return found if len(set(found)) > 1 else ()

    def sum_up(self, found: tuple[Subject, ...]) -> tuple[Subject, ...]:
        """Subjects that are added up, where the words say so."""
        listed = self.list_beside(found[0])
        if not listed or TOGETHER.search(self.layout.text) is None:
            return found
        fields = {name for subject in listed for name in subject.fields}
        if len(fields) != 1 or fields & {"period", "order"}:
            return found
        field = fields.pop()
        return (Subject().having(field, "|".join(getattr(subject, field) for subject in listed)),)

    def claim(
        self, kind: ClaimKind, place: tuple[int, int], subjects: Subjects, said: str, **what: Any
    ) -> Claim:
        """A claim at a place of the sentence."""
        sentence = self.layout.sentence
        start, end = (sentence.start + edge for edge in place)
        return Claim(kind, start, end, sentence, subjects[0], min(1.0, subjects[1]), said, **what)

    def claims(
        self, kind: ClaimKind, place: tuple[int, int], subjects: Subjects, said: str, **what: Any
    ) -> list[Claim]:
        """All that a word claims, where it is one claim."""
        return [self.claim(kind, place, subjects, said, **what)]

    def plain(self, kind: ClaimKind, mention: Mention, said: str, **what: Any) -> Claim:
        """A claim of whom the words beside a mention name."""
        self.use(mention)
        return self.claim(kind, mention.place, self.of(*mention.place), said, **what)


def date_subjects(found: tuple[Subject, ...]) -> tuple[Subject, ...]:
    """Each subject; one with a time of no basis is of entries, and then of exits."""
    return tuple(
        variant
        for subject in found
        for variant in (
            (subject.merge(Subject(basis="entry")), subject.merge(Subject(basis="exit")))
            if subject.period is not None and subject.basis is None and subject.order is None
            else (subject,)
        )
    )
