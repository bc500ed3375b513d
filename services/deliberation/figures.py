"""What is a figure a value of? The measure that is named beside it; none where the words leave it open."""

import re
from bisect import bisect_left
from dataclasses import dataclass, field, replace

from services.deliberation.layout import SUBJECT_KINDS, Mention, SentenceLayout
from services.deliberation.noun_phrases import NUMBERS, NounPhrases, Phrase, filter_of, side_of
from services.deliberation.numerals import (
    EXPECTED,
    EXPECTED_BEHIND,
    EXPECTED_ONLY,
    HOLD_WORDS,
    LOSS_BEFORE,
    LOSS_BEHIND,
    LOST_BEFORE,
    OF_AN_EXCURSION,
    OF_EXPECTED,
    OF_MONEY,
    SIGNLESS,
    Figure,
    exactness,
    fits,
    measure_unit,
    round_loose,
    unit_of,
)
from services.evidence.catalogue import CATALOGUE
from services.evidence.facts import Subject
from services.text.claim_words import words

PARENTHESIS = re.compile(r"\s*\([^)]*\)")
OPENING = re.compile(r"[(\[]\s*(?:(?:about|roughly|only|just|at|of|with) )*$")
LARGE = 1_000.0  # more than trades are counted
OF_A_HOLD = re.compile(r"\bh[eo]ld|\bkept|\blasted|\bran for|\bstay|\bduration|\bopen")
APPOSITION = 3  # mentions between a measure and its figure: "the E-value of trend_pullback, 0.87, ..."
BOTH = ("total_r", "mean_r")
BESIDE_A_FEATURE = frozenset({*SUBJECT_KINDS, "bound", "side"} - {"feature"})
LOOSE = words("trades profit playbooks symbols regimes clusters reports years exits failures")


@dataclass(frozen=True)
class Reading:
    """What a figure may be: questions of the catalogue, any of which may answer.

    Attributes:
        filters: which of the subject's trades it speaks of.
        noun_end: end of the words that say what is counted, where some do.
        sure: how surely the words say so.
        used: places of the mentions that were read for it.
    """

    questions: tuple[str, ...] = ()
    filters: Subject = field(default_factory=Subject)
    noun_end: int | None = None
    sure: float = 1.0
    used: frozenset[int] = frozenset()


