"""What does a text claim that a run can answer? Claims with their place, their subject and their question.

A sentence is read for what it says is so: cases ("if the mean falls below 0") and questions claim nothing. A
figure belongs to the measure that is named beside it and to the subject that it is said of; where the words
leave that open, the claim keeps no question, and nothing can verify it.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from schemas.fact_check import ClaimKind
from services.deliberation.figures import FigureReader, side_of, unit_of
from services.deliberation.layout import SentenceLayout
from services.deliberation.mentions import Lexicon, Mention
from services.deliberation.said_of import SubjectFinder
from services.evidence.catalogue import CATALOGUE
from services.evidence.facts import Subject
from services.text.claims import Span, asserted, sentences

SCOPE = re.compile(r"\b(?:of|across|over|in|for|from|among)\s*$", re.I)
SHORT_OF = re.compile(r"\b(?:below|under|short of|far from|less than)(?: being)?\s*$", re.I)
WHOLE = re.compile(r"all|most|half|majority", re.I)
MEMBERS = frozenset({"playbooks", "clusters", "symbols"})
NOUNS = MEMBERS | {"trades", "winners", "losers", "longs", "shorts"}
MOST_MENTIONS = 80  # of one sentence; what names more is a list of words
OF_ONE_TRADE = frozenset({"best_r", "worst_r", "median_r"})


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes:
        kind: of the claim.
        start: first character in the text.
        end: behind the last one.
        sentence: that makes it.
        subjects: whom it may be of, the likeliest first.
        confidence: how surely the words name subject and question, 0 to 1.
        said: what kind of thing is said, for the check: figure, interval, share, direction, comparison,
            extreme, grade, name, day, year.
        questions: of the catalogue, any of which may answer; none where the words name no measure.
        value: a figure, two edges, an outcome, a grade, a name or the ns of a day.
        relation: "=", "<", ">" for figures and comparisons; all, most, half, none or a number for shares.
        other: what a comparison compares with.
        negated: whether the sentence denies it.
    """

    kind: ClaimKind
    start: int
    end: int
    sentence: Span
    subjects: tuple[Subject, ...]
    confidence: float
    said: str
    questions: tuple[str, ...] = ()
    value: Any = None
    relation: str = "="
    other: Subject | None = None
    negated: bool = False


def read_claims(text: str, lexicon: Lexicon) -> tuple[Claim, ...]:
    """Every claim of a text, in the order in which it makes them."""
    found: list[Claim] = []
    carried = Subject()
    mentions = lexicon.mentions(text)
    starts = [mention.start for mention in mentions]
    for sentence in sentences(text):
        begin, end = asserted(sentence.text)
        if begin < end:
            first, last = sentence.start + begin, sentence.start + end
            left, right = bisect_left(starts, first), bisect_left(starts, last)
            inside = [m.moved(-sentence.start) for m in mentions[left:right] if m.end <= last]
            if len(inside) > MOST_MENTIONS:
                found.append(_crowded(sentence))
                continue
            reading = SentenceReading(SentenceLayout(sentence, inside), carried)
            found += sorted(reading.claims(), key=lambda claim: (claim.start, claim.end))
            carried = reading.subjects.last
    return tuple(found)


def _crowded(sentence: Span) -> Claim:
    """All of a sentence that names more than can be read: nothing verifies it."""
    return Claim("number", sentence.start, sentence.end, sentence, (Subject(),), 1.0, "figure")


