"""Claims that set one thing against another: more than, twice as many, two R more."""

import re
from dataclasses import replace

from services.deliberation.claim import Claim
from services.deliberation.figures import BOTH
from services.deliberation.layout import Mention
from services.deliberation.noun_phrases import NUMBERS, Phrase, filter_of
from services.deliberation.numerals import Figure, exactness, unit_of
from services.deliberation.ranking_claims import extreme, measures_of
from services.deliberation.said_of import Group
from services.deliberation.sentence_reading import MEMBERS, SentenceReading
from services.text.claim_words import words

OTHERS = re.compile(
    r"\s*(?:than )?(?:in |for |by |on )?(?:any|every|all|each)(?: of)?(?: the)? others?\b", re.I
)
OF_A_FIGURE = frozenset({"over", "under", "up to", "beyond", "short of"})
PREPOSITIONS = OF_A_FIGURE | {"above", "below"}
GAINS = re.compile(r"\b(?:gains?|profits?|winners?|wins)\b[^,;.]{0,30}$", re.I)
LOSSES = re.compile(r"\s*(?:(?:of|as much as|all|its|their|the|gross|total|large as) )*loss(?:es)?\b", re.I)
EARNED = re.compile(r"\b(?:earn\w*|made|mak\w+|gain\w*|los\w+|return\w*|brought in|averag\w+)\s+$", re.I)
BESIDE = re.compile(
    r"(?: money)?(?: (?:per|a|each) trade)?(?: in total)?"
    r" (?:on|in|from|with|by|going|during|while|when|than)\b",
    re.I,
)
MORE = re.compile(r"more|less|fewer", re.I)
LOST = re.compile(r"\b(?:los[te]|losing|loses|gave back)\s+$", re.I)
LOSING = (("loss_rate",), ("losers",))  # measures of which who lost more has more
TURNED = {">": "<", "<": ">"}
AS = re.compile(r"\b(?:as|than|that of|those of|what|the)\b", re.I)
OF_A_RESULT = ("beat", "outearn", "outperform", "better", "worse", "trail", "lag", "underperform")
FURTHEST = 24  # characters between "more" and "than"
_THAN = words(
    "more higher larger greater better stronger bigger longer less fewer lower smaller worse weaker shorter"
)


