"""What a question wants done with the rows of a tool: ranked, grouped, counted or held to a claim.

Superlatives, `by each`, `how many` and `why not` are read here for any kind of row, whatever else is named.
"""

import re
from dataclasses import dataclass
from typing import Literal

Order = Literal["best", "worst", "longest", "shortest"]
By = Literal["playbook", "symbol", "regime", "direction", "outcome", "exit_reason"]
Side = Literal["long", "short"]

COMMON: dict[By, str] = {
    "symbol": r"symbols?|tickers?|stocks?|instruments?|names?",
    "playbook": r"playbooks?|strategy|strategies|setups?",
    "regime": r"regimes?|market conditions?",
    "direction": r"directions?|sides?",
    "exit_reason": r"exits?|exit (?:reasons?|types?)|ways? (?:out|of exit)|endings?",
}
OF = r"(?:(?:of|all|other|different|the|our|your|my|its|kind of)\s+){0,3}"
# "by symbol", "which playbook", "of all regimes": one figure for each of them.
GROUPED: dict[By, re.Pattern[str]] = {
    by: re.compile(
        r"\b(?:by|per|each|every|which|what|rank|compare|compared (?:with|to)|other|across|for"
        rf" all)\s+{OF}(?:{nouns})\b(?! of )"
        rf"|\b(?:best|worst|top|most|least)(?:\s+\w+ing|\s+\w+able)?\s+(?:{nouns})\b"
        rf"|\b(?:{nouns})\s+(?:\w+\s+){{1,2}}?(?:best|worst|most|least)\b"
        rf"|\b(?:of|from|among|between)\s+all\s+(?:(?:the|our|your|my)\s+)?(?:{nouns})\b"
    )
    for by, nouns in COMMON.items()
}
OR = r"\b.{1,24}\b(?:or|vs|versus|than|against|and|to)\b.{0,12}\b"
SIDES: dict[By, re.Pattern[str]] = {
    "direction": re.compile(r"\blongs?\b(?: \S+){0,5}? shorts?\b|\bshorts?\b(?: \S+){0,5}? longs?\b"),
    "exit_reason": re.compile(
        r"\bstop(?:s|ped|[- ]outs?)?\b.{1,30}\b(?:or|vs|versus|than|against|compared?"
        r"|and)\b.{0,20}\b(?:targets?|time)\b"
        r"|\b(?:how (?:often|many)|(?:share|percent\w*|fraction|number) of)\b.{1,60}\b(?:stopped|timed out"
        r"|hit (?:(?:the|a|its|their) )?(?:stops?|targets?)|time[- ]stops?)\b"
        r"|\btargets?\b.{1,30}\b(?:or|vs|versus|than|against|compared?|and)\b.{0,20}\bstop(?:s|ped)?\b"
    ),
    "outcome": re.compile(rf"\bwin(?:s|ners?|ning)?{OR}los\w*|\blos\w*{OR}win(?:s|ners?|ning)?\b"),
}
GOOD = re.compile(r"\b(?:best|top)\b")
BAD = re.compile(r"\b(?:worst|costliest|ugliest|(?:most|least) (?:painful|expensive|costly|successful))\b")
# How all of a sort did is asked of each of them.
ALL_OF: dict[By, str] = {"playbook": "playbooks|strategies|setups", "symbol": "symbols|tickers|stocks"}
FARED: dict[By, re.Pattern[str]] = {
    by: re.compile(
        rf"\bhow (?:did|do|have|has|are|were) {OF}(?:{nouns}) (?:all )?"
        r"(?:do|doing|done|perform|performing|performed|fare|fared|faring|go|going)\b"
    )
    for by, nouns in ALL_OF.items()
}
# What works is asked of playbooks.
WORKING = re.compile(r"\bwhat(?: (?:has|is|was|been|does|did))* (?:work|works|worked|working)\b")
MUCH = re.compile(
    r"\b(?:biggest|largest|greatest|highest|most(?! (?:recent|common|frequent|often|of)\b)"
    r"|huge?st|fattest|heaviest)\b"
)
LITTLE = re.compile(r"\b(?:smallest|lowest|least)\b")
HOLDS = re.compile(r"\b(?:(longest)|shortest|quickest|fastest|briefest)\b")
EARNING = re.compile(
    r"\b(?:pnl|p&l|results?|profit\w*|gain\w*|earn\w*|won|win\w*|made|make|paid|pays?|return\w*)\b"
)
LOSING = re.compile(r"\b(?:los[est]\w*|cost\w*|hurt\w*|bleed\w*)\b")
DIRECTED = re.compile(
    r"\b(long|short)s\b|(?<!how )(?<!so )(?<!as )\b(long|short(?! of\b(?! <)))\b"
    r"(?! (?:do|did|does|is|are|was|have|has|ago|it|term|time)\b)|<symbol> (long|short) do(?:ne|ing)?\b"
)
BOUGHT = re.compile(r"\b(?:buy|bought|buying)\b")
SHORTED = re.compile(r"\b(?:shorted|shorting|sell(?:ing)?|sold)\b")
MANY = re.compile(r"\b(?:how many|how often|number of|count(?: of)?|total number|how much)\b")
DOES = re.compile(
    r"\bwhat (?:do|does)\b.*\bdo\b|\bhow (?:do|does)\b.*\bwork\b|\bidea (?:of|behind)\b"
    r"|\bexpect(?:ation|ations|ed|s)?\b|\b(?:plain|simple) (?:words|terms|english)\b|\bsupposed to\b"
    r"|\bnutshell\b|\blogic\b|\bcriteria\b|\bmeant to\b|\blook(?:s|ing)? for\b"
    r"|\bwhen\b.*\b(?:entry|exit|enters?|exits?|buys?|sells?|triggers?|fires?)\b"
)
STATUS = re.compile(
    r"\b(?:ban|bans|banned|retired|disabled|demoted|promoted|suspended|blacklisted|paused|deactivated|benched"
    r"|(?:turn|switch|shut)(?:ed)? (?:off|down)|in force)\b"
)
LENGTH = re.compile(
    r"\bhow (?:long|many (?:bars|days))\b|\b(?:hold(?:ing)?|held) (?:time|times|period|periods)\b"
    r"|\b(?:typical|average|avg|mean|median|usual) (?:hold|holding|duration)\b"
)
# Figures of trades beyond those of every answer.
FIGURES: dict[str, re.Pattern[str]] = {
    field: re.compile(form)
    for field, form in {
        "profit_factor": r"\bprofit factor\b",
        "win_rate": r"\b(?:win(?:ning)?|hit|success) (?:rate|ratio|share|percentage)s?\b",
        "fees": r"(?<!after )(?<!before )(?<!net of )\b(?:fees?|commissions?)\b",
        "median_r": r"\bmedians?\b(?! hold| dur)",
        "mean_mae": r"\b(?:mae|adverse)\b",
        "mean_mfe": r"\b(?:mfe|favou?rable)\b",
        "pnl": r"(?<!/)\b(?:dollars?|usd|euros?|cash|pnl|p&l|in money|how much money)\b|[$€£]",
    }.items()
}


