"""Work that a script waits for, in an event loop of its own where one runs already; Ctrl-C ends it."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

Answer = TypeVar("Answer")
Cancelled = dict[asyncio.Task[Any], int]
POLL_S = 0.1  # between two polls of whether the task that waits was cancelled


def cancellable(
    progress: Callable[[int, int | None], None] | None = None,
) -> Callable[[int, int | None], None]:
    """What is called between bars: passes on how far the work is, and ends it where its task is cancelled."""
    running = asyncio.current_task()

    def pass_on(done: int, total: int | None) -> None:
        # The engine yields to nobody between bars, so whoever wants to end the run is heard here.
        if running is not None and running.cancelling():
            raise asyncio.CancelledError
        if progress is not None:
            progress(done, total)

    return pass_on


def cancelled_so_far() -> Cancelled:
    """How often each task of the running event loop was cancelled; nothing where none runs."""
    try:
        return {task: task.cancelling() for task in asyncio.all_tasks()}
    except RuntimeError:
        return {}


def in_own_loop(work: Coroutine[Any, Any, Answer], before: Cancelled | None = None) -> Answer:
    """What comes of work; in a thread of its own where an event loop runs already, as in a notebook.

    Ctrl-C ends the work, and is raised once it has ended.

    Args:
        work: what is done.
        before: `cancelled_so_far` when the call began that asks for it; None: it begins now.
    """
    before = cancelled_so_far() if before is None else before
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    own = _OwnLoop(work)
    thread = threading.Thread(target=contextvars.copy_context().run, args=(own.run,), name="thinktwice")
    thread.start()
    try:
        _await_end(thread, before)
    except BaseException:
        own.cancel()
        thread.join()
        raise
    if own.failed is not None:
        raise own.failed
    return cast("Answer", own.ended)


def _await_end(thread: threading.Thread, before: Cancelled) -> None:
    """Wait until a thread ends, and hear what would only be told to a task that yields.

    The loop stands still meanwhile: a task that is cancelled now was cancelled by a signal, as the first of
    `asyncio.run` is by Ctrl-C, whichever task waits here.

    Raises:
        CancelledError: a task of the loop was cancelled.
    """
    while thread.is_alive():
        thread.join(POLL_S)
        if thread.is_alive() and any(task.cancelling() > count for task, count in before.items()):
            raise asyncio.CancelledError


class _OwnLoop:
    """Work in a thread with a loop of its own; `ended` is what came of it, `failed` what it raised."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self._work = work
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False
        self.ended: Any = None
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            self.ended = asyncio.run(self._watch())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
            self.failed = error

    def cancel(self) -> None:
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()  # marks it; it looks at the mark after every bar
            self._task.get_loop().call_soon_threadsafe(lambda: None)

    async def _watch(self) -> Any:
        self._task = asyncio.current_task()
        if self._cancelled:
            self._work.close()
            raise asyncio.CancelledError
        return await self._work
