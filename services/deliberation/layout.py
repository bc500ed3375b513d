"""How a sentence is laid out: its pieces between marks and joints, its clauses, what stands beside what."""

import re
from bisect import bisect_left, bisect_right
from typing import Any, NamedTuple

from services.text.claim_words import words
from services.text.claims import Span

# Kinds that say what something is said of.
SUBJECT_KINDS = (
    "playbook", "regime", "timeframe", "symbol", "parameter", "period", "date", "order", "id", "trial",
    "feature",
)  # fmt: skip
# Words that may stand between a measure and its number.
FILLERS = words(
    "of is was were are at the a an only just about around roughly nearly almost approximately some with "
    "has have had stands stood sits sat to = : comes came be been by been it its in all out reached reaches "
    "reach shows showed from made still now currently exactly precisely works worked runs ran lies lay "
    "amounts amounted amounting equals equalled standing stand good as against mere full barely well not "
    "more that those these this so far"
)
NEGATIONS = words("not no never cannot hardly neither nor without")
TURN = r"but|yet|while|whereas|although|though|despite|even though|because"
BREAK = re.compile(rf"[;:()]|,(?=\s)|\s[-–—]+\s|—|\b(?:and|{TURN}|against|versus|vs)\b", re.I)
CLAUSE = re.compile(rf";|\s[-–—]+\s|—|\b(?:{TURN})\b", re.I)
EXCEPTING = re.compile(r"\b(?:all|every|each|no|none|any)(?: of)?(?: the| its)?(?: \w+)? but\b(?! not)", re.I)
UNSAID = ("failure", "bound", "plain", "not_graded", "zero")  # a "no" or "never" in these denies nothing
LEAD = 60  # characters before a place that say how it is meant
NEGATED = re.compile(rf"\b(?:{'|'.join(sorted(NEGATIONS))})\b|n['’]t\b", re.I)
BESIDE = FILLERS | words("resolved closed past complete such trades")
MARKS, LETTERS = re.compile(r"[,;:()]"), re.compile(r"[a-z]+")


class Mention(NamedTuple):
    """One thing that a sentence names: what kind of thing, where, its words, and what they stand for."""

    kind: str
    start: int
    end: int
    text: str
    value: Any = None

    @property
    def place(self) -> tuple[int, int]:
        """Its first character, and the one behind its last."""
        return self.start, self.end

    def move(self, by: int) -> "Mention":
        """The same mention in a text that begins elsewhere."""
        return Mention(self.kind, self.start + by, self.end + by, self.text, self.value)


class SentenceLayout:
    """One sentence with its mentions; places are characters of the sentence."""

    def __init__(self, sentence: Span, mentions: list[Mention]) -> None:
        self.sentence = sentence
        self.text = sentence.text
        self.mentions = mentions
        turns = " but" in self.text
        excepting = [found.span() for found in EXCEPTING.finditer(self.text)] if turns else []
        breaks = [found.span() for found in BREAK.finditer(self.text) if not _is_in(found, excepting)]
        self._starts, self._stops = [begin for begin, _ in breaks], [stop for _, stop in breaks]
        unsaid = [m.place for m in mentions if m.kind in UNSAID]
        self._denials = [
            found.start()
            for found in NEGATED.finditer(self.text)
            if not any(begin <= found.start() < stop for begin, stop in unsaid)
        ]
        clauses = (found for found in CLAUSE.finditer(self.text) if not _is_in(found, excepting))
        self._clauses = [found.start() for found in clauses]

    def piece(self, start: int, end: int) -> tuple[int, int]:
        """The piece between two marks or joints that holds a place."""
        before, after = bisect_right(self._stops, start), bisect_left(self._starts, end)
        left = self._stops[before - 1] if before else 0
        right = self._starts[after] if after < len(self._starts) else len(self.text)
        return left, right

    def beside(self, mention: Mention, *kinds: str) -> list[Mention]:
        """The mentions of these kinds in the piece of a mention, in order."""
        left, right = self.piece(*mention.place)
        return [m for m in self.mentions if left <= m.start < right and m.kind in kinds and m is not mention]

    def lead(self, place: int) -> str:
        """The characters right before a place."""
        return self.text[max(0, place - LEAD) : place]

    def between(self, end: int, start: int) -> frozenset[str]:
        """The words between two places, in lower case."""
        return frozenset(LETTERS.findall(self.text[end:start].casefold()))

    def clause_of(self, place: int) -> int:
        """Number of the clause that holds a place."""
        return bisect_left(self._clauses, place)

    def next(self, index: int) -> Mention | None:
        """The mention behind this one."""
        return self.mentions[index + 1] if index + 1 < len(self.mentions) else None

    def previous(self, index: int) -> Mention | None:
        """The mention before this one."""
        return self.mentions[index - 1] if index else None

    def is_near(self, end: int, start: int) -> bool:
        """Whether nothing but small words stands between two places."""
        between = self.text[end:start].casefold()
        return MARKS.search(between) is None and set(LETTERS.findall(between)) <= BESIDE

    def is_negated(self, place: int) -> bool:
        """Whether the piece denies what stands at a place."""
        left, _ = self.piece(place, place)
        number = bisect_left(self._denials, left)
        return number < len(self._denials) and self._denials[number] < place

    def is_denied(self, start: int, end: int) -> bool:
        """Whether a word denies something between two places."""
        number = bisect_left(self._denials, start)
        return number < len(self._denials) and self._denials[number] < end

    @property
    def denials(self) -> list[int]:
        """Where words deny something, those in a "no less than" and in a name left aside."""
        return self._denials


def _is_in(found: re.Match[str], spans: list[tuple[int, int]]) -> bool:
    """Whether a match lies within one of some spans."""
    return any(begin <= found.start() and found.end() <= end for begin, end in spans)
