"""The bar that a waiting person sees; `Activity` writes out what its words hold that is not seen."""

import os
import sys
from collections.abc import Callable
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeElapsedColumn
from rich.table import Column
from rich.text import Text


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
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Progress(*columns, console=Console(file=sys.stderr, color_system=colours), transient=True)
