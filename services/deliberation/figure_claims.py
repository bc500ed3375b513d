"""Claims of figures: a number with its measure, an interval, what an interval says of zero."""

import re
from dataclasses import replace

from schemas.fact_check import ClaimKind
from services.deliberation.claim import Claim
from services.deliberation.comparison_claims import TURNED, difference
from services.deliberation.figures import Reading
from services.deliberation.layout import Mention
from services.deliberation.member_claims import members_share
from services.deliberation.noun_phrases import NUMBERS, filter_of
from services.deliberation.numerals import Figure, measure_unit, unit_of
from services.deliberation.part_claims import part_of_number, percent_part, whole_of
from services.deliberation.sentence_reading import SentenceReading, date_subjects
from services.evidence.facts import Subject
from services.evidence.observed import ACCOUNT
from services.evidence.run_facts import TRADED

OF_THE = re.compile(r"\b(?:of|among|amongst) (?:the|all|these|those)(?: other)?\s*$", re.I)
FEWEST, AT_THE_START = 2, 5  # mentions; characters, for an article
THESE = re.compile(r"\b(?:these|those|they)\b", re.I)
# A verb of result behind what was counted, in one piece; and a whole before its part.
WON_BY = re.compile(
    r"^[^,;:()]*\b(?:averag\w+|made|mak\w+|earn\w*|lost|los[ei]\w*|gain\w*|return\w*|yield\w*|netted|cost|paid"
    r"|brought)\b[^,;:()]*$",
    re.I,
)
# A mean or a sum that goes with what was counted: "won 46 trades for 29.2R".
WITH_THEM = re.compile(
    r"^(?!.*\b(?:and|yet|while|ha[sd]|have|is|was|are|were|its|their|which|whose|all)\b)"
    r"[^,;:()]*,? (?:with|of|for|at|worth)\b[^,;:()]*$",
    re.I | re.S,
)
OVER_ALL = re.compile(r"[^,;:()]*\b(?:over|across|on|of|from) (?:all|its|their|the|\d)", re.I)
APIECE = re.compile(r"\s*(?:each|apiece)\b", re.I)
WHOLE_OF = re.compile(
    r"^\W*(?:[^,;:()]*, )?(?:out )?of (?:the|its|their|his|all|these|those)\b[^,;:()]*$", re.I
)
THOSE = re.compile(r"\s*of (?:those|them|these|which|whom)\b", re.I)
LISTED = re.compile(r"\s*(?:,|,? and|,? versus|,? vs\.?|,? against|,? to|/)\s*", re.I)
EACH = re.compile(r"\b(?:each|apiece|alike|both)\b", re.I)
REACHED = re.compile(
    r"\b(?:reach|exceed|pass|top|clear|get|attain|cross|hit|above|over|more than)\w*\b", re.I
)
INTERVAL = re.compile(
    r"intervals?|confidence (?:interval|band|range|sequence)s?|(?:its|the|mean's) (?:range|band)|bounds", re.I
)
# Verbs of an amount without a sign that leave open whether it was earned or lost.
EITHER_WAY = re.compile(
    r"\b(?:g[ai]ves?|t(?:ook|akes?)|pa(?:id|ys?) (?:out|away)|f[ae]lls?|puts?|le(?:ft|aves?|ts?)"
    r"|went|goes|spen[dt]s?)\b",
    re.I,
)
# What is asked of one trade and of all of them; a bound without "a trade" is one of the sum.
SUMS = frozenset({"total_r", "pnl"})
OF_ONE_OR_ALL = SUMS | {"mean_r", "mean_pnl", "gross_pnl"}
OF_EACH = re.compile(
    r"\b(?:each|every(?:one)?|apiece|(?<!\bin )(?<!\bat )all|always|any|none|never|no)\b", re.I
)
SPANNED = (("trades",), ("blocks",))
NO_FIGURE = re.compile(
    r"\b(?:the|that|this|no|any|some|which|every|another|last|next|each|only|such) one\b|\bones?\b (?:that"
    r"|which|is|was|another|by|day|to|can|could|must|should|may|might)\b",
    re.I,
)


