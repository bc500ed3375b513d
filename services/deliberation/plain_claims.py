"""Claims of a word by itself: earned or lost, a grade, a name, a day."""

import re
from dataclasses import replace

from services.deliberation.claim import NAMING, Claim
from services.deliberation.layout import Mention
from services.deliberation.noun_phrases import NUMBERS, filter_of
from services.deliberation.numerals import FLAT_R, PORTIONS, unit_of
from services.deliberation.ranking_claims import measures_of, opens_with
from services.deliberation.sentence_reading import MEMBERS, SentenceReading, date_subjects
from services.evidence.facts import Subject

# What a report may recommend, and how a text says so.
ACTIONS: dict[str, str] = {
    "hold": r"hold(?:s|ing)?(?= )|hold|keep(?:ing)? (?:it|them|on)",
    "research_experiment": r"(?:research[_ ]|an? )?experiments?|research",
    "policy_adjust": r"policy[_ ]adjust(?:ment)?s?|adjust(?:ing|ments?)?",
    "replan": r"re-?plan(?:ning)?|retir(?:e|ing)|dropp?(?:ing)?",
}
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
ACTION_WORDS = {action: re.compile(rf"\b(?:{pattern})\b", re.I) for action, pattern in ACTIONS.items()}
OF_EVIDENCE = re.compile(
    r"\b(?:evidence|proof|samples?|interval|case|grade|report|data|basis|signs?)\b", re.I
)
JUDGED = (*NUMBERS, "quantifier", "fraction", "direction", "grade", "extreme", "failure")
# Kinds right behind an "only" that it makes no more of than they say.
BOUNDED = (
    *NUMBERS, "quantifier", "fraction", "bound", "extreme", "factor", "ratio", "date", "period", "grade",
)  # fmt: skip
DENIED = ("no ", "little", "hardly", "insufficient ", "nothing")
ROSE = re.compile(r"climb|improv|increas|gr[eo]w|ris|rose|recover|strengthen|doubl", re.I)
NOT_TRADED = re.compile(
    r"(?:\bnot|n['’]t) (?:actually |once )?(?:trade[ds]?|used|taken|active|fire[ds]?)\b", re.I
)
RETURNS = frozenset({"account_return", "buy_and_hold"})
SIGNED = ("mean_r", "median_r", "total_r", "lower_r", "upper_r", "best_r", "worst_r", "pnl")
FEWEST, MOST_RANKS = 2, 5
ONE_DAY = 86_400 * 1_000_000_000
RANK_WORDS = ("first", "second", "third", "fourth", "fifth")


