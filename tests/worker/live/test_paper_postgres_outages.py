"""PostgreSQL is killed, or freezes, under a live paper run: bars go on, entries wait, nothing is lost."""

import asyncio
import os
from functools import partial
from typing import Any

import pytest

from tests.postgres.binaries import OPT_OUT, SERVER, find
from tests.postgres.server import Troubled, troubled
from tests.worker.live.outages import LiveRun, lived, lived_by


@pytest.fixture(scope="module")
def troubled_server():
    if os.environ.get(OPT_OUT) or SERVER in os.environ:
        pytest.skip("a server of somebody else is not killed")
    with troubled(find(os.environ)) as server:
        yield server


@pytest.mark.parametrize(("trouble", "down_s"), [("immediate", 0.8), ("freeze", 2.6)])
def test_paper_live_run_trades_on_while_its_server_is_gone_and_loses_nothing(
    troubled_server, trouble, down_s
) -> None:
    seen = lived(troubled_server, trouble, down_s)
    assert seen.rows_meanwhile > 3, "bars are validated from memory"
    assert seen.blocked > 0, "nobody enters what cannot be kept"
    assert seen.blocked_s is not None
    assert seen.acknowledged > 20
    assert (seen.lost, seen.problem) == (0, None)


QUIET_AT = 120  # items after which no bar comes until the server is back


class BetweenBars(LiveRun):
    """A live run whose server is gone, and back, while no bar comes."""

    def __init__(self, server: Troubled, trouble: str) -> None:
        super().__init__(server, trouble, 0.0)
        self._more = asyncio.Event()

    @property
    def told_of_store(self) -> list[str]:
        return [kind for _, kind in self._shown if kind in ("store_away", "store_back")]

    def _heard(self, news: str) -> bool:
        return news in self.told_of_store

    async def _pace(self, number: int) -> None:
        if number == QUIET_AT:
            await self._more.wait()

    async def _through(self, running: "asyncio.Task[Any]") -> None:
        rows = QUIET_AT // 2
        await self._until(
            running, lambda: len(self._taken) == rows and self._process.traded.committer.waiting == 0
        )
        for change, news, state in (
            (self._begin, "store_away", (False, "safe_mode")),
            (self._end, "store_back", (True, "running")),
        ):
            await self._by_hand(change)
            await self._until(running, partial(self._heard, news))
            await self._until(running, partial(self._stands, state))
        assert len(self._taken) == rows, "no bar came meanwhile"
        self._more.set()
        await self._until(running, lambda: len(self._taken) > rows + 10)

    def _stands(self, state: tuple[bool, str]) -> bool:
        status = self._process.traded.status.status()
        return (status.store_ok, status.state) == state


@pytest.mark.parametrize("trouble", ["immediate", "freeze"])
def test_paper_live_run_notices_a_server_that_is_gone_between_two_bars(troubled_server, trouble) -> None:
    run = BetweenBars(troubled_server, trouble)
    seen = lived_by(run, troubled_server, trouble)
    shown = run.told_of_store  # a server that starts may refuse once more after its first answer
    assert shown == ["store_away", "store_back"] * (len(shown) // 2)
    assert len(shown) >= 2
    assert (seen.lost, seen.problem) == (0, None)
