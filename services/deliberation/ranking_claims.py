"""Claims of the first of several: the best, the worst, the most frequent, and whose a trade is."""

import re

from services.deliberation.claim import Claim
from services.deliberation.figures import BOTH
from services.deliberation.layout import Mention
from services.deliberation.noun_phrases import NUMBERS, filter_of, is_whom
from services.deliberation.numerals import unit_of
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
LONG = re.compile(r"(?:long|short)(?:e(?:st|r))?|quickest|briefest|fastest", re.I)
HELD = ("hold_p50", "hold_mean")
JOINT = frozenset({"and", "the", "or", "single"})  # of superlatives that share their noun
RANKS = ("second", "third", "fourth", "fifth")
RANK = re.compile(rf"\b({'|'.join(RANKS)})[- ]$")
OF_A_TRADE = frozenset({"best_r", "worst_r", "hold_max", "hold_min", "best_pnl", "worst_pnl"})
ORDER_OF = {
    "best_r": "best", "worst_r": "worst", "hold_max": "longest", "hold_min": "shortest",
    "best_pnl": "best_pnl", "worst_pnl": "worst_pnl",
}  # fmt: skip
ORDERS = {"highest": "best_r", "lowest": "worst_r"}
UNSTATED = frozenset({"trades", "bars", "days"})
TOTAL_FROM = 4.0  # R: no mean of trades is so large, so such an amount is a sum
WITHIN_WHICH = frozenset({"period", "basis", "regime", "timeframe", "direction", "playbook", "symbol"})
# A verb before "the most" makes of the name behind it where, and not of whom.
DID = re.compile(r"\b(?:earn|ma[dk]e|los[te]|gain|trad|return|won|did|paid)\w* the $", re.I)
WITHIN = re.compile(r"^[^,;:()]{0,40}\b(?:of|in|on|during|for|under)(?: the)? $", re.I)
WON = re.compile(r"\b(?:(?P<won>won|wins?)|los(?:t|es?)) (?:an? |the )?$", re.I)
TRADES = re.compile(r" (?:trades|positions)(?= than\b)", re.I)
OF_ITS = re.compile(r"(?: (?:share|part|portion|percentage))? of (?:its|their|all) (?:own )?trades\b", re.I)
OPENS = re.compile(
    r"(?:.*(?:[,;:]|\b(?:and|but|while|that))\s+)?(?:(?:in|on|during) )?(?:(?:the|its|their|our) )?"
    r"(?:single )?",
    re.I | re.S,
)
IN_TIME = frozenset({"first", "last", "first_exit", "last_exit"})
MADE = re.compile(
    r"\b(?:ma[dk]e|took|takes?|ha[ds]|have|opened|closed|entered|saw|found|placed)s? (?:the|its|their|our)"
    r"(?: very)? $",
    re.I,
)
BEHIND = re.compile(r" (?:in|on|with|during|under|for)(?: the)? ", re.I)


def measures_of(reading: SentenceReading, mention: Mention) -> tuple[tuple[str, ...], Subject]:
    """The measure that a comparison or an extreme is of, and the trades that it counts."""
    won = WON.search(reading.layout.text[: mention.start])
    for words, asked in ((TRADES, ("winners", "losers")), (OF_ITS, ("win_rate", "loss_rate"))):
        if won and (told_of := words.match(reading.layout.text, mention.end)):
            reading.use(*(m for m in reading.mentions if won.start() <= m.start and m.end <= told_of.end()))
            return (asked[0] if won["won"] else asked[1],), Subject()
    if OFTEN.search(reading.layout.text[mention.start : mention.end + OFTEN_BEHIND]):
        rates = [m for m in reading.clause(mention, "measure") if m.value in ("win_rate", "loss_rate")]
        if rates:
            reading.use(rates[0])
            return (str(rates[0].value),), Subject()
        return ("trades",), _find_counted(reading, mention)
    if COSTLY.search(mention.text):
        return ("fees",), Subject()
    if LONG.fullmatch(mention.text):
        return HELD, Subject()
    found = [m for m in reading.clause(mention, "measure") if m.value not in {*MEMBERS, *OF_A_TRADE}]
    found = [m for m in found if not is_whom(reading.layout, m)]
    found = [m for m in found if not (m.value == "mean_r" and m.text.casefold().startswith("edge"))]
    if JUDGING.match(mention.text):
        found = [m for m in found if m.value != "trades"]
    near = [m for m in found if m.start >= mention.end]
    chosen = near[:1] or [m for m in found if m.value != "trades"][-1:] or found[-1:]
    if not chosen:
        return _list_unnamed(reading, mention), Subject()
    named = chosen[0]
    reading.use(named)
    told = filter_of(named)
    if told is not None:
        return ("trades",), told
    if named.value == "profit":
        return (*BOTH, "pnl"), Subject()
    if named.value in ("bars", "days"):
        return HELD, Subject()
    return (str(named.value),), Subject()


