"""The console that every command prints on: text is text, whoever wrote it.

Markup, emoji codes and highlighting are off, and what acts on a terminal is written out as an escape before
it gets there; a command cannot forget it, because it has no other console.

The bar that a waiting person sees (`made_bar`) is drawn on it.
"""

import os
import sys
from collections.abc import Callable, Iterable
from typing import IO, Any, Literal

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Column
from rich.text import Text

from services.model_calls.quoting import visible


class PlainConsole(Console):
    """A console without markup on which nothing foreign acts on the terminal, and plain with `NO_COLOR`."""

    def __init__(self, file: IO[str], width: int | None = None) -> None:
        colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
        super().__init__(
            file=file, width=width, color_system=colours, markup=False, emoji=False, highlight=False
        )

    def render_str(self, text: str, **given: Any) -> Text:
        """A string, also one in a cell, a title or a label: one line of what can be seen."""
        return super().render_str(visible(text), **given)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Segments; those of styled text keep their line feeds and nothing else that is not seen."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else _show_segment(segment)


def _show_segment(segment: Segment) -> Segment:
    return segment if segment.text.isprintable() else segment._replace(text=visible(segment.text, lines=True))


class _Words(ProgressColumn):
    """The line of an activity, shortened where the terminal is narrow."""

    def __init__(self, text: Callable[[], str]) -> None:
        super().__init__(Column(no_wrap=True, overflow="ellipsis"))
        self._text = text

    def render(self, task: Task) -> Text:
        """The words as they are now, whatever the task knows of its total."""
        return Text(self._text())


def made_bar(text: Callable[[], str]) -> Progress:
    """A bar on stderr beside the present `text`, that leaves nothing behind."""
    columns = (_Words(text), BarColumn(), TimeElapsedColumn(Column(no_wrap=True)))
    return Progress(*columns, console=PlainConsole(sys.stderr), transient=True)
