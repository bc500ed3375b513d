"""Claims of parts of a whole in words: all, most, half, a third or none of the trades."""

import re
from dataclasses import replace

from services.deliberation.claim import Claim
from services.deliberation.layout import SUBJECT_KINDS, Mention
from services.deliberation.member_claims import claims_of_grade, members_told, told_behind
from services.deliberation.noun_phrases import NUMBERS, Phrase, filter_of, side_of
from services.deliberation.numerals import (
    PORTIONS,
    Figure,
    Portion,
    bound_portion,
    exactness,
    share_of,
    unit_of,
)
from services.deliberation.part_claims import OWN, WHOLES, narrow, whole_of
from services.deliberation.sentence_reading import MEMBERS, SentenceReading, date_subjects
from services.evidence.facts import Subject
from services.evidence.observed import AT_THE_END

SCOPE = re.compile(r"\b(?:of|across|over|in|for|from|among|after|with|by|on|at|below|above|to)\s*$", re.I)
ADVERB = re.compile(r"mostly|predominantly|mainly|largely|usually|typically|always", re.I)
HAPPENED = re.compile(
    r"\s*(?:(?:were|was|are|is|all|had|been|have|has) )*(?:took place|taken|made|came|come|happened"
    r"|occurred|fell|opened|closed"
    r"|entered|exited|from|in|between|before|after|since)\b",
    re.I,
)
NEVER_TRADED = re.compile(r"never (?:once |been |actually )*(?:traded|used|taken|active|fired)", re.I)
OF_IT = re.compile(r"\s*(?:of )?(?:it|that|this|which (?:came|was|were|stemmed))\b", re.I)
THOSE = re.compile(r"\b(?:them|which|those|these|whom|all|none)\b", re.I)
THINGS = re.compile(
    r"all (?:of )?(?:(?:these|those|the|its|our) )*(?:figures|numbers|this|that|values|of this|told)\b"
    r"|all in all\b",
    re.I,
)
NEITHER = re.compile(r"neither\b(?=.*\bnor\b)", re.I | re.S)
OF_ALL = re.compile(
    r"\b(?:best|worst|strongest|weakest|highest|lowest|largest|smallest|most \w+|first"
    r"|last)(?: [a-z-]+){0,2} of\s*$",
    re.I,
)
ZERO = Figure(0.0, 1.0, "", "", worded=True)


