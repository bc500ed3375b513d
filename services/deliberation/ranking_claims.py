"""Claims of the first of several: the best, the worst, the most frequent, and whose a trade is."""

import re

from services.deliberation.claim import Claim
from services.deliberation.figure_units import unit_of
from services.deliberation.figures import BOTH
from services.deliberation.mention import Mention
from services.deliberation.noun_phrases import filter_of, is_whom
from services.deliberation.said_of import Group
from services.deliberation.sentence_reading import MEMBERS, SentenceReading
from services.evidence.facts import Subject

OFTEN = re.compile(
    r"often|active|traded|frequent|common|numerous|busiest|quietest|rarest|dominant|\bmain\b|chief|outnumber",
    re.I,
)
JUDGING = re.compile(r"best|worst|strongest|weakest|poorest|better|worse|stronger|weaker", re.I)
OFTEN_BEHIND = 8  # characters: "more often"
COSTLY = re.compile(r"costly|expensive|cheap", re.I)
LONG = re.compile(r"long|short|quickest|briefest|fastest", re.I)
OF_A_TRADE = frozenset({"best_r", "worst_r", "hold_max", "hold_min", "best_pnl", "worst_pnl"})
ORDER_OF = {
    "best_r": "best", "worst_r": "worst", "hold_max": "longest", "hold_min": "shortest",
    "best_pnl": "best_pnl", "worst_pnl": "worst_pnl",
}  # fmt: skip
ORDERS = {"highest": "best_r", "lowest": "worst_r"}
TOTAL_FROM = 4.0  # R: no mean of trades is so large, so such an amount is a sum
WITHIN_WHICH = frozenset({"period", "basis", "regime", "timeframe", "direction", "playbook", "symbol"})
# A verb before "the most" makes of the name behind it where, and not of whom.
DID = re.compile(r"\b(?:earn|ma[dk]e|los[te]|gain|trad|return|won|did|paid)\w* the $", re.I)
WITHIN = re.compile(r"^[^,;:()]{0,40}\b(?:of|in|on|during|for|under)(?: the)? $", re.I)
WON = re.compile(r"\b(?:(?P<won>won|wins?)|los(?:t|es?)) (?:an? |the )?$", re.I)
TRADES = re.compile(r" (?:trades|positions)(?= than\b)", re.I)
OF_ITS = re.compile(r"(?: (?:share|part|portion|percentage))? of (?:its|their|all) (?:own )?trades\b", re.I)
BEHIND = re.compile(r" (?:in|on|with|during|under|for)(?: the)? ", re.I)


def measures_of(reading: SentenceReading, mention: Mention) -> tuple[tuple[str, ...], Subject]:
    """The measure that a comparison or an extreme is of, and the trades that it counts."""
    won = WON.search(reading.layout.text[: mention.start])
    all_of_them = OF_ITS.match(reading.layout.text, mention.end)
    trades = TRADES.match(reading.layout.text, mention.end)
    if won and trades:
        reading.use(*(m for m in reading.mentions if won.start() <= m.start and m.end <= trades.end()))
        return ("winners" if won["won"] else "losers",), Subject()
    if won and all_of_them:
        inside = [m for m in reading.mentions if won.start() <= m.start and m.end <= all_of_them.end()]
        reading.use(*inside)
        return ("win_rate" if won["won"] else "loss_rate",), Subject()
    if OFTEN.search(reading.layout.text[mention.start : mention.end + OFTEN_BEHIND]):
        rates = [m for m in reading.clause(mention, "measure") if m.value in ("win_rate", "loss_rate")]
        if rates:
            reading.use(rates[0])
            return (str(rates[0].value),), Subject()
        return ("trades",), _counted(reading, mention)
    if COSTLY.search(mention.text):
        return ("fees",), Subject()
    if LONG.fullmatch(mention.text) or mention.text.casefold() in (
        "longest",
        "shortest",
        "longer",
        "shorter",
    ):
        return ("hold_p50", "hold_mean"), Subject()
    found = [
        m
        for m in reading.clause(mention, "measure")
        if m.value not in MEMBERS and m.value not in OF_A_TRADE and not is_whom(reading.layout, m)
    ]
    found = [m for m in found if not (m.value == "mean_r" and m.text.casefold().startswith("edge"))]
    if JUDGING.match(mention.text):
        found = [m for m in found if m.value != "trades"]
    near = [m for m in found if m.start >= mention.end]
    chosen = near[:1] or [m for m in found if m.value != "trades"][-1:] or found[-1:]
    if not chosen:
        return _unnamed(reading, mention), Subject()
    named = chosen[0]
    reading.use(named)
    told = filter_of(named)
    if told is not None:
        return ("trades",), told
    if named.value == "profit":
        return (*BOTH, "pnl"), Subject()
    if named.value in ("bars", "days"):
        return ("hold_p50", "hold_mean"), Subject()
    return (str(named.value),), Subject()