class SentenceReading:
    """The claims of one sentence."""

    def __init__(self, layout: SentenceLayout, carried: Subject) -> None:
        self._layout = layout
        self._figures = FigureReader(layout)
        self.subjects = SubjectFinder(layout, carried)

    def claims(self) -> Iterator[Claim]:
        """All of them, in no order."""
        for index, mention in enumerate(self._layout.mentions):
            reader = READERS.get(mention.kind)
            claim = None if reader is None else reader(self, index, mention)
            if claim is not None:
                yield claim

    def figure(self, index: int, mention: Mention) -> Claim | None:
        """A number with the measure that it is a value of."""
        members = self._members(index)
        if members is not None or mention.kind == "count_word" and not self._figures.counts_something(index):
            return members
        questions, noun_end, sure = self._figures.questions(index)
        subjects, certainty = self.subjects.of(mention.start, mention.end, noun_end)
        bound = self._figures.bound_before(index)
        counts = bool(questions) and all(CATALOGUE[question].unit == "count" for question in questions)
        kind: ClaimKind = "percent" if unit_of(mention.value) == "share" else "count" if counts else "number"
        start = mention.start if bound is None else bound.start
        return self._claim(
            "comparison" if bound is not None and kind == "number" else kind,
            (start, mention.end),
            (
                tuple(self._figures.narrowed(subject, index, questions) for subject in subjects),
                sure * certainty,
            ),
            "figure",
            questions=questions,
            value=self._figures.signed(index, questions),
            relation="=" if bound is None else f"{bound.value}=",
            negated=self._layout.is_negated(start),
        )

    def _members(self, index: int) -> Claim | None:
        """Some of the playbooks, clusters or symbols: "four of the five playbooks earned money"."""
        if self._figures.is_whole(index):
            return None
        whole = self._figures.part_of(index)
        at = self._layout.mentions[index if whole is None else whole]
        noun, predicate = self._quantified(index if whole is None else whole)
        if predicate is None:
            return None
        if noun is None and self._layout.is_near(at.end, predicate.start):
            earlier = [m for m in self._layout.mentions if m.end <= at.start and m.kind == "measure"]
            noun = next((m for m in reversed(earlier) if m.value in NOUNS), None)
        elif noun is None or not self._layout.is_near(at.end, noun.start):
            return None
        if noun is None or noun.value not in MEMBERS:
            return None
        mention = self._layout.mentions[index]
        return self._claim(
            "count",
            (mention.start, mention.end),
            ((Subject(),), 1.0),
            "share",
            questions=(noun.value,),
            value=(predicate.kind, predicate.value),
            relation=f"{mention.value.value:g}",
            negated=self._layout.is_negated(mention.start),
        )

    def interval(self, index: int, mention: Mention) -> Claim | None:
        """Two edges, in brackets or in words."""
        return self._plain("number", mention, "interval", value=mention.value)

    def share(self, index: int, mention: Mention) -> Claim | None:
        """All, most, half or none of the trades."""
        noun, predicate = self._quantified(index)
        if predicate is None and (noun is None or not self._speaks_of_trades(mention, noun)):
            return None
        subjects = self.subjects.of(mention.start, mention.end, None if noun is None else noun.end)
        end = max(m.end for m in (mention, noun, predicate) if m is not None)
        return self._claim(
            "quantifier",
            (mention.start, end),
            subjects,
            "share",
            questions=() if noun is None else (noun.value,),
            value=None if predicate is None else (predicate.kind, predicate.value),
            relation=self._relation(mention, predicate),
            negated=self._layout.is_negated(mention.start),
        )

    def _relation(self, mention: Mention, predicate: Mention | None) -> str:
        """All, most, half or none; of what is short of a grade, the other way about."""
        relation = str(mention.value)
        if predicate is None or not SHORT_OF.search(self._layout.text[: predicate.start]):
            return relation
        return {"all": "none", "none": "all"}.get(relation, relation)

    def _speaks_of_trades(self, mention: Mention, noun: Mention) -> bool:
        """Whether a quantifier without a predicate claims something: "no trade", but not "of all trades"."""
        if SCOPE.search(self._layout.text[: mention.start]) or noun.value not in (
            "trades",
            "winners",
            "losers",
        ):
            return False
        return mention.value == "none" or WHOLE.match(mention.text) is not None

    def _quantified(self, index: int) -> tuple[Mention | None, Mention | None]:
        """What is counted and what is said of it: "all 60 trades of X won", "won every trade"."""
        noun = predicate = None
        mentions = self._layout.mentions
        clause = self._layout.clause_of(mentions[index].start)
        _, right = self._layout.piece(mentions[index].start, mentions[index].end)
        for mention in mentions[index + 1 :]:
            if self._layout.clause_of(mention.start) != clause or mention.kind == "quantifier":
                break
            is_verb = mention.text.casefold() in ("won", "lost")
            is_noun = mention.kind == "measure" and mention.value in NOUNS and not is_verb
            if is_noun and noun is None and mention.start < right:
                noun = mention
            elif mention.kind in ("exit", "grade", "failure", "side") or side_of(mention):
                predicate = predicate or mention
        before = self._layout.previous(index)
        if predicate is None and noun is not None and before is not None and side_of(before):
            predicate = before if self._layout.is_near(before.end, mentions[index].start) else None
        if predicate is None and noun is not None and noun.value not in MEMBERS | {"trades"}:
            return (None, noun) if mentions[index].value == "none" else (noun, None)
        return noun, predicate

    def direction(self, index: int, mention: Mention) -> Claim | None:
        """Earned or lost."""
        side = side_of(mention)
        if side is None or self._layout.is_hedged(mention.start) or self._is_of_a_count(mention):
            return None
        negated = self._layout.is_negated(mention.start)
        return self._plain(
            "direction", mention, "direction", questions=("mean_r",), value=side, negated=negated
        )

    def _is_of_a_count(self, mention: Mention) -> bool:
        """Whether a "won" or "lost" tells of trades that are counted, or of one, and not of the result."""
        if mention.kind == "measure" and mention.text.casefold() not in ("won", "lost"):
            return True
        clause = self._layout.clause_of(mention.start)
        quantifiers = (m for m in self._layout.mentions if m.kind == "quantifier")
        if any(self._layout.clause_of(found.start) == clause for found in quantifiers):
            return True
        if any(m.value in OF_ONE_TRADE for m in self._layout.beside(mention, "measure")):
            return True
        units = [unit_of(m.value) for m in self._layout.beside(mention, "number", "count_word")]
        return bool(units) and "r" not in units and "money" not in units

    def compared(self, index: int, mention: Mention) -> Claim | None:
        """One subject against another."""
        after = self.subjects.after(mention.end)
        numbers = (m for m in self._layout.mentions[index + 1 :] if m.kind in ("number", "count_word"))
        number = next(numbers, None)
        if after is None or mention.kind == "bound" and number is not None and number.start < after[0]:
            return None
        measures = [m for m in self._layout.mentions if m.kind == "measure" and m.value in CATALOGUE]
        behind = [m for m in measures if m.start >= mention.end]
        chosen = behind[:1] or measures[-1:]
        return self._claim(
            "comparison",
            (mention.start, after[1]),
            ((self.subjects.before(mention.start),), 1.0),
            "comparison",
            questions=(str(chosen[0].value) if chosen else "mean_r",),
            relation=mention.value,
            other=after[2],
            negated=self._layout.is_negated(mention.start),
        )

    def extreme(self, index: int, mention: Mention) -> Claim | None:
        """The best or the worst of the playbooks, or of the symbols."""
        following = self._layout.next(index)
        question = "mean_r"
        if following is not None and following.kind == "measure" and following.value in CATALOGUE:
            question = "mean_r" if following.value in MEMBERS else following.value
        negated = self._layout.is_negated(mention.start)
        claim = self._plain(
            "comparison", mention, "extreme", questions=(question,), value=mention.value, negated=negated
        )
        return None if claim.subjects[0].is_empty else claim

    def factor(self, index: int, mention: Mention) -> Claim | None:
        """How many times as much: read as a claim that nothing answers."""
        return self._plain("comparison", mention, "figure")

    def grade(self, index: int, mention: Mention) -> Claim | None:
        """How much is shown, unless a quantifier before it says it of several."""
        quantifiers = [i for i in range(index) if self._layout.mentions[i].kind == "quantifier"]
        if any(self._quantified(number)[1] is mention for number in quantifiers):
            return None
        denied = self._layout.is_negated(mention.start) or self._layout.is_hedged(mention.start)
        negated = denied or SHORT_OF.search(self._layout.text[: mention.start]) is not None
        return self._plain("grade", mention, "grade", value=mention.value, negated=negated)

    def name(self, index: int, mention: Mention) -> Claim | None:
        """A playbook, a symbol, an id, or a word that is spelt like one."""
        known = mention.value if mention.kind in ("playbook", "symbol") else mention.text
        sure = 0.6 if mention.kind == "capitals" else 1.0
        place = mention.start, mention.end
        return self._claim("name", place, ((Subject(),), sure), "name", value=(mention.kind, known))

    def day(self, index: int, mention: Mention) -> Claim | None:
        """A date, or a year."""
        if mention.kind == "year":
            return self._plain("date", mention, "year", value=int(mention.text))
        return self._plain("date", mention, "day", value=mention.value)

    def _plain(self, kind: ClaimKind, mention: Mention, said: str, **what: Any) -> Claim:
        """A claim of whom the words beside a mention name."""
        subjects = self.subjects.of(mention.start, mention.end)
        return self._claim(kind, (mention.start, mention.end), subjects, said, **what)

    def _claim(
        self,
        kind: ClaimKind,
        place: tuple[int, int],
        subjects: tuple[tuple[Subject, ...], float],
        said: str,
        **what: Any,
    ) -> Claim:
        sentence = self._layout.sentence
        start, end = (sentence.start + edge for edge in place)
        return Claim(kind, start, end, sentence, subjects[0], min(1.0, subjects[1]), said, **what)


READERS: dict[str, Callable[[SentenceReading, int, Mention], Claim | None]] = {
    "number": SentenceReading.figure,
    "count_word": SentenceReading.figure,
    "interval": SentenceReading.interval,
    "quantifier": SentenceReading.share,
    "direction": SentenceReading.direction,
    "measure": SentenceReading.direction,
    "compared": SentenceReading.compared,
    "bound": SentenceReading.compared,
    "extreme": SentenceReading.extreme,
    "factor": SentenceReading.factor,
    "grade": SentenceReading.grade,
    "playbook": SentenceReading.name,
    "symbol": SentenceReading.name,
    "identifier": SentenceReading.name,
    "capitals": SentenceReading.name,
    "id": SentenceReading.name,
    "date": SentenceReading.day,
    "year": SentenceReading.day,
}
