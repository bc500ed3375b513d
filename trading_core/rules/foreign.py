"""Answers to rules written as in another language: what to write here, from the text around the mistake."""

import re

_WORD_OF = {"&": "and", "|": "or", "!": "not"}
_CALL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[ ]*(?:\([^()]*\))?")
_INDEX = re.compile(r"\[\s*-?([0-9]{1,4})\s*\]")
_SHIFT = re.compile(r"\.shift\(\s*([0-9]{1,4})\s*\)")
_NAME_BEFORE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
CONSTANTS = ("true", "false")


def hint_at(text: str, at: int) -> str:
    """What to write in place of a character that no rule has; ` ...`, or the empty string.

    Args:
        text: the rule.
        at: index of the character.
    """
    if text[at] == "=":
        return " Write == to compare."
    if text[at] == "@":
        return ' Write a symbol behind it, in quotes if need be: close@SPY, close@"BTC/USDT".'
    if (word := _WORD_OF.get(text[at])) is not None:
        return f" Write {word!r}."
    before = _NAME_BEFORE.search(text[:at])
    back = _INDEX.match(text, at) or _SHIFT.match(text, at)
    if before is not None and back is not None:
        name, bars = before.group().lower(), int(back.group(1))
        return f" Write {name} for this bar." if bars == 0 else f" Write prev({name}, {bars})."
    return ""


def call_at(text: str, at: int) -> str:
    """The name at an index with its arguments; the empty string where none begins."""
    call = _CALL.match(text, at)
    return "" if call is None else call.group()
