"""Claims of a word by itself: earned or lost, a grade, a name, a day."""

import re
from dataclasses import replace
from functools import cache

from services.deliberation.claim import Claim
from services.deliberation.claim_words import ACTIONS
from services.deliberation.figure_units import unit_of
from services.deliberation.mention import Mention
from services.deliberation.noun_phrases import NUMBERS, filter_of
from services.deliberation.numerals import FLAT_R, PORTIONS
from services.deliberation.ranking_claims import measures_of
from services.deliberation.sentence_reading import MEMBERS, SentenceReading, dated
from services.evidence.facts import Subject

SHORT_OF = re.compile(
    r"\b(?:below|under|short of|far from|less than|way from|nowhere near|yet to be|not|instead of"
    r"|rather than)"
    r"(?: (?:being|be|a|an|any|the))*\s*$",
    re.I,
)
OF_AN_EDGE = {
    "known_at": (
        r"\b(?:the|this) (?:\w+ )?report\b(?: (?:is|was|has been|became))?"
        r" (?:known|made|written|dated|dates|issued|published|drawn up|finished|of|from)"
    ),
    "window_start": r"\b(?:window|report|run)\b[^.;]{0,40}\b(?:open|beg[aiu]n|start)(?:s|ed|ing)?",
    "window_end": r"\b(?:window|report|run)\b[^.;]{0,40}\b(?:clos|end|finish|reach|stop)(?:e?s|ed|ing|ped)?",
}
# Words between such a verb and the date.
EDGES = {
    name: re.compile(
        rf"{pattern}(?: (?:as|at|in|on|of|the|up|to|with|by|from|since|late|early|mid|start|beginning"
        r"|middle|end|day))*"
        r"[ ,]*$", re.I,
    )
    for name, pattern in OF_AN_EDGE.items()
}  # fmt: skip
NOTHING_STRUCTURAL = re.compile(r"\b(?:nothing|no|never)\b(?= (?:\w+ )?structural)", re.I)
OF_EVIDENCE = re.compile(
    r"\b(?:evidence|proof|samples?|interval|case|grade|report|data|basis|signs?)\b", re.I
)
DENIED = ("no ", "little", "hardly", "insufficient ", "nothing")
ROSE = re.compile(r"climb|improv|increas|gr[eo]w|ris|rose|recover|strengthen|doubl", re.I)
NOT_TRADED = re.compile(
    r"(?:\bnot|n['’]t) (?:actually |once )?(?:trade[ds]?|used|taken|active|fire[ds]?)\b", re.I
)
RETURNS = frozenset({"account_return", "buy_and_hold"})
SIGNED = ("mean_r", "median_r", "total_r", "lower_r", "upper_r", "best_r", "worst_r", "pnl")
FEWEST, MOST_RANKS = 2, 5
RANK_WORDS = ("first", "second", "third", "fourth", "fifth")