@dataclass(frozen=True)
class RowQuestion:
    """What is wanted of the rows.

    Attributes:
        order: which of them come first.
        by: what they are grouped by.
        direction: side of the trades that are meant.
        counts: whether a number of them is asked for.
        status: whether it asks if or why a playbook was banned or the like.
    """

    order: Order | None = None
    by: By | None = None
    direction: Side | None = None
    counts: bool = False
    status: bool = False

    @property
    def known(self) -> int:
        """How much of a question it is."""
        return sum(bool(value) for value in vars(self).values())


def row_question(text: str, *, has_playbook: bool) -> RowQuestion:
    """What lower-case words want of rows, whatever their kind."""
    by = _by(text, has_playbook=has_playbook)
    return RowQuestion(
        order=None if by is not None else _order(text),
        by=by,
        direction=None if by == "direction" else _side(text),
        counts=MANY.search(text) is not None,
        status=STATUS.search(text) is not None,
    )


def _by(text: str, *, has_playbook: bool) -> By | None:
    found = next(
        (by for by, form in (*SIDES.items(), *GROUPED.items(), *FARED.items()) if form.search(text)), None
    )
    if found is None and not has_playbook and WORKING.search(text):
        return "playbook"
    return found


def _order(text: str) -> Order | None:
    """Which rows a superlative puts first; `most` and `least` are of what is earned or lost."""
    if held := HOLDS.search(text):
        return "longest" if held[1] else "shortest"
    if BAD.search(text):
        return "worst"
    if GOOD.search(text):
        return "best"
    loses, earns = LOSING.search(text) is not None, EARNING.search(text) is not None
    if loses == earns or not (MUCH.search(text) or LITTLE.search(text)):
        return None
    return "best" if (MUCH.search(text) is not None) == earns else "worst"


def _side(text: str) -> Side | None:
    if found := DIRECTED.search(text):
        return "long" if "long" in found.groups() else "short"
    if SHORTED.search(text) and "short" in text:
        return "short"
    return "long" if BOUGHT.search(text) else None
