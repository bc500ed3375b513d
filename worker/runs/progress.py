"""What a person who waits sees, on stderr: a bar in a terminal, elsewhere a plain line now and then.

A terminal that cannot move its cursor (`TERM=dumb`) and a pipe get the plain lines: none in the first five
seconds, in one for the library, then at most one in five. A callback is also the place where Ctrl-C is heard.
"""

import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TextIO, TypeVar

from services.model_calls.quoting import visible
from worker.runs.interrupts import Interrupts

EVERY_S = 5.0
FIRST_S = 1.0  # until the first word of the library, whose caller may not know that it takes long
REDRAW_S = 0.1
READ_EACH = 20_000  # rows
Row = TypeVar("Row")
Progress = Callable[[int, int | None], None]  # units done, and in all as far as that is known


@dataclass
class Activity:
    """What is being done now, and how far it is; the total may be unknown for a while, or for ever."""

    title: str
    first: str
    unit: str
    done: int | None = None
    total: int | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def text(self) -> str:
        """One line: the title, then the count or, before there is one, what comes first."""
        if self.done is None:
            return visible(f"{self.title}: {self.first}" if self.first else self.title)
        of_all = "" if self.total is None else f" of {self.total:,}"
        last = ", finishing" if self.done == self.total else ""
        return visible(f"{self.title} {self.done:,}{of_all} {self.unit}{last}")


@contextmanager
def progress_bar(
    title: str, interrupts: Interrupts, unit: str = "bars", first: str = ""
) -> Iterator[Progress]:
    """A callback (units done, units in all or None) that draws, and raises `RunInterrupted` after a signal.

    Before it is called, `first` is shown.
    """
    activity = Activity(title, first, unit)
    with _show(activity) as redraw:

        def draw(done: int, total: int | None) -> None:
            activity.done, activity.total = done, total
            redraw()
            interrupts.check()

        yield draw


class ReadingBar:
    """Tells how far the reading of a run is, from the first time that it is told to the last."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._draw: Progress | None = None

    def __enter__(self) -> "ReadingBar":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """So many rows are read, of how many."""
        if self._draw is None:
            self._draw = self._stack.enter_context(progress_bar("reading", Interrupts(), "rows"))
        self._draw(int(progress), None if total is None else int(total))
        if progress == total:
            self._stack.close()


async def told_rows(rows: AsyncIterator[Row], total: int) -> AsyncIterator[Row]:
    """The rows of a run as they come; where they are many, it is told how far they are."""
    count = 0
    with ReadingBar() as bar:
        async for row in rows:
            yield row
            if count % READ_EACH == 0 and total > READ_EACH:
                await bar(count, total, None)
            count += 1


def watch_rows(title: str, unit: str) -> Callable[[Iterable[Row]], Iterator[Row]]:
    """What passes items on as they are, and draws how many of them are done."""

    def watch(items: Iterable[Row]) -> Iterator[Row]:
        given = list(items)
        with progress_bar(title, Interrupts(), unit) as draw:
            for done, item in enumerate(given, start=1):
                yield item
                draw(done, len(given))

    return watch


@contextmanager
def step(title: str, *, at_once: bool = False) -> Iterator[Callable[[str], None]]:
    """A step without a count: a callback that gives it another title.

    One that is known to take long is told `at_once` also where no bar is drawn.
    """
    activity = Activity(title, "", "")
    if at_once and not _draws(sys.stderr):
        _write_line(sys.stderr, activity)

    def rename(other: str) -> None:
        activity.title = other

    with _show(activity):
        yield rename


class _FirstWord:
    """When something is to be told at the latest; None where nobody waits for a first word."""

    due: float | None = None


def speak_soon() -> None:
    """Tell the first line of what goes on from now on within `FIRST_S`, if it takes longer."""
    _FirstWord.due = time.monotonic() + FIRST_S


def _first_wait() -> float:
    return EVERY_S if _FirstWord.due is None else max(0.0, min(EVERY_S, _FirstWord.due - time.monotonic()))


def _draws(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def _show(activity: Activity) -> AbstractContextManager[Callable[[], None]]:
    return _draw(activity) if _draws(sys.stderr) else _tell(activity)


@contextmanager
def _draw(activity: Activity) -> Iterator[Callable[[], None]]:
    from worker.pages.screen import made_bar

    with made_bar(lambda: activity.text) as bar:
        task = bar.add_task("", total=None)
        drawn = 0.0

        def redraw() -> None:
            nonlocal drawn
            if (now := time.monotonic()) - drawn >= REDRAW_S or activity.done == activity.total:
                drawn = now
                bar.update(task, completed=activity.done, total=activity.total)

        yield redraw


@contextmanager
def _tell(activity: Activity) -> Iterator[Callable[[], None]]:
    """A thread of its own, because a long step calls nothing back."""
    ended, stream = threading.Event(), sys.stderr

    def tell() -> None:
        wait_s = _first_wait()
        while not ended.wait(wait_s):
            _write_line(stream, activity)
            wait_s = EVERY_S

    teller = threading.Thread(target=tell, name="progress", daemon=True)
    teller.start()
    try:
        yield lambda: None
    finally:
        ended.set()
        teller.join()


def _write_line(stream: TextIO, activity: Activity) -> None:
    """`[0:05] backtest 6,000 of 12,154 bars`; a reader that went away misses it."""
    _FirstWord.due = None
    minutes, seconds = divmod(int(time.monotonic() - activity.started), 60)
    with suppress(OSError):
        stream.write(f"[{minutes}:{seconds:02d}] {activity.text}\n")
        stream.flush()
