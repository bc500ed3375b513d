"""Lines, labels and tables that a person reads of a document, in a terminal, a notebook or a log."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, TypeAlias
from unicodedata import east_asian_width

from services.model_calls.quoting import visible
from worker.pages.figures import DASH, shown_cell

Part: TypeAlias = "str | tuple[str, str] | TextTable"
LABEL = 10  # columns of a label
WIDEST = 10_000  # of any table
GAP, NARROWEST = 2, 10  # between columns, and of a column that is folded


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
    return TextTable([*map(visible, makers)], [[*map(shown_cell, line)] for line in cells], figures)


def _is_figure(cell: Any) -> bool:
    """Whether it is a number, also as `1,234`, `+0.12 R` or `5.0 %`; nothing may stand among figures."""
    if not isinstance(cell, str):
        return cell is None or isinstance(cell, int | float)
    digits = cell.removesuffix(" %").removesuffix(" R").lstrip("+-").replace(",", "").replace(".", "", 1)
    return digits.isdigit() or cell == DASH


def lines_of(parts: Iterable[Part], space: int = WIDEST) -> Iterator[tuple[str, bool]]:
    """The lines of all parts in order, and whether each is the heading of a table.

    A part is a line, a label with what it names, or a table; a table without rows is left out. Text is
    visible: nothing of it acts on a terminal.
    """
    for part in parts:
        if not isinstance(part, TextTable):
            yield visible(part if isinstance(part, str) else f"{part[0]:<{LABEL}} {part[1]}"), False
        elif part.rows:
            yield from table_lines(part, space)


def text_of(parts: Iterable[Part], space: int = WIDEST) -> str:
    """All lines as one text."""
    return "\n".join(line for line, _ in lines_of(parts, space))


def table_lines(table: TextTable, space: int = WIDEST) -> Iterator[tuple[str, bool]]:
    """A table with every cell whole; where `space` is narrower its columns go on below.

    The first column stands before each part of the others again. A cell is folded where it alone is too wide.
    """
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
                yield text, number == 0
        if not left:
            return
        yield "", False


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
