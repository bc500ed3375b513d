"""Reads a question without a model: words of one list, names of the run, one time and one number.

A word that has no place in one kind of question may turn the others round, and so may a known one that stands
elsewhere, as a number that is not before what is listed: then it is asked back (see `question_words.toml`).
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import dropwhile
from pathlib import Path
from typing import Any, get_args

from agents.planning.name_matching import vectors_of
from schemas.canonical import ns_to_datetime
from schemas.evidence_plan import Intent
from schemas.vocabulary import REGIMES
from services.claims.subjects import NotInRun, read_period
from services.evidence.tool_arguments import MOST_ITEMS
from services.evidence.tools import TOOLS, quote_value
from services.ports import EvidenceQuestion

CLOSE, SHORTEST_GUESS = 0.8, 4  # cosine and letters from which a word is a name that was mistyped
MOST_NEAREST, NS = 3, 1_000_000_000
DAY = r"\d{4}-\d{2}-\d{2}|\d{4}-\d{2}|(?:19|20)\d{2}"
SPAN = re.compile(
    rf"(?i)\b(?:from|between)\s+(?P<first>{DAY})\s+(?:to|and|until)\s+(?P<last>{DAY})\b"
    rf"|\b(?P<since>since)\s+(?P<start>{DAY})\b"
    r"|(?:\b(?P<word>(?:at the )?end of|as of|as at|on|at|by|until|in|during|of|for)\s+)?"
    rf"(?<![\w-])(?P<only>{DAY})(?![\w-])"
)
ID = re.compile(r"(?:\btrade\s+)?(?<![\w-])((?=[0-9a-f]*\d)[0-9a-f]{6,64})(?![\w-])")
POINTS_BACK = re.compile(
    r"(?i)\b(?:that|this|the same|same)\s+(symbol|stock|playbook|strategy|fill|trade|one)\b(?:['’]s)?"
    r"(?:\s+from\s+before(?=[\s.?!]*$))?|\b(it|its)\b"
)
POINTED = {
    "symbol": "symbol", "stock": "symbol", "playbook": "playbook_id", "strategy": "playbook_id",
    "regime": "regime", "fill": "fill_id", "trade": "fill_id",
}  # fmt: skip
NAMES = {"symbol": "symbols", "playbook_id": "playbooks", "regime": "regimes"}
STANDS = {"symbol": "\ue000", "playbook_id": "\ue001", "regime": "\ue002"}  # where a name stood
POINTER, TIME = "\ue003", "\ue004"
HELD = frozenset([*STANDS.values(), POINTER, TIME])
LISTED = re.compile(r"([\ue000-\ue003])\s*(?:,\s*and\b|,|\band\b)\s*(?:of\s+)?(?=([\ue000-\ue003]))", re.I)
BY = re.compile(r"\bby\s+(?:(symbol|playbook|regime|direction)\b|(?=[\ue000-\ue003]))")
SPACE = re.compile(r"[ _-]")
RECENT = {"symbol": "recent_symbol", "playbook_id": "recent_playbook", "fill_id": "recent_fill"}
UNTIL, AT_END = ("as of", "as at", "by", "until"), ("end of", "at the end of", "at")
ARGUMENTS = {"lost": "outcome", "won": "outcome", "long": "direction", "short": "direction"}  # else an order
AGAINST = ({"best", "lost"}, {"worst", "won"})
PARTS = re.compile(
    r"(?i)(?<=[?!;])\s*|(?<=\w\.)\s+|,?\s+and\s+(?=(?:what|which|how|why|show|is|are|did|tell|list|give)\b)"
)
WORD = re.compile(r"[^\W_]+(?:['’_-][^\W_]+)*|[^\s\w?!.,;:]")
Calls = list[tuple[str, dict[str, Any]]]


class NotUnderstood(ValueError):
    """What is asked back; `names_nothing` where the question names what the run does not have."""

    def __init__(self, back: str, *, names_nothing: bool = False) -> None:
        super().__init__(back)
        self.names_nothing = names_nothing


@dataclass(frozen=True)
class QuestionCalls:
    """Calls that answer a question; `follows` is the id that they bring and that is asked about."""

    intent: Intent
    calls: Calls
    guessed: bool = False
    follows: str | None = None


@dataclass
class _QuestionParts:
    """What a question names, and where its words stand."""

    names: dict[str, list[str]] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)  # those that a kind of question has to have
    nouns: list[str] = field(default_factory=list)
    did: bool = False  # an outcome is what trades did, as in `which trades lost`
    picked: int | None = None  # where what is picked by an order or a number ends
    time: tuple[str, str, str] | None = None  # the word before it, the period, and its last second
    shows_playbook: bool = False
    guessed: bool = False

    def note(self, argument: str, value: Any) -> None:
        """Note what a word says; won and lost at once is no one question."""
        if self.values.setdefault(argument, value) != value:
            self.words.append("")  # which no kind has

    def has(self, need: str) -> bool:
        """Whether it names what a kind of question needs; `one` is one trade, as in `the last trade`."""
        if need == "one":
            return "order" in self.values and any(not noun.endswith("s") for noun in self.nouns)
        return need in self.values or any(need in (name, name.removesuffix("_id")) for name in self.names)


class _Kind:
    """One kind of question, as the file of words has it."""

    def __init__(self, name: str, written: Mapping[str, Any]) -> None:
        self.name, self.calls, self.follows = name, tuple(written["calls"]), written.get("follows")
        self.intent: Intent = written.get("intent", name if name in get_args(Intent) else "episodes")
        lists = [frozenset(written.get(key, "").split()) for key in ("nouns", "extras", "takes")]
        self.nouns, extras, self.also = lists
        self.heads = [frozenset(group.split()) for group in written.get("heads", ())] or [self.nouns]
        self.words, self.needs = self.nouns.union(extras, *self.heads), written.get("needs", "").split()

    def takes(self, argument: str) -> bool:
        """Whether each of its calls has an argument."""
        return all(argument in TOOLS[tool].arguments.model_fields for tool in self.calls)

    def fits(self, read: _QuestionParts) -> bool:
        """Whether everything that a question says has its place in this kind."""
        named = {*read.names, *read.values} - set(self.needs) - {f"{need}_id" for need in self.needs}
        heads = [group & set(read.tokens) for group in self.heads]
        marks = [token for token in read.tokens if token in ASKING | AUXILIARIES]
        several = "by" in read.values or any(len(names) > 1 for names in read.names.values())
        return (
            len(read.nouns) <= 1
            and sum(token in ASKING for token in marks) <= 1
            and not any(pair <= {*read.values.values()} for pair in AGAINST)
            and not (several and read.picked is not None)
            and {*read.words, *read.nouns} <= self.words
            and (all(heads) or self.name == "playbook" and read.shows_playbook)
            and ("heads" in self.also or sum(map(len, heads)) == 1)
            and ("yesno" in self.also or not {*marks[:1]} & AUXILIARIES)
            and ("verbs" in self.also or not read.did)
            and all(self.takes(name) for name in named if read.values.get(name) != "newest")
            and all(read.has(need) for need in self.needs)
            and self._takes_picked(read)
            and self.time_of(read) is not None
        )

    def _takes_picked(self, read: _QuestionParts) -> bool:
        if read.picked is None:
            return self.calls != ("trades",) or all(noun.endswith("s") for noun in read.nouns)
        if self.name == "last":  # the last one that lost; the best one did not lose
            return not read.did or read.values.get("order") == "newest"
        is_followed = not {*read.tokens[read.picked + 1 :]} <= FILLER | HELD
        return "picks" in self.also and not (self.name == "episodes" and (read.did or is_followed))

    def time_of(self, read: _QuestionParts) -> dict[str, str] | None:
        """The argument of a time; None where this kind cannot tell of that time."""
        if read.time is None:
            return {}
        word, period, moment = read.time
        if self.takes("period") and word not in (*UNTIL, *AT_END):
            return {"period": period}
        is_day = "state" in self.also and (word in AT_END or len(period) == len("2004-06-30"))
        return {"at": moment} if self.takes("at") and (word in UNTIL or is_day) else None


READ = tomllib.loads(Path(__file__).with_name("question_words.toml").read_text("utf-8"))
FILLER, AUXILIARIES, ASKING, ORDERS = (
    frozenset(READ[name].split()) for name in ("filler", "auxiliaries", "asking", "orders")
)
BEFORE, VALUED, VERBS = (
    {word: value for value, words in READ[name].items() for word in words.split()}
    for name in ("before", "nouns", "verbs")
)
PHRASES = sorted(((text, word) for word, texts in READ["phrases"].items() for text in texts), reverse=True)
KINDS = {name: _Kind(name, written) for name, written in READ["intents"].items()}
LISTABLE = frozenset().union(*(kind.nouns for kind in KINDS.values()))
KNOWN = frozenset([*POINTED, "it", "its", ""]).union(
    FILLER, AUXILIARIES, ORDERS, BEFORE, VALUED, VERBS, *(kind.words for kind in KINDS.values()),
    *(text.split() for text, _ in PHRASES),
)  # fmt: skip


def match_question(question: EvidenceQuestion) -> QuestionCalls:
    """The calls that answer a question.

    Raises:
        NotUnderstood: a word has no place in it, or it names what the run does not have.
    """
    parts = [part for part in PARTS.split(question.text) if part.strip()] or [""]
    found, context = [], dict(question.context)
    for part in parts:
        found.append(_match(part, context))
        named = {name: value for _, params in found[-1].calls for name, value in params.items()}
        context |= {recent: named[name] for name, recent in RECENT.items() if name in named}
    calls = [call for part in found for call in part.calls]
    shared = {*NAMES, "period", "at"} & {name for _, params in calls for name in params}
    for tool, params in calls if len(found) > 1 else ():
        for name in sorted(shared & set(TOOLS[tool].arguments.model_fields) - set(params)):
            raise NotUnderstood(f"Which {name.removesuffix('_id')} is each part about? Ask one by one.")
    calls = [call for place, call in enumerate(calls) if call not in calls[:place]]
    follows = next((part.follows for part in found if part.follows), None)
    intent = found[0].intent if len(found) == 1 else "chain"
    return QuestionCalls(intent, calls, any(part.guessed for part in found), follows)


def _match(text: str, context: Mapping[str, Any]) -> QuestionCalls:
    read = _read(text, {"regimes": sorted(REGIMES), **context})
    fitting = [kind for kind in KINDS.values() if kind.fits(read)]
    if len(fitting) != 1:
        raise NotUnderstood(_ask_back(read, fitting))
    kind = fitting[0]
    values = {**read.values, **(kind.time_of(read) or {})}
    calls: Calls = []
    for tool in kind.calls:
        takes = TOOLS[tool].arguments.model_fields
        each = [{name: value for name, value in values.items() if value != "newest" and name in takes}]
        for name in (name for name in takes if name in read.names):
            each = [{**done, name: value} for done in each for value in sorted(read.names[name])]
        calls += [(tool, done) for done in each]
    follows = None if kind.follows in read.names else kind.follows
    return QuestionCalls(kind.intent, calls, read.guessed, follows)


def signs_of(question: EvidenceQuestion) -> frozenset[str]:
    """Tools that a question is for as far as its words say, also where not all of it is understood."""
    try:
        return frozenset(tool for tool, _ in match_question(question).calls)
    except NotUnderstood:
        heads = KINDS["snapshot"].heads[0] & set(WORD.findall(question.text.casefold()))
        return frozenset(["market"] if heads else [])


def _read(text: str, context: Mapping[str, Any]) -> _QuestionParts:
    read = _QuestionParts()
    text = _take_names(re.sub("[\ue000-\ue004]", "\ufffd", text), context, read)
    text = _take_time(text, context, read)
    text = _take_pointed(text, context, read)
    if ids := ID.findall(text):
        read.names["report_id" if "report" in text.casefold() else "fill_id"] = ids
    text = ID.sub(f" {POINTER} ", text)
    if any(first != second for first, second in LISTED.findall(text)):
        raise NotUnderstood("Names of two kinds are listed together: ask of each by itself.")
    text = LISTED.sub(r"\1 ", text).casefold()
    for by in filter(None, BY.findall(text)):
        read.note("by", by)
    text = BY.sub(" ", text)
    for phrase, word in PHRASES:
        text = re.sub(rf"\b{re.escape(phrase)}\b", f" {word.replace('filler', '')} ", text)
    tokens = [token.removesuffix("'s").removesuffix("’s") for token in WORD.findall(text)]
    opening = {"please", "and" if POINTER in tokens else "please"}
    read.tokens = [*dropwhile(opening.__contains__, tokens)]
    if {*read.tokens[:1]} & ORDERS and {*read.tokens[1:2]} & (HELD | {"the", "all", "every", "it"}):
        raise NotUnderstood("That reads as an order; asking changes nothing: see `thinktwice plans make`.")
    for place, token in enumerate(read.tokens):
        if token in BEFORE or token.isdecimal() and 1 <= int(token) <= MOST_ITEMS:
            _take_picked(place, token, read)
        elif value := VERBS.get(token) or VALUED.get(token):
            read.note(ARGUMENTS[value], value)
            read.did |= token in VERBS
        elif token not in FILLER | AUXILIARIES | HELD | LISTABLE and not _guess_name(token, context, read):
            read.words.append(token)
        read.nouns += [token] if token in LISTABLE else []
    if read.has("one"):
        read.note("limit", 1)
    return read


def _take_picked(place: int, token: str, read: _QuestionParts) -> None:
    """Note what stands before what is listed; elsewhere it may mean another thing, as in `of the last 5`."""
    end, passed = place, HELD | BEFORE.keys()
    while end < len(read.tokens) and (read.tokens[end] in passed or read.tokens[end].isdecimal()):
        end += 1
    is_of = [word for word in read.tokens[:place] if word != "the"][-1:] == ["of"]
    argument = ARGUMENTS.get(BEFORE[token], "order") if token in BEFORE else "limit"
    read.note(argument, BEFORE.get(token) or int(token))
    is_pick = argument in ("limit", "order")
    if LISTABLE.isdisjoint(read.tokens[end : end + 1]) or is_pick and is_of:
        read.words.append(token)
    elif is_pick:
        read.picked = end


def _take_names(text: str, context: Mapping[str, Any], read: _QuestionParts) -> str:
    """The text without the names of the run, which are noted; a name that is a word, too, is asked back."""
    is_shouted, folded = text.upper() == text, SPACE.sub(" ", text).casefold()
    names = [(kind, name) for kind, key in NAMES.items() for name in context.get(key, ())]
    plains = [SPACE.sub(" ", name).casefold() for _, name in names]
    for argument, name in sorted(names, key=lambda item: (-len(item[1]), item[1])):
        if (plain := SPACE.sub(" ", name).casefold()) not in folded:
            continue
        noun = "|".join(noun for noun, named in POINTED.items() if argument == named)
        is_word = name.casefold() in KNOWN or plain in KNOWN
        is_exact = is_word or plains.count(plain) > 1
        spelled = re.escape(name) if is_exact else f"(?i:{re.escape(plain)})".replace(r"\ ", "[ _-]")
        way = re.compile(rf"(?i:\b({noun})\s+)?(?<![\w/]){spelled}(?:['’]s)?(?![\w/])(?i:\s+({noun})\b)?")
        if not (found := way.search(text)):
            continue
        if name in KNOWN or is_word and (is_shouted or found.start() == 0 and name == name.capitalize()):
            option = f"--{argument.removesuffix('_id')}={quote_value(name)}"
            raise NotUnderstood(f"A name of the run is a word as well: `thinktwice ask trades {option}`.")
        read.names.setdefault(argument, []).append(name)
        read.shows_playbook |= argument == "playbook_id" and any(found.groups())
        text = way.sub(f" {STANDS[argument]} ", text)
    return text


def _take_time(text: str, context: Mapping[str, Any], read: _QuestionParts) -> str:
    """The text without its one day, month, year or span."""
    if (time := SPAN.search(text)) is None:
        return text
    if SPAN.search(text, time.end()):
        raise NotUnderstood("Several times are named: ask with one, or with `from ... to ...`.")
    first = time["first"] or time["start"] or time["only"]
    last = time["last"] or (str(context.get("known_at", ""))[:10] if time["since"] else "")
    period = f"{first}/{last}".rstrip("/")
    try:
        moment = ns_to_datetime(read_period(period)[1] - NS).strftime("%Y-%m-%dT%H:%M:%SZ")
    except NotInRun as error:
        raise NotUnderstood(f"{str(error).capitalize()}.", names_nothing=True) from error
    read.time = (time["word"] or "").casefold(), period, moment
    return f"{text[: time.start()]} {TIME} {text[time.end() :]}"


def _take_pointed(text: str, context: Mapping[str, Any], read: _QuestionParts) -> str:
    """The text without `that symbol`, `it` and their like, which a conversation has to name."""
    for found in POINTS_BACK.finditer(text):
        meant = POINTED.get((found[1] or "it").casefold())
        ones = [name for name in RECENT if context.get(RECENT[name]) and name not in read.names]
        ones = [name for name in ones if name == meant or not meant and (name != "fill_id" or ones == [name])]
        if len(ones) != 1:
            raise NotUnderstood(f"Which one is {found[0]!r}? Name the symbol, the playbook or the fill.")
        read.names[ones[0]] = [str(context[RECENT[ones[0]]])]
    return POINTS_BACK.sub(f" {POINTER} ", text)


def _guess_name(token: str, context: Mapping[str, Any], read: _QuestionParts) -> bool:
    """Whether a word that says nothing else is a name that was mistyped; noted as a guess."""
    if len(token) < SHORTEST_GUESS or token in KNOWN or read.guessed:
        return False
    for argument in ("symbol", "playbook_id"):
        names = vectors_of(tuple(context.get(NAMES[argument], ()))).match(token, CLOSE)
        if len(names) == 1 and not read.guessed:
            read.names.setdefault(argument, []).append(names[0])
            read.guessed = True
    return read.guessed


def _ask_back(read: _QuestionParts, fitting: list[_Kind]) -> str:
    """What is asked back: the words that no kind of question has, and the nearest subcommands."""
    near = fitting or [kind for kind in KINDS.values() if kind.heads[0] & set(read.tokens)]
    tools = dict.fromkeys([tool for kind in near for tool in kind.calls] or ["trades", "market", "account"])
    commands = ", ".join(f"`thinktwice ask {tool}`" for tool in [*tools][:MOST_NEAREST])
    left = [quote_value(word) for word in dict.fromkeys(read.words) if word not in KNOWN]
    why = f"knows {', '.join(left)}" if left else "answers all of that at once"
    return f"{'Several tools answer that' if fitting else f'No tool {why}. The nearest'}: {commands}."
