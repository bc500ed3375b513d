"""Names of other libraries in ours: `SMA(close, 20)`, `rsi14` and `bb_lower_20` by the stems of the families.

Words and numbers of a text are compared with each family; no list of another library's names is kept.
"""

import re
from collections.abc import Sequence

from trading_core.features.families.family import FeatureFamily
from trading_core.features.nodes import Node

SHORT_FOR = {"bb": "bollinger", "kc": "keltner", "dc": "donchian"}
"""Beginnings that are spelt otherwise than ours."""
_PART = re.compile(r"[a-z]+|[0-9]+", re.ASCII)
_ARGUMENT = re.compile(r"[a-z_][a-z0-9_]*|[0-9]+", re.ASCII)
_SOURCES = frozenset({"open", "high", "low", "close", "volume"})


def expand(name: str) -> str:
    """A name with its beginning in full: `bollinger_upper` of `bb_upper`."""
    first, _, rest = name.partition("_")
    return f"{SHORT_FOR[first]}_{rest}" if first in SHORT_FOR else name


def spell(text: str, families: Sequence[FeatureFamily]) -> str | None:
    """Our name for what a text calls by its words and lengths; None where no family has these words.

    Args:
        text: a name, or a call with its arguments.
        families: those that there are.
    """
    head, _, arguments = text.lower().partition("(")
    parts, given = _PART.findall(head), _ARGUMENT.findall(arguments)
    words = [SHORT_FOR.get(part, part) for part in parts if part.isalpha()]
    numbers = [int(part) for part in (*parts, *given) if part.isdigit()]
    read = [part for part in given if part in _SOURCES]
    family = _find([*words, *read], len(numbers), families) or _find(words, len(numbers), families)
    if family is None or not set(read) <= _columns(family.node(family.defaults)):
        return None
    count = len(family.defaults)
    lengths = numbers[:count] if len(numbers) >= count else family.defaults
    return "_".join([family.stem, *map(str, lengths)])


def _find(words: list[str], lengths: int, families: Sequence[FeatureFamily]) -> FeatureFamily | None:
    """The family of these words in any order or run together, best the one of as many lengths."""
    ordered, together = sorted(words), "".join(words)
    found = [
        family for family in families if ordered == family.words or together == family.stem.replace("_", "")
    ]
    return min(found, key=lambda family: abs(len(family.defaults) - lengths), default=None)


def _columns(node: Node) -> set[str]:
    return {node.column}.union(*(_columns(part) for part in node.inputs))
