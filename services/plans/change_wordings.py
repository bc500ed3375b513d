"""A change as people word it, put into the typed form that means the same; nothing is guessed.

Only whole statements are read: one that says more, or leaves out a playbook, a regime or a value, stays as it
is.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from services.deliberation.first_letters import first_letters
from services.plans.text_forms import has_form

NO_NAME = (
    r"(?!(?:again|out|off|down|playbook|strategy|setup|back|from|in|to|trade|trading|for|on|during|now)\b)"
)
# What is stopped as a whole is no playbook.
WHOLE = (
    r"(?:runs?|backtests?|bot|system|process|machine|engine|trading|trades?|positions?|orders?|account|server|store"
    r"|database|everything)"
)
STOPS_WHOLE = re.compile(
    r"(?:kill|stop|halt|pause|suspend|retire|disable|deactivate|shut down|(?:switch|turn) off"
    r"|terminate|abort|freeze|remove|drop|scrap)"
    rf" (?:(?:all|the|this|that|my|our|of) ){{0,3}}{WHOLE}(?: (?:off|down|now|everywhere))*[.!]*",
    re.IGNORECASE,
)
NO_BOOK = (
    rf"(?!{WHOLE}\b)"
    + r"(?!(?:the|a|an|my|our|your|this|that|it|its|all|each|every|any|everything|risk|stop|target)\b)"
)
BOOK = (
    rf"(?:the )?[\"'`]?(?P<book>{NO_BOOK}(?:[a-z]\w*_\w+|[a-z]\w*(?:[ -]{NO_NAME}[a-z]\w*)?))[\"'`]?(?:'s)?"
    r"(?: (?:playbook|strategy|setup))?"
)
BOOK_ID = r"(?:the )?(?P<book>[a-z][a-z0-9]*(?:_[a-z0-9]+)+)(?:'s)?"
CELL = (
    r"(?:the )?(?:regimes? )?[\"'`]?(?P<trend>up|down|sideways)(?:[- ]?trend(?:s|ing)?(?:"
    r" markets?)?)?\s*(?:[/,-]|and|with)?\s*"
    r"(?P<band>low|mid|high|extreme)[\"'`]?(?:[ -]vol(?:atility)?)?(?: (?:regimes?|markets?|conditions?))?"
)
SIDE = r"(?P<side>long|short)s?"
NO_MORE = (
    r"(?: (?:any ?more|any longer|for (?:now|good)|altogether|completely|entirely|everywhere|from now"
    r" on|right away|now))*"
)
OFF = (
    r"retire|disable|suspend|pause|deactivate|bench|shelve|scrap|drop|kill|remove|ditch|get rid"
    r" of|shut (?:off|down)"
    r"|(?:switch|turn) off|(?:stop|quit|cease) (?:trading|using|running|playing)|do not (?:trade"
    r"|use|run)|don't (?:trade|use|run)"
)
SET = r"(?:set|change|lower|cut|reduce|decrease|raise|increase|lift|bring|put|adjust|move|make|update)"
RISK = r"(?:risk(?: per trade| fraction| budget)?|risk on each trade)"
VALUE = r"(?:exactly |only )?(?P<value>[+-]?\d+(?:\.\d+)?)"
PERCENT = rf"{VALUE}\s*(?:%|percent|per cent|pct)(?: (?:of equity|per trade|a trade|each))*"


def _cell(found: re.Match[str]) -> str:
    return f"{found['trend']}/{found['band']}".casefold()


def _book(found: re.Match[str]) -> str:
    return re.sub(r"[ -]", "_", found["book"]).casefold()


def _word_ban(found: re.Match[str]) -> str:
    return f"ban {_book(found)} in {_cell(found)}{_side(found)}"


def _word_allowance(found: re.Match[str]) -> str:
    return f"allow {_book(found)} in {_cell(found)}{_side(found)}"


def _side(found: re.Match[str]) -> str:
    side = found.groupdict().get("side")
    return f" {side.casefold()}" if side else ""


def _word_retirement(found: re.Match[str]) -> str:
    return f"retire {_book(found)}"


def _risk(found: re.Match[str]) -> str:
    return f"set the risk of {_book(found)} to {found['value']} %"


def _word_halving(found: re.Match[str]) -> str:
    return f"set the risk of {_book(found)} to half"


def _word_doubling(found: re.Match[str]) -> str:
    return f"set the risk of {_book(found)} to double"


def _parameter(found: re.Match[str]) -> str:
    return f"set {re.sub(r'[ -]', '_', found['parameter'])} of {_book(found)} to {found['value']}"


def _word_rollback(found: re.Match[str]) -> str:
    return f"roll back {_book(found)}"


@dataclass(frozen=True)
class Wording:
    """A way to word a change, compiled for the first statement that begins as it may."""

    form: str

    def of_all(self, statement: str) -> re.Match[str] | None:
        """The match of a whole statement; None where it is worded otherwise."""
        begins = statement[:1].casefold() in self._letters
        return self._pattern.fullmatch(statement) if begins else None

    @cached_property
    def _letters(self) -> frozenset[str]:
        return first_letters(self.form)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self.form, re.IGNORECASE)


WISH = r"(?:i|we)(?:'d| would)? (?:want|need|like)(?: to (?:see|have))?"
TO_BE = r"(?:to be|must be|should be|has to be|needs to be|ought to be|is to be) "
DONE = (
    r"(?:retired|banned|stopped|disabled|suspended|paused|deactivated|benched|shelved|scrapped|dropped|killed|removed"
    r"|(?:switched|turned|shut) (?:off|down)|gone|off|out)"
)
PARAMETER = r"(?:the )?(?P<parameter>[a-z]\w*(?:[ _-]\w+){0,2}?)(?: parameter)?"
FROM = r"(?: (?:down|up|back))?(?: from \S+)? to"
AGAIN = r"(?: (?:to )?(?:trade|be traded|work|run))?(?: again| back| once more)?"
WORDINGS: tuple[tuple[Wording, Callable[[re.Match[str]], str]], ...] = tuple(
    (Wording(form.replace(" ", r"\s+")), put)
    for form, put in (
        (
            rf"(?:ban|block|forbid|prohibit|disallow|{OFF}) {SIDE} (?:trades )?(?:of|for|in|by|with)"
            rf" {BOOK} (?:in|during|from) {CELL}{NO_MORE}", _word_ban),
        (
            rf"(?:ban|block|forbid|prohibit|disallow|{OFF}) {SIDE} {BOOK} (?:in|during|from)"
            rf" {CELL}{NO_MORE}", _word_ban),
        (
            rf"(?:ban|block|forbid|prohibit|disallow|keep|bar|{OFF}) {BOOK}(?: (?:from|to|out of|away"
            rf" from))?(?: (?:trade|trading|going))? (?:in|during|of|from|when it is) {CELL}(?:"
            rf" {SIDE})?{NO_MORE}", _word_ban),
        (rf"(?:keep|take) {BOOK} out(?: of| in| during) {CELL}{NO_MORE}", _word_ban),
        (rf"(?:switch|turn|shut) {BOOK} off (?:in|during|for) {CELL}{NO_MORE}", _word_ban),
        (
            rf"(?:do not|don't|never) let {BOOK} (?:trade|run|act|enter) (?:in|during)"
            rf" {CELL}{NO_MORE}", _word_ban),
        (rf"no more {BOOK}(?: trades)? (?:in|during) {CELL}{NO_MORE}", _word_ban),
        (
            r"(?:allow|enable|unban|un-ban|re-?enable|permit|let|reactivate|re-?allow|readmit|bring"
            rf" back|lift the ban on|lift the ban of|(?:switch|turn) on) {BOOK}{AGAIN} (?:in|during"
            rf"|for) {CELL}{AGAIN}(?: {SIDE})?", _word_allowance),
        (
            rf"(?:switch|turn|bring|let) {BOOK} (?:back )?(?:on|in|trade)(?: again)? (?:in|during)"
            rf" {CELL}", _word_allowance),
        (rf"{SET} (?:the )?{RISK} (?:of|for|on|in|with) {BOOK}{FROM} {PERCENT}", _risk),
        (rf"{SET} {BOOK} {RISK}{FROM} {PERCENT}", _risk),
        (
            rf"(?:cut|reduce|lower) (?:the )?{RISK} (?:of|for|on|in|with) {BOOK} (?:in|by|to) (?:a"
            r" )?half", _word_halving),
        (rf"(?:cut|reduce|lower) {BOOK} {RISK} (?:in|by|to) (?:a )?half", _word_halving),
        (rf"double (?:the )?{RISK} (?:of|for|on|in|with) {BOOK}", _word_doubling),
        (rf"double {BOOK} {RISK}", _word_doubling),
        (rf"halve (?:the )?{RISK} (?:of|for|on|in|with) {BOOK}", _word_halving),
        (rf"halve {BOOK} {RISK}", _word_halving),
        (rf"(?:let|make|have) {BOOK} risk {PERCENT}", _risk),
        (rf"risk {PERCENT} (?:on|with|in|for) {BOOK}", _risk),
        (rf"{SET} {PARAMETER} (?:of|for|in|on) {BOOK}{FROM} {VALUE}", _parameter),
        (rf"{SET} {BOOK_ID} {PARAMETER}{FROM} {VALUE}", _parameter),
        (
            rf"(?:roll(?:-| )?back|revert|reset|undo|restore) {BOOK}(?: to (?:the|its) (?:previous"
            r"|old|last|prior|earlier|former) version)?", _word_rollback),
        (
            rf"roll {BOOK} back(?: to (?:the|its) (?:previous|old|last|prior|earlier|former)"
            r" version)?", _word_rollback),
        (
            r"(?:undo|revert|take back|reverse) (?:the |our )?(?:last|latest|most recent|newest) "
            rf"(?:change|edit|update)s? (?:of|to|in|on|for) {BOOK}", _word_rollback),
        (
            r"(?:restore|go back to|return to|bring back) (?:the )?(?:previous|old|last|prior"
            rf"|earlier|former) version of {BOOK}", _word_rollback),
        (rf"(?:{OFF}) {BOOK}{NO_MORE}", _word_retirement),
        (rf"(?:switch|turn|shut) {BOOK} (?:off|down){NO_MORE}", _word_retirement),
        (
            rf"take {BOOK} (?:out of (?:service|use|the rotation|rotation|play)|offline|down"
            rf"|out){NO_MORE}", _word_retirement),
        (rf"put {BOOK} (?:out of (?:service|use)|on (?:hold|ice)|to rest){NO_MORE}", _word_retirement),
        (rf"(?:{WISH} )?{BOOK} {TO_BE}{DONE} (?:in|during|from) {CELL}(?: {SIDE})?{NO_MORE}", _word_ban),
        (rf"(?:{WISH} )?{BOOK} {TO_BE}{DONE}{NO_MORE}", _word_retirement),
        (rf"{WISH} {BOOK} {DONE} (?:in|during|from) {CELL}(?: {SIDE})?{NO_MORE}", _word_ban),
        (rf"{WISH} {BOOK} {DONE}{NO_MORE}", _word_retirement),
        (
            r"(?:please )?(?:re-?plan|plan again|make"
            r" a (?:new|fresh) plan|plan anew)(?: now)?", lambda found: "replan"),
    )
)  # fmt: skip


# What stands behind a change without changing it: its reason, or that it is meant.
BEHIND = re.compile(
    r"\s*(?:[,;:.!]|\s-+|\bbecause\b|\bsince\b|\bas it\b)\s*(?:(?:and|so|because|since|as)\s+)?"
    r"(?:it|they|this|that|its|because|since|do it|do so|now|thanks|enough|i'?m|we'?re|i am|we"
    r" are|the|there|too)\b"
    r"(?!.*\b(?:tell|show|explain|why|how|what|which)\b)[^?]*$",
    re.IGNORECASE,
)


def stops_whole(statement: str) -> bool:
    """Whether a statement is to stop a run or all that it holds, which no change plan does."""
    return STOPS_WHOLE.fullmatch(" ".join(statement.split())) is not None


def typed_form(statement: str) -> str:
    """The typed form of a statement that is worded otherwise; any other as it is.

    A reason behind a change is left out, where all before it is the change.
    """
    plain = " ".join(statement.split())
    cut = BEHIND.sub("", plain)
    for said in dict.fromkeys((plain, cut)):
        for form, put in WORDINGS:
            if found := form.of_all(said):
                return put(found)
    return cut if cut != plain and has_form(cut) else statement
