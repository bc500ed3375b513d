"""What the first lines of a table of bars say: its header, in one row or two, or none at all.

Pure: cells in, names out. Columns without names are told by their number and by which order of prices is
possible in every row: none is inside the range of its bar.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan

from worker.feeds.files.columns import FEWEST, PRICES
from worker.feeds.files.names import FINISHED, bare_name, role_of

Rows = Sequence[Sequence[str]]
FIELD_LEVELS = {"price", "attributes"}  # how pandas names the levels of columns
LEVELS = FIELD_LEVELS | {"ticker", "symbol", "symbols", ""}
# As programs write them; the first that is possible in every row is taken.
_ORDERS = (PRICES, ("low", "high", "open", "close"), ("open", "close", "high", "low"))

FIRST_EPOCH = 10**8  # above dates without separators
SAMPLE = 100  # rows that show what columns without names are


@dataclass(frozen=True)
class TableShape:
    """What the columns of a table are called."""

    names: tuple[str, ...]  # of each column, empty where it has none
    rows: int  # how many rows the header takes, and what stands above it
    note: str | None = None  # what a reader should know of it, else None


def header_of(rows: Rows) -> TableShape:
    """The header of a table by its first rows, of which the first is not empty."""
    above = next((number for number, row in enumerate(rows) if len(row) >= FEWEST and any(row)), 0)
    rows, text = rows[above:], "lines above the header are passed over" if above else None
    if (names := _level_header(rows)) is not None:
        return TableShape(names, above + (3 if _names_index(rows) else 2), text)
    if len(rows[0]) < FEWEST or not _is_data(rows[0]):
        return TableShape(tuple(name.strip() for name in rows[0]), above + 1, text)
    unnamed = unnamed_header(rows)
    return TableShape(unnamed.names, above, unnamed.note)


def unnamed_header(rows: Rows) -> TableShape:
    """Names of the columns of rows without a header, empty for those that are not read.

    Their numbers where no known order of prices is possible.
    """
    width, rows = len(rows[0]), [row for row in rows[:SAMPLE] if len(row) == len(rows[0])]
    words = next((place for place, cell in enumerate(rows[0]) if any(map(str.isdigit, cell))), 0)
    found = _price_names([row[words:] for row in rows])
    if not found:
        return TableShape(tuple(str(place + 1) for place in range(width)), 0)
    names = (*["symbol"][:words], *[""] * (words - 1), *found)
    read_as = ", ".join(name for name in names if name)
    return TableShape(names, 0, f"the file names no columns: they are read as {read_as}")


def _price_names(rows: Rows) -> tuple[str, ...]:
    """Names of columns of which the first is a date or a time, by the first known order that is possible."""
    width = len(rows[0])
    is_epoch = read_number(rows[0][0]) >= FIRST_EPOCH  # a time by itself: no clock stands beside it
    for first in (1,) if is_epoch else (1, 2):
        for order in _ORDERS:
            cells = [dict(zip(order, map(read_number, row[first : first + 4]), strict=False)) for row in rows]
            if first > 1 and not all(":" in row[1][:3] or row[1].strip().isdigit() for row in rows):
                continue
            if not all(len(bar) == len(order) and _is_possible(bar) for bar in cells):
                continue
            names = [("date", "time")[place] if first > 1 else "time" for place in range(first)] + list(order)
            within = all(
                bar["low"] <= read_number(row[first + 4]) <= bar["high"]
                for row, bar in zip(rows, cells, strict=True)
                if len(row) > first + 4
            )
            is_mean = within and width > first + 5  # a mean price in front of the volume
            names += ["", "volume"] if is_mean else ["volume"]
            names = (names + [""] * width)[:width]
            if not names[-1] and [row[-1] for row in rows] == ["0", "1", *["1"] * (len(rows) - 2)]:
                names[-1] = FINISHED[0]  # newest first, and that one is not over
            return tuple(names)
    return ()


def level_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns of which pandas wrote some as tuples of field and symbol; those as SYMBOL_FIELD."""
    return join_levels([_parts(name) for name in names])


def join_levels(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The levels of each name as one, the field last, so that a symbol may be called as a field is."""
    parts = [tuple(part for part in name if part) for name in names]
    pairs = [pair for pair in parts if len(pair) > 1]
    fields = [sum(role_of(pair[level]) in (*PRICES, "volume") for pair in pairs) for level in (0, 1)]
    return tuple(
        "_".join(name[::-1] if len(name) == len(fields) and fields[0] >= fields[1] else name)
        for name in parts
    )


def _parts(name: str) -> tuple[str, ...]:
    if not name.startswith("('"):
        return (name,)
    try:
        parts = ast.literal_eval(name)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return (name,)
    return tuple(map(str, parts)) if isinstance(parts, tuple) else (name,)


def _level_header(rows: Rows) -> tuple[str, ...] | None:
    """Names of columns whose header is a row of fields and one of symbols; None where it is not so."""
    if len(rows) < 2 or len(rows[0]) != len(rows[1]) or any(map(_is_data, rows[:2])):
        return None
    first, second = (bare_name(row[0]) if row else "" for row in rows[:2])
    are_known = first in LEVELS and second in LEVELS and (first != second or not first)
    if not (are_known or _names_index(rows)):
        return None
    levels = rows[1::-1] if second in FIELD_LEVELS else rows[:2]
    cells = [[cell.strip() for cell in level[1:]] for level in levels]
    return ("time", *join_levels([*zip(*cells, strict=True)]))


def _names_index(rows: Rows) -> bool:
    """Whether the third row is the name of the index alone, as pandas writes it below levels of columns."""
    return len(rows) > 2 and len(rows[2]) > 1 and not any(cell.strip() for cell in rows[2][1:])


def _is_data(row: Sequence[str]) -> bool:
    """Whether half of the cells and four at least are numbers, as no row of names has them."""
    numbers = sum(not isnan(read_number(cell)) for cell in row)
    return numbers >= len(PRICES) and 2 * numbers >= len(row)


def _is_possible(bar: dict[str, float]) -> bool:
    return 0 < bar["low"] <= min(bar["open"], bar["close"]) <= max(bar["open"], bar["close"]) <= bar["high"]


def read_number(cell: str) -> float:
    """A cell as a number, NaN where it is none; its last mark is that of decimals, if it stands once."""
    text = "".join(cell.strip(" \u00a0$€£¥'").split())
    point, comma = sorted(",.", key=text.rfind, reverse=True)
    whole, *groups = text.replace(comma, "").split(point)
    if len(groups) > 1 and any(len(group) != 3 for group in groups):
        return nan
    try:
        return float(("." if len(groups) == 1 else "").join([whole, *groups]))
    except ValueError:
        return nan