def figure(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """A number with the measure that it is a value of."""
    if reading.is_used(mention) or _is_pronoun(reading, index, mention):
        reading.use(mention)
        return []
    if pronoun := _of_the_five(reading, index, mention):
        return pronoun
    for of_more in (part_of_number, difference, members_share, percent_part):
        if special := of_more(reading, index, mention):
            reading.use(mention)
            return special
    found = reading.figures.reading(index)
    if found.questions == ("version",):
        return _version(reading, mention, found)
    if whole_of(reading, index) is not None and found.questions == ("trades",):
        found = replace(found, filters=reading.nouns.behind(index).filters)
    reading.use(mention)
    reading.used |= found.used
    return _claims_of_statement(reading, index, mention, found)


def _of_the_five(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """How many there are of a kind, where the words leave the noun away: "the lowest of the five"."""
    lead = reading.layout.lead(mention.start)
    if mention.kind != "count_word" or not OF_THE.search(lead) or reading.nouns.behind(index).head:
        return []
    groups = [g for g in reading.subjects.groups if g.end <= mention.start]
    fields = groups[-1].own.fields if groups else reading.of(*mention.place)[0][0].fields
    questions = tuple(name for name, field in TRADED.items() if field in fields)
    if not questions:
        return []
    reading.use(mention)
    return reading.claims(
        "count", mention.place, ((Subject(),), 0.8), "figure", questions=questions[:1],
        value=mention.value,
    )  # fmt: skip


def _version(reading: SentenceReading, mention: Mention, found: Reading) -> list[Claim]:
    """A version of a playbook, with its state and the time since when it has it."""
    reading.use(mention)
    reading.used |= found.used
    text, said = reading.layout.text, STATE.search(reading.layout.text)
    times = [m for m in reading.mentions if said and m.kind in ("date", "period")][:1]
    reading.use(*times)
    subjects, sure = reading.of(*mention.place)
    plain = tuple(subject.without("period", "basis", "trial") for subject in subjects)
    period = times[0].value if times else None
    places = [mention.start, *([said.start()] if said else [])]
    is_now = said is not None and re.search(r"\b(?:is|are|remains?|still)\b", text) is not None
    return reading.claims(
        "count", mention.place, (plain, sure), "version", questions=("version",),
        value=(int(mention.value.value), said and said.lastgroup, period, is_now),
        negated=any(reading.layout.is_negated(place) for place in places),
    )  # fmt: skip


WERE_MADE = re.compile(
    r" (?:resolved |closed )?trades? (?:were|was|have been|has been) (?:resolved|closed|made|taken|opened)\b",
    re.I,
)
STATE = re.compile(
    r"\b(?:(?P<active>active|in force|live|in use)|(?P<shadow>shadow\w*|on trial|tried|trial)"
    r"|(?P<candidate>candidate)"
    r"|(?P<expired>expired?|ended)|(?P<retired>retired))\b",
    re.I,
)


def _is_pronoun(reading: SentenceReading, index: int, mention: Mention) -> bool:
    """Whether a "one" stands for a thing, or a number for something that no run counts."""
    if mention.kind != "count_word" or mention.text.casefold() not in ("one", "zero"):
        return False
    if reading.figures.bound_before(index) is not None:
        return False
    window = reading.layout.text[max(0, mention.start - 8) : mention.end + 12]
    return NO_FIGURE.search(window) is not None and not reading.nouns.behind(index).head


def _claims_of_statement(
    reading: SentenceReading, index: int, mention: Mention, found: Reading
) -> list[Claim]:
    held = reading.figures.read_sign(index, found.questions)
    bound = reading.figures.bound_before(index)
    start = mention.start if bound is None else bound.start
    if bound is not None:
        reading.use(bound)
    subjects, sure = reading.of(mention.start, mention.end, found.noun_end)
    goes_with = bool(found.questions) and set(found.questions) <= OF_ONE_OR_ALL | {"median_r"}
    if reading.counted is not None and _is_of_those(reading, mention, goes_with):
        subjects = (reading.counted.merge(_find_part(reading, mention)),)
    subjects = tuple(_add_heading(reading, subject) for subject in subjects)
    if found.questions == ("trades",) and _is_of_nobody(reading, mention):
        subjects = (Subject(),)
    subjects, filters, every = _whom(reading, index, mention, found, subjects)
    if set(found.questions) <= set(ACCOUNT) and found.questions:
        subjects = _at_the_time(reading, subjects)
    if not found.questions and not filters.is_empty and not unit_of(held):
        found = replace(found, questions=("trades",))
    begins = reading.layout.piece(start, start)[0]
    lead = reading.layout.text[begins:start]
    told = any(m.kind == "direction" for m in reading.mentions if begins <= m.start < start)
    if unit_of(held) == "r" and not told and mention.text[0] not in "+-−" and EITHER_WAY.search(lead):
        found = replace(found, questions=())
    found = _bind_to(reading, found, bound is not None, held, (begins, mention), every)
    negated = reading.layout.is_negated(start)
    expected = any(question.startswith("expected") for question in found.questions)
    of_edges = bound is not None and unit_of(held) == "r" and INTERVAL.search(reading.layout.text) is not None
    if bound is not None and of_edges and not {"lower_r", "upper_r"} & set(found.questions):
        found = replace(found, questions=("lower_r" if bound.value == ">" else "upper_r",))
    if expected and (REACHED.search(lead) or bound is not None and not _is_beyond(reading, index, bound)):
        found = replace(found, questions=())
    relation = "=" if bound is None or expected or _spans(reading, bound, found) else bound.value
    if relation in TURNED and held.value < 0 <= mention.value.value:
        relation = TURNED[relation]  # who lost more than 3R has less than -3R
    if negated and bound is None and REACHED.search(lead) and unit_of(held) != "r":
        relation, negated = "<", False
    what = {"questions": found.questions, "value": held, "relation": relation, "negated": negated}
    kind = _kind(held, found.questions, bound is not None)
    place = (start, mention.end)
    if found.questions in (("share",), ("failure_share",)):
        what |= {"filters": filters, "every": every}
        return reading.claims(kind, place, (subjects, found.sure * sure), "share_figure", **what)
    narrowed = tuple(subject.merge(filters) for subject in subjects)
    if found.questions == ("trades",):
        reading.counted, reading.counted_at = narrowed[0], mention.start
    what["every"] = tuple(subject.merge(filters) for subject in every)
    return reading.claims(kind, place, (narrowed, found.sure * sure), "figure", **what)


def _find_part(reading: SentenceReading, mention: Mention) -> Subject:
    """Whose part of the trades that were counted is told: "of 281 trades, trend_pullback made 48 of them"."""
    left, _ = reading.layout.piece(*mention.place)
    named = [group.own for group in reading.subjects.groups if left <= group.start < mention.start]
    return named[-1] if named else Subject()


def _is_of_nobody(reading: SentenceReading, mention: Mention) -> bool:
    """Whether trades are counted without a name: "281 trades were resolved, and trend_pullback made 48"."""
    if WERE_MADE.match(reading.layout.text, mention.end) is None:
        return False
    _, right = reading.layout.piece(*mention.place)
    return not any(group.start < right for group in reading.subjects.groups)


def _bind_to(
    reading: SentenceReading,
    found: Reading,
    bounded: bool,
    held: Figure,
    piece: tuple[int, Mention],
    every: tuple[Subject, ...],
) -> Reading:
    """What a bound holds: the sum, where no "a trade" is named; nothing known, where it is of each trade."""
    begins, mention = piece
    if not (bounded or held.exact in ("under", "over")) or not set(found.questions) & OF_ONE_OR_ALL:
        return found
    behind = reading.layout.piece(mention.end, mention.end)[1]
    if bounded and not every and OF_EACH.search(reading.layout.text, begins, behind):
        return replace(found, questions=())
    sums = tuple(question for question in found.questions if question in SUMS)
    return replace(found, questions=sums) if len(found.questions) > 1 and sums else found


def _is_of_those(reading: SentenceReading, mention: Mention, goes_with: bool) -> bool:
    """Whether a figure is of the trades that were counted last: "and these lost 29.3R", "12 of those"."""
    begin = reading.layout.piece(mention.start, mention.start)[0]
    before = THESE.search(reading.layout.text, begin, mention.start)
    those = before is not None or THOSE.match(reading.layout.text, mention.end) is not None
    return those or _are_whom(reading, mention, goes_with)


def _are_whom(reading: SentenceReading, mention: Mention, goes_with: bool) -> bool:
    """Whether what was counted is the subject: "its 23 shorts averaged", "of the 9 longs, 2 won"."""
    before = [m for m in reading.mentions if m.end <= mention.start and m.kind in NUMBERS]
    if not before or (last := before[-1]).start != reading.counted_at:
        return False
    text = reading.layout.text
    between = text[last.end : mention.start]
    alone = goes_with and len(before) == 1  # "won 46 and lost 35 trades for 29.2R" is of both
    alone = alone and OVER_ALL.match(text, mention.end) is None
    with_them = alone and (WITH_THEM.search(between) or APIECE.match(text, mention.end)) is not None
    if with_them or WON_BY.search(between) is not None:
        return True
    return WHOLE_OF.search(text[: last.start]) is not None and "," in text[last.end : mention.start]


def _add_heading(reading: SentenceReading, subject: Subject) -> Subject:
    """A subject with the way to end that heads the sentence: "time_stop exits made +6.4R over 35 trades"."""
    if len(reading.mentions) < FEWEST or reading.mentions[0].kind not in ("exit", "failure"):
        return subject
    told, noun = filter_of(reading.mentions[0]) or Subject(), reading.mentions[1]
    headed = noun.kind == "measure" and noun.value in ("exits", "trades", "losers")
    headed = headed and reading.layout.is_near(reading.mentions[0].end, noun.start)
    if not headed or told.fields & subject.fields or reading.mentions[0].start > AT_THE_START:
        return subject
    reading.use(reading.mentions[0], noun)
    return subject.merge(told)


def _is_beyond(reading: SentenceReading, index: int, bound: Mention) -> bool:
    """Whether the figure before an expected one lies where the word between says: "0.70R, below 1.00R".

    Without one ("above the 1.00R that was expected") nothing says what is above.
    """
    before = [m for m in reading.mentions[:index] if m.kind in NUMBERS]
    if not before:
        return False
    said, expected = abs(before[-1].value.value), abs(reading.mentions[index].value.value)
    return bool(said > expected if bound.value == ">" else said < expected)


def _at_the_time(reading: SentenceReading, subjects: tuple[Subject, ...]) -> tuple[Subject, ...]:
    """The account at the one date of a sentence, also where it is "as of" it."""
    dates = [m.value for m in reading.mentions if m.kind in ("date", "period")]
    return tuple(subject.having("period", *dates) for subject in subjects) if len(dates) == 1 else subjects


def _spans(reading: SentenceReading, bound: Mention, found: Reading) -> bool:
    """Whether an "over" tells on how many something was spread: "2.64R over 20 trades", "over 16 blocks"."""
    if bound.text.casefold() != "over" or found.questions not in SPANNED:
        return False
    before = reading.layout.previous(reading.index(bound))
    return before is not None and before.kind in (*NUMBERS, "direction", "measure", "interval")


def _kind(held: Figure, questions: tuple[str, ...], bounded: bool) -> ClaimKind:
    if unit_of(held) == "share":
        return "percent"
    counts = bool(questions) and all(measure_unit(question) == "count" for question in questions)
    return "count" if counts else "comparison" if bounded else "number"


def _whom(
    reading: SentenceReading, index: int, mention: Mention, found: Reading, subjects: tuple[Subject, ...]
) -> tuple[tuple[Subject, ...], Subject, tuple[Subject, ...]]:
    """Subjects, filters and a list of which each is meant: figures of a list go to names of a list."""
    filters = found.filters
    place = _place_in_list(reading, index)
    if place is not None:
        position, size = place
        listed = [g.subject for g in reading.subjects.groups if g.end <= mention.start and not g.told]
        names = list(dict.fromkeys(listed))
        if len(names) == size and all(item.fields == {"direction"} for item in names):
            return (names[position],), names[position], ()
        if len(names) == size:
            return date_subjects((names[position],)), filters, ()
        told = _filters_before(reading, index, size)
        if told is not None and reading.nouns.behind(index).head is None:
            return subjects, told[position], ()
    text, (left, right) = reading.layout.text, reading.layout.piece(*mention.place)
    if EACH.search(text[mention.end : right + 12]) or EACH.search(text[left : mention.start]):
        told = _filters_before(reading, index, None)
        each = [m for m in reading.mentions if EACH.fullmatch(m.text)]
        reading.use(*each[:1])
        if told is not None:
            return subjects, Subject(), tuple(subjects[0].merge(item) for item in told)
        if every := reading.list_beside(subjects[0]):
            return subjects, filters, every
    return reading.sum_up(subjects), filters, ()


def _place_in_list(reading: SentenceReading, index: int) -> tuple[int, int] | None:
    """Position and size of the list of figures in which a figure stands: "73 and 74", "3.5R versus 26.7R"."""
    mentions = reading.mentions
    first = last = index
    while first and _is_next(reading, first - 1):
        first -= 1
    while last + 1 < len(mentions) and _is_next(reading, last):
        last += 1
    return None if first == last else (index - first, last - first + 1)


def _is_next(reading: SentenceReading, index: int) -> bool:
    """Whether the mention at an index and the next one are figures of one list."""
    a, b = reading.mentions[index : index + 2]
    if a.kind not in NUMBERS or b.kind not in NUMBERS or unit_of(a.value) != unit_of(b.value):
        return False
    return LISTED.fullmatch(reading.layout.text, a.end, b.start) is not None


def _filters_before(reading: SentenceReading, index: int, size: int | None) -> list[Subject] | None:
    """What the words before a list of figures name, in order: longs and shorts, two failure modes."""
    told = []
    for mention in reading.mentions[:index]:
        item = filter_of(mention)
        if item is not None and item not in told:
            told.append(item)
            reading.use(mention)
    fields = {name for item in told for name in item.fields}
    wanted = len(told) == size if size is not None else len(told) > 1
    return told if wanted and len(fields) == 1 else None


def interval(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """Two edges, in brackets or in words."""
    negated = reading.layout.is_negated(mention.start)
    return [reading.plain("number", mention, "interval", value=mention.value, negated=negated)]


def zero(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """What an interval, or a mean, says of zero."""
    text = reading.layout.text
    negated = reading.layout.is_negated(mention.start)
    if mention.value in ("above", "below") and not INTERVAL.search(text):
        bounds = [m for m in reading.clause(mention, "measure") if m.value in ("lower_r", "upper_r")]
        questions = (bounds[0].value,) if bounds else ("mean_r",)
        side = "gained" if mention.value == "above" else "lost"
        what = {"questions": questions, "value": side, "negated": negated}
        return [reading.plain("direction", mention, "direction", **what)]
    return [reading.plain("comparison", mention, "zero", value=mention.value, negated=negated)]