def claims_of_comparison(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """One subject, or one kind of trade, against another."""
    if reading.is_used(mention):
        return []
    number = next((m for m in reading.mentions[index + 1 :] if m.kind in NUMBERS), None)
    than = reading.layout.text.find("than", mention.start)
    after = reading.subjects.after(mention.end)
    others = OTHERS.match(reading.layout.text, mention.end)
    if others is None and mention.kind == "compared" and 0 <= than - mention.end <= FURTHEST:
        others = OTHERS.match(reading.layout.text, than)
    if others is not None:
        value = "highest" if mention.value == ">" else "lowest"
        pseudo = Mention("extreme", mention.start, mention.end, mention.text, value)
        return extreme(reading, index, pseudo)
    said = mention.text.casefold()
    of_figure = mention.kind == "bound" and (
        after is None or number is not None and number.start < after.start or said in OF_A_FIGURE
    )
    of_kinds = not of_figure or said not in PREPOSITIONS and _is_told_first(reading, mention, number)
    if of_kinds and (own := _own_kinds(reading, mention, than)):
        return own
    if of_figure or after is None:
        return []
    if of_none := _than_by_none(reading, mention, after):
        return of_none
    first = reading.subjects.before(mention.start)
    between, later = reading.subjects.around(mention.end, than)
    if between and later and (first.is_empty or reading.subjects.sides_of(mention.end, than)):
        first, after = between[0].subject, later[0]
    if first.is_empty and reading.subjects.groups[:1] == [after]:
        return []
    if not first.is_empty and not first.fields & after.own.fields:
        return []
    questions, filters = measures_of(reading, mention)
    reading.use(mention)
    other = after.own
    if first.fields != after.own.fields:  # "A beats B in 2003" is of 2003 in both
        other, first = first.merge(after.own), first.merge(after.own.without(*first.fields))
    return reading.claims(
        "comparison", (mention.start, after.end), ((first,), 1.0), "comparison", questions=questions,
        relation=_relation(reading, mention, questions), other=other, filters=filters,
        negated=reading.layout.is_negated(mention.start),
    )  # fmt: skip


def _relation(reading: SentenceReading, mention: Mention, questions: tuple[str, ...] = ()) -> str:
    """Which way it goes: who lost more made less, but has the larger share of losers."""
    more = questions not in LOSING and MORE.match(mention.text)
    turns = more and LOST.search(reading.layout.text[: mention.start])
    return TURNED[mention.value] if turns else str(mention.value)


def _than_by_none(reading: SentenceReading, mention: Mention, after: Group) -> list[Claim]:
    """Whom no other one exceeds: "no playbook traded more often than channel_breakout"."""
    before = reading.layout.previous(reading.index(mention))
    quantifiers = (m for m in reading.mentions if m.kind == "quantifier" and m.end <= mention.start)
    near = [m for m in quantifiers if m.value == "none"]
    phrase = reading.nouns.behind(reading.index(near[-1])) if near else Phrase()
    field = MEMBERS.get(str(phrase.head), "")
    if not field or field not in after.own.fields or before is None:
        return []
    questions, filters = measures_of(reading, mention)
    reading.use(mention, near[-1])
    reading.used |= phrase.used
    value = "highest" if mention.value == ">" else "lowest"
    return reading.claims(
        "comparison", (near[-1].start, after.end), ((after.own,), 0.9), "extreme", questions=questions,
        value=value, domain=field, filters=filters, relation="1",
    )  # fmt: skip


def _is_told_first(reading: SentenceReading, mention: Mention, number: Mention | None) -> bool:
    """Whether a kind of trade stands between a bound and the next number: "fewer than its losers: 59"."""
    end = len(reading.layout.text) if number is None else number.start
    return any(filter_of(m) is not None for m in reading.mentions if mention.end <= m.start < end)


def _of_kinds(mention: Mention, sentence: str) -> tuple[str, ...]:
    """By what two kinds of trades are compared: by their holds, by what they earned, or by their number."""
    text = mention.text.casefold()
    if text.startswith(("longer", "shorter")):
        return ("hold_mean", "hold_p50")
    if EARNED.search(sentence[: mention.start]) and BESIDE.match(sentence, mention.end):
        return BOTH
    return BOTH[::-1] if text.startswith(OF_A_RESULT) else ("trades",)


def _own_kinds(reading: SentenceReading, mention: Mention, than: int) -> list[Claim]:
    """Two kinds of trades of one subject: "more losers than winners", "won more often than it lost"."""
    by_than = mention.kind in ("compared", "bound") and than >= 0 and mention.text.casefold() in _THAN
    place = than if by_than else mention.start
    told = [(m, f) for m in reading.mentions if (f := filter_of(m)) is not None]
    clause = reading.layout.clause_of(mention.start)
    told = [(m, f) for m, f in told if reading.layout.clause_of(m.start) in (clause, clause + 1, clause - 1)]
    left = [item for item in told if item[0].end <= place]
    right = [item for item in told if item[0].start >= place]
    if not left or not right:
        return []
    (a, first), (b, second) = left[-1], right[0]
    if first.fields != second.fields or first == second:
        return []
    after = reading.subjects.after(place)
    if after is not None and after.start < b.start:
        return []
    reading.use(mention, a, b)
    start = min(a.start, mention.start)
    (whom, *_), sure = reading.of(start, b.end)
    before = reading.subjects.before(a.start)
    base = whom if before.is_empty else before
    return reading.claims(
        "comparison", (start, b.end), ((base,), sure), "comparison",
        questions=_of_kinds(mention, reading.layout.text), filters=first, other=base.merge(second),
        relation=_relation(reading, mention),
        negated=reading.layout.is_negated(mention.start),
    )  # fmt: skip


def difference(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """How much more or less: "made 2R more than trend_pullback", "twelve more trades than"."""
    phrase = reading.nouns.behind(index)
    place = mention.end if phrase.end is None else phrase.end
    following = next((m for m in reading.mentions[index + 1 :] if m.start >= place), None)
    if following is None or following.kind not in ("compared", "bound"):
        return []
    other_word = following.text.casefold().split()[0] not in _THAN | {"ahead", "behind"}
    if other_word or reading.layout.text[place : following.start].strip():
        return []
    reading.used |= phrase.used
    claim = next(iter(claims_of_comparison(reading, reading.index(following), following)), None)
    if claim is None:
        return []
    held = reading.figures.read_sign(index, ("total_r",))
    questions = ("trades",) if phrase.head == "trades" else claim.questions
    if unit_of(held) == "r":
        questions = tuple(q for q in questions if q in (*BOTH, "median_r")) or BOTH
    elif unit_of(held) == "" and questions == BOTH:
        questions = ("trades",)
    start = claim.start - (following.start - mention.start)
    return [replace(claim, start=start, said="difference", questions=questions, value=held)]


def factor(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """How many times as much: of two subjects, or of two kinds of trades."""
    if reading.is_used(mention):
        return []
    lead = reading.layout.lead(mention.start)
    exact = exactness(lead)
    if GAINS.search(lead) and (found := LOSSES.match(reading.layout.text, mention.end)) is not None:
        return _profit_factor(reading, mention, exact, found.end())
    before = reading.layout.previous(index)
    bound = ""
    if before is not None and before.kind == "bound" and reading.layout.is_near(before.end, mention.start):
        bound = before.value
        reading.use(before)
    what = {"value": (mention.value, exact, bound)}
    inner = next(iter(reading.clause(mention, "compared")), None)
    if mention.kind == "ratio" and inner is not None:
        claims = _own_kinds(reading, inner, -1) or claims_of_comparison(reading, reading.index(inner), inner)
        if not claims:
            return []
        reading.use(mention)
        same = {"questions": claims[0].questions, "filters": claims[0].filters, "other": claims[0].other}
        whom = claims[0].subjects, 1.0
        return [claims[0], reading.claim("comparison", mention.place, whom, "ratio", **same, **what)]
    as_place = AS.search(reading.layout.text, mention.end)
    told = [(m, f) for m in reading.mentions if m.start >= mention.end and (f := filter_of(m)) is not None]
    if len(told) >= 2 and told[0][1].fields == told[1][1].fields and told[0][1] != told[1][1]:
        reading.use(mention, told[0][0], told[1][0])
        subjects = reading.of(*mention.place)
        return reading.claims(
            "comparison", (mention.start, told[1][0].end), subjects, "ratio", questions=("trades",),
            filters=told[0][1], other=subjects[0][0].merge(told[1][1]), **what,
        )  # fmt: skip
    after = reading.subjects.after(mention.end)
    first = reading.subjects.before(mention.start)
    if after is None or first.is_empty or as_place is None:
        return []
    questions, filters = measures_of(reading, mention)
    if re.search(r"\bas often\b", reading.layout.text[mention.end :]):
        questions = ("trades",)
    reading.use(mention)
    other = (
        after.own if first.fields == after.own.fields else first.without(*after.own.fields).merge(after.own)
    )
    return reading.claims(
        "comparison", (mention.start, after.end), ((first,), 1.0), "ratio", questions=questions,
        filters=filters, other=other, **what,
    )  # fmt: skip


def _profit_factor(reading: SentenceReading, mention: Mention, exact: str, end: int) -> list[Claim]:
    """All gains over all losses: "its gains were 1.36 times its losses"."""
    decimals = len(mention.text.split(" ", maxsplit=1)[0].partition(".")[2])
    held = Figure(mention.value, 10.0**-decimals, "", "", exact)
    kinds = [m for m in reading.mentions if m.value in ("winners", "losers", "profit", "total_r")]
    reading.use(mention, *kinds)
    return reading.claims(
        "comparison", (mention.start, end), reading.of(*mention.place), "figure",
        questions=("profit_factor",), value=held,
    )  # fmt: skip
