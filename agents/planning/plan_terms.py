"""What a question says of a plan beside its symbol, playbook and direction: its stop, target and the like."""

import re
from collections.abc import Mapping
from typing import Any

PRICE = r"(?P<value>\d[\d,]*(?:\.\d+)?)"
IS = r"(?:\s+(?:loss|price|level))?\s*(?:[:=]|\b(?:is|of|at|to|near|around)\b)?\s*\$?"
STOP = re.compile(rf"\b(?:stop|sl){IS}{PRICE}\b(?!\s*%)", re.IGNORECASE)
TARGET = re.compile(rf"\b(?:target|take[- ]profit|tp|goal){IS}{PRICE}\b(?!\s*%)", re.IGNORECASE)
HORIZON = re.compile(
    r"\b(?:horizon|hold(?:ing)?|held|within|over|time stop)(?:\s+(?:of|for|at most|up to))?\s+"
    r"(?P<value>\d{1,3})[- ]?(?:bars?|days?)\b"
    r"|\b(?P<value2>\d{1,3})[- ]bar horizon\b",
    re.IGNORECASE,
)
CONVICTION = re.compile(
    r"\bconviction\s*(?:[:=]|\b(?:is|of|at)\b)?\s*(?P<value>0?\.\d+|1(?:\.0+)?|0)\b|\b"
    r"(?P<value2>0?\.\d+) conviction\b",
    re.IGNORECASE,
)
MOST_BARS = 500
# A term as an expression: a function, or features and numbers with signs between them.
ITEM = r"(?:[a-z_][a-z_0-9]*(?:\([^()]*\))?|\d+(?:\.\d+)?)"
SIGN = r"(?:<=|>=|==|[-+*/<>])"
RULED = re.compile(
    rf"\b(?P<term>setup|activation|stop|target|invalidation)\s*(?:[:=]|\b(?:is|at|of|if|when|as)\b)?\s*"
    rf"(?P<rule>(?:{ITEM}\s*{SIGN}\s*)+{ITEM}(?:\s+(?:and|or)\s+(?:{ITEM}\s*{SIGN}\s*)+{ITEM})*|[a-z_]\w*\([^()]*\))",
    re.IGNORECASE,
)


def plan_terms(text: str) -> tuple[Mapping[str, Any], str]:
    """The terms by the names that `check_plan` has, and the text without rules among them.

    Stop and target are rules, which a price is, too.
    """
    found: dict[str, Any] = {}
    for rule in RULED.finditer(text):
        found.setdefault(rule["term"].casefold(), " ".join(rule["rule"].split()))
    text = RULED.sub(lambda match: f"{match['term']} ", text)
    for name, form in (("stop", STOP), ("target", TARGET)):
        if price := form.search(text):
            found.setdefault(name, price["value"].replace(",", "").rstrip("."))
    if (bars := HORIZON.search(text)) and 1 <= int(bars["value"] or bars["value2"]) <= MOST_BARS:
        found["horizon_bars"] = int(bars["value"] or bars["value2"])
    if conviction := CONVICTION.search(text):
        found["conviction"] = float(conviction["value"] or conviction["value2"])
    return found, text
