"""Tables of a terminal, without a frame."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Column, Table
    from rich.text import Text


def made_table(
    heads: "Iterable[str | Column]", rows: "Iterable[Sequence[str | Text]]", **look: Any
) -> "Table":
    """Rows under their heads, without a frame; `look` goes to `rich.table.Table`."""
    from rich.table import Table

    table = Table(*heads, box=None, **look)
    for row in rows:
        table.add_row(*row)
    return table


def table_of(rows: "Iterable[tuple[str, str]]") -> "Table":
    """Names and what is said of each, without a frame."""
    from rich.table import Column

    heads = (Column(style="dim", no_wrap=True), Column(overflow="fold"))
    return made_table(heads, rows, show_header=False, padding=(0, 2))
