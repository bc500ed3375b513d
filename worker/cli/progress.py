"""A progress bar on stderr when it is a terminal; and the place where Ctrl-C is heard."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from worker.interrupts import Interrupts
from worker.recorded_run import Progress


@contextmanager
def progress_bar(title: str, interrupts: Interrupts, unit: str = "bars") -> Iterator[Progress]:
    """A callback (units done, units in all) that draws, and raises `RunInterrupted` once a signal came."""
    if not sys.stderr.isatty():

        def quiet(done: int, total: int) -> None:
            interrupts.check()

        yield quiet
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(title),
        BarColumn(),
        TextColumn("{task.completed:,}/{task.total:,} " + unit),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def draw(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            interrupts.check()

        yield draw
