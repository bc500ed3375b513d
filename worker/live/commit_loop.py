"""CommitLoop: waiting for the store where the feed waits, and beside the bars where it does not.

A store that is away stops nothing: rows gather in memory, entries are blocked, stops run on, and everything
is written, in order, once it is back.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from schemas.errors import StoreError
from services.journal.writer import JournalWriter
from services.store.repository import LeaseLost
from worker.live.committer import BarCommitter

FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 0.5
COMMAND_S = 2.0  # a server that freezes is noticed after two such waits, the answer and the rollback
PATIENCE_S = 2.0  # a row that waits longer: the store is away; one that works for so long is back

Note = Callable[[str, dict[str, Any]], None]


async def _nothing() -> None:
    """Nothing is to be done."""


class CommitLoop:
    """Brings what the committer holds into the store.

    Args:
        journal: writer of the run.
        committer: its sink.
        note: told when the store is away, and when it is back.
        all_stored: awaited after a commit behind which nothing waits.
        until: monotonic seconds at which a store that stays away is given up; None never.
        sleep: how to wait.

    Attributes:
        away_since: seconds by the clock of the event loop, since when the store has been away; None once it
            has worked for a while.
        failures: how often a commit failed.
    """

    def __init__(
        self,
        journal: JournalWriter,
        committer: BarCommitter,
        note: Note,
        all_stored: Callable[[], Awaitable[None]] = _nothing,
        until: Callable[[], float | None] = lambda: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._journal = journal
        self._keeper = committer
        self._note = note
        self._all_stored = all_stored
        self._until = until
        self._sleep = sleep
        self._wake = asyncio.Event()
        self._alone = asyncio.Lock()  # two flushes at once would drop from the buffer what neither has stored
        self._turned = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.away_since: float | None = None
        self._works_since: float | None = None  # again, while it is away
        self.failures = 0

    def weigh(self) -> bool:
        """Whether entries have to wait for the store; a row that waits for too long is an outage as well."""
        if self._keeper.waits_s > PATIENCE_S:
            self._lose(f"a row of bars has waited {PATIENCE_S:g} s to be stored")
        return self.away_since is not None

    def away(self, error: StoreError) -> None:
        """The store failed, here or elsewhere: told once, however often it is seen."""
        self._turned.set()
        self._lose(str(error))

    def _lose(self, reason: str) -> None:
        self._works_since = None
        if self.away_since is None:
            self.away_since = asyncio.get_running_loop().time()
            self._note("store_away", {"reason": reason})

    def answers(self) -> None:
        """The store answered elsewhere: it is back, unless rows wait whose commit has to say so."""
        if not self._waits:
            self._back()

    async def commit(self) -> None:
        """Store everything, waiting for the store as long as it takes.

        Raises:
            LeaseLost: another process trades this run.
            StoreError: waiting will not help (disk full, not writable, other rows stored), or a stop was
                asked for and the store stays away.
        """
        wait_s = FIRST_WAIT_S
        while True:
            try:
                async with self._alone:
                    await self._once()
            except StoreError as error:
                if isinstance(error, LeaseLost) or not error.retryable:
                    raise
                self.failures += 1
                self.away(error)
                until = self._until()
                if until is not None and time.monotonic() >= until:
                    raise self._give_up() from error
                await self._sleep(wait_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)
            else:
                return

    def _give_up(self) -> StoreError:
        return StoreError(
            f"the store is away and {self._keeper.waiting} rows of bars are not stored: the same command "
            "takes them from the feed again",
            retryable=True,
        )

    def wake(self) -> None:
        """Store everything beside the bars; returns at once."""
        self._wake.set()
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="committing")

    async def caught_up(self) -> None:
        """Wait until nothing waits, or until the store is found to be away."""
        while self._task is not None and not self._task.done() and not self._fails:
            if not self._journal.waiting and not self._keeper.waiting:
                return
            self._turned.clear()
            await self._turned.wait()

    def check(self) -> None:
        """Raise what ended the task, if something did."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            self._task.result()

    async def close(self) -> None:
        """Stop committing beside the bars; a commit that is cut off may keep a lock of the store."""
        if not self._fails:
            self._back(0.0)
        if self._task is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(COMMAND_S), self._alone:
                    self._task.cancel()
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.commit()

    @property
    def _fails(self) -> bool:
        return self.away_since is not None and self._works_since is None

    @property
    def _waits(self) -> bool:
        return bool(self._journal.waiting or self._keeper.waiting or self._keeper.closing)

    async def _once(self) -> None:
        wrote = self._waits
        if self._journal.waiting:
            await self._journal.flush()
        if self._keeper.waiting or self._keeper.closing:
            await self._keeper.write([])
        self._turned.set()
        if wrote:  # a commit of nothing has asked the store for nothing
            self._back()
        if not self._journal.waiting and not self._keeper.waiting:
            await self._all_stored()

    def _back(self, patience_s: float | None = None) -> None:
        """The store works; it is back when it has done so for a while, so that one that falters is not."""
        if self.away_since is None:
            return
        now = asyncio.get_running_loop().time()
        self._works_since = works_since = now if self._works_since is None else self._works_since
        if now - works_since >= (PATIENCE_S if patience_s is None else patience_s):
            self._note("store_back", {"away_s": round(works_since - self.away_since, 3)})
            self.away_since = self._works_since = None
