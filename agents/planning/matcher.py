"""Reads a question without a model: words of one list, names of the run, one time and one number.

Every word has to have its place in one kind of question, or the question is asked back: a word that is not
understood may turn the others round. What a kind of question calls stands in `question_words.toml`.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from agents.planning.name_matching import vectors_of
from schemas.canonical import ns_to_datetime
from schemas.evidence_plan import Intent
from schemas.vocabulary import REGIMES
from services.claims.subjects import NotInRun, read_period
from services.evidence.tools import TOOLS, quote_value
from services.ports import EvidenceQuestion

CLOSE = 0.8  # cosine from which a word is a name that was mistyped
SHORTEST_GUESS = 4
MOST_NEAREST = 3
NS = 1_000_000_000
DAY = r"\d{4}-\d{2}-\d{2}|\d{4}-\d{2}|(?:19|20)\d{2}"
SPAN = re.compile(
    rf"\b(?:from|between)\s+(?P<first>{DAY})\s+(?:to|and|until)\s+(?P<last>{DAY})\b"
    rf"|\b(?P<since>since)\s+(?P<start>{DAY})\b"
    r"|(?:\b(?P<word>(?:at the )?end of|as of|as at|on|at|by|until|in|during|of|for)\s+)?"
    rf"(?<![\w-])(?P<only>{DAY})(?![\w-])",
    re.IGNORECASE,
)
ID = re.compile(r"(?<![\w-])(?=[0-9a-f]*\d)[0-9a-f]{6,64}(?![\w-])")
POINTS_BACK = re.compile(
    r"\b(?:that|this|the same|same)\s+(symbol|stock|playbook|strategy|fill|trade|one)\b(?:['’]s)?"
    r"|\b(it|its)\b",
    re.IGNORECASE,
)
POINTED: Mapping[str, tuple[str, ...]] = {
    "symbol": ("symbol",), "stock": ("symbol",), "playbook": ("playbook_id",), "strategy": ("playbook_id",),
    "fill": ("fill_id",), "trade": ("fill_id",),
}  # fmt: skip
NAMES = {"symbol": "symbols", "playbook_id": "playbooks", "regime": "regimes"}
NAMED = "\ue000"  # stands where a name of the run stood
SPACE = re.compile(r"[ _-]")
RECENT = {"symbol": "recent_symbol", "playbook_id": "recent_playbook", "fill_id": "recent_fill"}
MOMENTS = ("end of", "at the end of", "as of", "as at", "at", "by", "until")
PARTS = re.compile(
    r"(?<=[?!;])\s+|(?<=\w\.)\s+|,?\s+and\s+(?=(?:what|which|how|why|show|is|are|did|tell|list|give)\b)",
    re.IGNORECASE,
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
    """What a question names, and the words that are left of it."""

    names: dict[str, list[str]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    period: str | None = None
    at: str | None = None
    limit: int | None = None
    is_one: bool = False
    guessed: bool = False

    def has(self, need: str) -> bool:
        """Whether it names what a kind of question needs."""
        if need == "one":
            return self.is_one and "fill_id" not in self.names
        return need in self.values or any(need in (name, name.removesuffix("_id")) for name in self.names)


@dataclass(frozen=True)
class _Kind:
    """One kind of question."""

    name: str
    calls: tuple[str, ...]
    heads: frozenset[str]
    extras: frozenset[str]
    needs: tuple[str, ...]
    intent: Intent
    follows: str | None

    def takes(self, argument: str) -> bool:
        """Whether each of its calls has an argument."""
        return all(argument in TOOLS[tool].arguments.model_fields for tool in self.calls)

    def fits(self, read: _QuestionParts) -> bool:
        """Whether everything that a question says has its place in this kind."""
        named = {*read.names, *read.values} - set(self.needs) - {f"{need}_id" for need in self.needs}
        return (
            all(word in self.heads | self.extras for word in read.words)
            and bool(self.heads & set(read.words) or self.name == "episodes" and read.values)
            and all(self.takes(name) for name in named)
            and all(read.has(need) for need in self.needs)
            and all(getattr(read, name) is None or self.takes(name) for name in ("period", "at", "limit"))
        )


@dataclass(frozen=True)
class _Words:
    """The lists of words."""

    filler: frozenset[str]
    orders: frozenset[str]
    phrases: tuple[tuple[re.Pattern[str], str], ...]
    values: Mapping[str, Mapping[str, str]]
    one: tuple[frozenset[str], frozenset[str]]
    kinds: tuple[_Kind, ...]

    @property
    def known(self) -> frozenset[str]:
        """Every word that says anything."""
        of_kinds = (word for kind in self.kinds for word in kind.heads | kind.extras)
        return frozenset([*self.filler, *self.values, *of_kinds, "it", "its"])


@cache
def _words() -> _Words:
    read = tomllib.loads(Path(__file__).with_name("question_words.toml").read_text("utf-8"))
    phrases = sorted(read["phrases"].items(), key=lambda pair: (-len(pair[0]), pair[0]))
    kinds = (
        _Kind(
            name, tuple(kind["calls"]), frozenset(kind["heads"].split()), frozenset(kind["extras"].split()),
            tuple(kind.get("needs", "").split()), kind.get("intent", name), kind.get("follows"),
        )
        for name, kind in read["intents"].items()
    )  # fmt: skip
    return _Words(
        frozenset(read["filler"].split()),
        frozenset(read["orders"].split()),
        tuple((re.compile(rf"\b{re.escape(text)}\b"), word.replace("filler", "")) for text, word in phrases),
        read["values"],
        (frozenset(read["one"]["words"].split()), frozenset(read["one"]["which"].split())),
        tuple(kinds),
    )


def match_question(question: EvidenceQuestion) -> QuestionCalls:
    """The calls that answer a question.

    Raises:
        NotUnderstood: a word has no place in it, or it names what the run does not have.
    """
    try:
        return _match(question.text, question.context)
    except NotUnderstood as whole:
        parts = [part for part in PARTS.split(question.text) if part.strip()]
        if len(parts) < 2 or whole.names_nothing:
            raise
        found, context = [], dict(question.context)
        for part in parts:
            found.append(_match(part, context))
            named = {name: value for _, params in found[-1].calls for name, value in params.items()}
            context |= {recent: named[name] for name, recent in RECENT.items() if name in named}
    calls = [call for part in found for call in part.calls]
    unique = [call for place, call in enumerate(calls) if call not in calls[:place]]
    follows = next((part.follows for part in found if part.follows), None)
    return QuestionCalls("chain", unique, any(part.guessed for part in found), follows)


def _match(text: str, context: Mapping[str, Any]) -> QuestionCalls:
    read = _read(text, {"regimes": sorted(REGIMES), **context})
    fitting = [kind for kind in _words().kinds if kind.fits(read)]
    if len(fitting) != 1:
        raise NotUnderstood(_ask_back(read, fitting))
    kind = fitting[0]
    calls = [call for tool in kind.calls for call in _calls(tool, read, kind)]
    follows = None if kind.follows in read.names else kind.follows
    return QuestionCalls(kind.intent, calls, read.guessed, follows)


def signs_of(question: EvidenceQuestion) -> frozenset[str]:
    """Tools that a question is for as far as its words say, also where not all of it is understood."""
    try:
        return frozenset(tool for tool, _ in match_question(question).calls)
    except NotUnderstood:
        heads = next(kind.heads for kind in _words().kinds if kind.name == "snapshot")
        return frozenset(["market"] if heads & set(WORD.findall(question.text.casefold())) else [])


def _calls(tool: str, read: _QuestionParts, kind: _Kind) -> Iterator[tuple[str, dict[str, Any]]]:
    """One call of a tool for each name, with what of the question it takes."""
    takes = TOOLS[tool].arguments.model_fields
    params: dict[str, Any] = {name: value for name, value in read.values.items() if name in takes}
    for name, value in (("period", read.period), ("at", read.at), ("limit", read.limit)):
        params |= {name: value} if value is not None and name in takes else {}
    if read.is_one and "limit" in takes and tool in ("trades", "reports", "runs"):
        params["limit"] = 1
    each = [params]
    for name in (name for name in takes if name in read.names):
        each = [{**done, name: value} for done in each for value in sorted(read.names[name])]
    yield from ((tool, done) for done in each)


def _read(text: str, context: Mapping[str, Any]) -> _QuestionParts:
    read, words = _QuestionParts(), _words()
    text = _take_names(text, context, read)
    text = _take_time(text, context, read)
    text = _take_pointed(text, context, read)
    for found in ID.findall(text):
        is_report = re.search(r"\breports?\b", text, re.IGNORECASE) is not None
        read.names.setdefault("report_id" if is_report else "fill_id", []).append(found)
    text = ID.sub(" ", text).casefold()
    for phrase, word in words.phrases:
        text = phrase.sub(f" {word} ", text)
    tokens = [token.removesuffix("'s").removesuffix("’s") for token in WORD.findall(text)]
    if len(tokens) > 1 and tokens[0] in words.orders and tokens[1] in {NAMED, "the", "all", "every", "it"}:
        raise NotUnderstood("That reads as an order; asking changes nothing: see `thinktwice plans make`.")
    tokens = [token for token in tokens if token != NAMED]
    read.is_one = bool(words.one[0] & set(tokens) and words.one[1] & set(tokens))
    for token in tokens:
        if token in words.values:
            for name, value in words.values[token].items():
                if read.values.setdefault(name, value) != value:
                    read.words.append(token)  # won and lost at once is no one question
        elif token.isdigit() and 1 <= int(token) <= 100 and read.limit is None:
            read.limit = int(token)
        elif token not in words.filler and not _guess_name(token, context, read):
            read.words.append(token)
    return read


def _take_names(text: str, context: Mapping[str, Any], read: _QuestionParts) -> str:
    """The text without the names of the run, which are noted; a name that is a word, too, is asked back."""
    names = [(kind, name) for kind, key in NAMES.items() for name in context.get(key, ())]
    known, is_shouted, folded = _words().known, text.upper() == text, SPACE.sub(" ", text).casefold()
    for argument, name in sorted(names, key=lambda item: (-len(item[1]), item[1])):
        plain = SPACE.sub(" ", name).casefold()
        if plain not in folded:
            continue
        ways = [re.compile(rf"(?<![\w/]){re.escape(name)}(?:['’]s)?(?![\w/])")]
        if name.casefold() not in known and plain not in known:
            spelled = re.escape(plain).replace(r"\ ", "[ _-]")
            ways.append(re.compile(rf"(?<![\w/]){spelled}(?:['’]s)?(?![\w/])", re.IGNORECASE))
        for way in ways:
            if not way.search(text):
                continue
            if name in known or name.casefold() in known and is_shouted:
                kind = argument.removesuffix("_id")
                raise NotUnderstood(
                    f"{quote_value(name)} is a {kind} of the run and a word as well: "
                    f"name it with `--{kind}`, as in `thinktwice ask trades --{kind}=NAME`."
                )
            if name not in read.names.setdefault(argument, []):
                read.names[argument].append(name)
            text = way.sub(f" {NAMED} ", text)
    return text


def _take_time(text: str, context: Mapping[str, Any], read: _QuestionParts) -> str:
    """The text without its one day, month, year or span."""
    found = list(SPAN.finditer(text))
    if not found:
        return text
    if len(found) > 1:
        raise NotUnderstood("Several times are named: ask with one, or with `from ... to ...`.")
    time = found[0]
    first = time["first"] or time["start"] or time["only"]
    last = time["last"] or (str(context.get("known_at", ""))[:10] if time["since"] else "")
    period = f"{first}/{last}".rstrip("/")
    try:
        span = read_period(period)
    except NotInRun as error:
        raise NotUnderstood(f"{str(error).capitalize()}.", names_nothing=True) from error
    word = (time["word"] or "").casefold()
    if time["only"] and (word in MOMENTS or len(first) == 10 and not _asks_of_trades(text)):
        read.at = ns_to_datetime(span[1] - NS).strftime("%Y-%m-%dT%H:%M:%SZ")
    else:
        read.period = period
    return f"{text[: time.start()]} {text[time.end() :]}"


def _asks_of_trades(text: str) -> bool:
    heads = next(kind.heads for kind in _words().kinds if kind.name == "episodes")
    return not {*heads, *_words().values}.isdisjoint(WORD.findall(text.casefold()))


def _take_pointed(text: str, context: Mapping[str, Any], read: _QuestionParts) -> str:
    """The text without `that symbol`, `it` and their like, which a conversation has to name."""
    for found in POINTS_BACK.finditer(text):
        may_be = POINTED.get((found[1] or "it").casefold(), tuple(RECENT))
        open_ones = [name for name in may_be if context.get(RECENT[name]) and name not in read.names]
        known = {
            name: context[RECENT[name]] for name in open_ones if name != "fill_id" or len(open_ones) == 1
        }
        if len(known) != 1:
            raise NotUnderstood(f"Which one is {found[0]!r}? Name the symbol, the playbook or the fill.")
        read.names |= {name: [str(value)] for name, value in known.items()}
    return POINTS_BACK.sub(" ", text)


def _guess_name(token: str, context: Mapping[str, Any], read: _QuestionParts) -> bool:
    """Whether a word that says nothing else is a name that was mistyped; noted as a guess."""
    if len(token) < SHORTEST_GUESS or token in _words().known:
        return False
    for argument in ("symbol", "playbook_id"):
        names = vectors_of(tuple(context.get(NAMES[argument], ()))).match(token, CLOSE)
        if len(names) == 1 and not read.guessed:
            read.names.setdefault(argument, []).append(names[0])
            read.guessed = True
            return True
    return False


def _ask_back(read: _QuestionParts, fitting: list[_Kind]) -> str:
    """What is asked back: the words that no kind of question has, and the nearest subcommands."""
    if fitting:
        return f"Several tools answer that: {_commands(tool for kind in fitting for tool in kind.calls)}."
    left = [quote_value(word) for word in dict.fromkeys(read.words) if word not in _words().known]
    near = [tool for kind in _words().kinds if kind.heads & set(read.words) for tool in kind.calls]
    near = near or _nearest(read.words) or ["trades", "market", "account"]
    why = f"knows {', '.join(left)}" if left else "answers all of that at once"
    return f"No tool {why}. The nearest: {_commands(near)}."


def _nearest(words: Iterable[str]) -> list[str]:
    """Tools whose words are nearest to some others."""
    heads = {head: kind.calls[0] for kind in _words().kinds for head in sorted(kind.heads)}
    vectors = vectors_of(tuple(heads))
    ranked = sorted((vectors.nearest(word)[0] for word in words), reverse=True)
    return [heads[head] for _, head in ranked]


def _commands(tools: Iterable[str]) -> str:
    return ", ".join(f"`thinktwice ask {tool}`" for tool in [*dict.fromkeys(tools)][:MOST_NEAREST])
