"""Does a text claim what its author cannot know: a day to come, or a number that the request does not hold?

Three kinds of number are read, each only where its words leave no doubt what it is: counts of cases, rates of
winning, and prices near the market. The request holds a number if one of its own rounds to it as it is
written. What is found is minor: a text may round on its own, and the second reader may rest on the finding.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, Literal

from schemas.reflection import Finding, PolicyLevelReflectionRequest
from schemas.vocabulary import CheckName, Severity
from services.policy_checks.plan_levels import PlanLevels
from services.text.claims import sentences
from services.text.dates import days_in

NUMBER = r"(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
CASES = r"(?:cases?|trades?|episodes?|examples?|instances?|occurrences?|winners?|losers?|wins|losses)"
COUNT = re.compile(
    rf"\b{NUMBER}\s+(?:(?:past|prior|previous|earlier|similar|resolved|closed|such|like|comparable|of|the|those)\s+)*"
    rf"{CASES}\b|\b{NUMBER.replace('number', 'part')}\s+(?:out\s+)?of\s+(?:the\s+)?(?:last\s+)?"
    rf"{NUMBER.replace('number', 'whole')}\s+(?:\w+\s+)?(?:{CASES}|times|setups|won|lost|worked)\b",
    re.IGNORECASE,
)
RATE = re.compile(rf"{NUMBER}\s?(?:%|percent\b|per\s+cent\b)", re.IGNORECASE)
OF_WINNING = re.compile(
    r"\b(?:win|wins|won|winning|winners?|hit[\s-]rate|success|succeed\w*|probability|chances?|odds"
    r"|works?|worked|profitable)\b|\bof (?:the )?(?:time|cases|trades|setups)\b",
    re.IGNORECASE,
)
LEVEL = r"(?:support|resistance|target|stop|entry|floor|ceiling)(?:\s+(?:at|of|near|is|lies at))?"
PLACE = r"(?:at|above|below|near|under|over|around|about|towards?|reach(?:es)?|reclaims?|(?:price|close) of)"
OTHER_UNIT = (
    r"(?:%|percent|per cent|bars?|days?|weeks?|months?|years?|hours?|minutes?|atr|r\b|times|x\b|points?|pips?"
    r"|cases|trades|to\s+\d|of\s+\d|am\b|pm\b|st\b|nd\b|rd\b|th\b|-)"
)
PRICE = re.compile(
    rf"(?:[$€£]\s?|(?<!\d\s)\b(?:{PLACE}|{LEVEL})\s+[$€£]?){NUMBER}(?![\d:%/]|[.,]\d|\s?{OTHER_UNIT})",
    re.IGNORECASE,
)
OSCILLATOR = re.compile(r"\b(?:rsi|adx|rank|percentile|score|index|efficiency|year|volume)\b", re.IGNORECASE)
NEAR_THE_MARKET = 5.0  # times the close, or its share, within which a number may be a price
ROUNDING = 0.005  # share of itself by which a price may be rounded on its own
IN_RULES = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")


def text_cites_the_future(request: PolicyLevelReflectionRequest, levels: PlanLevels) -> tuple[Finding, ...]:
    """A text that names a day after the decision bar."""
    return tuple(
        _minor("text_cites_the_future", f"{field} names {day}, a day after the decision bar", field)
        for field, text in _texts(request)
        for day, start, _ in days_in(text)
        if start > request.snapshot.known_at
    )


def text_claims_unknown_fact(
    request: PolicyLevelReflectionRequest, levels: PlanLevels
) -> tuple[Finding, ...]:
    """A text with a number of cases, a rate or a price that the request does not hold."""
    held = _Held(request, levels)
    found = []
    for field, text in _texts(request):
        unknown = [words for words, is_held in _claims(text, held) if not is_held]
        if unknown:
            listed = ", ".join(repr(words) for words in dict.fromkeys(unknown))
            message = f"{field} claims {listed}, which the request does not hold"
            found.append(_minor("text_claims_unknown_fact", message, field))
    return tuple(found)


class _Held:
    """The numbers that a request holds; read from it when a text first claims one, and most claim none."""

    def __init__(self, request: PolicyLevelReflectionRequest, levels: PlanLevels) -> None:
        self.close = request.snapshot.close
        self._request, self._levels = request, levels

    @cached_property
    def _numbers(self) -> frozenset[float]:
        request, levels = self._request, self._levels
        proposal = {k: v for k, v in request.proposal.payload().items() if k not in ("thesis", "rationale")}
        payload = request.payload() | {"proposal": proposal}
        placed = (levels.entry, levels.stop, levels.target, levels.playbook_entry, levels.playbook_stop)
        return frozenset({*_numbers_in(payload), *(abs(level) for level in placed if level is not None)})

    def holds(self, written: str, *, scale: float = 1.0, share: float = 0.0) -> bool:
        """Whether a number of the request, times `scale`, rounds to the written one or is within `share`."""
        plain = written.replace(",", "")
        value, step = float(plain), 10.0 ** -len(plain.partition(".")[2])
        margin = max(step * 0.5000001, value * share)
        return any(abs(number * scale - value) <= margin for number in self._numbers)

    def may_be_price(self, written: str) -> bool:
        """Whether the number lies near enough to the market to be meant as a price."""
        value = float(written.replace(",", ""))
        return self.close / NEAR_THE_MARKET <= value <= self.close * NEAR_THE_MARKET


def _claims(text: str, held: _Held) -> Iterator[tuple[str, bool]]:
    """Each number that a text claims, with its words, and whether the request holds it."""
    for kind, words, numbers in _numbers_claimed(text):
        if kind == "count":
            yield words, all(held.holds(number) for number in numbers)
        elif kind == "rate":
            yield words, held.holds(numbers[0], scale=100.0) or held.holds(numbers[0])
        elif held.may_be_price(numbers[0]):
            yield words, held.holds(numbers[0], share=ROUNDING)


@lru_cache(maxsize=1024)
def _numbers_claimed(text: str) -> tuple[tuple[Literal["count", "rate", "price"], str, tuple[str, ...]], ...]:
    """What a text claims, as (kind, words, numbers as they are written)."""
    claimed: list[tuple[Literal["count", "rate", "price"], str, tuple[str, ...]]] = []
    for sentence in (span.text for span in sentences(text, parts=True)):
        for found in COUNT.finditer(sentence):
            counts = (found["number"], found["part"], found["whole"])
            claimed.append(("count", found[0], tuple(count for count in counts if count is not None)))
        if OF_WINNING.search(sentence):
            claimed += (("rate", found[0], (found["number"],)) for found in RATE.finditer(sentence))
        for found in PRICE.finditer(sentence):
            if OSCILLATOR.search(sentence[: found.start()]) is None:
                claimed.append(("price", found[0].strip(), (found["number"],)))
    return tuple(claimed)


def _texts(request: PolicyLevelReflectionRequest) -> tuple[tuple[str, str], ...]:
    return ("thesis", request.proposal.thesis), ("rationale", request.proposal.rationale)


def _numbers_in(value: Any) -> Iterator[float]:
    """All numbers of plain data, those in its texts with them; without sign."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _numbers_in(part)
    elif isinstance(value, str):
        yield from (float(number) for number in IN_RULES.findall(value))
    elif isinstance(value, Sequence):
        for part in value:
            yield from _numbers_in(part)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield abs(float(value))


def _minor(code: str, message: str, *evidence: str) -> Finding:
    return Finding(
        check=CheckName.COHERENCE, code=code, severity=Severity.MINOR, message=message, evidence=evidence
    )
