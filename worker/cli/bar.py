"""The bar of a terminal: what is being done, how much of it is left, and since when."""

import sys
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from worker.cli.screen import PlainConsole

if TYPE_CHECKING:
    from worker.cli.progress import Activity


class _Words(ProgressColumn):
    """The line of an activity, shortened where the terminal is narrow."""

    def __init__(self, activity: "Activity") -> None:
        super().__init__(Column(no_wrap=True, overflow="ellipsis"))
        self._activity = activity

    def render(self, task: Task) -> Text:
        """The words as they are now, whatever the task knows of its total."""
        return Text(self._activity.text)


def made_bar(activity: "Activity") -> Progress:
    """A bar on stderr that leaves nothing behind."""
    columns = (_Words(activity), BarColumn(), TimeElapsedColumn(Column(no_wrap=True)))
    return Progress(*columns, console=PlainConsole(sys.stderr), transient=True)
