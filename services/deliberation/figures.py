"""What is a figure a value of? The measure that is named beside it; none where the words leave it open."""

import re
from bisect import bisect_left, bisect_right

from services.deliberation.layout import SentenceLayout
from services.deliberation.mentions import Figure, Mention
from services.deliberation.said_of import SUBJECT_KINDS
from services.evidence.catalogue import CATALOGUE
from services.evidence.facts import Subject

OF = re.compile(r"\s*(?:out )?of (?:the |its |their |all |his )*|\s*/\s*", re.I)
PARENTHESIS = re.compile(r"\s*\([^)]*\)")
EXPECTED = re.compile(
    r"\b(?:expect\w*|design\w*|against|instead of|planned|assum\w+)"
    r"(?: (?:an?|of|the|expected|was|were|is))*\s*$",
    re.I,
)
LOSS_BEFORE = re.compile(r"\bloss(?:es)? (?:of|was|is|at)\s*$", re.I)
LOSS_BEHIND = re.compile(r"\s*loss\b", re.I)
APPOSITION = 3  # mentions between a measure and its figure: "the E-value of trend_pullback, 0.87, ..."
OF_AN_EXCURSION = frozenset({"mfe_p50", "mae_p80", "hold_p50"})
UNITS = {"R": "r", "%": "share", "$": "money", "€": "money", "£": "money"}
OUTCOMES = {"winners": "won", "losers": "lost", "longs": "long", "shorts": "short"}
RATES = {"winners": "win_rate", "losers": "loss_rate"}
NUMBERS = ("number", "count_word")


