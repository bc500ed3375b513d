"""What a part of a question wants of rows that no tool takes: amounts, exceptions, places in a row and more.

An answer that leaves such words out is one to another question, so they are named and asked back, with the
question that is left without them. Whether something is so ("did it lose more than 5R?") is told by the
figure, and is no filter.
"""

import re
from dataclasses import dataclass

from agents.planning.question_forms import COUNTED, ONE_OF, SUPERLATIVES
from agents.planning.question_words import NUMBERS
from services.model_calls.quoting import visible

LONGEST_SHOWN = 120
WORDED = "|".join(NUMBERS)
# A year or a day is a time of its own.
NO_TIME = r"(?!(?:1[89]|20)\d\d\b(?!\s*(?:shares|dollars|bars|usd))|\d+[-/.]\d+[-/.]\d+|\d{4}-\d\d\b)"
FIGURE = rf"{NO_TIME}(?:[$€£]\s?)?[-+]?\d+(?:[.,]\d+)*(?:\s?(?:%|r|k|x|bps|atr)(?!\w)|(?!\w))"
AMOUNT = rf"(?:{FIGURE}|(?:an?|half|twice|{WORDED})\b)"
UNIT = (
    r"(?:[\s-]+(?:percent|per cent|dollars|usd|bucks|points?|shares?|bars?|days?|weeks?|months?|hours?|r|atr"
    r"|bps|basis points)\b)?"
)
THAN = (
    r"(?:\b(?:(?:more|less|fewer|greater|bigger|larger|smaller|higher|lower|longer|shorter|better|worse|older"
    r"|younger|wider)\s+than|at\s+(?:least|most)|above|over|below|under|beyond|exceeding|within)\b|[<>]=?)\s*"
)
NTH = r"(?:second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|\d{1,3}(?:nd|rd|th))"
COUNT = rf"(?:\d+|{WORDED})"
REST = r"[^,;:.?!]*"
SEASONS = "spring|summer|autumn|fall|winter"
CHOSEN = "Trades are chosen by symbol, playbook, regime, direction, won or lost, and time"
IN_TURN = "Trades are told newest first, or best, worst, longest or shortest first"
STRETCH = "A time is a day, a month, a quarter, a year, or from one day to another"
AT_ONCE = "One list is told at a time"


@dataclass(frozen=True)
class UnmetFilter:
    """Words that want something of rows.

    Attributes:
        told: what is taken instead.
        claimed: whether a question for yes or no is answered without it.
        kinds: of parts that it is of; empty for all.
    """

    form: re.Pattern[str]
    told: str
    claimed: bool = False
    kinds: frozenset[str] = frozenset()


def _filter(form: str, told: str, *, claimed: bool = False, kinds: str = "") -> UnmetFilter:
    return UnmetFilter(re.compile(form, re.IGNORECASE), told, claimed, frozenset(kinds.split()))


