"""Claims of a part with its whole: 17 of 31 trades, 1,406 of 2,702 dollars, 72 % of the total."""

import re

from services.deliberation.claim import Claim
from services.deliberation.layout import SUBJECT_KINDS, Mention
from services.deliberation.noun_phrases import NUMBERS, Phrase, filter_of, is_whom, side_of
from services.deliberation.numerals import Figure, Portion, unit_of
from services.deliberation.sentence_reading import MEMBERS, SentenceReading
from services.evidence.facts import Subject
from services.evidence.observed import AT_THE_END

OUTCOME_OF = {"gained": Subject(outcome="won"), "lost": Subject(outcome="lost")}
OF = re.compile(
    r"\s*(?:(?:trades|positions|times|winners|losers) )?(?:out of|of|in) (?:(?:the|its|their|all|his|these"
    r"|those|a|total) )*\s*|\s*/\s*",
    re.I,
)
OF_THE = re.compile(r"\s*(?:of )?(?:(?:the|its|their|his|those|these) )*")
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
            return number if OF_THE.fullmatch(between) else None
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
    phrase, told = narrow(reading, whole, phrase, told)
    subjects, sure = reading.of(mention.start, total.end, phrase.end)
    base = tuple(subject.merge(phrase.filters) for subject in subjects)
    held, place = mention.value, mention.place
    portion = _percent(held) if unit_of(held) == "share" else Portion(-1, -1, int(held.value))
    reading.counted = base[0].merge(told.filters)
    if told.filters.is_empty:
        if phrase.filters.is_empty and all(subject.is_empty for subject in subjects):
            return reading.claims("count", place, (subjects, sure), "unread")
        return reading.claims(
            "count", place, (base, sure), "part", questions=("trades",), portion=portion,
            value=total.value, filters=phrase.filters,
        )  # fmt: skip
    reading.used |= told.used | phrase.used
    reading.last_portion = base[0], told.filters
    return reading.claims(
        "count", place, (base, sure), "portion", portion=portion, filters=told.filters, value=total.value,
        negated=reading.layout.is_negated(mention.start),
    )  # fmt: skip


def narrow(reading: SentenceReading, whole: int, phrase: Phrase, told: Phrase) -> tuple[Phrase, Phrase]:
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
    filters, used = phrase.filters.merge(told.filters), phrase.used | told.used
    return Phrase(phrase.head, filters, phrase.end, used), Phrase(None, second, used=frozenset({verb.start}))


def _part_of_counted(
    reading: SentenceReading, mention: Mention, total: Mention, phrase: Phrase
) -> list[Claim]:
    """Both figures of "674 of 2,166 proposals were sent back"."""
    behind = (m for m in reading.clause(total, "measure") if m.start > total.end)
    told = next((m for m in behind if m.value in AT_THE_END and m.start not in phrase.used), None)
    if told is None:
        return []
    reading.use(mention, total, told)
    reading.used |= phrase.used
    whole = ((Subject(),), 1.0)
    return [
        reading.claim("count", m.place, whole, "figure", questions=(str(asked),), value=m.value)
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
    subjects = reading.of(*mention.place)
    whole = ((Subject(),), 1.0)
    signed = reading.figures.read_sign
    return [
        reading.claim(
            "number", m.place, of, "figure", questions=questions, value=signed(reading.index(m), questions)
        )
        for m, of in ((mention, subjects), (total, whole))
    ]


def _percent(held: Figure) -> Portion:
    margin = held.step * 0.5000001 / 100
    return Portion(held.value / 100 - margin, held.value / 100 + margin)


def _predicate(reading: SentenceReading, whole: int, phrase: Phrase, part: Mention) -> Phrase:
    """What is told of a part: behind its whole, before it, or in the clause around a parenthesis."""
    mentions, start = reading.mentions, part.start
    behind = [m for m in mentions[whole + 1 :] if m.start not in phrase.used]
    behind = [m for m in behind if phrase.end is None or m.start >= phrase.end]
    stops = (m.start for m in behind if m.kind in (*NUMBERS, "quantifier"))
    stop = next(stops, len(reading.layout.text))
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


def percent_part(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """A percentage of a whole result, or of all trades: "72 % of the total R"."""
    following = reading.layout.next(index)
    if unit_of(mention.value) != "share":
        return []
    ends = following is None or following.start >= reading.layout.piece(*mention.place)[1]
    ends = ends and not reading.layout.beside(mention, "measure", "result")
    if ends and reading.last_part is not None:
        questions, filters = reading.last_part
        what = {"questions": questions, "filters": filters, "portion": _percent(mention.value)}
        return reading.claims("percent", mention.place, reading.of(*mention.place), "part", **what)
    if ends and reading.last_portion is not None:  # "13 of 29, that is 44.8 percent"
        base, filters = reading.last_portion
        what = {"questions": ("share",), "filters": filters, "value": mention.value}
        return reading.claims("percent", mention.place, ((base,), 0.9), "share_figure", **what)
    if following is not None and following.kind == "quantifier" and following.value == "all":
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
    subjects = reading.sum_up(found)
    if all(subject.is_empty for subject in subjects):
        return []
    reading.last_part = (question,), told or Subject()
    inside = (m for m in reading.mentions if mention.end <= m.start < following.start)
    reading.use(mention, following, *inside)
    return reading.claims(
        "percent", (mention.start, following.end), (subjects, sure), "part", questions=(question,),
        portion=_percent(mention.value), filters=told or Subject(),
        negated=reading.layout.is_negated(mention.start),
    )  # fmt: skip