class FigureReader:
    """The questions that the figures of one sentence may answer."""

    def __init__(self, layout: SentenceLayout) -> None:
        self._layout = layout
        self._numbers = [i for i, mention in enumerate(layout.mentions) if mention.kind in NUMBERS]
        self._known: dict[int, tuple[tuple[str, ...], int | None, float]] = {}

    def questions(self, index: int) -> tuple[tuple[str, ...], int | None, float]:
        """Questions of the catalogue, the end of the noun behind the figure, and how surely."""
        found, noun_end, sure = self._asked(index)
        mention = self._layout.mentions[index]
        if EXPECTED.search(self._layout.text[: mention.start]):
            named = (*found, *self._asked_before(index))
            expected = tuple(f"expected_{name}" for name in named if f"expected_{name}" in CATALOGUE)
            found = expected or found
        return found, noun_end, sure

    def part_of(self, index: int) -> int | None:
        """Index of the whole in "22 of 60" and in "22 of its 60 trades", for the part."""
        mentions = self._layout.mentions
        behind = bisect_right(self._numbers, index)
        whole = self._numbers[behind] if behind < len(self._numbers) else None
        if whole is None or unit_of(mentions[index].value) != "":
            return None
        place, between = mentions[index].end, ""
        for named in mentions[index + 1 : whole]:
            between += self._layout.text[place : named.start if named.kind in SUBJECT_KINDS else named.end]
            place = named.end
        between += self._layout.text[place : mentions[whole].start]
        return whole if OF.fullmatch(re.sub(r"\s+", " ", between)) else None

    def is_whole(self, index: int) -> bool:
        """Whether the figure is the 60 in "22 of 60"."""
        before = self._before(index)
        return before is not None and self.part_of(before) == index

    def counts_something(self, index: int) -> bool:
        """Whether a number in words stands before what can be counted."""
        following, end = self._layout.next(index), self._layout.mentions[index].end
        if (
            following is not None
            and following.kind == "measure"
            and self._layout.is_near(end, following.start)
        ):
            return True
        return self.part_of(index) is not None

    def narrowed(self, subject: Subject, index: int, questions: tuple[str, ...]) -> Subject:
        """The subject with the failure mode, the exit or the side of the trades that the piece speaks of."""
        mention = self._layout.mentions[index]
        mode = self._failure_of(index)
        if questions == ("failures",) and mode is not None:
            return subject.joined(Subject(failure_mode=mode.value))
        for ended in self._layout.beside(mention, "exit")[:1]:
            subject = subject.joined(Subject(exit_reason=ended.value))
        for side in self._layout.beside(mention, "side")[:1]:
            subject = Subject(direction=side.value).joined(subject)
        for side in self._layout.beside(mention, "measure"):
            if side.value in ("longs", "shorts") and not set(questions) & {"longs", "shorts"}:
                return subject.joined(Subject(direction=OUTCOMES[side.value]))
        return subject

    def signed(self, index: int, questions: tuple[str, ...]) -> Figure:
        """The figure with the sign that "lost" gives it where none is written."""
        mention = self._layout.mentions[index]
        held: Figure = mention.value
        if held.sign or unit_of(held) not in ("r", "money") or "mae_p80" in questions:
            return held
        text = self._layout.text
        if LOSS_BEFORE.search(text[: mention.start]) or LOSS_BEHIND.match(text, mention.end):
            return Figure(-abs(held.value), held.step, "-", held.unit)
        sides = [side for m in self._layout.beside(mention, "direction", "measure") if (side := side_of(m))]
        return Figure(-abs(held.value), held.step, "-", held.unit) if sides[:1] == ["lost"] else held

    def bound_before(self, index: int) -> Mention | None:
        """The "more than" or "below" of a figure."""
        before = self._layout.previous(index)
        if before is None or before.kind != "bound":
            return None
        return before if self._layout.is_near(before.end, self._layout.mentions[index].start) else None

    def _before(self, index: int) -> int | None:
        """Index of the figure before this one."""
        place = bisect_left(self._numbers, index)
        return self._numbers[place - 1] if place else None

    def _asked(self, index: int) -> tuple[tuple[str, ...], int | None, float]:
        if index not in self._known:
            self._known[index] = self._questions(index)
        return self._known[index]

    def _asked_before(self, index: int) -> tuple[str, ...]:
        """What the figure before this one answers."""
        before = self._before(index)
        return () if before is None else self._asked(before)[0]

    def _questions(self, index: int) -> tuple[tuple[str, ...], int | None, float]:
        mention = self._layout.mentions[index]
        unit = unit_of(mention.value)
        whole = self.part_of(index)
        if whole is not None:
            return self._questions_of_part(index, whole), self._noun_end(whole), 1.0
        after, before = self._measure_after(index, unit), self._measure_before(index, unit)
        if self.is_whole(index):
            return (("trades",), None, 0.9) if after is None else ((after.value,), after.end, 1.0)
        outcome = self._outcome_of(index, after) if unit in ("", "share") else None
        if outcome == "losers" and self._failure_of(index) is not None:
            return ("failures",), None if after is None else after.end, 1.0
        if outcome is not None:
            question = RATES.get(outcome) if unit == "share" else outcome
            return (() if question is None else (question,)), None if after is None else after.end, 1.0
        if unit == "share" and self._failure_of(index) is not None:
            return ("failures",), None, 1.0
        counted = unit == "" and after is not None and measure_unit(after.value) in ("count", "bars")
        named = after if counted else before
        if named is None and unit == "" and self._failure_of(index) is not None:
            return ("failures",), None, 0.9
        named = named or after
        if named is not None:
            return self._named(named.value, mention), None if after is None else after.end, 1.0
        return self._questions_further_off(index, unit)

    def _questions_further_off(self, index: int, unit: str) -> tuple[tuple[str, ...], int | None, float]:
        """Those of a measure in the same piece; a bare figure is of what the figure before it was of."""
        mention = self._layout.mentions[index]
        near = [m for m in self._layout.beside(mention, "measure") if _fits(m.value, unit)]
        before = [m for m in near if m.end <= mention.start]
        if near:
            return self._named((before[-1] if before else near[0]).value, mention), None, 0.9
        if unit == "r":
            return ("mean_r",), None, 0.75
        for measure in reversed(self._layout.mentions[max(0, index - APPOSITION) : index]):
            if measure.kind == "measure" and measure_unit(measure.value) == (unit or "score"):
                return (measure.value,), None, 0.75
        return self._asked_before(index), None, 0.75

    def _questions_of_part(self, index: int, whole: int) -> tuple[str, ...]:
        if self._failure_of(index) is not None:
            return ("failures",)
        mentions = self._layout.mentions
        left, right = self._layout.piece(mentions[index].start, mentions[whole].end)
        for mention in mentions:
            if left <= mention.start < right and mention.kind == "measure" and mention.value in OUTCOMES:
                return (str(mention.value),)
            if left <= mention.start < right and mention.kind == "direction":
                return ("winners" if mention.value == "gained" else "losers",)
        return ()

    def _named(self, question: str, mention: Mention) -> tuple[str, ...]:
        """A measure's question; bars are of the hold that the piece names, and so is a median."""
        if question == "median_r":
            near = [m.value for m in self._layout.beside(mention, "measure") if m.value in OF_AN_EXCURSION]
            return (near[0],) if near else (question,)
        if question != "bars":
            return (question,)
        left, right = self._layout.piece(mention.start, mention.end)
        behind = PARENTHESIS.match(self._layout.text, right)
        said = (self._layout.text[left:right] + (behind[0] if behind else "")).casefold()
        if "p90" in said:
            return ("hold_p90",)
        if re.search(r"\bmedian|\bp50", said):
            return ("hold_p50",)
        if re.search(r"\bmean|\baverage", said):
            return ("hold_mean",)
        return ("hold_p50", "hold_mean") if re.search(r"\bh[eo]ld", said) else ()

    def _noun_end(self, index: int) -> int:
        after = self._layout.next(index)
        mention = self._layout.mentions[index]
        return after.end if after is not None and after.kind == "measure" else mention.end

    def _measure_after(self, index: int, unit: str) -> Mention | None:
        after, end = self._layout.next(index), self._layout.mentions[index].end
        if after is None or after.kind != "measure" or not self._layout.is_near(end, after.start):
            return None
        return after if _fits(after.value, unit) else None

    def _measure_before(self, index: int, unit: str) -> Mention | None:
        before, mention = self._layout.previous(index), self._layout.mentions[index]
        bound = before if before is not None and before.kind == "bound" else None
        if bound is not None:
            before = self._layout.previous(index - 1)
        if before is None or before.kind != "measure" or not _fits(before.value, unit):
            return None
        end = mention.start if bound is None else bound.start
        return before if self._layout.is_near(before.end, end) or self._is_said(before.end, end) else None

    def _is_said(self, start: int, end: int) -> bool:
        """Whether a colon or an equals sign alone joins a measure to its figure."""
        return self._layout.text[start:end].strip() in (":", "=")

    def _outcome_of(self, index: int, after: Mention | None) -> str | None:
        """Winners or losers where a count or a share is one of them: "won 22 trades", "22 trades lost"."""
        mention, before = self._layout.mentions[index], self._layout.previous(index)
        is_verb = before is not None and before.text.casefold() in ("won", "lost")
        if before is not None and is_verb and self._layout.is_near(before.end, mention.start):
            return str(before.value)
        if after is not None and after.value in OUTCOMES:
            return str(after.value)
        left, right = self._layout.piece(mention.start, mention.end)
        if (
            before is not None
            and before.start >= left
            and before.kind == "measure"
            and before.value in OUTCOMES
        ):
            return str(before.value) if unit_of(mention.value) == "share" else None
        for following in self._layout.mentions[index + 1 :]:
            if following.start >= right or following.kind in NUMBERS:
                return None
            if following.kind == "measure" and following.value in RATES:
                return str(following.value)
        return None

    def _failure_of(self, index: int) -> Mention | None:
        """The failure mode of the piece, or the one that opens the row: "chop: 4 of 89 losers"."""
        found = self._layout.beside(self._layout.mentions[index], "failure")
        before = self._layout.previous(index)
        return found[0] if found else before if before is not None and before.kind == "failure" else None


def measure_unit(question: str) -> str:
    """Unit of a measure."""
    return "bars" if question == "bars" else CATALOGUE[question].unit


def unit_of(held: Figure) -> str:
    """Unit of a figure: r, share, money, or empty."""
    return UNITS.get(held.unit, "share" if held.unit.casefold().startswith("per") else "")


def side_of(mention: Mention) -> str | None:
    """Gained or lost, where a word says so."""
    if mention.kind == "direction":
        return str(mention.value)
    if mention.kind == "measure" and mention.value in RATES:
        return "gained" if mention.value == "winners" else "lost"
    return None


def _fits(question: str, unit: str) -> bool:
    """Whether a figure in this unit may be a value of the measure; a bare one may be of any."""
    of_measure = measure_unit(question)
    return unit in ("", of_measure) or unit == "money" and of_measure == "price"