LEAD = (
    r"(?:\b(?:(?:that|which|who)\s+)?(?:(?:were|was|are|is)\s+)?(?:held|made|lost|won|earned|entered|closed|exited"
    r"|risking|lasting|worth|priced|gave back|gained|took|cost)\s+|\bwith\s+(?:[\w-]+\s+){0,4}?"
    r"|\b(?:has|have|had|having)\s+)?"
)
UNMET = (
    _filter(
        r"^.*\bwould\b.*\bhave\s+(?:made|lost|earned|won|done|returned|cost)\b.*\b(?:with|without|if)\b.*$",
        "I tell what was, not what would be",
    ),
    _filter(
        r"^(?=.*\b(?:still|yet|left|remain\w*)\s+open\b).*\b(?:trades?|positions?|longs?|shorts?)\b.*$",
        "A trade is counted when it has ended; `what is the position in SYMBOL` tells of one that is open",
        kinds="trades overview decisions",
    ),
    _filter(
        rf"{LEAD}\b(?:between|from)\s+{AMOUNT}{UNIT}\s+(?:and|to)\s+{AMOUNT}{UNIT}", CHOSEN, claimed=True,
    ),
    _filter(rf"{LEAD}{THAN}{AMOUNT}{UNIT}", CHOSEN, claimed=True),
    _filter(
        r"\b(?:with\s+(?:an?\s+)?)?(?:profits?|loss(?:es)?|gains?|pnl|p&l|returns?|results?|prices?|drawdowns?|size)"
        rf"\s+(?:of|at|=)\s+{FIGURE}(?!\d|\.[A-Za-z]){UNIT}", CHOSEN, claimed=True,
    ),
    _filter(rf"{LEAD}(?:[$€£]\s?\d[\d.,]*|{NO_TIME}\b\d+(?:\.\d+)?\s?R\b)", CHOSEN, claimed=True),
    _filter(
        r"\b(?:except(?:ing)?|excluding|without|other than|apart from|aside from|besides|ignoring|leaving out"
        rf"|neither|but not|but never)\b{REST}", CHOSEN,
        kinds="market trades fill definition gate report overview runs",
    ),
    _filter(rf"\b(?:all|every|any)\b[^,;.?!]*?\s(?P<cut>but\s{REST})", CHOSEN),
    _filter(
        rf"(?:\b(?:that|which)\s+(?:were|was|are|is)\s+)?\bnot\s+(?:in|on|of|for|from|with|during|by|since)\b{REST}",
        CHOSEN, claimed=True,
    ),
    _filter(
        r"(?:\b(?:that|which|who)\s+)?\b(?:(?:(?:did|do|does|have|has|had)\s*(?:not|n['’]?t)|never)"
        r"\s+(?:los[et]|w[io]n)\b(?:\s+(?:any\s+)?money\b)?|non[- ]?(?:losing|winning)\b"
        r"|not\s+(?:losing|winning)\b)", CHOSEN, claimed=True,
    ),
    _filter(
        r"\b(?:(?:that|which)\s+(?:were|was|are|is)\s+)?(?:not|no)\s+(?:an?\s+)?"
        r"(?:longs?|shorts?|winners?|losers?)\b"
        r"(?!\s+(?:trades?|positions?)?\s*(?:was|were|at all))",
        "Ask for the longs, the shorts, the winners or the losers", claimed=True,
        kinds="trades decisions fill",
    ),
    _filter(
        r"\b(?:w[io]n\w*|profit\w*|gain\w*|made money)\b[^,;.?!]*"
        r"(?P<cut>,?\s+(?:but|and|while|yet)\s+(?:(?:which|that)\s+)?"
        rf"(?:los[et]\w*|losing)\s+(?:on|in|with|for)\b{REST})",
        AT_ONCE, kinds="trades fill decisions overview",
    ),
    _filter(
        r"\blos[est]\w*\b[^,;.?!]*(?P<cut>,?\s+(?:but|and|while|yet)\s+(?:(?:which|that)\s+)?"
        rf"(?:w[io]n\w*|profit\w*|gain\w*|made money)\s+(?:on|in|with|for)\b{REST})",
        AT_ONCE, kinds="trades fill decisions overview",
    ),
    _filter(
        rf"\b(?P<cut>(?:best|worst|longest|shortest)\s+and\s+(?:the\s+)?)(?=(?:best|worst|longest|shortest)\s+"
        rf"(?:\w+\s+)?{ONE_OF}s?\b)", AT_ONCE, kinds="trades fill decisions",
    ),
    _filter(
        rf"\b(?P<first>{SUPERLATIVES})\s+(?:\w+\s+)?{ONE_OF}\b[^,;.?!]*?(?P<cut>\s+and\s+(?:the\s+)?"
        rf"(?!(?P=first))(?:{SUPERLATIVES})\s+(?:\w+\s+)?{ONE_OF}\b{REST})", AT_ONCE,
        kinds="trades fill decisions",
    ),
    _filter(
        r"\b(?:half|a third|a quarter)\s+of\s+(?:the|all|its|our|my)\b|\bevery\s+(?:second|other|third)\b"
        r"|\brandom(?:ly)?\b", IN_TURN, kinds="trades fill decisions",
    ),
    _filter(
        rf"\b(?P<cut>{NTH}[\s-]+(?:to[\s-]+)?)(?=(?:{SUPERLATIVES}|last|latest|newest)\b|(?:\w+\s+)?{ONE_OF}\b)",
        IN_TURN, kinds="trades fill decisions report",
    ),
    _filter(r"\b(?:penultimate|next to last|last but one)\b", IN_TURN, kinds="trades fill decisions report"),
    _filter(
        rf"\b(?P<cut>(?:oldest|earliest|first)\s+)(?=(?:{COUNT}\s+)?(?:\w+\s+)?(?:{COUNTED})\b)",
        f"{IN_TURN}; with a time such as `until 2003-12-31`, those of then", kinds="trades fill decisions",
    ),
    _filter(r"\b(?:consecutive|in a row|back[- ]to[- ]back)\b|\b(?:\w+ )?streaks?\b", IN_TURN),
    _filter(
        rf"(?P<cut>\b(?:{SUPERLATIVES}|last|latest|first)\s+{COUNT}\b.*?)(?=\s+(?:and|or|plus)\s.*\b(?:{SUPERLATIVES}"
        rf"|last|latest|first)\s+{COUNT}\b)", AT_ONCE, kinds="trades fill decisions",
    ),
    _filter(
        rf"\b(?:{SUPERLATIVES}|last|latest|newest)\s+(?:\w+\s+)?{ONE_OF}s?\s+"
        r"(?P<cut>(?:of|for|in|on|per|by|from)\s+(?:each|every)\b(?:\s+\w+)?)",
        f"{AT_ONCE}: name a symbol, a playbook or a regime",
    ),
    _filter(rf"\b(?:sorted|ordered|arranged)\s+by\b{REST}", IN_TURN),
    _filter(
        r"\b(?:before|after|following|preceding)\s+(?:the|that|this|each|every)\s+(?:\w+\s+){0,2}?(?:trade|loss|loser"
        r"|win|winner|fill|one)\b", IN_TURN, kinds="trades fill",
    ),
    _filter(
        r"^(?!.*\b(?:how (?:often|many)|share|percent\w*|fraction|number of)\b).*?"
        r"\b(?:trades?|positions?|losers?|winners?|longs?|shorts?|ones)\s+(?P<cut>(?:(?:that|which)\s+)?"
        r"(?:(?:were|was|got)\s+)?stopped(?:\s+out)?)\b(?!.*\b(?:other|compared|vs|versus)\b)",
        f"{CHOSEN}; `trades by exit reason` tells of each way out", kinds="trades",
    ),
    _filter(
        r"^.*\b(?:(?:average|avg|mean)\s+(?:p&l|pnl|dollars?|usd|cash)|pay-?offs?)\b.*$",
        "Means are told in R, and sums in money", kinds="trades overview gate market",
    ),
    _filter(
        r"^.*\b(?:slippage|funding|borrow(?:ing)?\s+(?:rates?|fees?|costs?))\b.*$",
        "Fees are told in one sum, with all that was paid for holding",
        kinds="trades overview market report runs",
    ),
    _filter(
        r"\b(?:variance|standard deviations?|correlat\w+|percentiles?|quartiles?)\b",
        "Sums, means, medians and rates are told",
    ),
    _filter(
        r"\b(?:(?:max(?:imum|imal)?|biggest|largest|deepest|worst)\s+)?draw-?downs?\b|\b(?:sharpe|sortino|calmar"
        r"|treynor|omega)(?:\s+ratios?)?\b|\b(?:cagr|ulcer index|equity curve|buying power|leverage)\b",
        "Trades are told, not the account: `thinktwice page` draws the equity and its drawdown",
        kinds="trades overview decisions gate fill runs",
    ),
    _filter(
        r"\b(?:per|each|every|by)\s+(?:(?:calendar|single)\s+)?(?:year|quarter|month|week|day|weekday)\b"
        r"|(?<=trades )an?\s+(?:year|quarter|month|week|day)\b(?!\s+ago)"
        r"|\b(?:annually|yearly|monthly|annuali[sz]ed|year[- ]by[- ]year|month[- ]by[- ]month)\b",
        "One stretch is told at a time: name it, such as `in 2004`", kinds="trades decisions overview",
    ),
    _filter(
        r"\b(?:as )?(?:compared|relative|against|versus|vs\.?)\s+(?:(?:with|to)\s+)?(?:(?:the|an?)\s+)?"
        r"(?:index|benchmark|s&p(?:\s?500)?|market|buy[- ]and[- ]hold)\b",
        "Answers compare what the run traded",
    ),
    _filter(rf"\b(?:in|of|during)\s+(?:the\s+)?(?:{SEASONS})\b", STRETCH),
    _filter(
        r",?\s*\b(?:(?:only\s+)?(?:on|of)\s+)?(?:mon|tues|wednes|thurs|fri|satur|sun)days\b"
        r"(?:\s+(?:only|alone))?"
        r"|\b(?:week|work)days?\b(?:\s+(?:only|alone))?", STRETCH,
        kinds="trades fill decisions overview market",
    ),
    _filter(
        r"\b(?:in|of|during)\s+(?:the\s+)?(?:first|last|opening|closing)\s+(?:half\s+)?(?:hours?|minutes?)\b",
        STRETCH,
    ),
    _filter(r"^(?!.*(?:\d{4}|yesterday|today)).*?(?P<cut>\b(?:at\s+)?\d{1,2}:\d{2}\b)", STRETCH),
    _filter(
        r"\b(?:reports?|verdicts?)\s+(?P<cut>(?:(?:that|which)\s+recommend\w*|recommending)\b[^,;:.?!]*"
        r"|with the (?:most|fewest|least)\b[^,;:.?!]*)",
        "Reports are told newest first, or one by its id", kinds="report",
    ),
    _filter(
        r"\b(?P<cut>(?:only\s+)?(?:proven|significant))(?=\s+(?:clusters?|playbooks?|ones)\b)",
        "Every cluster is told with its grade", kinds="gate",
    ),
)  # fmt: skip
CLAIMS = re.compile(
    r"^\W*(?:(?:and|but|so|or)\s+)?(?:is|are|was|were|did|does|do|has|have|had|will|would|can|could|why"
    r"|how far)\b",
    re.IGNORECASE,
)
# How many are wanted, in a list of them.
ROWS = re.compile(rf"\s*(?:\w+\s+)?(?:{COUNTED})\b", re.IGNORECASE)
HAVING = re.compile(r"^\W*(?:with|has|have|had|having)\b", re.IGNORECASE)
DANGLING = (
    r"(?:with|of|in|on|at|by|to|for|the|an?|and|or|but|plus|that|which|were|was|are|is|their|its|made|gave|held|has"
    r"|have)"
)
LOOSE = re.compile(
    rf"^(?:{DANGLING}\s+(?=(?:and|or|but|plus)\b)|(?:and|or|but|plus)\s+)+|(?:\s*\b{DANGLING})+$",
    re.IGNORECASE,
)
AT_MOST = re.compile(r"\bat most\b", re.IGNORECASE)
OF_ROWS = frozenset(
    {"market", "trades", "decisions", "fill", "definition", "gate", "report", "overview", "runs"}
)


