"""Simulated days with every fault at once: nothing is lost, nothing is doubled, and a seed repeats itself."""

import asyncio

import pytest

from tests.worker.live.simulated import played
from tests.worker.live.virtual_time import Deadlock, run_virtually


@pytest.mark.parametrize("seed", [2, 4, 49])  # days on which everything happens
def test_paper_day_with_all_faults_breaks_nothing_and_the_same_seed_has_the_same_digest(seed) -> None:
    one = played(seed, 1, kills=2, replay=True)
    assert one.breaks == []
    assert min(one.kills, one.outages, one.unknown, one.anomalies, one.orders, one.resumed) > 0, (
        "else this says nothing"
    )
    assert played(seed, 1, kills=2).digest == one.digest


def test_paper_takes_entries_again_once_an_outage_of_the_store_is_over() -> None:
    one = played(1, 1, kills=0)
    assert (one.breaks, one.outages) == ([], 1)
    assert one.orders > 0


def test_paper_hours_on_a_real_store_in_virtual_time_break_nothing_and_repeat_themselves(tmp_path) -> None:
    digests = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        one = played(4, 0.25, kills=2, replay=True, folder=tmp_path / name)
        assert (one.breaks, one.kills) == ([], 2)
        digests.add(one.digest)
    assert len(digests) == 1


def test_virtual_loop_sleeps_for_days_at_once_and_names_a_deadlock() -> None:
    async def days() -> float:
        await asyncio.sleep(30 * 86_400.0)
        return asyncio.get_running_loop().time()

    assert run_virtually(days()) == 30 * 86_400.0

    async def never() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Deadlock, match="everybody waits"):
        run_virtually(never())