def direction(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """Earned or lost, unless a figure beside it says how much."""
    if reading.is_used(mention):
        return []
    amounts = reading.layout.beside(mention, "number", "count_word")
    stated = [
        m for m in amounts if unit_of(m.value) in ("r", "money") and not _is_at_most(reading, mention, m)
    ]
    if stated and mention.value != "flat":
        reading.use(mention)
        return []
    returned = [m for m in reading.clause(mention, "measure") if m.value in RETURNS]
    if returned and mention.value == "gained" and any(unit_of(m.value) == "share" for m in amounts):
        reading.use(mention)
        return []
    subjects = reading.of(mention.start, mention.end)
    sides = reading.subjects.sides_of(mention.end, reading.layout.text.find(" than ", mention.end))
    if sides is not None and reading.layout.beside(mention, "compared"):
        subjects = dated((sides[0].subject,)), 1.0
    told = [m for m in reading.layout.beside(mention, "exit", "failure") if m.end <= mention.start]
    for m in told[-1:]:
        reading.use(m)
        subjects = tuple(s.merge(filter_of(m) or Subject()) for s in subjects[0]), subjects[1]
    if all(_is_one(subject) for subject in subjects[0]):
        return told_of_a_trade(reading, index, mention)
    measures = [m.value for m in reading.layout.beside(mention, "measure") if m.value in SIGNED]
    questions = (str(measures[0]),) if measures else ("mean_r",)
    reading.use(mention)
    every = reading.listed(subjects[0][0])
    return [
        reading.claim(
            "direction", (mention.start, mention.end), subjects, "direction", questions=questions,
            value=mention.value, negated=reading.layout.is_negated(mention.start), every=every,
        )
    ]  # fmt: skip


def _is_at_most(reading: SentenceReading, mention: Mention, amount: Mention) -> bool:
    """Whether an amount is a limit: who "earned at most 20R" has earned, which the figure does not say."""
    bound = reading.figures.bound_before(reading.index(amount))
    denied = reading.layout.is_negated(mention.start) or amount.text[0] in "+-−"
    return bound is not None and bound.value == "<" and mention.end <= bound.start and not denied


def evaluation(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """A judgement in soft words; of the evidence, or beside a figure that is checked, it adds nothing."""
    beside = reading.layout.beside(
        mention, *NUMBERS, "quantifier", "fraction", "direction", "grade", "extreme", "failure"
    )
    if beside or OF_EVIDENCE.search(reading.layout.text) or _is_carried_by_a_figure(reading):
        reading.use(mention)
        return []
    return direction(reading, index, mention)


def _is_carried_by_a_figure(reading: SentenceReading) -> bool:
    """Whether a sentence about one subject says in R or in percent what it judges."""
    amounts = [
        m for m in reading.mentions if m.kind in NUMBERS and unit_of(m.value) in ("r", "share", "money")
    ]
    return bool(amounts) and len({group.subject for group in reading.subjects.groups}) <= 1


def degree(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """A "barely" is borne out by a figure behind it that is next to nothing; any other degree is unread."""
    figure = next((m for m in reading.mentions[index + 1 :] if m.kind == "number"), None)
    barely = mention.text.casefold() == "barely" and figure is not None and unit_of(figure.value) == "r"
    if barely and figure is not None and abs(figure.value.value) <= FLAT_R:
        reading.use(mention)
    return []


def grown(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """Both figures of "the capital grew from 100,000 to 124,445", of a whole run, and that it grew."""
    before, first = reading.layout.previous(index), reading.layout.next(index)
    second = None if first is None else reading.layout.next(index + 1)
    if before is None or before.value != "equity" or first is None or second is None:
        return []
    if {first.kind, second.kind} != {"number"}:
        return []
    joints = (
        reading.layout.between(mention.end, first.start),
        reading.layout.between(first.end, second.start),
    )
    rose = ROSE.match(mention.text) is not None
    if joints != (frozenset({"from"}), frozenset({"to"})) or rose != (second.value.value > first.value.value):
        return []
    reading.use(mention, first, second, before)
    return [
        reading.claim(
            "number", (m.start, m.end), ((Subject(),), 0.9), "figure", questions=(asked,), value=m.value
        )
        for m, asked in ((first, "start_cash"), (second, "equity"))
    ]


def present(reading: SentenceReading, claims: list[Claim]) -> list[Claim]:
    """That a subject of several names has trades, where a sentence says no more: "X traded GOOG"."""
    if any(claim.said not in ("name", "day", "period") for claim in claims):
        return []
    subject = Subject()
    for group in reading.subjects.groups:
        if group.own.fields & subject.fields:
            return []
        subject = subject.merge(group.own)
    denied = NOT_TRADED.search(reading.layout.text)
    if (
        len(subject.fields - {"basis"}) < FEWEST - (denied is not None)
        or subject.order is not None
        or subject.parameter is not None
    ):
        return []
    first, last = reading.subjects.groups[0], reading.subjects.groups[-1]
    negated = reading.layout.is_denied(0, len(reading.layout.text))
    place = (first.start, last.end if denied is None else max(last.end, denied.end()))
    return [reading.claim("quantifier", place, (dated((subject,)), 0.7), "absent", negated=not negated)]


def _is_one(subject: Subject) -> bool:
    """Whether a subject is one trade: the first, that of a day, that of an id."""
    if subject.order is not None or subject.episode is not None:
        return True
    return subject.period is not None and subject.period[1] - subject.period[0] <= ONE_DAY


ONE_DAY = 86_400 * 1_000_000_000


def told_of_a_trade(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """What a word tells of one trade: that it was stopped out, that it was short, that it won."""
    if reading.is_used(mention):
        return []
    subjects = reading.of(mention.start, mention.end)
    ordered = [g.subject for g in reading.subjects.groups if g.told and g.end <= mention.start]
    subjects = (
        ((ordered[-1],), 0.9) if ordered else subjects
    )  # "the best trade was a long that hit its target"
    told = filter_of(mention)
    if told is None or not all(_is_one(subject) for subject in subjects[0]):
        return []
    reading.use(mention)
    plain = tuple(subject.without(*told.fields) for subject in subjects[0])
    return [
        reading.claim(
            "quantifier", (mention.start, mention.end), (plain, subjects[1]), "portion",
            portion=PORTIONS["all"], filters=told, negated=reading.layout.is_negated(mention.start),
        )
    ]  # fmt: skip


def grade(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """How much is shown."""
    if reading.is_used(mention):
        return []
    negated = mention.kind == "not_graded" or (
        reading.layout.is_negated(mention.start)
        or SHORT_OF.search(reading.layout.lead(mention.start)) is not None
    )
    denied = [
        m for m in reading.mentions[:index] if m.kind == "not_graded" and m.text.casefold().startswith(DENIED)
    ]
    negated = negated or bool(denied)
    claim = reading.plain("grade", mention, "grade", value=mention.value, negated=negated)
    every = reading.listed(claim.subjects[0])
    return [replace(claim, every=every)]


def rank(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """Second, third: by what the sentence ranks."""
    text = mention.text.casefold()
    place = next((i for i, word in enumerate(RANK_WORDS) if word in text), 1) + 1
    behind = text.startswith(("followed", "next", "runner"))
    groups = [g for g in reading.subjects.groups if not g.told]
    extremes = [m for m in reading.mentions[:index] if m.kind == "extreme"]
    failures = [m for m in reading.mentions if m.kind in ("failure", "exit")]
    questions, filters = measures_of(reading, extremes[-1] if extremes else mention)
    if "only to" in text and not failures:
        after = reading.subjects.after(mention.end)
        extra = [] if after is None else [(after.own, next(iter(sorted(after.own.fields)), ""))]
    else:
        extra = [
            (f, next(iter(f.fields))) for m in failures[-1:] if "only to" in text and (f := filter_of(m))
        ]
        reading.use(*(failures[-1:] if "only to" in text else []))
    if failures:
        near = [m for m in failures if (m.start > mention.end) == behind]
        holder = filter_of(near[0 if behind else -1]) if near else None
        reading.use(*near[:1] if behind else near[-1:])
        questions = ("trades",)
        domain = "failure_mode" if failures[0].kind == "failure" else "exit_reason"
    else:
        near_groups = [g for g in groups if (g.start >= mention.end if behind else g.end <= mention.start)]
        chosen = near_groups[0 if behind else -1] if near_groups else None
        holder = None if chosen is None else chosen.own
        domain = "" if chosen is None else next(iter(sorted(chosen.own.fields)), "")
    if holder is None or domain not in set(MEMBERS.values()) | {"direction"}:
        return []
    reading.use(mention)
    value = extremes[-1].value if extremes else "highest"
    return [
        reading.claim(
            "comparison", (mention.start, mention.end), ((holder,), 0.8), "extreme", questions=questions,
            value=value, domain=domain, filters=filters, relation=str(place),
            negated=reading.layout.is_negated(mention.start),
        )
    ] + [
        reading.claim(
            "comparison", (mention.start, mention.end), ((first,), 0.8), "extreme", questions=questions,
            value=value, domain=kind, filters=filters, relation="1",
        )
        for first, kind in extra
    ]  # fmt: skip


def alone(reading: SentenceReading, index: int, mention: Mention, claims: list[Claim]) -> list[Claim]:
    """The claims of a sentence with what "only" makes of them: that nobody else is so."""
    following = reading.layout.next(index)
    if following is not None and (
        following.kind
        in (
            *NUMBERS,
            "quantifier",
            "fraction",
            "bound",
            "extreme",
            "factor",
            "ratio",
            "date",
            "period",
            "grade",
        )
    ):
        between = reading.layout.between(mention.end, following.start)
        if len(between) <= FEWEST:
            reading.use(mention)
            return _alone_of(reading, mention, claims, "period") if following.kind == "period" else claims
    before = reading.layout.previous(index)
    closes = following is None and before is not None and before.kind in (*NUMBERS, "measure")
    amounts = reading.layout.beside(mention, "number")
    stressed = mention.text.casefold() == "alone" and any(unit_of(m.value) for m in amounts)
    if mention.text.casefold() == "just" or closes or stressed:
        reading.use(mention)
        return claims
    field = _alone_field(reading, mention)
    told = _alone_of(reading, mention, claims, field) if field else claims
    if told != claims:
        reading.use(mention)
    return told


def _alone_of(reading: SentenceReading, mention: Mention, claims: list[Claim], field: str) -> list[Claim]:
    """The claims with the first judgement in the clause of an "only" as one of nobody else."""
    offset = reading.layout.sentence.start
    clause = reading.layout.clause_of(mention.start)
    found = [
        claim
        for claim in claims
        if claim.said in ("direction", "comparison", "portion", "extreme", "figure", "grade")
        and reading.layout.clause_of(claim.start - offset) == clause
        and field in claim.subjects[0].fields
    ]
    qualitative = [
        claim
        for claim in found
        if claim.said in ("direction", "comparison", "portion", "grade") or claim.relation in ("<", ">")
    ]
    chosen = qualitative[:1]
    return [replace(claim, alone=field) if claim in chosen else claim for claim in claims]


def _alone_field(reading: SentenceReading, mention: Mention) -> str:
    """Of which kind the only one is: by the noun behind, the name behind, or the name before."""
    following = reading.layout.next(reading.index(mention))
    if following is not None and following.kind == "measure" and following.value in MEMBERS:
        return MEMBERS[str(following.value)]
    groups = reading.subjects.groups
    behind = next((g for g in groups if 0 <= g.start - mention.end <= FEWEST), None)
    before = next((g for g in reversed(groups) if 0 <= mention.start - g.end <= MOST_RANKS), None)
    group = before if mention.text.casefold() == "alone" else behind or before
    group = group or next((g for g in reversed(groups) if g.end <= mention.start), None)
    if group is None:
        return ""
    return next(
        (name for name in ("regime", "symbol", "playbook", "direction") if name in group.own.fields), ""
    )


def advice(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """What a report recommends, by the words of its actions, for whom."""
    text = reading.layout.text
    if mention.text.casefold() in ("recommendations", "recommendation") and reading.is_used(mention):
        return []
    structural = NOTHING_STRUCTURAL.search(text)
    actions = [
        (found.start(), action)
        for action, pattern in ACTIONS.items()
        if (found := _word(pattern).search(text))
    ]
    reading.use(mention, *(m for m in reading.mentions if structural and m.start == structural.start()))
    place = (mention.start, mention.end)
    if structural:
        denied = reading.layout.is_denied(structural.end(), len(text))  # "nothing structural is not ..."
        what = {"value": "structural", "negated": not denied}
        return [reading.claim("name", place, ((Subject(),), 0.9), "advice", **what)]
    claims = []
    for start, action in actions:
        subjects = reading.of(start, start)
        after = reading.subjects.after(start)
        named = (after.subject,) if after is not None else subjects[0]
        negated = reading.layout.is_negated(start)
        claims.append(reading.claim("name", place, (named, 0.8), "advice", value=action, negated=negated))
    return claims or [reading.claim("name", place, ((Subject(),), 0.8), "unread")]


@cache
def _word(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.I)


def name(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """A playbook, a symbol, an id, or a word that is spelt like one."""
    known = mention.value if mention.kind in ("playbook", "symbol", "regime") else mention.text
    sure = 0.6 if mention.kind == "capitals" else 1.0
    reading.use(mention)
    place = mention.start, mention.end
    return [reading.claim("name", place, ((Subject(),), sure), "name", value=(mention.kind, known))]


def day(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """A date, or a longer time; behind "the report was known on" it is the report's alone."""
    if reading.is_used(mention):
        return []
    reading.use(mention)
    groups = [g for g in reading.subjects.groups if g.start <= mention.start < g.end]
    if groups and groups[0].told:
        return []
    subject = groups[0].subject.without("period", "basis") if groups else Subject()
    if groups and groups[0].own.order is None:  # "had a best trade of +1R in 2005": the best one of that year
        subject = subject.without("order")
    said = "day" if mention.kind == "date" else "period"
    before = reading.layout.text[: mention.start]
    edge = tuple(name for name, pattern in EDGES.items() if pattern.search(before))
    return [
        reading.claim(
            "date", (mention.start, mention.end), ((subject,), 1.0), said, questions=edge,
            value=mention.value, negated=bool(edge) and reading.layout.is_negated(mention.start),
        )
    ]  # fmt: skip
