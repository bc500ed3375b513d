"""An outage of the store, told once: whoever sees it first says so, and whoever looks all the time ends it.

Between two looks of a slow loop, which may lie half a minute apart, `watch_store` asks the store itself.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from schemas.errors import StoreError
from worker.operations.logs import EventSink

KINDS = frozenset({"store_away", "store_back"})
POLL_S = 0.5
PATIENCE_S = 5.0  # a store that says nothing for so long is away; one that answers for so long is back


class OutageLog:
    """Passes events on; of several words about one outage the first, and of its end the last.

    Args:
        note: told.
    """

    def __init__(self, note: EventSink) -> None:
        self._note = note
        self._told = False
        self._decided = False

    def hear(self, kind: str, detail: dict[str, Any]) -> None:
        """An event of whoever sees a store that is away and may see it late."""
        if kind in KINDS:
            away = kind == "store_away"
            if away == self._told or (self._decided and not away):
                return
            self._told = away
        self._note(kind, detail)

    def decide(self, kind: str, detail: dict[str, Any]) -> None:
        """An event of whoever looks all the time: no other caller ends an outage that it sees."""
        if kind in KINDS:
            self._decided = kind == "store_away"
        self.hear(kind, detail)


async def watch_store(
    probe: Callable[[], Awaitable[None]], note: EventSink, away_since: Callable[[], int | None]
) -> None:
    """Ask the store every half second until cancelled; `note` hears of each failure, and of its end."""
    asking: asyncio.Task[None] | None = None
    answers_since: float | None = None
    now = asyncio.get_running_loop().time
    try:
        while True:
            # One that hangs is waited for further: a question that is cut off may keep a lock.
            asking = asking or asyncio.ensure_future(_ask(probe))
            await asyncio.wait({asking}, timeout=PATIENCE_S)
            if not asking.done():
                answers_since = None
                note("store_away", {"reason": f"the store has not answered for {PATIENCE_S:g} s"})
                continue
            try:
                asking.result()
            except StoreError as error:
                answers_since = None
                note("store_away", {"reason": str(error)})
            else:
                answers_since = now() if answers_since is None else answers_since
                if now() - answers_since >= PATIENCE_S:
                    note("store_back", {"away_since": away_since()})
            asking = None
            await asyncio.sleep(POLL_S)
    finally:
        if asking is not None:
            asking.cancel()
            await asyncio.wait({asking})


async def _ask(probe: Callable[[], Awaitable[None]]) -> None:
    await probe()
