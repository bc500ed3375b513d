"""Claims of parts of a whole: all, most, half, none, a third, 17 of 31; of trades and of their playbooks."""

import re
from dataclasses import replace
from typing import Any

from services.deliberation.claim import Claim
from services.deliberation.figures import side_of, unit_of
from services.deliberation.mentions import Mention
from services.deliberation.noun_phrases import NUMBERS, Phrase, filter_of
from services.deliberation.numerals import (
    PORTIONS,
    Figure,
    Portion,
    bounded,
    exactness,
    share_of,
)
from services.deliberation.said_of import SUBJECT_KINDS
from services.deliberation.sentence_reading import MEMBERS, SentenceReading
from services.evidence.facts import Subject

OF = re.compile(
    r"\s*(?:(?:trades|positions|times|winners|losers) )?(?:out of|of|in) (?:(?:the|its|their|all|his|these"
    r"|those|a|total) )*\s*|\s*/\s*",
    re.I,
)
SCOPE = re.compile(r"\b(?:of|across|over|in|for|from|among|after|with|by|on|at|below|above|to)\s*$", re.I)
SHORT_OF = re.compile(r"\b(?:below|under|short of|far from|less than)(?: being)?\s*$", re.I)
ABOVE_GRADE = re.compile(r"\b(?:better|above|higher|more|beyond|stronger)(?: than)?(?: being)?\s*$", re.I)
EXCEPT = re.compile(r"\s*,?\s*(?:except(?: for)?|but|other than|apart from|save|bar)(?: the)? ", re.I)
ADVERB = re.compile(r"mostly|predominantly|mainly|largely|usually|typically|always|rarely|seldom", re.I)
HAPPENED = re.compile(
    r"\s*(?:(?:were|was|are|is|all|had|been|have|has) )*(?:took place|taken|made|came|come|happened"
    r"|occurred|fell|opened|closed"
    r"|entered|exited|from|in|between|before|after|since)\b",
    re.I,
)
NEVER_TRADED = re.compile(r"never (?:once |been |actually )*(?:traded|used|taken|active|fired)", re.I)
THOSE = re.compile(r"\b(?:them|which|those|these|whom|all|none)\b", re.I)
THINGS = re.compile(
    r"all (?:of )?(?:(?:these|those|the|its|our) )*(?:figures|numbers|this|that|values|of this|told)\b"
    r"|all in all\b",
    re.I,
)
OF_ALL = re.compile(
    r"\b(?:best|worst|strongest|weakest|highest|lowest|largest|smallest|most \w+|first"
    r"|last)(?: [a-z-]+){0,2} of\s*$",
    re.I,
)
OWN = re.compile(r"\b(?:its|their)\b", re.I)
PERCENT_OF = re.compile(r"\s*of (?:(?:the|all|run's|overall|total|whole|these|those) )*(?:run's )?", re.I)
WHOLES = {"trades": "trades", "total_r": "total_r", "profit": "total_r", "pnl": "pnl", "fees": "fees"}
MEMBER_GRADE = frozenset({"clusters", "playbooks"})


def whole_of(reading: SentenceReading, index: int) -> int | None:
    """Index of the part, number or quantifier, whose whole the number at an index is: "22 of its 60"."""
    mentions = reading.mentions
    place = mentions[index].start
    for number in range(index - 1, max(-1, index - 4), -1):
        before = mentions[number]
        if before.kind in SUBJECT_KINDS or before.kind == "side":
            if reading.layout.text[before.end : place].strip(" ").casefold() not in ("", "'s", "’s", "'"):
                return None
            place = before.start
            continue
        between = re.sub(r"\s+", " ", reading.layout.text[before.end : place])
        if before.kind in ("quantifier", "fraction") and before.value != "some":
            return (
                number
                if re.fullmatch(r"\s*(?:of )?(?:(?:the|its|their|his|those|these) )*", between)
                else None
            )
        if before.kind in NUMBERS:
            return number if OF.fullmatch(between) else None
        if before.kind == "measure" and filter_of(before) is not None:
            place = before.start
            continue
        return None
    return None


