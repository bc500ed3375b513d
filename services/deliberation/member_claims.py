"""Claims of the members of a kind: four of the five playbooks, no symbol, every regime but one."""

import re
from typing import Any

from schemas.fact_check import ClaimKind
from services.deliberation.claim import Claim
from services.deliberation.layout import Mention
from services.deliberation.noun_phrases import NUMBERS, Phrase, side_of
from services.deliberation.numerals import PORTIONS, Portion, unit_of
from services.deliberation.part_claims import whole_behind, whole_of
from services.deliberation.sentence_reading import MEMBERS, SentenceReading
from services.evidence.facts import Subject

SHORT_OF = re.compile(r"\b(?:below|under|short of|far from|less than)(?: being)?\s*$", re.I)
ABOVE_GRADE = re.compile(r"\b(?:better|above|higher|more|beyond|stronger)(?: than)?(?: being)?\s*$", re.I)
REACHED = re.compile(
    r"\b(?:reach|exceed|pass|top|clear|get|attain|cross|hit|come|came|as (?:many|much|high))\w*\b", re.I
)
EXCEPT = re.compile(r"\s*,?\s*(?:except(?: for)?|but|other than|apart from|save|bar)(?: the)? ", re.I)


def told_behind(reading: SentenceReading, index: int, phrase: Phrase) -> list[Mention]:
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


def members_share(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """A number of the playbooks, symbols or regimes: "four of the five playbooks earned money"."""
    if unit_of(mention.value) or whole_of(reading, index) is not None:
        return []
    phrase = reading.nouns.behind(index)
    whole = whole_behind(reading, index)
    if whole is not None:
        phrase = reading.nouns.behind(whole)
    if phrase.head is None and side_of_next(reading, index):
        earlier = [m for m in reading.mentions[:index] if m.kind == "measure" and m.value in MEMBERS]
        phrase = Phrase(str(earlier[-1].value)) if earlier else phrase
    if phrase.head not in MEMBERS:
        return []
    if reading.figures.bound_before(index) is not None:
        return []
    portion, place = Portion(-1, -1, int(mention.value.value)), (mention.start, phrase.end or mention.end)
    negated = reading.layout.is_negated(mention.start)
    return members_told(reading, mention, phrase, portion, place, negated, index=whole or index)


def side_of_next(reading: SentenceReading, index: int) -> bool:
    """Whether a number stands right before a gained or lost: "four earned money and one lost"."""
    following = reading.layout.next(index)
    if following is None or side_of(following) is None:
        return False
    return reading.layout.is_near(reading.mentions[index].end, following.start)


def members_told(
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
    behind = told_behind(reading, at, phrase)
    told = next((m for m in behind if side_of(m) is not None or m.kind in ("grade", "zero")), None)
    before = reading.layout.previous(reading.index(mention))
    if told is None and before is not None and side_of(before):
        told = before if reading.layout.is_near(before.end, mention.start) else None
    domain = MEMBERS[str(phrase.head)]
    excepted = _find_exception(reading, phrase, mention)
    what: dict[str, Any] = {"other": excepted, "portion": portion, "domain": domain, "negated": negated}
    figure = next((m for m in behind if m.kind in NUMBERS), None)
    if figure is not None and (told is None or figure.start < told.start) and not reading.is_used(figure):
        found = reading.figures.reading(reading.index(figure))
        bound = reading.figures.bound_before(reading.index(figure))
        reached = mention.value == "none" and REACHED.search(reading.layout.text[mention.end : figure.start])
        if found.questions and (bound is not None or reached):
            reading.use(mention, figure, *([bound] if bound else []))
            reading.used |= found.used | phrase.used
            what |= {"questions": found.questions, "value": figure.value, "filters": found.filters}
            what["relation"] = bound.value if bound is not None else ">="
            return reading.claims("quantifier", place, ((Subject(),), 1.0), "members", **what)
    if told is None or told.kind == "zero" and phrase.head not in ("playbooks", "clusters"):
        return []
    reading.use(mention, told)
    reading.used |= phrase.used
    subjects, sure = reading.of(place[0], place[1])
    named = subjects if domain == "cluster" else tuple(subject.without(domain) for subject in subjects)
    within = named if told.kind in ("grade", "direction") else (Subject(),)
    value = ("direction", side_of(told))
    if told.kind == "zero":
        value = ("zero", told.value)
    elif told.kind == "grade":
        above = ABOVE_GRADE.search(reading.layout.lead(told.start)) is not None
        reading.use(*(m for m in behind if above and m.kind in ("bound", "compared")))
        value = ("grade_above" if above else "grade", told.value)
        what["portion"] = _graded_portion(reading, told, portion)
    kind: ClaimKind = "count" if mention.kind in NUMBERS else "quantifier"
    return reading.claims(kind, place, (within, sure), "members", value=value, **what)


def _find_exception(reading: SentenceReading, phrase: Phrase, mention: Mention) -> Subject | None:
    """Whom "every playbook except ..." leaves out."""
    found = EXCEPT.match(reading.layout.text, phrase.end or mention.end)
    if found is None:
        return None
    own = next((group.own for group in reading.subjects.groups if group.start == found.end()), Subject())
    kinds = own.fields & set(MEMBERS.values())
    named: dict[str, Any] = {name: str(getattr(own, name)).removeprefix("!") for name in kinds}
    return Subject(**named) if named else None


def _graded_portion(reading: SentenceReading, grade: Mention, portion: Portion) -> Portion:
    """All of them fall short of a grade where none has it, and none where all have."""
    if not SHORT_OF.search(reading.layout.lead(grade.start)):
        return portion
    return {PORTIONS["all"]: PORTIONS["none"], PORTIONS["none"]: PORTIONS["all"]}.get(portion, portion)


def claims_of_grade(
    reading: SentenceReading, mention: Mention, grade: Mention, portion: Portion, negated: bool
) -> list[Claim]:
    """All, some or none, where no noun is named, of a grade: "nothing is proven", "none of them is"."""
    portion = _graded_portion(reading, grade, portion)
    reading.use(mention, grade)
    subjects = reading.of(*mention.place)
    return reading.claims(
        "quantifier", (mention.start, grade.end), subjects, "members", value=("grade", grade.value),
        portion=portion, domain="cluster", negated=negated,
    )  # fmt: skip