def _list_unnamed(reading: SentenceReading, mention: Mention) -> tuple[str, ...]:
    """What a comparison may be of that names no measure."""
    earlier = [m for m in reading.mentions if m.kind == "measure" and m.end <= mention.start]
    earlier = [m for m in earlier if m.value not in {*MEMBERS, *OF_A_TRADE, "profit"}][-1:]
    stated = [str(m.value) for m in earlier if filter_of(m) is None and m.value not in UNSTATED]
    amounts = [m.value for m in reading.mentions if m.kind == "number" and unit_of(m.value) == "r"]
    large = any(abs(amount.value) >= TOTAL_FROM for amount in amounts)
    return (*stated, *(("total_r",) if large else BOTH))


def _find_counted(reading: SentenceReading, mention: Mention) -> Subject:
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
    between = frozenset() if following is None else reading.layout.between(mention.end, following.start)
    if following is not None and following.value in OF_A_TRADE and between <= JOINT:
        order = Mention("measure", mention.start, mention.end, mention.text, ORDERS[str(mention.value)])
        return owner(reading, index, order)
    if following is not None and following.kind == "extreme":
        mention = following
    domain = _domain(reading, mention)
    holder, field, at = _holder(reading, mention, domain)
    if holder is None:
        return []
    questions, filters = measures_of(reading, mention)
    reading.use(mention, reading.mentions[index])
    if questions and questions[0] in ("failures", "exits") or field in ("failure_mode", "exit_reason"):
        questions = ("trades",)
    place = (min(mention.start, reading.mentions[index].start), mention.end)
    return reading.claims(
        "comparison", place, ((holder,), 1.0 if at else 0.9), "extreme", questions=questions, value=value,
        domain=field, filters=filters, relation=str(_rank(reading, mention)),
        negated=reading.layout.is_negated(mention.start),
    )  # fmt: skip


def _rank(reading: SentenceReading, mention: Mention) -> int:
    before = reading.layout.lead(mention.start).casefold()
    found = RANK.search(before)
    return 1 if found is None else RANKS.index(found[1]) + 2


def _domain(reading: SentenceReading, mention: Mention) -> str:
    """Which kind of thing an extreme is one of."""
    clause = reading.clause(mention, "measure")
    behind = [m for m in clause if m.start >= mention.end and m.value in MEMBERS]
    before = [m for m in clause if m.end <= mention.start and m.value in MEMBERS]
    leads = mention.text.casefold().startswith(("lead", "led", "top"))
    chosen = behind[:1] or ([] if leads else before[-1:])
    reading.use(*chosen)
    return MEMBERS[str(chosen[0].value)] if chosen else ""