def _whole_behind(reading: SentenceReading, index: int) -> int | None:
    """Index of the number whose part the number at an index is."""
    mentions = reading.mentions
    near = range(index + 1, min(index + 5, len(mentions)))
    return next((i for i in near if mentions[i].kind in NUMBERS and whole_of(reading, i) == index), None)


def part_of_number(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """The part in "17 of 31 trades", with its whole."""
    whole = _whole_behind(reading, index)
    if whole is None or unit_of(mention.value) not in ("", "share"):
        return []
    total = reading.mentions[whole]
    phrase = reading.nouns.behind(whole)
    if phrase.head in MEMBERS:
        return []
    if unit_of(total.value) == "money":
        return _part_of_money(reading, mention, total)
    reading.use(total)
    told = _predicate(reading, whole, phrase, mention)
    subjects, sure = reading.of(mention.start, total.end, phrase.end)
    base = tuple(subject.joined(phrase.filters) for subject in subjects)
    share = unit_of(mention.value) == "share"
    portion = Portion(-1, -1, int(mention.value.value)) if not share else _percent(mention.value)
    place = (mention.start, mention.end)
    reading.counted = base[0].joined(told.filters)
    if told.filters.is_empty:
        if phrase.filters.is_empty and all(subject.is_empty for subject in subjects):
            return [reading.claim("count", place, (subjects, sure), "unread")]
        return [
            reading.claim(
                "count", place, (base, sure), "part", questions=("trades",), portion=portion,
                value=total.value, filters=phrase.filters,
            )
        ]  # fmt: skip
    reading.used |= told.used | phrase.used
    return [
        reading.claim(
            "count", place, (base, sure), "portion", portion=portion, filters=told.filters, value=total.value,
            negated=reading.layout.is_negated(mention.start),
        )
    ]  # fmt: skip


def _part_of_money(reading: SentenceReading, mention: Mention, total: Mention) -> list[Claim]:
    """Both figures of "1,406 of 2,702 dollars": of the subject, and of the run."""
    found = [m for m in reading.mentions if m.value in ("fees", "pnl") and m.end <= mention.start]
    if not found:
        return []
    reading.use(mention, total, found[-1])
    questions = (str(found[-1].value),)
    subjects = reading.of(mention.start, mention.end)
    whole = ((Subject(),), 1.0)
    return [
        reading.claim("number", (m.start, m.end), of, "figure", questions=questions, value=m.value)
        for m, of in ((mention, subjects), (total, whole))
    ]


def _percent(held: Figure) -> Portion:
    margin = held.step * 0.5000001 / 100
    return Portion(held.value / 100 - margin, held.value / 100 + margin)


def _predicate(reading: SentenceReading, whole: int, phrase: Phrase, part: Mention) -> Phrase:
    """What is told of a part: behind its whole, before it, or in the clause around a parenthesis."""
    mentions = reading.mentions
    start = part.start
    behind = [
        m
        for m in mentions[whole + 1 :]
        if m.start not in phrase.used and (phrase.end is None or m.start >= phrase.end)
    ]
    stop = next(
        (m.start for m in behind if m.kind in NUMBERS or m.kind == "quantifier"), len(reading.layout.text)
    )
    right = reading.layout.piece(start, mentions[whole].end)[1]
    near = [m for m in behind if m.start < min(stop, right)]
    before = [m for m in mentions[: reading.index(part)] if m.end <= start]
    parenthesised = reading.layout.lead(start).rstrip().endswith(("(", ","))
    further = [m for m in behind if m.start < stop][:2] if parenthesised else []
    for group in (near, list(reversed(before))[:3], further, list(reversed(before))):
        told = next(((m, f) for m in group if (f := filter_of(m)) is not None), None)
        if told is not None and not told[1].fields & phrase.filters.fields:
            return Phrase(None, told[1], None, frozenset({told[0].start}))
    return Phrase()


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
    place = (start, phrase.end or mention.end)
    negated = reading.layout.is_negated(start)
    if mention.value == "all" and OF_ALL.search(reading.layout.lead(mention.start)):
        reading.use(mention)
        return []
    if phrase.head in MEMBERS:
        return _members(reading, mention, phrase, portion, place, negated)
    limit = _limit(reading, index, mention, phrase, place)
    if limit:
        return limit
    listed = _of_a_list(reading, index, mention, phrase)
    if listed:
        return listed
    told = _told(reading, index, phrase)
    grade = next((m for m in _behind(reading, index, phrase) if m.kind == "grade"), None)
    if told.filters.is_empty and grade is not None:
        return _graded(reading, mention, grade, portion, negated)
    subjects = reading.of(start, mention.end, phrase.end)
    base = tuple(subject.joined(phrase.filters) for subject in subjects[0])
    if not told.filters.is_empty:
        reading.use(mention)
        reading.used |= told.used | phrase.used
        return [
            reading.claim(
                "quantifier", place, (base, subjects[1]), "portion", portion=portion, filters=told.filters,
                negated=negated, every=_every(reading, subjects[0], phrase),
            )
        ]  # fmt: skip
    return _without_predicate(reading, mention, phrase, portion, place, (base, subjects[1]), negated)


def _of_a_list(reading: SentenceReading, index: int, mention: Mention, phrase: Phrase) -> list[Claim]:
    """Both, all or neither of the names of a list earned or lost: no count of trades."""
    told = next((m for m in _behind(reading, index, phrase) if m.kind == "direction"), None)
    if phrase.head is not None or told is None or mention.value not in ("all", "none"):
        return []
    every = reading.listed(reading.of(told.start, told.end)[0][0])
    if not every:
        return []
    reading.use(mention, told)
    return [
        reading.claim(
            "direction", (mention.start, told.end), (every, 1.0), "direction", every=every,
            questions=("mean_r",), value=told.value,
            negated=(mention.value == "none") != reading.layout.is_negated(mention.start),
        )
    ]  # fmt: skip


def _limit(
    reading: SentenceReading, index: int, mention: Mention, phrase: Phrase, place: tuple[int, int]
) -> list[Claim]:
    """What no trade went beyond: "no position was kept longer than 20 bars", "no trade lost more than 3R"."""
    behind = _behind(reading, index, phrase)
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
        question = "worst_r" if is_loss else "best_r"
        held, relation = (held.turned(), ">=") if is_loss else (held, relation)
    else:
        question = ("hold" if head.head == "bars" else "days") + ("_max" if bound.value == ">" else "_min")
    reading.use(mention, figure, bound, *(m for m in behind if side_of(m)))
    reading.used |= phrase.used | head.used
    subjects = reading.of(mention.start, mention.end, phrase.end)
    return [
        reading.claim(
            "quantifier", place, subjects, "figure", questions=(question,), value=held, relation=relation
        )
    ]


def _every(reading: SentenceReading, subjects: tuple[Subject, ...], phrase: Phrase) -> tuple[Subject, ...]:
    """The subjects of a list of which each is meant, where nothing is counted: "neither A nor B"."""
    return reading.listed(subjects[0]) if phrase.head is None else ()


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
        return bounded(share_of(mention.value, loose=bool(exact)), bound, exact), start
    if mention.value == "half" and (bound or exact in ("under", "over")):
        return bounded(Portion(0.5, 0.5), bound, exact), start
    return PORTIONS[mention.value], start


def _behind(reading: SentenceReading, index: int, phrase: Phrase) -> list[Mention]:
    """The mentions of the clause behind a quantifier's noun, up to the next number or quantifier."""
    mention = reading.mentions[index]
    clause = reading.layout.clause_of(mention.start)
    found = []
    for m in reading.mentions[index + 1 :]:
        if reading.layout.clause_of(m.start) != clause or m.kind == "quantifier":
            break
        if m.start in phrase.used or phrase.end is not None and m.start < phrase.end:
            continue
        found.append(m)
    return found


def _counted_further(reading: SentenceReading, index: int) -> Phrase:
    """The noun of a quantifier with names or a number between: "half of squeeze breakout's twenty trades"."""
    mentions = reading.mentions
    for number in range(index + 1, min(index + 4, len(mentions))):
        if mentions[number].kind in NUMBERS:
            return reading.nouns.behind(number)
        if mentions[number].kind not in SUBJECT_KINDS:
            break
    return Phrase()


def _told(reading: SentenceReading, index: int, phrase: Phrase) -> Phrase:
    """What is told of the quantified trades: behind the noun, and else by the verb before the quantifier."""
    filters, used = Subject(), set()
    for m in _behind(reading, index, phrase):
        if m.kind in NUMBERS and m.value.unit:
            break
        item = filter_of(m)
        if item is not None and not item.fields & filters.fields:
            filters = filters.joined(item)
            used.add(m.start)
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
        return [reading.claim("quantifier", place, subjects, "absent", negated=negated)]
    if NEVER_TRADED.match(reading.layout.text, mention.start) and not all(s.is_empty for s in subjects[0]):
        reading.use(mention)
        subjects = _with_object(reading, mention, subjects)
        return [reading.claim("quantifier", place, subjects, "absent", negated=negated)]
    told = _told_by_name(reading, phrase, mention) if phrase.head == "trades" else None
    if told is not None and mention.value != "some":
        reading.use(mention)
        reading.used |= phrase.used
        base = tuple(subject.without(*told.fields) for subject in subjects[0]), subjects[1]
        return [
            reading.claim(
                "quantifier", place, base, "portion", portion=portion, filters=told, negated=negated
            )
        ]
    asked = reading.layout.next(reading.index(mention))
    if mention.value == "none" and asked is not None and asked.value == "detectable_r":
        reading.use(mention, asked)
        place = (mention.start, asked.end)
        return [reading.claim("quantifier", place, subjects, "unanswered", questions=("detectable_r",))]
    among = _among_those_counted(reading, mention, portion, place, negated)
    if among:
        return among
    before = reading.layout.previous(reading.index(mention))
    is_of_all = before is not None and before.kind == "extreme" and mention.value == "all"
    if is_of_all or THINGS.match(reading.layout.text, mention.start) or mention.text.casefold() == "both":
        reading.use(mention)
        return []
    if SCOPE.search(reading.layout.lead(place[0])) and mention.value in ("all", "some", "none"):
        reading.use(mention)
        reading.used |= phrase.used if phrase.head == "trades" and phrase.filters.is_empty else frozenset()
        return []
    if (
        mention.value == "some"
        and phrase.head is None
        or mention.text.casefold() in ("no", "nothing", "never")
    ):
        return []
    question = WHOLES.get(str(phrase.head))
    if question is None and reading.counted is not None and phrase.head is None:
        question = "trades"
    whole = next((m for m in _behind(reading, reading.index(mention), Phrase()) if m.value in WHOLES), None)
    if question is None and phrase.head is None and whole is not None:
        question, phrase = WHOLES[str(whole.value)], replace(phrase, used=frozenset({whole.start}))
    plain = tuple(subject.without(*phrase.filters.fields) for subject in subjects[0])
    if OWN.search(reading.layout.text[place[0] : place[1]]):
        return []
    if question is None or all(subject.is_empty for subject in plain) and phrase.filters.is_empty:
        return []
    reading.use(mention)
    reading.used |= phrase.used
    return [
        reading.claim(
            "quantifier", place, (plain, subjects[1]), "part", portion=portion,
            questions=(question, "trades") if reading.counted is not None else (question,),
            filters=phrase.filters, negated=negated,
        )
    ]  # fmt: skip


def _told_by_name(reading: SentenceReading, phrase: Phrase, mention: Mention) -> Subject | None:
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
    if after is None:
        return subjects
    return tuple(
        s.joined(after.own) if not s.fields & after.own.fields else s for s in subjects[0]
    ), subjects[1]


def _among_those_counted(
    reading: SentenceReading, mention: Mention, portion: Portion, place: tuple[int, int], negated: bool
) -> list[Claim]:
    """Of the trades that were counted before, how many are of a name: "all of them in mean_reversion"."""
    _, right = reading.layout.piece(mention.start, mention.end)
    after = reading.subjects.after(mention.end)
    words = reading.layout.text[mention.start : right]
    if reading.counted is None or after is None or after.start >= right or not THOSE.search(words):
        return []
    reading.use(mention)
    return [
        reading.claim(
            "quantifier", place, ((reading.counted,), 0.9), "portion", portion=portion, filters=after.own,
            negated=negated,
        )
    ]  # fmt: skip


def percent_part(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """A percentage of a whole result, or of all trades: "72 % of the total R"."""
    following = reading.layout.next(index)
    if unit_of(mention.value) != "share":
        return []
    ends = following is None or following.start >= reading.layout.piece(mention.start, mention.end)[1]
    if ends and reading.last_part is not None and not reading.layout.beside(mention, "measure", "result"):
        questions, filters = reading.last_part
        subjects = reading.of(mention.start, mention.end)
        return [
            reading.claim(
                "percent", (mention.start, mention.end), subjects, "part", questions=questions,
                filters=filters, portion=_percent(mention.value),
            )
        ]  # fmt: skip
    if following is None:
        return []
    if following.kind == "quantifier" and following.value == "all":
        following = reading.layout.next(index + 1)
    if following is None or following.kind != "measure":
        return []
    between = reading.layout.text[mention.end : following.start]
    told = filter_of(following)
    question = "trades" if told is not None else WHOLES.get(str(following.value))
    if following.text.casefold().startswith("of "):
        between += "of "
    if question is None or not PERCENT_OF.fullmatch(between) or OWN.search(between):
        return []
    if question == "trades" and told is None and not reading.nouns.predicate(index).filters.is_empty:
        return []
    subjects = reading.of(mention.start, following.end)
    if all(subject.is_empty for subject in subjects[0]):
        return []
    reading.last_part = (question,), told or Subject()
    reading.use(
        mention, following, *(m for m in reading.mentions if mention.end <= m.start < following.start)
    )
    return [
        reading.claim(
            "percent", (mention.start, following.end), subjects, "part", questions=(question,),
            portion=_percent(mention.value), filters=told or Subject(),
            negated=reading.layout.is_negated(mention.start),
        )
    ]  # fmt: skip


def members_share(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """A number of the playbooks, symbols or regimes: "four of the five playbooks earned money"."""
    if unit_of(mention.value) or whole_of(reading, index) is not None:
        return []
    phrase = reading.nouns.behind(index)
    whole = _whole_behind(reading, index)
    if whole is not None:
        phrase = reading.nouns.behind(whole)
    if phrase.head is None and side_of_next(reading, index):
        earlier = [m for m in reading.mentions[:index] if m.kind == "measure" and m.value in MEMBERS]
        phrase = Phrase(str(earlier[-1].value)) if earlier else phrase
    if phrase.head not in MEMBERS:
        return []
    portion = Portion(-1, -1, int(mention.value.value))
    bound = reading.figures.bound_before(index)
    place = (mention.start, phrase.end or mention.end)
    if bound is not None:
        return []
    found = _members(
        reading,
        mention,
        phrase,
        portion,
        place,
        reading.layout.is_negated(mention.start),
        index=whole or index,
    )
    if found and whole is None:
        return found
    return found


def side_of_next(reading: SentenceReading, index: int) -> bool:
    """Whether a number stands right before a gained or lost: "four earned money and one lost"."""
    following = reading.layout.next(index)
    if following is None or side_of(following) is None:
        return False
    return reading.layout.is_near(reading.mentions[index].end, following.start)


def _members(
    reading: SentenceReading,
    mention: Mention,
    phrase: Phrase,
    portion: Portion,
    place: tuple[int, int],
    negated: bool,
    *,
    index: int | None = None,
) -> list[Claim]:
    """Some of the members of a kind, by what is told of them."""
    at = reading.index(mention) if index is None else index
    behind = _behind(reading, at, phrase)
    told = next((m for m in behind if side_of(m) is not None or m.kind in ("grade", "zero")), None)
    before = reading.layout.previous(reading.index(mention))
    if (
        told is None
        and before is not None
        and side_of(before)
        and reading.layout.is_near(before.end, mention.start)
    ):
        told = before
    excepted = _excepted(reading, phrase, mention)
    what: dict[str, Any] = {
        "other": excepted,
        "portion": portion,
        "domain": MEMBERS[str(phrase.head)],
        "negated": negated,
    }
    figure = next((m for m in behind if m.kind in NUMBERS), None)
    if figure is not None and (told is None or figure.start < told.start) and not reading.is_used(figure):
        found = reading.figures.reading(reading.index(figure))
        bound = reading.figures.bound_before(reading.index(figure))
        if found.questions and (bound is not None or mention.value == "none"):
            reading.use(mention, figure, *([bound] if bound else []))
            reading.used |= found.used | phrase.used
            what |= {"questions": found.questions, "value": figure.value, "filters": found.filters}
            relation = bound.value if bound is not None else ">="
            return [
                reading.claim("quantifier", place, ((Subject(),), 1.0), "members", relation=relation, **what)
            ]
    if told is None:
        return []
    if told.kind == "grade" and SHORT_OF.search(reading.layout.lead(told.start)):
        what["portion"] = {PORTIONS["all"]: PORTIONS["none"], PORTIONS["none"]: PORTIONS["all"]}.get(
            portion, portion
        )
    reading.use(mention, told)
    reading.used |= phrase.used
    subjects, sure = reading.of(place[0], place[1])
    named = tuple(s.without(MEMBERS[str(phrase.head)]) if phrase.head != "clusters" else s for s in subjects)
    above = told.kind == "grade" and ABOVE_GRADE.search(reading.layout.lead(told.start)) is not None
    reading.use(*(m for m in behind if above and m.kind in ("bound", "compared")))
    if told.kind == "zero":
        what["domain"] = "cluster" if phrase.head == "clusters" else "playbook"
    value = (
        ("zero", told.value)
        if told.kind == "zero"
        else ("grade_above" if above else "grade", told.value)
        if told.kind == "grade"
        else ("direction", side_of(told))
    )
    within = named if told.kind == "grade" else tuple(Subject() for _ in named[:1])
    return [
        reading.claim(
            "quantifier" if mention.kind != "number" and mention.kind != "count_word" else "count",
            place,
            (within, sure),
            "members",
            value=value,
            **what,
        )
    ]


def _excepted(reading: SentenceReading, phrase: Phrase, mention: Mention) -> Subject | None:
    """Whom "every playbook except ..." leaves out."""
    found = EXCEPT.match(reading.layout.text, phrase.end or mention.end)
    if found is None:
        return None
    own = next((group.own for group in reading.subjects.groups if group.start == found.end()), Subject())
    named = {name: str(getattr(own, name)).removeprefix("!") for name in own.fields & set(MEMBERS.values())}
    found_subject = Subject()
    for name, value in named.items():
        found_subject = found_subject.having(name, value)
    return found_subject if named else None


def _graded(
    reading: SentenceReading, mention: Mention, grade: Mention, portion: Portion, negated: bool
) -> list[Claim]:
    """All, some or none, where no noun is named, of a grade: "nothing is proven", "none of them is"."""
    if SHORT_OF.search(reading.layout.lead(grade.start)):
        portion = {PORTIONS["all"]: PORTIONS["none"], PORTIONS["none"]: PORTIONS["all"]}.get(portion, portion)
    reading.use(mention, grade)
    subjects = reading.of(mention.start, mention.end)
    return [
        reading.claim(
            "quantifier", (mention.start, grade.end), subjects, "members", value=("grade", grade.value),
            portion=portion, domain="cluster", negated=negated,
        )
    ]  # fmt: skip