def members(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """All, most or none of the playbooks, symbols, regimes or clusters."""
    phrase = reading.nouns.behind(index)
    if mention.value == "none" and phrase.head == "trades":
        return _limit(reading, index, mention, phrase, (mention.start, phrase.end or mention.end))
    return share(reading, index, mention) if phrase.head in MEMBERS else []


def share(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """All, most, half, a third or none of the trades, of the playbooks, of a result."""
    if reading.is_used(mention):
        return []
    portion, start = _portion(reading, index, mention)
    phrase = reading.nouns.behind(index)
    number = reading.layout.next(index)
    if phrase.head is None and number is not None and whole_of(reading, index + 1) == index:
        phrase = reading.nouns.behind(index + 1)
    if phrase.head is None and phrase.end is None:
        phrase = _counted_further(reading, index)
    if ADVERB.fullmatch(mention.text):
        phrase = Phrase()
    if OF_IT.match(reading.layout.text, mention.end) and (amount := _amount_before(reading, mention)):
        return _part_of_amount(reading, mention, amount, portion)
    if NEITHER.match(reading.layout.text, mention.start):
        return _of_neither(reading, index, mention)
    place = (start, phrase.end or mention.end)
    negated = reading.layout.is_negated(start)
    heads = re.fullmatch(r"\W*of ", reading.layout.text[: mention.start], re.I)
    of_all = heads is not None and reading.clause(mention, "extreme")
    if mention.value == "all" and (of_all or OF_ALL.search(reading.layout.lead(mention.start))):
        reading.use(mention)
        return []
    if phrase.head in MEMBERS:
        return members_told(reading, mention, phrase, portion, place, negated)
    limit = _limit(reading, index, mention, phrase, place) or _zero_of(reading, mention, phrase, place)
    if limit or (limit := _of_a_list(reading, index, mention, phrase)):
        return limit
    told = _read_told(reading, index, phrase)
    if phrase.head == "trades":
        phrase, told = narrow(reading, index, phrase, told)
    grade = next((m for m in told_behind(reading, index, phrase) if m.kind == "grade"), None)
    if told.filters.is_empty and grade is not None:
        return claims_of_grade(reading, mention, grade, portion, negated)
    subjects = reading.of(start, mention.end, phrase.end)
    base = tuple(subject.merge(phrase.filters) for subject in subjects[0])
    if not told.filters.is_empty:
        reading.use(mention)
        reading.used |= told.used | phrase.used
        reading.last_portion = base[0], told.filters
        return reading.claims(
            "quantifier", place, (base, subjects[1]), "portion", portion=portion, filters=told.filters,
            negated=negated, every=reading.list_beside(subjects[0][0]) if phrase.head is None else (),
        )  # fmt: skip
    return _without_predicate(reading, mention, phrase, portion, place, (base, subjects[1]), negated)


def _amount_before(reading: SentenceReading, mention: Mention) -> Mention | None:
    """The result in R or money that a sentence told last."""
    told = (m for m in reversed(reading.mentions) if m.end <= mention.start and m.kind == "number")
    return next((m for m in told if unit_of(m.value) in ("r", "money")), None)


def _part_of_amount(
    reading: SentenceReading, mention: Mention, amount: Mention, portion: Portion
) -> list[Claim]:
    """How much of a result is of a side, a symbol or a time: "lost 3.6R, most of that on its shorts"."""
    whole = reading.of(amount.start, amount.end)[0][0]
    after = reading.subjects.after(mention.end)
    reading.use(mention)
    place = (mention.start, mention.end if after is None else after.end)
    if after is None or whole.fields & after.own.fields - {"basis"}:
        return reading.claims("quantifier", place, ((Subject(),), 0.8), "unread")
    subjects = date_subjects((whole.merge(after.own),))
    return reading.claims(
        "quantifier", place, (subjects, 0.9), "part", portion=portion, filters=whole,
        questions=("total_r" if unit_of(amount.value) == "r" else "pnl",),
        negated=reading.layout.is_negated(mention.start),
    )  # fmt: skip


def _of_a_list(reading: SentenceReading, index: int, mention: Mention, phrase: Phrase) -> list[Claim]:
    """Both, all or neither of the names of a list earned or lost: no count of trades."""
    told = next((m for m in told_behind(reading, index, phrase) if m.kind == "direction"), None)
    if phrase.head is not None or told is None or mention.value not in ("all", "none"):
        return []
    every = reading.list_beside(reading.of(told.start, told.end)[0][0])
    if not every:
        return []
    reading.use(mention, told)
    return reading.claims(
        "direction", (mention.start, told.end), (every, 1.0), "direction", every=every,
        questions=("mean_r",), value=told.value,
        negated=(mention.value == "none") != reading.layout.is_negated(mention.start),
    )  # fmt: skip


def _of_neither(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """Neither of two earned or lost; what else is denied of two is not read."""
    listed = _of_a_list(reading, index, mention, Phrase())
    reading.use(mention)
    place = mention.place
    return listed or [reading.claim("quantifier", place, ((Subject(),), 0.8), "unread")]


def _limit(
    reading: SentenceReading, index: int, mention: Mention, phrase: Phrase, place: tuple[int, int]
) -> list[Claim]:
    """What no trade went beyond: "no position was kept longer than 20 bars", "no trade lost more than 3R"."""
    behind = told_behind(reading, index, phrase)
    figure = next((m for m in behind if m.kind in NUMBERS), None)
    if mention.value != "none" or phrase.head != "trades" or figure is None:
        return []
    bound = reading.figures.bound_before(reading.index(figure))
    unit = unit_of(figure.value)
    head = reading.nouns.behind(reading.index(figure))
    sides = [side for m in behind if (side := side_of(m)) is not None]
    if bound is None or unit not in ("r", "") or unit == "" and head.head not in ("bars", "days"):
        return []
    held, relation = figure.value, "<=" if bound.value == ">" else ">="
    if unit == "r":
        is_loss = sides[:1] == ["lost"]
        if bound.value == "<" and (is_loss or not sides):
            return []
        question = "worst_r" if is_loss or bound.value == "<" else "best_r"
        held, relation = (held.negate(), ">=") if is_loss else (held, relation)
    else:
        question = ("hold" if head.head == "bars" else "days") + ("_max" if bound.value == ">" else "_min")
    reading.use(mention, figure, bound, *(m for m in behind if side_of(m)))
    reading.used |= phrase.used | head.used
    subjects = reading.of(mention.start, mention.end, phrase.end)
    return reading.claims(
        "quantifier", place, subjects, "figure", questions=(question,), value=held, relation=relation
    )


def _zero_of(
    reading: SentenceReading, mention: Mention, phrase: Phrase, place: tuple[int, int]
) -> list[Claim]:
    """None of what the run as a whole counts: "no report was written"."""
    if mention.value != "none" or phrase.head not in (*AT_THE_END, "reports", "recommendations"):
        return []
    if re.search(r"[;,:]", reading.layout.text[mention.end : phrase.end]):
        return []
    reading.use(mention)
    reading.used |= phrase.used
    subjects = reading.of(place[0], mention.end, phrase.end)
    return reading.claims("count", place, subjects, "figure", questions=(str(phrase.head),), value=ZERO)


def _portion(reading: SentenceReading, index: int, mention: Mention) -> tuple[Portion, int]:
    """What a quantifier or a fraction says, with the bound before it, and where the words begin."""
    lead = reading.layout.lead(mention.start)
    exact = exactness(lead)
    before = reading.layout.previous(index)
    bound = ""
    start = mention.start
    is_bound = before is not None and before.kind == "bound" and mention.value not in ("all", "none", "some")
    if before is not None and is_bound and reading.layout.is_near(before.end, mention.start):
        bound, start = before.value, before.start
        reading.use(before)
    if mention.kind == "fraction":
        return bound_portion(share_of(mention.value, loose=bool(exact)), bound, exact), start
    if mention.value == "half" and (bound or exact in ("under", "over")):
        return bound_portion(Portion(0.5, 0.5), bound, exact), start
    return PORTIONS[mention.value], start


def _counted_further(reading: SentenceReading, index: int) -> Phrase:
    """The noun of a quantifier with names or a number between: "half of squeeze breakout's twenty trades"."""
    mentions = reading.mentions
    for number in range(index + 1, min(index + 4, len(mentions))):
        if mentions[number].kind in NUMBERS:
            return reading.nouns.behind(number)
        if mentions[number].kind not in SUBJECT_KINDS:
            break
    return Phrase()


def _read_told(reading: SentenceReading, index: int, phrase: Phrase) -> Phrase:
    """What is told of the quantified trades: behind the noun, and else by the verb before the quantifier."""
    filters, used = Subject(), set[int]()
    for m in told_behind(reading, index, phrase):
        if m.kind in NUMBERS and m.value.unit:
            break
        item = filter_of(m)
        if item is not None:
            filters, used = item, {m.start}
            break
    before = reading.layout.previous(index)
    while before is not None and before.kind in ("bound", "only", "extreme"):
        before = reading.layout.previous(reading.index(before))
    if filters.is_empty and before is not None:
        item = filter_of(before)
        joined = reading.layout.between(before.end, reading.mentions[index].start)
        plain = "," not in reading.layout.text[before.end : reading.mentions[index].start]
        if item is not None and plain and len(joined) <= 4:
            filters, used = item, {before.start}
    return Phrase(None, filters, None, frozenset(used))


def _without_predicate(
    reading: SentenceReading,
    mention: Mention,
    phrase: Phrase,
    portion: Portion,
    place: tuple[int, int],
    subjects: tuple[tuple[Subject, ...], float],
    negated: bool,
) -> list[Claim]:
    """A quantifier that tells nothing of its noun: "no trade in FB", "most of the profit", "in all"."""
    if phrase.head == "trades" and mention.value == "none":
        reading.use(mention)
        reading.used |= phrase.used
        times = [m for m in reading.mentions if m.kind in ("date", "period")]
        reading.use(*(m for m in times if m.value == subjects[0][0].period))  # of no trade it is no day
        every = reading.list_beside(reading.of(mention.start, mention.end, phrase.end)[0][0])
        return reading.claims("quantifier", place, subjects, "absent", negated=negated, every=every)
    if NEVER_TRADED.match(reading.layout.text, mention.start) and not all(s.is_empty for s in subjects[0]):
        reading.use(mention)
        subjects = _with_object(reading, mention, subjects)
        return reading.claims("quantifier", place, subjects, "absent", negated=negated)
    told = _read_named(reading, phrase, mention) if phrase.head == "trades" else None
    if told is not None and mention.value != "some":
        reading.use(mention)
        reading.used |= phrase.used
        base = tuple(subject.without(*told.fields) for subject in subjects[0]), subjects[1]
        what = {"portion": portion, "filters": told, "negated": negated}
        return reading.claims("quantifier", place, base, "portion", **what)
    asked = reading.layout.next(reading.index(mention))
    if mention.value == "none" and asked is not None and asked.value == "detectable_r":
        reading.use(mention, asked)
        place = (mention.start, asked.end)
        return reading.claims("quantifier", place, subjects, "unanswered", questions=("detectable_r",))
    if among := _among_those_counted(reading, mention, portion, place, negated):
        return among
    before = reading.layout.previous(reading.index(mention))
    is_of_all = before is not None and before.kind == "extreme" and mention.value == "all"
    if is_of_all or THINGS.match(reading.layout.text, mention.start) or mention.text.casefold() == "both":
        reading.use(mention)
        return []
    if SCOPE.search(reading.layout.lead(place[0])) and mention.value in ("all", "some"):
        reading.use(mention)
        reading.used |= phrase.used if phrase.head == "trades" and phrase.filters.is_empty else frozenset()
        return []
    of_none = mention.text.casefold() in ("no", "nothing", "never")
    if of_none or mention.value == "some" and phrase.head is None:
        return []
    question = WHOLES.get(str(phrase.head))
    if question is None and reading.counted is not None and phrase.head is None:
        question = "trades"
    behind = told_behind(reading, reading.index(mention), Phrase())
    whole = next((m for m in behind if m.value in WHOLES), None)
    if question is None and phrase.head is None and whole is not None:
        question, phrase = WHOLES[str(whole.value)], replace(phrase, used=frozenset({whole.start}))
    plain = tuple(subject.without(*phrase.filters.fields) for subject in subjects[0])
    if OWN.search(reading.layout.text[place[0] : place[1]]):
        return []
    if question is None or all(subject.is_empty for subject in plain) and phrase.filters.is_empty:
        return []
    reading.use(mention)
    reading.used |= phrase.used
    return reading.claims(
        "quantifier", place, (plain, subjects[1]), "part", portion=portion,
        questions=(question, "trades") if reading.counted is not None else (question,),
        filters=phrase.filters, negated=negated,
    )  # fmt: skip


def _read_named(reading: SentenceReading, phrase: Phrase, mention: Mention) -> Subject | None:
    """The name or the time that a verb behind the noun tells of the trades: "all took place in 2003"."""
    end = phrase.end or mention.end
    clause = reading.layout.clause_of(mention.start)
    for group in reading.subjects.groups:
        same = group.start >= end and reading.layout.clause_of(group.start) == clause
        if same and HAPPENED.match(reading.layout.text, end):
            return group.own
    return None


def _with_object(
    reading: SentenceReading, mention: Mention, subjects: tuple[tuple[Subject, ...], float]
) -> tuple[tuple[Subject, ...], float]:
    """The subjects with the name behind a verb: "squeeze_breakout never traded GOOG"."""
    after = reading.subjects.after(mention.end)
    own = Subject() if after is None else after.own
    return tuple(s if s.fields & own.fields else s.merge(own) for s in subjects[0]), subjects[1]


def _among_those_counted(
    reading: SentenceReading, mention: Mention, portion: Portion, place: tuple[int, int], negated: bool
) -> list[Claim]:
    """Of the trades that were counted before, how many are of a name: "all of them in mean_reversion"."""
    _, right = reading.layout.piece(*mention.place)
    after = reading.subjects.after(mention.end)
    words = reading.layout.text[mention.start : right]
    if reading.counted is None or after is None or after.start >= right or not THOSE.search(words):
        return []
    reading.use(mention)
    return reading.claims(
        "quantifier", place, ((reading.counted,), 0.9), "portion", portion=portion, filters=after.own,
        negated=negated,
    )  # fmt: skip
