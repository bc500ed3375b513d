"""Text that others wrote, quoted: JSON in a prompt, words on a terminal, a cell of a spreadsheet.

Thesis, rationale, memory and the needs that a model names may hold anything: line separators that look like
a new section, marks that turn the direction of writing, characters that nobody sees, terminal commands. All
of these are written out as escapes; what can be read stays as it is, in every script.
"""

import re
from collections.abc import Iterable
from typing import Any
from unicodedata import category, normalize, numeric

from schemas.canonical import canonical_json
from schemas.claims import LONGEST_COMMENT

SHORTEST_WITHIN = 3  # letters of a name that is found within words
NOT_ASCII_TEXT = re.compile(r"[^ -~]")
# Printable by their category and yet not to be seen: fillers, joiners and selectors of a variant.
UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")

# What spreadsheets begin to calculate at, also behind the apostrophes that were put before it.
FORMULA = re.compile("'*[=+\\-@\t\r\n\uff0b\uff0d\uff1d\uff20]")


def count_noun(count: int, noun: str, nouns: str = "") -> str:
    """`1 bar`, `2,000 bars`; `nouns` where the plural has more than an s."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def quoted_json(value: Any) -> str:
    """Canonical JSON of plain data on one line, with everything unseen escaped; it reads back as the same.

    Raises:
        ValueError: a number is not finite, or a time is naive.
        TypeError: a value has no canonical form.
    """
    return visible_json(canonical_json(value))


def visible_json(document: str) -> str:
    """The text of a JSON document with everything unseen in it escaped; it reads back as the same."""
    return NOT_ASCII_TEXT.sub(
        lambda found: "\n" if found.group() == "\n" else _as_json(found.group()), document
    )


def visible(text: str, *, lines: bool = False) -> str:
    """The text with everything that cannot be seen written out as an escape; `lines` keeps line feeds."""
    if text.isascii() and text.isprintable():
        return text
    return NOT_ASCII_TEXT.sub(lambda found: _as_text(found.group(), lines), text)


def printable(text: str) -> str:
    """The text without what nobody sees in it; tabs, line feeds and every width of a blank stay."""
    plain = text.replace("\r\n", "\n")
    return NOT_ASCII_TEXT.sub(lambda found: found[0] if _may_stand(found[0]) else "", plain)


def keep_comment(comment: str | None, names: Iterable[str]) -> str | None:
    """A writer's own words on one line, if they bring no figure and none of these names; else None.

    A figure is any character with a value. A name is looked for, case and all, in the letters alone, whatever
    stands between or upon them; one of less than three characters is looked for as a word.
    """
    text = " ".join(printable(comment or "").split())
    plain = _strip_marks(text)
    has_figure = any(numeric(sign, None) is not None for sign in text + plain)
    if not text or len(text) > LONGEST_COMMENT or has_figure:
        return None
    letters = _letters_of(plain)
    return None if any(_is_named(_strip_marks(name), letters, plain) for name in names if name) else text


def _strip_marks(text: str) -> str:
    """The text in the plain form of its characters, without the marks on them."""
    return "".join(sign for sign in normalize("NFKD", text) if not category(sign).startswith("M"))


def _letters_of(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _is_named(name: str, letters: str, plain: str) -> bool:
    if len(_letters_of(name)) >= SHORTEST_WITHIN:
        return _letters_of(name) in letters
    return re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", plain) is not None


def _may_stand(character: str) -> bool:
    return _is_seen(character) or character in "\n\t" or category(character) == "Zs"


def spreadsheet_text(text: str) -> str:
    """The text of a CSV cell such that no spreadsheet takes it for a formula."""
    return f"'{text}" if FORMULA.match(text) else text


def from_spreadsheet_text(cell: str) -> str:
    """What `spreadsheet_text` was given."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell[1:]) else cell


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