def _holder(reading: SentenceReading, mention: Mention, domain: str) -> tuple[Subject | None, str, bool]:
    """Who is said to be it, by which field, and whether the words say so plainly."""
    if domain in ("failure_mode", "exit_reason"):
        found = reading.clause(mention, "failure" if domain == "failure_mode" else "exit")
        if not found:
            return None, "", False
        before = [m for m in found if m.end <= mention.start]
        chosen = before[-1] if before else found[0]
        reading.use(chosen)
        return reading.of(*mention.place)[0][0].having(domain, chosen.value), domain, True
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
    asked = "" if domain == "cluster" else domain
    fits = [g for g in reversed(before_groups) if not asked or asked in g.own.fields]
    fits = fits or [g for g in after_groups if not asked or asked in g.own.fields]
    for group in fits:
        if field := asked or _field(group.own):
            within = _within(reading, mention, after_groups, group.subject)
            return group.subject.merge(within), field, bool(before_groups)
    told = ((m, filter_of(m)) for m in reading.clause(mention, "measure", "side"))
    sides = [(m, side) for m, side in told if side is not None and side.direction is not None]
    if not domain and sides:
        reading.use(sides[0][0])
        return sides[0][1], "direction", True
    carried = reading.of(*mention.place)[0][0]
    field = asked or _field(carried)
    return (carried, field, False) if field and field in carried.fields else (None, "", False)


def _within(reading: SentenceReading, mention: Mention, after: list[Group], subject: Subject) -> Subject:
    """The time or regime behind a superlative within which it is meant: "the most active one of 2006"."""
    narrow = (g for g in after if g.own.fields <= WITHIN_WHICH and not g.own.fields & subject.fields)
    text = reading.layout.text
    return next((g.own for g in narrow if WITHIN.search(text[mention.end : g.start])), Subject())


def _field(subject: Subject) -> str:
    """The field by which a subject is one of several: the last that narrows it."""
    named = () if subject.order is not None else ("period", "regime", "symbol", "playbook", "direction")
    return next((name for name in named if getattr(subject, name) is not None), "")


def owner(reading: SentenceReading, index: int, mention: Mention) -> list[Claim]:
    """Whose the best, the worst or the first trade is, where no figure says what it brought."""
    if reading.is_used(mention) or mention.value not in OF_A_TRADE:
        return []
    groups, text = reading.subjects.groups, reading.layout.text
    before = [g for g in groups if g.end <= mention.start]
    inside = next((g for g in before if text[g.end : mention.start].strip() in ("", "single")), None)
    whose = (g for g in groups if g.start <= mention.start < g.end and g.own.fields - {"order"})
    inside = next((g for g in whose if opens_with(reading, g)), inside)
    within = inside.subject if inside is not None else Subject()
    others = [g for g in groups if g is not inside] or groups
    if not others:
        return []
    named = before[-1] if before and inside is None else others[0]
    reading.use(mention)
    meant = within.having("order", ORDER_OF[str(mention.value)])
    return reading.claims(
        "comparison", mention.place, ((meant,), 0.9), "is_of",
        filters=named.own, negated=reading.layout.is_negated(mention.start),
    )  # fmt: skip


def opens_with(reading: SentenceReading, group: Group) -> bool:
    """Whether a clause is about the one trade that a group names: "the best trade of IBM was a loss".

    In "it had its best trade on IBM" and in "the best trade, an IBM short," the name is what is told of it.
    """
    text, told = reading.layout.text, reading.mentions
    plain = "," not in text[group.start : group.end] and OPENS.fullmatch(text, 0, group.start) is not None
    tells = any(m.start >= group.end and (filter_of(m) is not None or m.kind in NUMBERS) for m in told)
    return plain and (tells or any(g.start >= group.end for g in reading.subjects.groups))


def claims_of_one(reading: SentenceReading) -> list[Claim]:
    """What the names behind a first or last trade tell of it: its symbol, its playbook, its day."""
    claims, text = [], reading.layout.text
    last = Subject()
    for group in reading.subjects.groups:
        if not group.told:
            last = group.subject
            named = group.own.without("order")
            if not named.is_empty and group.own.order in IN_TIME and MADE.search(text[: group.start]):
                whose = (last.without(*named.fields),), 0.9  # "made its first trade on GOOG"
                place = group.start, group.end
                claims.append(reading.claim("name", place, whose, "is_of", filters=named))
        elif last.order is not None:
            place = group.start, group.end
            claims.append(reading.claim("name", place, ((last,), 1.0), "is_of", filters=group.own))
    return claims