@dataclass(frozen=True)
class UnmetWords:
    """Words that no tool takes.

    Attributes:
        words: as they were said.
        told: what is taken instead.
        rest: the question without them, and without any others of the sort.
    """

    words: str
    told: str
    rest: str


def unmet(text: str, kind: str) -> UnmetWords | None:
    """The first words that want what no tool takes; None where all are taken."""
    plain = " ".join(text.split())
    found = _first(plain, kind)
    if found is None:
        return None
    start, end, told = found
    rest = _without(plain, start, end)
    while further := _first(rest, kind):
        rest = _without(rest, *further[:2])
    return UnmetWords(_quote(plain[start:end]), told, _quote(rest))


def _first(plain: str, kind: str) -> tuple[int, int, str] | None:
    """Where they begin and end, and what is taken instead."""
    if kind not in OF_ROWS:
        return None  # terms of a plan or of a rule
    claims = CLAIMS.match(plain) is not None
    for wanted in UNMET:
        if (wanted.kinds and kind not in wanted.kinds) or (wanted.claimed and claims):
            continue
        for found in wanted.form.finditer(plain):
            start, end = found.span("cut" if "cut" in wanted.form.groupindex else 0)
            having, rows = HAVING.match(found[0]), ROWS.match(plain, end)
            if rows and not having and AT_MOST.search(found[0]):
                continue  # as many are wanted at most
            return start, rows.end() if rows and having else end, wanted.told
    return None


def _without(plain: str, start: int, end: int) -> str:
    rest = " ".join(f"{plain[:start]} {plain[end:]}".split()).strip(" ,;:?.!")
    return LOOSE.sub("", rest).strip(" ,;:")


def _quote(words: str) -> str:
    plain = visible(words.strip(" ,;:?.!"))
    return plain if len(plain) <= LONGEST_SHOWN else f"{plain[:LONGEST_SHOWN]}..."
