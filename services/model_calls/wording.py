"""How a question to a model words its data: ISO times, six digits, and on request nothing to recognise it by.

A disguise is made of the snapshot or report that the question is about: symbols become `asset_1` and so on,
times their distance from the decision bar, and prices are those of a split that puts the close at 100, with
quantities the other way. Structure says what is a price, a time or a symbol; only inside prose are names and
days found by their form. Numbers within rule texts and within a plan's own prose stay as they are. Pure.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

from schemas.canonical import datetime_to_ns, ns_to_datetime
from schemas.errors import RuleError
from schemas.snapshot import PolicySnapshot
from services.model_calls.quoting import quoted_json
from services.text.dates import days_in
from trading_core.features.registry import resolve, symbol_text

DIGITS = 6
SPLIT_CLOSE = 100.0
BEYOND = "beyond the calendar"
UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
NS = 1_000_000_000
TIMES = frozenset({"ts_event", "at", "since", "slot", "label"})
PRICES = frozenset({"close", "entry_price", "stop", "target"})
QUANTITIES = frozenset({"quantity", "volume"})
HIDDEN = "calendar", "own"  # units of features that tell the day, or nobody knows what
DISTANCES = frozenset({"stop_distance", "target_distance"})
# Findings and faults whose message holds prices, and nothing else that has a decimal point.
PRICED = frozenset(
    {"level_not_a_price", "stop_on_wrong_side", "target_on_wrong_side", "entry_on_wrong_side",
     "stop_inside_winner_mae", "target_beyond_mfe", "stop_not_tighter"}
)  # fmt: skip
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*\w)(?! median)")
MOMENT = re.compile(r"(?<!\w)\d{18,19}(?!\w)")  # ns, as in `slot 1130371200000000000`
CALLED = re.compile(r"""@(?:\\"|')?(asset_[0-9]+)(?:\\"|')?""")  # of `close@asset_2`, quoted or not
PROSE = re.compile(r"[^a-z0-9_]")  # an id, a hash or a word of a closed set has no such character


@dataclass(frozen=True)
class Wording:
    """One question's wording; the default names everything as it is.

    Attributes:
        symbols: what each symbol of the run is called.
        now: the decision bar in ns, from which times are told; None: as ISO 8601 in UTC.
        scale: factor on every price.
    """

    symbols: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    now: int | None = None
    scale: float = 1.0

    def json(self, value: Any) -> str:
        """Plain data as quoted JSON."""
        return quoted_json(self.word_value(value))

    def word_value(self, value: Any, name: str = "") -> Any:
        """Plain data as the question shows it; `name` is that of its field."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, float):
            return self._number(value, name)
        if isinstance(value, str):
            return self.text(value, symbol=name in ("symbol", "symbols")) if self.now is not None else value
        if isinstance(value, list | tuple):
            return [self.word_value(item, name) for item in value]
        if isinstance(value, int):
            moment = name in TIMES or name.endswith(("_at", "_label"))
            return self.time(value) if moment else self._number(value, name)
        if isinstance(value, datetime):
            return self.time(datetime_to_ns(value))
        # Last, as to ask for it takes longest.
        return self._mapping(value, name) if isinstance(value, Mapping) else self._number(value, name)

    def time(self, ns: int) -> str:
        """A moment: ISO 8601 in UTC, or like `T-3d` before the decision bar."""
        if self.now is None:
            try:
                return ns_to_datetime(ns).isoformat().replace("+00:00", "Z")
            except (OverflowError, ValueError):
                return BEYOND  # a lesson may be set to end after a million years
        away, sign = abs(ns - self.now) // NS, "-" if ns < self.now else "+"
        size, unit = next((unit for unit in UNITS if away % unit[0] == 0), UNITS[-1])
        return f"T{sign}{away // size}{unit}" if away else "T"

    def text(self, text: str, *, symbol: bool = False) -> str:
        """A text without the names and days that the disguise hides."""
        if self.now is None or not (symbol or PROSE.search(text)):
            return text
        for words, start, _ in days_in(text):
            text = text.replace(words, self.time(start))
        return self.names(MOMENT.sub(lambda found: self.time(int(found[0])), text))

    def names(self, text: str) -> str:
        """A text with the symbols of the run as they are called, and nothing else changed."""
        return self._names.sub(lambda found: self.symbols[found[0]], text) if self.symbols else text

    def names_back(self, reply: str) -> str:
        """A model's JSON in which features of other symbols have the names of the run: `close@SPY` again."""
        meant = {called: json.dumps(symbol_text(symbol))[1:-1] for symbol, called in self.symbols.items()}
        return CALLED.sub(lambda found: f"@{meant.get(found[1], found[1])}", reply)

    def with_prices(self, message: str) -> str:
        """A message of ours about prices, with those of the disguise."""
        if self.now is None:
            return message
        return NUMBER.sub(lambda found: f"{float(found[0]) * self.scale:.{DIGITS}g}", self.text(message))

    def price_back(self, level: float, *shown: float) -> float:
        """The price of the market that a price of the question stands for.

        One of `shown` is given back as it is, and not as the question rounded it.
        """
        meant = (price for price in shown if self._round(price * self.scale) == level)
        return next(meant, level / self.scale)

    @cached_property
    def _names(self) -> re.Pattern[str]:
        longest_first = sorted(self.symbols, key=lambda name: (-len(name), name))
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")

    def _mapping(self, value: Mapping[Any, Any], name: str) -> dict[str, Any]:
        if name == "features":
            return {self.names(feature): self._feature(feature, number) for feature, number in value.items()}
        shown = {self.text(str(key)): self.word_value(item, str(key)) for key, item in value.items()}
        if self.now is not None and value.get("code") in PRICED and "message" in value:
            shown["message"] = self.with_prices(value["message"])
        if value.get("field") in DISTANCES:
            shown["value"] = self._round(value["value"] * self.scale)
        return shown

    def _feature(self, name: str, number: float | None) -> float | None:
        try:
            unit = resolve(name).unit if self.now is not None else "as it is"
        except RuleError:
            unit = HIDDEN[0]  # nothing tells what it is of
        if number is None or unit in HIDDEN:
            return None
        factor = {"price": self.scale, "shares": 1.0 / self.scale}.get(unit, 1.0)
        return self._round(number * factor)

    def _number(self, number: float, name: str) -> float:
        if name in PRICES:
            return self._round(number * self.scale)
        return self._round(number / self.scale if name in QUANTITIES else number)

    def _round(self, number: float) -> float:
        return number if isinstance(number, int) else float(f"{number:.{DIGITS}g}")


PLAIN = Wording()


@dataclass(frozen=True)
class Wordings:
    """The wordings of one run; without symbols nothing is disguised. `known` are all symbols of the run."""

    symbols: tuple[str, ...] = ()
    known: tuple[str, ...] = ()

    @classmethod
    def of_run(cls, symbols: Sequence[str], *, anonymise: bool) -> "Wordings":
        """Those that the settings ask for."""
        return cls(tuple(symbols) if anonymise else (), tuple(symbols))

    def of(self, snapshot: PolicySnapshot) -> Wording:
        """Of a question about a snapshot."""
        return self._at(snapshot.known_at, SPLIT_CLOSE / snapshot.close)

    def at(self, now: int) -> Wording:
        """Of a question about a report that was known at `now`, ns; it holds no price."""
        return self._at(now, 1.0)

    def _at(self, now: int, scale: float) -> Wording:
        if not self.symbols:
            return PLAIN
        names = {symbol: f"asset_{number}" for number, symbol in enumerate(self.symbols, 1)}
        return Wording(MappingProxyType(names), now, scale)


PLAIN_RUN = Wordings()