class FigureReader:
    """The questions that the figures of one sentence may answer."""

    def __init__(self, layout: SentenceLayout) -> None:
        self._layout = layout
        self.nouns = NounPhrases(layout)
        self._numbers = [i for i, mention in enumerate(layout.mentions) if mention.kind in NUMBERS]
        self._known: dict[int, Reading] = {}

    def reading(self, index: int) -> Reading:
        """What the figure at an index is a value of."""
        if index not in self._known:
            self._known[index] = Reading()  # of a figure that asks for itself
            self._known[index] = self._read_expectation(index, self._read(index))
        return self._known[index]

    def read_sign(self, index: int, questions: tuple[str, ...]) -> Figure:
        """The figure with the sign that "lost" gives it where none is written, and as exact as it claims."""
        mention = self._layout.mentions[index]
        held: Figure = mention.value
        exact = exactness(self._layout.lead(mention.start))
        held = round_loose(replace(held, exact=exact)) if exact else held
        if questions == ("account_return",) and LOST_BEFORE.search(self._layout.lead(mention.start)):
            return held.negate()
        if {"worst_r", "worst_pnl"} & set(questions) and self._side_of_piece(mention) == "gained":
            return replace(held, sign=held.sign or "+")
        if held.sign == "-" or unit_of(held) not in ("r", "money", "") or SIGNLESS & set(questions):
            return held
        if questions and not set(questions) & {*OF_MONEY, "profit"} and unit_of(held) == "":
            return held
        if set(questions) & {"fees", "mean_fees"}:
            return held
        lost = LOSS_BEFORE.search(self._layout.lead(mention.start))
        lost = lost or LOSS_BEHIND.match(self._layout.text, mention.end)
        return held.negate() if lost or self._side_of_piece(mention) == "lost" else held

    def bound_before(self, index: int) -> Mention | None:
        """The "more than" or "below" of a figure."""
        before, start = self._layout.previous(index), self._layout.mentions[index].start
        if before is None or before.kind != "bound":
            return None
        is_told = OF_EXPECTED.fullmatch(self._layout.text, before.end, start)
        return before if is_told or self._layout.is_near(before.end, start) else None

    def _side_of_piece(self, mention: Mention) -> str | None:
        """Gained or lost, by the word nearest to a figure in its piece, or before the mark that opens it."""
        beside = self._layout.beside(mention, "direction", "result", "measure")
        sides = [(m, side) for m in beside if (side := side_of(m)) is not None]
        before = [side for m, side in sides if m.end <= mention.start]
        if sides:
            return before[-1] if before else sides[0][1]
        left, _ = self._layout.piece(*mention.place)
        earlier = [m for m in self._layout.mentions if m.end <= left and self._same_clause(m, mention)]
        found = [side for m in earlier[-3:] if (side := side_of(m)) is not None]
        return found[-1] if found else None

    def _same_clause(self, a: Mention, b: Mention) -> bool:
        return self._layout.clause_of(a.start) == self._layout.clause_of(b.start)

    def _before(self, index: int) -> int | None:
        """Index of the figure before this one."""
        place = bisect_left(self._numbers, index)
        return self._numbers[place - 1] if place else None

    def _read_expectation(self, index: int, found: Reading) -> Reading:
        """What a playbook's file expects, where the words before a figure say so."""
        mention = self._layout.mentions[index]
        behind = EXPECTED_BEHIND.match(self._layout.text, mention.end)
        if not behind and not EXPECTED.search(self._layout.lead(mention.start)):
            return found
        before = self._before(index)
        named = (*found.questions, *(self.reading(before).questions if before is not None else ()))
        expected = tuple(f"expected_{name}" for name in named if f"expected_{name}" in CATALOGUE)
        if not expected and (behind or EXPECTED_ONLY.search(self._layout.lead(mention.start))):
            return Reading()
        return replace(found, questions=expected) if expected else found

    def _read(self, index: int) -> Reading:
        mention = self._layout.mentions[index]
        unit = unit_of(mention.value)
        if unit == "other":
            return Reading()
        if unit in ("r", "money"):
            return self._of_amount(index, unit)
        if unit == "share":
            return self._of_share(index)
        if unit == "bps":
            return self._of_cost(mention)
        return self._of_count(index)

    def _of_amount(self, index: int, unit: str) -> Reading:
        """R or money: the measure beside it, and else the whole result or that of a trade."""
        mention = self._layout.mentions[index]
        if unit == "money" and self._is_of_a_bar(index):
            return Reading(("feature",))
        named = self._measure_beside(index, unit)
        filters = self.nouns.filters_beside(index)
        if named is not None:
            questions, used, end = self._questions_of(named, mention, unit)
            return Reading(questions, filters.filters, end, 1.0, used | filters.used)
        earlier = self._before(index)
        if earlier is not None and unit_of(self._layout.mentions[earlier].value) == unit:
            known = self.reading(earlier)
            bare = not self._layout.beside(mention, "direction", "result")
            if bare and known.sure == 1.0:
                told = known.filters if filters.filters.is_empty else filters.filters
                return Reading(known.questions, told, None, 0.75, filters.used)
        inherited = self._header(index, unit)
        default = BOTH if unit == "r" else ("pnl", "mean_pnl")
        return Reading(inherited or default, filters.filters, None, 0.75, filters.used)

    def _questions_of(
        self, named: Mention, mention: Mention, unit: str
    ) -> tuple[tuple[str, ...], frozenset[int], int | None]:
        end = named.end if named.start >= mention.end else None
        used = frozenset({named.start})
        question = str(named.value)
        in_money = unit == "money" or unit == "" and mention.value.value >= LARGE / 10
        if question in ("best_r", "worst_r") and in_money:
            return (question.replace("_r", "_pnl"),), used, end
        if question == "profit":
            return (BOTH if unit == "r" else ("pnl", "gross_pnl")), used, end
        beside = {m.value for m in self._layout.beside(mention, "measure")}
        if question in ("fees", "pnl") and "mean_r" in beside:
            return (f"mean_{question}",), used, end
        for of in ("pnl", "fees"):
            if question == "mean_r" and unit in ("money", "") and of in beside:
                return (f"mean_{of}",), used, end
        return self._list_questions(question, mention), used, end

    def _of_cost(self, mention: Mention) -> Reading:
        """Basis points of the traded value: the rate of fees, or of slippage."""
        asked = {"fees": "fee_bps", "slippage_bps": "slippage_bps"}
        near = [m for m in self._layout.beside(mention, "measure") if m.value in asked]
        return Reading((asked[str(near[0].value)],), used=frozenset({near[0].start})) if near else Reading()

    def _of_share(self, index: int) -> Reading:
        """Percent: a rate, or the share of the trades that the piece tells something of."""
        named = self._measure_beside(index, "share")
        if named is not None:
            return Reading((str(named.value),), used=frozenset({named.start}))
        told = self.nouns.predicate(index)
        if told.filters.is_empty:
            header = self._header(index, "share")
            if header:
                return Reading(header, Subject(), None, 0.75)
            before = self._before(index)
            if before is not None and unit_of(self._layout.mentions[before].value) == "share":
                return replace(self.reading(before), noun_end=None, sure=0.75)
            mention = self._layout.mentions[index]
            rates = [
                m for m in self._layout.mentions
                if m.kind == "measure" and measure_unit(str(m.value)) == "share" and m.start > mention.end
                and self._same_clause(m, mention) and not self._belongs_to_another(m, mention)
            ]  # fmt: skip
            return Reading((str(rates[0].value),), used=frozenset({rates[0].start})) if rates else Reading()
        earlier = self._before(index)
        if told.filters.fields == {"direction"} and earlier is not None:
            known = self.reading(earlier)  # "longs won 48 % of the time, shorts 33 %"
            if known.questions == ("share",) and known.filters.outcome is not None:
                told = replace(told, filters=told.filters.merge(Subject(outcome=known.filters.outcome)))
        if told.filters.failure_mode is not None:
            return Reading(("failure_share",), told.filters, told.end, 1.0, told.used)
        return Reading(("share",), told.filters, told.end, 1.0, told.used)

    def _of_count(self, index: int) -> Reading:
        """A bare number: of what is counted behind it, or of the measure before it."""
        mention = self._layout.mentions[index]
        if self._is_of_a_bar(index):
            return Reading(("feature",))
        named = self._layout.previous(index)
        if named is not None and named.kind == "playbook" and index > 1:
            named = self._layout.mentions[index - 2]
        phrase = self.nouns.behind(index)
        near = named is not None and len(self._layout.between(named.end, mention.start)) <= APPOSITION + 2
        if named is not None and named.kind == "parameter" and phrase.head != "trades" and near:
            return Reading(("parameter",))
        if phrase.head in ("bars", "days"):
            return self._of_hold(index, mention, phrase)
        if phrase.head is not None and phrase.head not in ("trades", "profit"):
            return Reading((phrase.head,), phrase.filters, phrase.end, 1.0, phrase.used)
        before = self._measure_before(index, "")
        is_decimal = mention.value.step < 1
        is_free = phrase.head is None and before is not None and filter_of(before) is None
        if before is not None and is_free and (is_decimal or before.value not in LOOSE):
            questions, used, end = self._questions_of(before, mention, "")
            return Reading(questions, Subject(), end, 1.0, used)
        money = self._as_money(index, phrase.head)
        if money:
            return Reading(money, Subject(), None, 0.9)
        if phrase.head is None and mention.value.value >= LARGE and self._is_earned(mention):
            return Reading(("pnl",), Subject(), None, 0.8)
        if not is_decimal:
            told = self.nouns.predicate(index)
            if not told.filters.is_empty or phrase.head is not None:
                return Reading(("trades",), told.filters, told.end, 1.0, told.used | phrase.used)
            if before is not None and before.value == "trades":
                return Reading(("trades",), Subject(), None, 1.0, frozenset({before.start}))
        return self._further_off(index)

    def _is_earned(self, mention: Mention) -> bool:
        """Whether the clause of a large bare number says before it that money was earned or lost."""
        return any(
            m.kind == "direction" and m.end <= mention.start and self._same_clause(m, mention)
            for m in self._layout.mentions
        )

    def _is_of_a_bar(self, index: int) -> bool:
        """Whether nothing but names stands between a feature and a figure: "the close of IBM was 171.57"."""
        before = [m for m in self._layout.mentions[:index] if m.kind not in BESIDE_A_FEATURE]
        mentions = self._layout.mentions
        ids = {mentions[i - 1].start for i in range(1, index) if mentions[i].kind == "id"}
        nearest = next((m for m in reversed(before) if m.start not in ids), None)
        return nearest is not None and nearest.kind == "feature"

    def _of_hold(self, index: int, mention: Mention, phrase: Phrase) -> Reading:
        """A number of bars or days."""
        told, unit = self.nouns.filters_beside(index), str(phrase.head)
        beside = self._layout.beside(mention, "measure")
        holds = {m.start for m in beside if m.value in ("hold_max", "hold_min")}
        used = phrase.used | told.used | holds
        return Reading(self._list_questions(unit, mention), told.filters, phrase.end, 1.0, used)

    def _as_money(self, index: int, head: str | None) -> tuple[str, ...]:
        """Questions of a bare number that the words around it call money, or that was gained or lost."""
        mention = self._layout.mentions[index]
        if head not in (None, "profit"):
            return ()
        earlier = (m for m in reversed(self._layout.mentions[:index]) if m.kind != "bound")
        before = next(earlier, None)
        earns = ("direction", "result") if mention.value.step < 1 else ("direction",)
        gained = before is not None and before.kind in earns
        gained = gained and before is not None and self._layout.is_near(before.end, mention.start)
        in_money = [m for m in self._layout.beside(mention, "measure") if m.value == "pnl"]
        if in_money and (gained or before is not None and before.kind in ("result", "measure")):
            return ("pnl", "gross_pnl") if head == "profit" else ("pnl",)
        return ("pnl",) if gained or in_money else ()

    def _further_off(self, index: int) -> Reading:
        """A measure in the same piece; a bare figure is of what the figure before it was of."""
        mention = self._layout.mentions[index]
        decimal = mention.value.step < 1
        near = [m for m in self._layout.beside(mention, "measure") if fits(m.value, "", decimal=decimal)]
        near = [m for m in near if m.value not in LOOSE and filter_of(m) is None]
        before = [m for m in near if m.end <= mention.start]
        if near:
            named = before[-1] if before else near[0]
            questions, used, _ = self._questions_of(named, mention, "")
            return Reading(questions, Subject(), None, 0.9, used)
        for measure in reversed(self._layout.mentions[max(0, index - APPOSITION) : index]):
            if measure.kind in NUMBERS and mention.value.step >= 1:
                break
            if measure.kind != "measure" or filter_of(measure) is not None:
                continue
            if measure_unit(measure.value) == "score" or measure.value in OF_MONEY:
                return Reading((str(measure.value),), Subject(), None, 0.75, frozenset({measure.start}))
        earlier = self._before(index)
        if earlier is not None and not unit_of(self._layout.mentions[earlier].value):
            known = self.reading(earlier)
            same = (self._layout.mentions[earlier].value.step < 1) == (mention.value.step < 1)
            if same and known.questions:
                return replace(known, noun_end=None, sure=0.75)
        header = self._header(index, "")
        return Reading(header, Subject(), None, 0.75) if header else Reading()

    def _header(self, index: int, unit: str) -> tuple[str, ...]:
        """What an earlier piece says all figures are of: "By trade count: A (141), B (41)"."""
        mention = self._layout.mentions[index]
        for measure in reversed(self._layout.mentions[:index]):
            if measure.kind != "measure" or filter_of(measure) is not None:
                continue
            if measure.value in ("playbooks", "symbols", "regimes", "years", "profit"):
                continue
            stated = unit or mention.value.step < 1 or self.bound_before(index) is not None
            if fits(measure.value, unit) and (stated or measure.value == "trades"):
                if unit == "r" and measure.value not in ("total_r", "mean_r", "median_r"):
                    continue
                return (str(measure.value),)
        return ()

    def _measure_beside(self, index: int, unit: str) -> Mention | None:
        """The measure of a figure with a unit: right behind it, right before it, or in its piece."""
        after, before = self._measure_after(index, unit), self._measure_before(index, unit)
        if after is not None and (before is None or after.value == "mean_r"):
            return after
        if before is not None:
            return before
        mention = self._layout.mentions[index]
        near = [m for m in self._layout.beside(mention, "measure") if fits(m.value, unit)]
        near = [m for m in near if not self._belongs_to_another(m, mention)]
        earlier = [m for m in near if m.end <= mention.start]
        return earlier[-1] if earlier else near[0] if near else after

    def _belongs_to_another(self, measure: Mention, mention: Mention) -> bool:
        """Whether another figure stands between a measure and a figure."""
        low, high = sorted((measure.start, mention.start))
        unit = unit_of(mention.value)
        between = (m for i in self._numbers if low < (m := self._layout.mentions[i]).start < high)
        return any(unit_of(m.value) == unit for m in between)

    def _list_questions(self, question: str, mention: Mention) -> tuple[str, ...]:
        """A measure's question; bars are of the hold that the piece names, and so is a median."""
        if question == "median_r":
            near = [m.value for m in self._layout.beside(mention, "measure") if m.value in OF_AN_EXCURSION]
            return (near[0],) if near else (question,)
        if question not in ("bars", "days"):
            return (question,)
        said, of = self._around(mention), "days" if question == "days" else "hold"
        order = ("p50", "p90", "mean", "max", "min") if of == "days" else ("p50", "mean", "max", "min", "p90")
        names = tuple(f"{of}_{name}" for name in order if re.search(HOLD_WORDS[name], said))
        return names or ((f"{of}_p50", f"{of}_mean") if OF_A_HOLD.search(said) else ())

    def _around(self, mention: Mention) -> str:
        """The words of a figure's piece, with the parenthesis behind it, or with the clause before one."""
        text = self._layout.text
        left, right = self._layout.piece(*mention.place)
        behind = PARENTHESIS.match(text, right)
        said = (text[left:right] + (behind[0] if behind else "")).casefold()
        if re.search(r"\bh[eo]ld|\bp\d0|\bmedian|\baverage|\bmean|longest|shortest", said):
            return said
        return text[max(0, left - 100) : right].casefold()

    def _measure_after(self, index: int, unit: str) -> Mention | None:
        after, end = self._layout.next(index), self._layout.mentions[index].end
        if after is None or after.kind != "measure" or not self._layout.is_near(end, after.start):
            return None
        if after.value in LOOSE and unit != "":
            return after if after.value == "profit" else None
        return after if fits(after.value, unit) else None

    def _measure_before(self, index: int, unit: str) -> Mention | None:
        """The measure right before a figure, names and a bound left aside: "the win rate of IBM is 33 %"."""
        mention = self._layout.mentions[index]
        place = mention.start
        opened = OPENING.search(self._layout.lead(place))
        if opened is not None:
            place -= len(opened[0])
        for before in reversed(self._layout.mentions[max(0, index - APPOSITION) : index]):
            joint = self._layout.text[before.end : place].strip()
            if not self._layout.is_near(before.end, place) and joint not in (":", "=", ","):
                return None
            if before.kind == "measure" and fits(before.value, unit, decimal=mention.value.step < 1):
                return None if before.value in LOOSE - {"trades", "profit"} else before
            if before.kind == "measure" and (before.value != "profit" and before.value not in LOOSE):
                return None
            if before.kind not in (*SUBJECT_KINDS, "bound", "side", "measure", "direction", "result"):
                return None
            place = before.start
        return None
