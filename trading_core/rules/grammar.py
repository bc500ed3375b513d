"""The rule language: text in, checked tree out. Never Python's eval; any text gives a Rule or a RuleError.

    or:         and ("or" and)*
    and:        not ("and" not)*
    not:        "not" not | comparison
    comparison: sum (("<" | "<=" | ">" | ">=" | "==" | "!=") sum)?
    sum:        product (("+" | "-") product)*
    product:    unary (("*" | "/") unary)*
    unary:      "-" unary | atom
    atom:       number | feature ("@" symbol)? | position | function "(" or ("," or)* ")" | "(" or ")"
    feature:    name | band "(" length "," width ")" | "rank_cs" "(" feature ")"
    symbol:     letters, digits, "_" and "." | any text in quotes
    function:   between(x, lo, hi)  crosses_above(a, b)  crosses_below(a, b)  prev(x, n)
                abs(x)  min(a, b, ...)  max(a, b, ...)
    position:   what only an open position has, in rules that are read while there is one: POSITION_VARIABLES

Kinds are checked while parsing: logic takes booleans, arithmetic and comparison take numbers. Length and
depth are bounded, so no text can exhaust the stack.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NoReturn

from schemas.errors import RuleError, nearest
from schemas.vocabulary import POSITION_VARIABLES
from trading_core.features.registry import CROSS_RANK, MAX_LENGTH, has_width, resolve, write_instead
from trading_core.rules.foreign import CONSTANTS, call_at, hint_at
from trading_core.rules.tree import COMPARISONS, Expression, Kind, canonical_text, position_of

MAX_TEXT = 1_000
MAX_DEPTH = 40
FUNCTIONS = ("between", "crosses_above", "crosses_below", "prev", "abs", "min", "max")
_ARITY = {"between": 3, "crosses_above": 2, "crosses_below": 2, "prev": 2, "abs": 1}
WORDS = ("and", "or", "not")
_TOKEN = re.compile(
    r"[ \t\r\n]*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>(?:x\.)?[A-Za-z_][A-Za-z0-9_]*)"
    r"|@(?P<of>[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*|\"[^\"']+\"|'[^\"']+')"
    r"|(?P<symbol><=|>=|==|!=|[-+*/(),<>])|(?P<end>\Z))"
)


@dataclass(frozen=True)
class Rule:
    """A parsed rule.

    Attributes:
        tree: the checked tree.
        source: the text as written.
    """

    tree: Expression
    source: str

    @cached_property
    def text(self) -> str:
        """Canonical text: parses to the same tree; the key of every cache."""
        return canonical_text(self.tree)

    @property
    def kind(self) -> Kind:
        """Whether the rule yields true and false, or a number."""
        return self.tree.kind

    @cached_property
    def features(self) -> frozenset[str]:
        """Names of the features it reads."""
        return frozenset(node.name for node in self.tree.walk() if node.op == "feature")

    @cached_property
    def position(self) -> frozenset[str]:
        """Names of what it reads of an open position."""
        return position_of(self.tree)

    @cached_property
    def lookback(self) -> int:
        """Own bars before the first bar on which the rule can be known."""
        return _lookback(self.tree)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


@lru_cache(maxsize=4_096)
def parse(text: str) -> Rule:
    """The rule that a text says.

    Raises:
        RuleError: the text is no rule; the message names the column (from 1) and, for an unknown name, the
            nearest.
    """
    if len(text) > MAX_TEXT:
        raise RuleError(
            f"rule of {len(text)} characters: at most {MAX_TEXT} are read; split it or shorten it"
        )
    return Rule(_Parser(text).whole(), text)


def _functions_like(call: str) -> str:
    """The function whose name is most like that of a call, or all of them; empty where nothing is called."""
    name = call.partition("(")[0].strip()[:60]
    return (nearest(name, FUNCTIONS, 0.7) or f" Functions are {', '.join(FUNCTIONS)}.") if name else ""


def _lookback(node: Expression) -> int:
    if node.op == "feature":
        return resolve(node.name).lookback
    own = int(node.value) if node.op == "prev" else int(node.op in ("crosses_above", "crosses_below"))
    return own + max((_lookback(arg) for arg in node.args), default=0)


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokens()
        self.index = 0
        self.nesting = 0

    def whole(self) -> Expression:
        if self._peek().kind == "end":
            self._fail("empty rule: write for example close > sma_20", self._peek())
        tree = self._or()
        if self._peek().kind != "end":
            self._fail(f"unexpected {self._peek().text!r}", self._peek())
        return tree

    def _tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        while True:
            match = _TOKEN.match(self.text, at)
            if match is None or match.lastgroup is None:
                start = at + len(self.text[at:]) - len(self.text[at:].lstrip(" \t\r\n"))
                hint = hint_at(self.text, start)
                if not hint:  # ta.sma(close, 20), ta.crossover(...)
                    call = call_at(self.text, start + 1)
                    instead = write_instead("", call)
                    hint = f" A feature is a plain name{instead}." if instead else _functions_like(call)
                self._fail(f"unexpected character {self.text[start]!r}.{hint}", _Token("", "", start))
            kind = match.lastgroup
            tokens.append(_Token(kind, match.group(kind), match.start(kind)))
            if kind == "end":
                return tokens
            at = match.end()

    def _peek(self) -> _Token:
        return self.tokens[self.index]

    def _take(self, *texts: str) -> _Token | None:
        token = self.tokens[self.index]
        if token.text in texts and token.kind != "end":
            self.index += 1
            return token
        return None

    def _expect(self, text: str) -> None:
        token = self._peek()
        if self._take(text) is None:
            found = "the end" if token.kind == "end" else repr(token.text)
            self._fail(f"expected {text!r}, found {found}", token)

    def _fail(self, message: str, token: _Token) -> NoReturn:
        raise RuleError(f"rule {self.text!r}, column {token.at + 1}: {message}", column=token.at + 1)

    def _enter(self, token: _Token) -> None:
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH}", token)

    def _node(
        self, token: _Token, op: str, kind: Kind, args: tuple[Expression, ...], value: float = 0.0
    ) -> Expression:
        depth = 1 + max(arg.depth for arg in args)
        if depth > MAX_DEPTH:
            self._fail(f"nested deeper than {MAX_DEPTH}", token)
        return Expression(op, kind, args, value, depth=depth)

    def _of_kind(self, kind: Kind, node: Expression, token: _Token, where: str) -> Expression:
        if node.kind != kind:
            hint = "compare it with something" if kind == "boolean" else "a comparison is no number"
            self._fail(f"{where} takes a {kind}, got a {node.kind}: {hint}", token)
        return node

    def _or(self) -> Expression:
        return self._chain("or", self._and)

    def _and(self) -> Expression:
        return self._chain("and", self._not)

    def _chain(self, word: str, part: Callable[[], Expression]) -> Expression:
        first, node = self._peek(), part()
        if self._peek().text != word:
            return node
        items = list(self._flat(word, self._of_kind("boolean", node, first, repr(word))))
        while self._take(word):
            token = self._peek()
            items.extend(self._flat(word, self._of_kind("boolean", part(), token, repr(word))))
        return self._node(first, word, "boolean", tuple(items))

    @staticmethod
    def _flat(word: str, node: Expression) -> tuple[Expression, ...]:
        return node.args if node.op == word else (node,)

    def _not(self) -> Expression:
        token = self._take("not")
        if token is None:
            return self._comparison()
        self._enter(token)
        start = self._peek()
        inner = self._of_kind("boolean", self._not(), start, "'not'")
        self.nesting -= 1
        return self._node(token, "not", "boolean", (inner,))

    def _comparison(self) -> Expression:
        start, left = self._peek(), self._sum()
        token = self._take(*COMPARISONS)
        if token is None:
            return left
        self._of_kind("number", left, start, repr(token.text))
        right_start = self._peek()
        right = self._of_kind("number", self._sum(), right_start, repr(token.text))
        if self._peek().text in COMPARISONS:
            self._fail(
                "comparisons do not chain: use between(x, lo, hi), or join two with 'and'", self._peek()
            )
        return self._node(token, token.text, "boolean", (left, right))

    def _sum(self) -> Expression:
        return self._arithmetic(("+", "-"), self._product)

    def _product(self) -> Expression:
        return self._arithmetic(("*", "/"), self._unary)

    def _arithmetic(self, operators: tuple[str, ...], part: Callable[[], Expression]) -> Expression:
        start, node = self._peek(), part()
        while (token := self._take(*operators)) is not None:
            self._of_kind("number", node, start, repr(token.text))
            right_start = self._peek()
            right = self._of_kind("number", part(), right_start, repr(token.text))
            node = self._node(token, token.text, "number", (node, right))
        return node

    def _unary(self) -> Expression:
        token = self._take("-")
        if token is None:
            return self._atom()
        self._enter(token)
        start = self._peek()
        inner = self._of_kind("number", self._unary(), start, "'-'")
        self.nesting -= 1
        return self._node(token, "neg", "number", (inner,))

    def _atom(self) -> Expression:
        token = self._peek()
        if token.kind == "end":
            self._fail("the rule ends where a value is expected", token)
        self.index += 1
        if token.kind == "number":
            return self._number(token)
        if token.text == "(":
            self._enter(token)
            node = self._or()
            self._expect(")")
            self.nesting -= 1
            return node
        if token.kind == "name" and token.text not in WORDS:
            return self._call(token) if self._peek().text == "(" else self._feature(token)
        self._fail(f"expected a value, found {token.text!r}", token)

    def _number(self, token: _Token) -> Expression:
        value = float(token.text)
        if not math.isfinite(value):
            self._fail(f"number {token.text!r} is too large", token)
        return Expression("number", "number", value=value)

    def _feature(self, token: _Token) -> Expression:
        if token.text in FUNCTIONS:
            self._fail(f"{token.text!r} is a function: write {token.text}(...)", token)
        if token.text in POSITION_VARIABLES:
            return Expression("position", "number", name=token.text)
        if token.text.lower() in CONSTANTS:
            self._fail(f"no rule is {token.text} on every bar: write a comparison, as close > sma_20", token)
        return self._of_symbol(token, token.text)

    def _of_symbol(self, token: _Token, name: str) -> Expression:
        """The feature of a name, of another symbol where one follows."""
        if (of := self._peek()).kind == "of":
            self.index += 1
            name = f"{name}@{of.text}"
        try:
            name = resolve(name).name
        except RuleError as error:
            raise RuleError(
                f"rule {self.text!r}, column {token.at + 1}: {error}{self._quote_hint(token)}",
                column=token.at + 1,
                feature=name,
            ) from error
        return Expression("feature", "number", name=name)

    def _quote_hint(self, token: _Token) -> str:
        """What is meant where a name follows a symbol and `/` or `-`, as in close@BTC/USDT."""
        position = self.tokens.index(token)
        of, sign = self.tokens[position - 2 : position] if position > 1 else (token, token)
        if of.kind != "of" or sign.text not in ("/", "-"):
            return ""
        return f' Of a symbol with a {sign.text!r} write @"{of.text}{sign.text}{token.text}".'

    def _feature_call(self, token: _Token) -> Expression | None:
        """Bands of a width, or a rank among symbols; None for a call that is neither."""
        if token.text == CROSS_RANK:
            self._expect("(")
            start = self._peek()
            inner = self._atom()
            if inner.op != "feature":
                self._fail(f"{CROSS_RANK}(x) takes a feature, as {CROSS_RANK}(roc_20)", start)
            self._expect(")")
            return self._of_symbol(token, f"{CROSS_RANK}({inner.name})")
        given = self.tokens[self.index : self.index + 5]
        shape = [part.kind if part.kind == "number" else part.text for part in given]
        if not has_width(token.text) or shape != ["(", "number", ",", "number", ")"]:
            return None
        self.index += len(given)
        return self._of_symbol(token, f"{token.text}({given[1].text}, {float(given[3].text)!r})")

    def _call(self, token: _Token) -> Expression:
        if token.text not in FUNCTIONS:
            if (feature := self._feature_call(token)) is not None:
                return feature
            instead = write_instead("", call_at(self.text, token.at))
            if instead:
                self._fail(f"{token.text!r} is no function, features are names{instead}", token)
            self._fail(f"unknown function {token.text[:60]!r}.{_functions_like(token.text)}", token)
        self._enter(token)
        self._expect("(")
        args, starts = [], []
        while True:
            starts.append(self._peek())
            args.append(self._or())
            if self._take(",") is None:
                break
        self._expect(")")
        self.nesting -= 1
        return self._checked_call(token, tuple(args), starts)

    def _checked_call(self, token: _Token, args: tuple[Expression, ...], starts: list[_Token]) -> Expression:
        name, arity = token.text, _ARITY.get(token.text)
        if arity is not None and len(args) != arity:
            self._fail(f"{name} takes {arity} argument{'s' * (arity > 1)}, got {len(args)}", token)
        if arity is None and len(args) < 2:
            self._fail(f"{name} takes at least 2 arguments, got {len(args)}", token)
        if name in ("prev", "crosses_above", "crosses_below") and any(map(position_of, args)):
            self._fail(f"{name} looks back: a position has no bars before it, so write a comparison", token)
        if name == "prev":
            return self._node(token, "prev", args[0].kind, args[:1], self._bars_back(args[1], starts[1]))
        for arg, start in zip(args, starts, strict=True):
            self._of_kind("number", arg, start, name)
        kind: Kind = "boolean" if name in ("between", "crosses_above", "crosses_below") else "number"
        return self._node(token, name, kind, args)

    def _bars_back(self, node: Expression, token: _Token) -> float:
        if node.op != "number" or not node.value.is_integer() or not 1 <= node.value <= MAX_LENGTH:
            self._fail(f"prev(x, n) takes a whole number of own bars back, 1..{MAX_LENGTH}", token)
        return node.value