def _unnamed(reading: SentenceReading, mention: Mention) -> tuple[str, ...]:
    """What a comparison may be of that names no measure."""
    earlier = [m for m in reading.mentions if m.kind == "measure" and m.end <= mention.start]
    earlier = [m for m in earlier if m.value not in MEMBERS and m.value not in (*OF_A_TRADE, "profit")]
    stated = [
        str(m.value)
        for m in earlier[-1:]
        if filter_of(m) is None and m.value not in ("trades", "bars", "days")
    ]
    large = any(
        unit_of(m.value) == "r" and abs(m.value.value) >= TOTAL_FROM
        for m in reading.mentions if m.kind == "number"
    )  # fmt: skip
    return (*stated, *(("total_r",) if large else BOTH))


def _counted(reading: SentenceReading, mention: Mention) -> Subject:
    """Which trades are counted by a "most often": won, stopped out, short."""
    for m in reading.clause(mention, "result", "exit", "failure", "side", "measure"):
        told = filter_of(m)
        if told is not None and not reading.is_used(m) and abs(m.start - mention.end) < 40:
            reading.use(m)
            return told
    return Subject()


def extreme(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """The best or the worst of the playbooks, symbols, regimes, failure modes or ways to end."""
    if reading.is_used(mention):
        return []
    value = mention.value
    following = reading.layout.next(index)
    if following is not None and following.value in OF_A_TRADE and _is_joint(reading, mention, following):
        order = Mention("measure", mention.start, mention.end, mention.text, ORDERS[str(mention.value)])
        return owner(reading, index, order)
    if following is not None and following.kind == "extreme":
        mention = following
    domain = _domain(reading, index, mention)
    holder, field, at = _holder(reading, mention, domain)
    if holder is None:
        return []
    questions, filters = measures_of(reading, mention)
    reading.use(mention, reading.mentions[index])
    if questions and questions[0] in ("failures", "exits") or field in ("failure_mode", "exit_reason"):
        questions = ("trades",)
    rank = _rank(reading, mention)
    place = (min(mention.start, reading.mentions[index].start), mention.end)
    return [
        reading.claim(
            "comparison", place, ((holder,), 1.0 if at else 0.9), "extreme", questions=questions, value=value,
            domain=field, filters=filters, relation=str(rank),
            negated=reading.layout.is_negated(mention.start),
        )
    ]  # fmt: skip


def _is_joint(reading: SentenceReading, mention: Mention, following: Mention) -> bool:
    """Whether two superlatives share their noun: "the best and the worst trade"."""
    return reading.layout.between(mention.end, following.start) <= {"and", "the", "or", "single"}


def _rank(reading: SentenceReading, mention: Mention) -> int:
    before = reading.layout.lead(mention.start).casefold()
    found = re.search(r"\b(second|third|fourth|fifth)[- ]$", before)
    return 1 if found is None else ("second", "third", "fourth", "fifth").index(found[1]) + 2


def _domain(reading: SentenceReading, index: int, mention: Mention) -> str:
    """Which kind of thing an extreme is one of."""
    clause = reading.clause(mention, "measure")
    behind = [m for m in clause if m.start >= mention.end and m.value in MEMBERS]
    before = [m for m in clause if m.end <= mention.start and m.value in MEMBERS]
    if mention.text.casefold().startswith(("lead", "led", "top")):
        before = []
    chosen = behind[:1] or before[-1:]
    if chosen:
        reading.use(chosen[0])
        return MEMBERS[str(chosen[0].value)]
    return ""


def _holder(reading: SentenceReading, mention: Mention, domain: str) -> tuple[Subject | None, str, bool]:
    """Who is said to be it, by which field, and whether the words say so plainly."""
    if domain in ("failure_mode", "exit_reason"):
        kind = "failure" if domain == "failure_mode" else "exit"
        found = reading.clause(mention, kind)
        before = [m for m in found if m.end <= mention.start]
        chosen = before[-1] if before else found[0] if found else None
        if chosen is None:
            return None, "", False
        reading.use(chosen)
        within = reading.of(mention.start, mention.end)[0][0]
        return within.merge(Subject(**{domain: chosen.value})), domain, True
    groups = [g for g in reading.subjects.groups if not g.told]
    text = reading.layout.text
    at_its = re.search(r"\bat (?:its|their) $", text[: mention.start]) is not None
    before_groups = [g for g in groups if g.end <= mention.start and not at_its]
    after_groups = [g for g in groups if g.start >= mention.end]
    if before_groups and after_groups and mention.start - before_groups[-1].end <= 1:
        own = after_groups[0].own  # "squeeze_breakout's best year was 2009"
        if (domain or _field(own)) in own.fields and not own.fields & before_groups[-1].own.fields:
            return before_groups[-1].subject.merge(own), domain or _field(own), True
    plainly, did = not re.search(r"\bthe $", text[: mention.start]), DID.search(text[: mention.start])
    if not domain and (plainly or did):
        narrowed = next((g for g in after_groups if BEHIND.fullmatch(text, mention.end, g.start)), None)
        if narrowed is not None and not plainly and narrowed.own.fields - {"symbol", "direction"}:
            narrowed = None
        if narrowed is not None and before_groups:
            whole = before_groups[-1].subject.without(*narrowed.own.fields).merge(narrowed.own)
            return whole, _field(narrowed.own), True
    fits = [g for g in reversed(before_groups) if not domain or domain in g.own.fields or domain == "cluster"]
    fits = fits or [g for g in after_groups if not domain or domain in g.own.fields or domain == "cluster"]
    for group in fits:
        subject = group.subject
        field = domain if domain and domain != "cluster" else _field(group.own)
        if field:
            return (
                subject.merge(_within(reading, mention, after_groups, subject)),
                field,
                bool(before_groups),
            )
    side = reading.clause(mention, "measure", "side")
    sides = [m for m in side if (told := filter_of(m)) is not None and told.direction is not None]
    if not domain and sides:
        reading.use(sides[0])
        told = filter_of(sides[0])
        return told, "direction", True
    carried = reading.of(mention.start, mention.end)[0][0]
    field = domain if domain and domain != "cluster" else _field(carried)
    return (carried, field, False) if field and field in carried.fields else (None, "", False)


def _within(reading: SentenceReading, mention: Mention, after: list[Group], subject: Subject) -> Subject:
    """The time or regime behind a superlative within which it is meant: "the most active one of 2006"."""
    text = reading.layout.text
    for group in after:
        narrows = group.own.fields <= WITHIN_WHICH
        if (
            narrows
            and not group.own.fields & subject.fields
            and WITHIN.search(text[mention.end : group.start])
        ):
            return group.own
    return Subject()


def _field(subject: Subject) -> str:
    """The field by which a subject is one of several: the last that narrows it."""
    if subject.order is not None:
        return ""
    for name in ("period", "regime", "symbol", "playbook", "direction"):
        if getattr(subject, name) is not None:
            return name
    return ""


def owner(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """Whose the best, the worst or the first trade is, where no figure says what it brought."""
    if reading.is_used(mention) or mention.value not in OF_A_TRADE:
        return []
    groups = reading.subjects.groups
    inside = next(
        (
            g
            for g in groups
            if g.end <= mention.start and reading.layout.text[g.end : mention.start].strip() in ("", "single")
        ),
        None,
    )
    within = inside.subject if inside is not None else Subject()
    others = [g for g in groups if g is not inside]
    if not others:
        return []
    before = [g for g in others if g.end <= mention.start]
    named = before[-1] if before and inside is None else others[0]
    reading.use(mention)
    meant = within.having("order", ORDER_OF[str(mention.value)])
    return [
        reading.claim(
            "comparison", (mention.start, mention.end), ((meant,), 0.9), "is_of",
            filters=named.own, negated=reading.layout.is_negated(mention.start),
        )
    ]  # fmt: skip


def told_of_one(reading: SentenceReading) -> list[Claim]:
    """What the names behind a first or last trade tell of it: its symbol, its playbook, its day."""
    claims = []
    last: Subject | None = None
    for group in reading.subjects.groups:
        if not group.told:
            last = group.subject if group.subject.order is not None else None
        elif last is not None:
            claims.append(
                reading.claim("name", (group.start, group.end), ((last,), 1.0), "is_of", filters=group.own)
            )
    return claims
