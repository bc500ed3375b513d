"""A clock leaves out runs whose bars begin behind it, and `latest` is the newest of those that had begun."""

import asyncio
from types import SimpleNamespace

import pytest

from schemas.errors import ConfigError
from worker.cli.printing import time_option
from worker.review.run_views import RunViews

STARTS = {"r0001": "2001-01-01T00:00:00+00:00", "r0002": None, "r0003": "2010-01-01T00:00:00+00:00"}


class Runs:
    """Records of a store, of which only their bars' begin matters."""

    async def all(self):
        return [
            SimpleNamespace(
                run_id=name, mode="backtest", damage=None, data={} if start is None else {"start": start}
            )
            for name, start in STARTS.items()
        ]

    async def find(self, name):
        found = [record for record in await self.all() if name in (record.run_id, "latest")]
        if not found:
            raise ConfigError("none")
        return found[-1]


@pytest.mark.parametrize(
    ("at", "shown", "newest"),
    [
        (None, list(STARTS), "r0003"),
        ("2005-01-01", ["r0001", "r0002"], "r0002"),
        ("1999-01-01", ["r0002"], "r0002"),
    ],
)
def test_run_that_begins_behind_the_clock_is_told_of_to_nobody(at, shown, newest):
    moment = None if at is None else time_option(at, "--at")
    views = RunViews(SimpleNamespace(runs=Runs()), at=moment)  # type: ignore[arg-type]  # its runs alone
    assert [record.run_id for record in asyncio.run(views.records())] == shown
    assert asyncio.run(views.record("latest")).run_id == newest
