"""Where words go: results to stdout, everything else to stderr; JSON is one document and nothing besides.

Everything a command prints passes here, so that text which others wrote can be read and acts on no terminal.
A command has a document and says which parts of it a person reads: lines, lines with a label, and tables.
"""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from unicodedata import east_asian_width

from schemas.canonical import text_to_ns
from schemas.errors import ConfigError
from schemas.timeframes import LAST_NS
from services.model_calls.quoting import visible, visible_json
from worker.pages.figures import DASH, shown_cell

if TYPE_CHECKING:
    from worker.pages.screen import PlainConsole

Part: TypeAlias = "str | tuple[str, str] | TextTable"
LABEL = 10  # columns of a label
PLAIN_WIDTH = 120
WIDEST = 10_000  # of any table
GAP, NARROWEST = 2, 10  # between columns, and of a column that is folded


def complain(message: str) -> None:
    """One line on stderr, without the secrets that a library may have put into its message."""
    from worker.secrets.redaction import redactor_of

    message = redactor_of().text(message)
    sys.stderr.write(f"thinktwice: {visible(' '.join(message.split()))}\n")


def print_json(document: Any) -> None:
    """One JSON document on stdout; undefined is null, never NaN."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write(visible_json(text) + "\n")


def print_line(text: str) -> None:
    """One line on stdout, at once."""
    sys.stdout.write(visible(text) + "\n")
    sys.stdout.flush()


def print_json_line(line: str) -> None:
    """JSON on a line of stdout, with everything unseen escaped: no part of it ends the line."""
    sys.stdout.write(visible_json(line) + "\n")


def print_document(document: Any, as_json: bool, parts_of: Callable[[Any], Iterable[Part]]) -> None:
    """A document as JSON, or the parts of it that a person reads, in order.

    A part is a line, a label with what it names, or a table; a table without rows is left out.
    """
    if as_json:
        print_json(document)
        return
    for part in parts_of(document):
        if isinstance(part, TextTable):
            if part.rows:
                print_table(part)
        else:
            print_line(part if isinstance(part, str) else f"{part[0]:<{LABEL}} {part[1]}")


class TextTable(NamedTuple):
    """Cells under their headings; columns of figures stand to the right."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    figures: Sequence[bool]


def rows_table(rows: Iterable[Any], columns: Mapping[str, Any] | Sequence[str]) -> TextTable:
    """A table of rows of a document, one column for each heading.

    Args:
        rows: each with the same keys.
        columns: heading, and the key of a row that has the cell, or what makes the cell of a row; headings
            alone are the keys.
    """
    makers = columns if isinstance(columns, Mapping) else dict(zip(columns, columns, strict=True))
    cells = [[row[of] if isinstance(of, str) else of(row) for of in makers.values()] for row in rows]
    figures = [all(map(_is_figure, column)) for column in zip(*cells, strict=True)]
    return TextTable([*makers], [[*map(shown_cell, line)] for line in cells], figures)


def _is_figure(cell: Any) -> bool:
    """Whether it is a number, also as `1,234`, `+0.12 R` or `5.0 %`; nothing may stand among figures."""
    if not isinstance(cell, str):
        return cell is None or isinstance(cell, int | float)
    digits = cell.removesuffix(" %").removesuffix(" R").lstrip("+-").replace(",", "").replace(".", "", 1)
    return digits.isdigit() or cell == DASH


def stdout_console() -> "PlainConsole":
    """A console on stdout as it is now; a fixed width when no terminal reads it."""
    from worker.pages.screen import PlainConsole

    return PlainConsole(sys.stdout, width=None if sys.stdout.isatty() else PLAIN_WIDTH)


def print_table(table: TextTable) -> None:
    """A table with every cell whole; in a terminal that is narrower its columns go on below.

    The first column stands before each part of the others again. A cell is folded where it alone is too wide.
    """
    styled = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    space = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDEST
    columns = [*zip(table.heads, *table.rows, strict=True)]
    widths = [max(map(_width, column)) for column in columns]
    word = max(len(word) for cell in columns[0] for word in cell.split())
    widths[0] = min(
        widths[0], max(space // 2, min(word, space), space - sum(widths[1:]) - GAP * len(widths[1:]))
    )
    left = [*range(1, len(columns))]
    while True:
        taken = _fitting(left, widths, space)
        left = left[len(taken) :]
        shown = [0, *taken]
        for number, line in enumerate(zip(*(columns[place] for place in shown), strict=True)):
            for text in _fold(line, [widths[place] for place in shown], [table.figures[k] for k in shown]):
                bold = styled and number == 0
                sys.stdout.write(f"\x1b[1m{text}\x1b[0m\n" if bold else f"{text}\n")
        if not left:
            return
        sys.stdout.write("\n")


def _fitting(places: Sequence[int], widths: list[int], space: int) -> Sequence[int]:
    """The columns that stand beside the first one, at least one, which is narrowed where it must be."""
    count, used = 0, widths[0]
    while count < len(places) and used + GAP + widths[places[count]] <= space:
        used += GAP + widths[places[count]]
        count += 1
    if count == 0 and places:
        room = space - widths[0] - GAP
        widths[places[0]] = room if room > GAP else NARROWEST
        count = 1
    return places[:count]


def _fold(cells: Sequence[str], widths: Sequence[int], figures: Sequence[bool]) -> Iterator[str]:
    folded = [
        [cell] if _width(cell) <= width else textwrap.wrap(cell, width)
        for cell, width in zip(cells, widths, strict=True)
    ]
    for parts in zip_longest(*folded, fillvalue=""):
        padded = (
            " " * (width - _width(part)) + part if is_figure else part + " " * (width - _width(part))
            for part, width, is_figure in zip(parts, widths, figures, strict=True)
        )
        yield (" " * GAP).join(padded).rstrip()


def _width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    return len(text) if text.isascii() else len(text) + sum(east_asian_width(sign) in "WF" for sign in text)


def time_option(text: str, option: str) -> int:
    """Nanoseconds of an ISO time with a space or T, as `text_to_ns` reads it.

    Raises:
        ConfigError: not such a time.
    """
    try:
        found = text_to_ns(text)
    except ValueError as error:
        raise ConfigError(
            f"{option} {text!r} is not a time: write it like 2012-01-31 or '2012-01-31 16:00'"
        ) from error
    if abs(found) > LAST_NS:
        raise ConfigError(f"{option} {text!r} is no time of a journal, which ends in April 2262")
    return found
