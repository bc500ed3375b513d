"""The bar of a terminal: what is being done, how much of it is left, and since when."""

import sys
from collections.abc import Callable

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from worker.cli.screen import PlainConsole


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
