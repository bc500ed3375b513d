"""Claims of a part with its whole: 17 of 31 trades, 1,406 of 2,702 dollars, 72 % of the total."""

import re

from services.deliberation.claim import Claim
from services.deliberation.figure_units import side_of, unit_of
from services.deliberation.mention import SUBJECT_KINDS, Mention
from services.deliberation.noun_phrases import NUMBERS, Phrase, filter_of, is_whom
from services.deliberation.numerals import (
    Figure,
    Portion,
)
from services.deliberation.sentence_reading import MEMBERS, SentenceReading
from services.evidence.facts import Subject
from services.evidence.observed import AT_THE_END

OUTCOME_OF = {"gained": Subject(outcome="won"), "lost": Subject(outcome="lost")}
OF = re.compile(
    r"\s*(?:(?:trades|positions|times|winners|losers) )?(?:out of|of|in) (?:(?:the|its|their|all|his|these"
    r"|those|a|total) )*\s*|\s*/\s*",
    re.I,
)
OWN = re.compile(r"\b(?:its|their)\b", re.I)
PERCENT_OF = re.compile(r"\s*of (?:(?:the|all|run's|overall|total|whole|these|those) )*(?:run's )?", re.I)
WHOLES = {"trades": "trades", "total_r": "total_r", "profit": "total_r", "pnl": "pnl", "fees": "fees"}


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


def whole_behind(reading: SentenceReading, index: int) -> int | None:
    """Index of the number whose part the number at an index is."""
    mentions = reading.mentions
    near = range(index + 1, min(index + 5, len(mentions)))
    return next((i for i in near if mentions[i].kind in NUMBERS and whole_of(reading, i) == index), None)


def part_of_number(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """The part in "17 of 31 trades", with its whole."""
    whole = whole_behind(reading, index)
    if whole is None or unit_of(mention.value) not in ("", "share", "r"):
        return []
    total = reading.mentions[whole]
    if unit_of(mention.value) == "r" != unit_of(total.value):
        return []
    phrase = reading.nouns.behind(whole)
    if phrase.head in MEMBERS:
        return []
    if phrase.head in AT_THE_END:
        return _part_of_counted(reading, mention, total, phrase)
    if unit_of(total.value) in ("money", "r"):
        return _part_of_amount(reading, mention, total)
    reading.use(total)
    told = _predicate(reading, whole, phrase, mention)
    phrase, told = narrowed(reading, whole, phrase, told)
    subjects, sure = reading.of(mention.start, total.end, phrase.end)
    base = tuple(subject.merge(phrase.filters) for subject in subjects)
    share = unit_of(mention.value) == "share"
    portion = Portion(-1, -1, int(mention.value.value)) if not share else _percent(mention.value)
    place = (mention.start, mention.end)
    reading.counted = base[0].merge(told.filters)
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
    reading.last_portion = base[0], told.filters
    return [
        reading.claim(
            "count", place, (base, sure), "portion", portion=portion, filters=told.filters, value=total.value,
            negated=reading.layout.is_negated(mention.start),
        )
    ]  # fmt: skip


def narrowed(reading: SentenceReading, whole: int, phrase: Phrase, told: Phrase) -> tuple[Phrase, Phrase]:
    """The whole with what narrows it, and what is told of it: "4 of the 65 trades closed by a stop won"."""
    first = next((m for m in reading.mentions[whole + 1 :] if m.start in told.used), None)
    if first is None or first.kind not in ("exit", "failure"):
        return phrase, told
    right = reading.layout.piece(first.start, first.end)[1]
    behind = [m for m in reading.mentions if first.end <= m.start < right]
    verb = next((m for m in behind if side_of(m) is not None or filter_of(m) is not None), None)
    amounts = any(m.kind in NUMBERS for m in behind)
    second = None if verb is None or amounts else filter_of(verb) or OUTCOME_OF.get(str(side_of(verb)))
    if verb is None or second is None or second.fields & told.filters.fields:
        return phrase, told
    whole_phrase = Phrase(
        phrase.head, phrase.filters.merge(told.filters), phrase.end, phrase.used | told.used
    )
    return whole_phrase, Phrase(None, second, None, frozenset({verb.start}))


def _part_of_counted(
    reading: SentenceReading, mention: Mention, total: Mention, phrase: Phrase
) -> list[Claim]:
    """Both figures of "674 of 2,166 proposals were sent back"."""
    behind = (
        m for m in reading.clause(total, "measure") if m.start > total.end and m.start not in phrase.used
    )
    told = next((m for m in behind if m.value in AT_THE_END), None)
    if told is None:
        return []
    reading.use(mention, total, told)
    reading.used |= phrase.used
    whole = ((Subject(),), 1.0)
    return [
        reading.claim("count", (m.start, m.end), whole, "figure", questions=(str(asked),), value=m.value)
        for m, asked in ((mention, told.value), (total, phrase.head))
    ]


def _part_of_amount(reading: SentenceReading, mention: Mention, total: Mention) -> list[Claim]:
    """Both figures of "1,406 of 2,702 dollars": of the subject, and of the run."""
    found = [m for m in reading.mentions if m.value in ("fees", "pnl") and m.end <= mention.start]
    in_r = unit_of(total.value) == "r"
    if not found and not in_r:
        return []
    reading.use(mention, total, *(m for m in found[-1:] if not in_r))
    questions = ("total_r",) if in_r else (str(found[-1].value),)
    subjects = reading.of(mention.start, mention.end)
    whole = ((Subject(),), 1.0)
    return [
        reading.claim(
            "number",
            (m.start, m.end),
            of,
            "figure",
            questions=questions,
            value=reading.figures.signed(reading.index(m), questions),
        )
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
        telling = (m for m in group if not (m.start > start and is_whom(reading.layout, m)))
        told = next(((m, f) for m in telling if (f := filter_of(m)) is not None), None)
        if told is not None and not told[1].fields & phrase.filters.fields:
            return Phrase(None, told[1], None, frozenset({told[0].start}))
    return Phrase()


def _restated(reading: SentenceReading, mention: Mention, base: Subject, filters: Subject) -> Claim:
    """A part that was counted, once more in percent: "13 of 29, that is 44.8 percent"."""
    return reading.claim(
        "percent", (mention.start, mention.end), ((base,), 0.9), "share_figure", questions=("share",),
        value=mention.value, filters=filters,
    )  # fmt: skip


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
    if ends and reading.last_portion is not None and not reading.layout.beside(mention, "measure", "result"):
        return [_restated(reading, mention, *reading.last_portion)]
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
    found, sure = reading.of(mention.start, following.end)
    subjects = (reading.summed(found), sure)
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
