"""Text that others wrote, quoted: one line of JSON in a prompt, and nothing that acts on a terminal.

Thesis, rationale, memory and the needs that a model names may hold anything: line separators that look like
a new section, marks that turn the direction of writing, characters that nobody sees, terminal commands. All
of these are written out as escapes; what can be read stays as it is, in every script.
"""

import re
from typing import Any

from schemas.canonical import canonical_json

NOT_ASCII_TEXT = re.compile(r"[^ -~]")
# Printable by their category and yet not to be seen: fillers, joiners and selectors of a variant.
UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def quoted_json(value: Any) -> str:
    """Canonical JSON of plain data on one line, with everything unseen escaped; it reads back as the same.

    Raises:
        ValueError: a number is not finite, or a time is naive.
        TypeError: a value has no canonical form.
    """
    return NOT_ASCII_TEXT.sub(lambda found: _as_json(found.group()), canonical_json(value))


def visible(text: str, *, lines: bool = False) -> str:
    """The text with everything that cannot be seen written out as an escape; `lines` keeps line feeds."""
    return NOT_ASCII_TEXT.sub(lambda found: _as_text(found.group(), lines), text)


def _is_seen(character: str) -> bool:
    return character.isprintable() and UNSEEN.match(character) is None


def _as_json(character: str) -> str:
    if _is_seen(character):
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def _as_text(character: str, lines: bool) -> str:
    if _is_seen(character) or (lines and character == "\n"):
        return character
    return character.encode("unicode_escape").decode()