def direction(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """Earned or lost, unless a figure beside it says how much."""
    if reading.is_used(mention):
        return []
    amounts = reading.layout.beside(mention, *NUMBERS)
    stated = [m for m in amounts if unit_of(m.value) in ("r", "money")]
    stated = [m for m in stated if not _is_at_most(reading, mention, m)]
    returned = any(m.value in RETURNS for m in reading.clause(mention, "measure"))
    returned = returned and any(unit_of(m.value) == "share" for m in amounts)
    if stated and mention.value != "flat" or returned and mention.value == "gained":
        reading.use(mention)
        return []
    subjects = reading.of(*mention.place)
    sides = reading.subjects.sides_of(mention.end, reading.layout.text.find(" than ", mention.end))
    if sides is not None and reading.layout.beside(mention, "compared"):
        subjects = date_subjects((sides[0].subject,)), 1.0
    told = [m for m in reading.layout.beside(mention, "exit", "failure") if m.end <= mention.start]
    for m in told[-1:]:
        reading.use(m)
        subjects = tuple(s.merge(filter_of(m) or Subject()) for s in subjects[0]), subjects[1]
    if all(_is_one(subject) for subject in subjects[0]):
        return claims_of_a_trade(reading, index, mention)
    measures = [m.value for m in reading.layout.beside(mention, "measure") if m.value in SIGNED]
    questions = (str(measures[0]),) if measures else ("mean_r",)
    reading.use(mention)
    every = reading.list_beside(subjects[0][0])
    return reading.claims(
        "direction", mention.place, subjects, "direction", questions=questions,
        value=mention.value, negated=reading.layout.is_negated(mention.start), every=every,
    )  # fmt: skip


def _is_at_most(reading: SentenceReading, mention: Mention, amount: Mention) -> bool:
    """Whether an amount is a limit: who "earned at most 20R" has earned, which the figure does not say."""
    bound = reading.figures.bound_before(reading.index(amount))
    denied = reading.layout.is_negated(mention.start) or amount.text[0] in "+-−"
    return bound is not None and bound.value == "<" and mention.end <= bound.start and not denied


def evaluation(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """A judgement in soft words; of the evidence, or beside a figure that is checked, it adds nothing."""
    if (
        reading.layout.beside(mention, *JUDGED)
        or OF_EVIDENCE.search(reading.layout.text)
        or _is_carried_by_a_figure(reading)
    ):
        reading.use(mention)
        return []
    return direction(reading, index, mention)


def _is_carried_by_a_figure(reading: SentenceReading) -> bool:
    """Whether a sentence about one subject says in R or in percent what it judges."""
    units = {unit_of(m.value) for m in reading.mentions if m.kind in NUMBERS}
    of_one = len({group.subject for group in reading.subjects.groups}) <= 1
    return of_one and not units.isdisjoint({"r", "share", "money"})


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
    between = reading.layout.between
    joints = [between(mention.end, first.start), between(first.end, second.start)]
    if first.kind != "number" or second.kind != "number" or joints != [{"from"}, {"to"}]:
        return []
    if (ROSE.match(mention.text) is not None) != (second.value.value > first.value.value):
        return []
    reading.use(mention, first, second, before)
    return [
        reading.claim("number", m.place, ((Subject(),), 0.9), "figure", questions=(asked,), value=m.value)
        for m, asked in ((first, "start_cash"), (second, "equity"))
    ]


def present(reading: SentenceReading, claims: list[Claim]) -> list[Claim]:
    """That a subject of several names has trades, where a sentence says no more: "X traded GOOG"."""
    if any(claim.said not in NAMING for claim in claims):
        return []
    subject = Subject()
    for group in reading.subjects.groups:
        if group.own.fields & subject.fields:
            return []
        subject = subject.merge(group.own)
    denied = NOT_TRADED.search(reading.layout.text)
    few = len(subject.fields - {"basis"}) < FEWEST - (denied is not None)
    if few or subject.order is not None or subject.parameter is not None:
        return []
    first, last = reading.subjects.groups[0], reading.subjects.groups[-1]
    negated = reading.layout.is_denied(0, len(reading.layout.text))
    place = (first.start, last.end if denied is None else max(last.end, denied.end()))
    return reading.claims(
        "quantifier", place, (date_subjects((subject,)), 0.7), "absent", negated=not negated
    )


def _is_one(subject: Subject) -> bool:
    """Whether a subject is one trade: the first, that of a day, that of an id."""
    if subject.order is not None or subject.episode is not None:
        return True
    return subject.period is not None and subject.period[1] - subject.period[0] <= ONE_DAY


def claims_of_a_trade(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """What a word tells of one trade: that it was stopped out, that it was short, that it won."""
    if reading.is_used(mention):
        return []
    subjects, sure = reading.of(*mention.place)
    ordered = [g.subject for g in reading.subjects.groups if g.told and g.end <= mention.start]
    if ordered:  # "the best trade was a long that hit its target"
        subjects, sure = (ordered[-1],), 0.9
    told = filter_of(mention)
    if told is None or not all(map(_is_one, subjects)):
        return []
    reading.use(mention)
    plain = tuple(subject.without(*told.fields) for subject in subjects)
    return reading.claims(
        "quantifier", mention.place, (plain, sure), "portion",
        portion=PORTIONS["all"], filters=told, negated=reading.layout.is_negated(mention.start),
    )  # fmt: skip


def grade(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """How much is shown."""
    if reading.is_used(mention):
        return []
    before = (m.text.casefold() for m in reading.mentions[:index] if m.kind == "not_graded")
    negated = mention.kind == "not_graded" or reading.layout.is_negated(mention.start)
    negated = negated or SHORT_OF.search(reading.layout.lead(mention.start)) is not None
    negated = negated or any(text.startswith(DENIED) for text in before)
    claim = reading.plain("grade", mention, "grade", value=mention.value, negated=negated)
    return [replace(claim, every=reading.list_beside(claim.subjects[0]))]


def rank(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """Second, third: by what the sentence ranks."""
    text = mention.text.casefold()
    place = next((i for i, word in enumerate(RANK_WORDS) if word in text), 1) + 1
    behind = text.startswith(("followed", "next", "runner"))
    groups = [g for g in reading.subjects.groups if not g.told]
    extremes = [m for m in reading.mentions[:index] if m.kind == "extreme"]
    failures = [m for m in reading.mentions if m.kind in ("failure", "exit")]
    questions, filters = measures_of(reading, extremes[-1] if extremes else mention)
    first: list[Subject] = []
    if "only to" in text:
        after = reading.subjects.after(mention.end)
        first = [f for m in failures[-1:] if (f := filter_of(m))]
        first = first if failures or after is None else [after.own]
        reading.use(*failures[-1:])
    nearest = slice(1) if behind else slice(-1, None)
    if failures:
        near = [m for m in failures if (m.start > mention.end) == behind][nearest]
        holder = filter_of(near[0]) if near else None
        reading.use(*near)
        questions = ("trades",)
        domain = "failure_mode" if failures[0].kind == "failure" else "exit_reason"
    else:
        beside = [g for g in groups if (g.start >= mention.end if behind else g.end <= mention.start)]
        holder = next((group.own for group in beside[nearest]), None)
        domain = "" if holder is None else min(holder.fields, default="")
    if holder is None or domain not in set(MEMBERS.values()) | {"direction"}:
        return []
    reading.use(mention)
    value = extremes[-1].value if extremes else "highest"
    what = {"questions": questions, "value": value, "filters": filters}
    negated = reading.layout.is_negated(mention.start)
    ranks = [(holder, domain, str(place), negated)]
    ranks += [(subject, min(subject.fields, default=""), "1", False) for subject in first]
    return [
        reading.claim(
            "comparison", mention.place, ((whom,), 0.8), "extreme", domain=kind, relation=relation,
            negated=denied, **what,
        )
        for whom, kind, relation, denied in ranks
    ]  # fmt: skip


def alone(reading: SentenceReading, index: int, mention: Mention, claims: list[Claim]) -> list[Claim]:
    """The claims of a sentence with what "only" makes of them: that nobody else is so."""
    following = reading.layout.next(index)
    near = frozenset[str]() if following is None else reading.layout.between(mention.end, following.start)
    if following is not None and following.kind in BOUNDED and len(near) <= FEWEST:
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
    judging = (
        claim for claim in claims
        if claim.said in ("direction", "comparison", "portion", "grade")
        or claim.said in ("extreme", "figure") and claim.relation in ("<", ">")
    )  # fmt: skip
    found = (c for c in judging if reading.layout.clause_of(c.start - offset) == clause)
    chosen = next((claim for claim in found if field in claim.subjects[0].fields), None)
    return [replace(claim, alone=field) if claim == chosen else claim for claim in claims]


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
    fields = frozenset[str]() if group is None else group.own.fields
    return next((name for name in ("regime", "symbol", "playbook", "direction") if name in fields), "")


def advice(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """What a report recommends, by the words of its actions, for whom."""
    text = reading.layout.text
    if mention.text.casefold() in ("recommendations", "recommendation") and reading.is_used(mention):
        return []
    structural = NOTHING_STRUCTURAL.search(text)
    found = ((action, pattern.search(text)) for action, pattern in ACTION_WORDS.items())
    actions = [(said.start(), action) for action, said in found if said]
    reading.use(mention, *(m for m in reading.mentions if structural and m.start == structural.start()))
    if structural:
        denied = reading.layout.is_denied(structural.end(), len(text))  # "nothing structural is not ..."
        what = {"value": "structural", "negated": not denied}
        return reading.claims("name", mention.place, ((Subject(),), 0.9), "advice", **what)
    claims = []
    for start, action in actions:
        subjects, after = reading.of(start, start)[0], reading.subjects.after(start)
        whom = (subjects if after is None else (after.subject,)), 0.8
        what = {"value": action, "negated": reading.layout.is_negated(start)}
        claims.append(reading.claim("name", mention.place, whom, "advice", **what))
    return claims or reading.claims("name", mention.place, ((Subject(),), 0.8), "unread")


def name(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """A playbook, a symbol, an id, or a word that is spelt like one."""
    known = mention.value if mention.kind in ("playbook", "symbol", "regime") else mention.text
    sure = 0.6 if mention.kind == "capitals" else 1.0
    reading.use(mention)
    return reading.claims("name", mention.place, ((Subject(),), sure), "name", value=(mention.kind, known))


def day(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """A date, or a longer time; behind "the report was known on" it is the report's alone."""
    if reading.is_used(mention):
        return []
    reading.use(mention)
    groups = [g for g in reading.subjects.groups if g.start <= mention.start < g.end]
    if groups and groups[0].told:
        return []
    subject = groups[0].subject.without("period", "basis") if groups else Subject()
    if groups and (groups[0].own.order is None or opens_with(reading, groups[0])):
        subject = subject.without("order")  # "had a best trade of +1R in 2005": the best one of that year
    said = "day" if mention.kind == "date" else "period"
    before = reading.layout.text[: mention.start]
    edge = tuple(name for name, pattern in EDGES.items() if pattern.search(before))
    return reading.claims(
        "date", mention.place, ((subject,), 1.0), said, questions=edge,
        value=mention.value, negated=bool(edge) and reading.layout.is_negated(mention.start),
    )  # fmt: skip
