"""Workers that race, and workers that are killed: a slot is run once and its report is judged once."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from schemas.settings import Settings
from services.store import open_store
from services.store.tables import report_verdicts
from tests.commands.started import python
from tests.worker.slow_worker.prepared import DAY, START, Watched, played, prepared, resolved, watched
from worker.slow_worker.ports import POINTS
from worker.slow_worker.wiring import threaded_reflection

ROOT = Path(__file__).parents[3]
HOURLY = [resolved(n, START + (n + 1) * DAY // 24) for n in range(24 * 4)]
LONG_MS, GONE_MS = 60_000, 1


class Died(BaseException):
    """The worker is gone: nothing handles it, nothing is cleaned up."""


class DiesAt:
    """Ends the worker the first time it reaches a point."""

    def __init__(self, point: str) -> None:
        self._point = point

    def reach(self, point: str) -> None:
        if point == self._point:
            raise Died(point)


def processes(jobs: list[Any]) -> list[int]:
    """Exit codes of worker processes that ran side by side."""
    words = [python(), "-m", "tests.worker.slow_worker.killed", json.dumps(jobs)]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    codes: list[int] = json.loads(ended.stdout)
    return codes


def outcome(claims: Any, reports: Any) -> list[tuple[str, str, bool]]:
    payload = {report.key.slot: report for report in reports}
    return [
        (claim.state, payload[claim.key.slot].delivery, payload[claim.key.slot].verdict is not None)
        for claim in claims
        if claim.key.slot in payload
    ]


@pytest.mark.parametrize("point", POINTS)
def test_worker_that_dies_between_two_steps_leaves_one_report_and_one_verdict(tmp_path, point):
    async def scenario():
        async with watched(
            tmp_path, HOURLY, owner="dead", lease_ms=GONE_MS, hold_ms=GONE_MS, points=DiesAt(point)
        ) as one:
            with pytest.raises(Died):
                await one.look_at(START + DAY)
            left = await one.claims()
            heir = Watched(one.store, one.run_id, owner="heir")
            await heir.look_at(START + DAY + 1_000)
            await heir.look_at(START + DAY + 2_000)
            return left, await one.claims(), await one.reports(), heir

    left, claims, reports, heir = played(scenario())
    assert outcome(claims, reports) == [("done", "delivered", True)]
    if point in ("claimed", "reflected"):
        assert [trial.state for trial in left] == ["claimed"]
        assert heir.names("slot_resumed") == ["slot_resumed"]
        assert claims[0].request == left[0].request
    assert (reports[0].owner == "heir") == (point in ("examined", "claimed", "reflected"))


def test_worker_that_was_replaced_while_it_reflected_writes_nothing(tmp_path):
    async def scenario():
        async with watched(tmp_path, HOURLY) as heir:
            reflected = threaded_reflection(Settings())

            async def slow(request, episodes, definitions):
                shown = await reflected(request, episodes, definitions)
                await heir.store.leases.release(one.worker._tenure.held)
                await heir.look_at(START + DAY)
                return shown

            one = Watched(heir.store, heir.run_id, reflect=slow)
            looked = await one.look_at(START + DAY)
            return looked, one, heir, await heir.claims(), await heir.reports()

    looked, one, heir, claims, reports = played(scenario())
    assert looked is False
    assert one.names("lease_lost", "report_written") == ["lease_lost"]
    assert heir.names("slot_resumed", "report_written") == ["slot_resumed", "report_written"]
    assert outcome(claims, reports) == [("done", "delivered", True)]
    assert (claims[0].epoch, reports[0].epoch) == (2, 2)


def test_second_worker_stands_by_says_so_once_and_goes_on_when_the_first_leaves(tmp_path):
    async def scenario():
        async with watched(tmp_path, HOURLY) as first:
            second = Watched(first.store, first.run_id)
            looked = [await first.look_at(START + DAY)]
            looked += [await second.look_at(START + DAY), await second.look_at(START + 2 * DAY)]
            await first.worker.close()
            looked.append(await second.look_at(START + 2 * DAY))
            return looked, second.names("standing_by", "lease_taken", "report_written")

    looked, shown = played(scenario())
    assert looked == [True, False, False, True]
    assert shown == ["standing_by", "lease_taken", "report_written"]


def test_lease_is_renewed_while_a_reflection_takes_longer_than_it_lasts(tmp_path):
    async def scenario():
        async with watched(tmp_path, HOURLY) as other:
            refused: list[bool] = []

            async def slow(request, episodes, definitions):
                until = (await other.store.leases.holder(name)).until_ms
                while (await other.store.leases.holder(name)).until_ms == until:
                    await asyncio.wait({asyncio.create_task(asyncio.to_thread(int))})
                refused.append(await other.look_at(START + DAY))
                return await threaded(request, episodes, definitions)

            threaded = threaded_reflection(Settings())
            name = f"slow_loop/{other.run_id}"
            one = Watched(other.store, other.run_id, reflect=slow, lease_ms=600)
            return await one.look_at(START + DAY), refused

    assert played(scenario()) == (True, [False])


@pytest.mark.parametrize("count", [2, 4])
def test_worker_processes_on_one_store_run_each_slot_once(tmp_path, count):
    address = f"sqlite:///{tmp_path}/store.db"
    run_id = played(prepared(address, HOURLY))
    assert processes([[address, run_id, "-", LONG_MS, 1, 4]] * count) == [0] * count

    claims, reports, shown = played(stored(address, run_id))
    assert [(claim.key.slot, claim.state) for claim in claims] == [
        (START + day * DAY, "done") for day in (1, 2, 3, 4)
    ]
    assert outcome(claims, reports) == [("done", "delivered", True)] * 4
    assert {claim.attempts for claim in claims} == {1}
    assert shown == 4


def test_worker_processes_killed_at_every_point_leave_one_report_each(tmp_path):
    places = {point: f"sqlite:///{tmp_path}/{point}.db" for point in POINTS}
    runs = {point: played(prepared(address, HOURLY)) for point, address in places.items()}
    jobs = [[places[point], runs[point], point, GONE_MS, 1, 1] for point in POINTS]
    assert processes(jobs) == [-signal.SIGKILL] * len(POINTS)
    for point, address in places.items():

        async def heir(address: str = address, run_id: str = runs[point]) -> None:
            async with await open_store(address, create=True) as store:
                await Watched(store, run_id).look_at(START + DAY)

        played(heir())
        claims, reports, shown = played(stored(address, runs[point]))
        assert outcome(claims, reports) == [("done", "delivered", True)], point
        assert shown == 1, point


async def stored(address: str, run_id: str) -> Any:
    """Claims, reports and the number of verdict rows."""
    async with await open_store(address, create=True) as store:
        one = Watched(store, run_id)
        async with store._engine.begin() as connection:
            shown = await connection.scalar(select(func.count()).select_from(report_verdicts))
        return await one.claims(), await one.reports(), shown
