"""A year of slots in seconds: what is due is decided by facts, recorded once, and told to the judge once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as settings_of
from hypothesis import strategies as st

from schemas.vocabulary import SlowSkipReason
from services.statistics.slots import INTERVAL_NS, is_slot
from services.store import open_store
from tests.services.store.artefacts import report
from tests.services.store.stores import new_run
from tests.worker.slow_worker.prepared import (
    DAY,
    START,
    WEEK,
    Watched,
    played,
    resolved,
    settings,
    trade,
    watched,
)
from worker.slow_worker.slot_runner import MOST_ATTEMPTS

HOUR = DAY // 24


def every(hours: int, days: int = 365) -> list[Any]:
    return [resolved(n, START + (n + 1) * hours * HOUR) for n in range(days * 24 // hours - 1)]


async def short_report(request: Any, episodes: Any, definitions: Any) -> Any:
    """A report in no time, where only the slots matter."""
    return report(request, n_episodes=len(episodes))


async def year(tmp_path: Any, episodes: Any, *, timeframe: str, step: int) -> Any:
    reflect = short_report if timeframe == "1h" else None
    async with watched(tmp_path, episodes, timeframe=timeframe, reflect=reflect) as one:
        for now in range(START + step, START + 365 * DAY, step):  # a year of 52 weeks
            await one.look_at(now)
        return await one.claims(), await one.reports(), one


@pytest.mark.parametrize(("timeframe", "interval"), [("1h", "daily"), ("1d", "weekly")])
def test_worker_year_of_slots_is_decided_once_each_with_both_gates(tmp_path, timeframe, interval):
    episodes = [
        resolved(n, START + (n + 1) * (7 if interval == "daily" else 30) * HOUR, timeframe)
        for n in range(360 * 24 // (7 if interval == "daily" else 30))
    ]
    step = DAY if interval == "daily" else 4 * DAY
    claims, reports, one = played(year(tmp_path, episodes, timeframe=timeframe, step=step))
    slots = [claim.key.slot for claim in claims]
    ran = [claim.key.slot for claim in claims if claim.state == "done"]
    regular = [slot for slot in slots if is_slot(slot, interval)]
    assert len(slots) == len(set(slots))
    assert len(regular) == (364 if interval == "daily" else 52)
    assert {claim.state for claim in claims} == {"done", "skipped"}
    assert {claim.reason for claim in claims} <= {None, *map(str, SlowSkipReason)}
    assert len(ran) > 10
    assert all(later - earlier >= INTERVAL_NS[interval] for earlier, later in zip(ran, ran[1:], strict=False))
    assert [report.key.slot for report in reports] == ran
    assert all(claim.facts["new_episodes"] >= 20 for claim in claims if claim.state == "done")
    assert [report.delivery for report in reports] == ["delivered"] * len(ran)
    assert len(one.names("report_delivered")) == len(ran)


def test_worker_reads_only_what_was_known_at_the_slot(tmp_path):
    episodes = every(5, 40)

    async def scenario():
        async with watched(tmp_path, episodes) as one:
            for day in range(1, 40):
                await one.look_at(START + day * DAY)
            return await one.claims(), await one.reports()

    claims, reports = played(scenario())
    known = {episode.episode_id: episode.known_at for episode in episodes}
    assert reports
    for claim, stored in zip([trial for trial in claims if trial.state == "done"], reports, strict=True):
        assert stored.report.known_at == claim.key.slot
        assert stored.report.n_episodes == sum(at <= claim.key.slot for at in known.values())


def test_worker_looking_often_examines_a_slot_once_and_a_full_batch_when_it_is_full(tmp_path):
    episodes = [resolved(n, START + DAY + (n + 1) * HOUR) for n in range(30)]

    async def scenario():
        async with watched(tmp_path, episodes) as one:
            for n in range(22, 50):
                await one.look_at(START + n * HOUR)
            return await one.claims()

    claims = played(scenario())
    shown = [(claim.key.slot, claim.state, claim.reason, claim.facts.get("trigger")) for claim in claims]
    assert shown == [
        (START + DAY, "skipped", "insufficient_episodes", None),
        (START + DAY + 20 * HOUR, "done", None, "batch"),
        (START + 2 * DAY, "skipped", "interval_not_elapsed", None),
    ]


def test_worker_that_slept_for_weeks_runs_the_newest_slot_alone(tmp_path):
    async def scenario():
        async with watched(tmp_path, every(4, 30)) as one:
            await one.look_at(START + 29 * DAY + HOUR)
            return await one.claims()

    assert [(trial.key.slot, trial.state) for trial in played(scenario())] == [(START + 29 * DAY, "done")]


def test_worker_whose_clock_was_set_back_decides_nothing_again(tmp_path):
    async def scenario():
        async with watched(tmp_path, every(4, 30)) as one:
            await one.look_at(START + 20 * DAY)
            earlier = Watched(one.store, one.run_id)
            await one.worker.close()
            looked = [await earlier.look_at(START + day * DAY) for day in (5, 19)]
            return looked, await one.claims()

    looked, claims = played(scenario())
    assert looked == [True, True]
    assert [claim.key.slot for claim in claims] == [START + 20 * DAY]


def test_worker_switched_off_skips_each_slot_with_that_reason(tmp_path):
    async def scenario():
        async with watched(tmp_path, every(1, 10), settings(enabled=False)) as one:
            for day in range(1, 5):
                await one.look_at(START + day * DAY + HOUR)
                await one.look_at(START + day * DAY + 2 * HOUR)
            return await one.claims()

    claims = played(scenario())
    assert [(claim.state, claim.reason) for claim in claims] == [("skipped", "disabled")] * 4


def test_worker_trades_journalled_late_are_counted_from_when_they_are_seen(tmp_path):
    async def scenario():
        async with await open_store(f"sqlite:///{tmp_path}/late.db", create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            one = Watched(store, run_id)
            await one.look_at(START + DAY)
            before = await one.claims()
            await trade(store, run_id, every(1, 1))
            await one.look_at(START + DAY + HOUR)
            return before, await one.claims()

    before, after = played(scenario())
    assert before == []
    assert [(trial.key.slot, trial.state) for trial in after] == [(START + DAY, "done")]


def test_worker_slot_that_fails_is_told_once_and_the_next_one_runs(tmp_path):
    broken: list[int] = []

    async def reflect(request, episodes, definitions):
        broken.append(request.slot)
        raise RuntimeError("no report today")

    async def scenario():
        async with watched(tmp_path, every(1, 5), reflect=reflect) as one:
            await one.look_at(START + DAY + HOUR)
            for n in range(2, 24):
                await one.look_at(START + DAY + n * HOUR)
            await one.look_at(START + 2 * DAY)
            return await one.claims(), one.names("slot_failed", "report_written")

    claims, shown = played(scenario())
    assert [(claim.key.slot, claim.state, claim.reason) for claim in claims] == [
        (START + DAY, "failed", "RuntimeError: no report today"),
        (START + 2 * DAY, "failed", "RuntimeError: no report today"),
    ]
    assert broken == [START + DAY, START + 2 * DAY]
    assert shown == ["slot_failed"] * 2


def test_worker_claim_that_never_ends_is_given_up(tmp_path):
    class Died(BaseException):
        pass

    async def reflect(request, episodes, definitions):
        raise Died

    async def scenario():
        async with watched(tmp_path, every(1, 5), reflect=reflect, lease_ms=0) as one:
            for _ in range(MOST_ATTEMPTS):
                with pytest.raises(Died):
                    await one.look_at(START + DAY)
            await one.look_at(START + DAY)
            return await one.claims()

    (claim,) = played(scenario())
    assert claim.state == "failed"
    assert f"given up after {MOST_ATTEMPTS} attempts" in claim.reason


def test_worker_second_request_holds_what_the_first_left(tmp_path):
    async def scenario():
        async with watched(tmp_path, every(1, 3), reflect=short_report) as one:
            await one.look_at(START + DAY)
            await one.look_at(START + 2 * DAY)
            return await one.claims()

    first, second = played(scenario())
    assert [item.facts["new_episodes"] for item in (first, second)] == [24, 24]
    assert [item.facts["episodes"] for item in (first, second)] == [24, 48]


@settings_of(max_examples=12)
@given(st.lists(st.integers(1, 40 * 24 * 4), min_size=4, max_size=20, unique=True).map(sorted))
def test_worker_seen_at_any_moments_keeps_the_interval_and_one_entry_a_slot(tmp_path_factory, moments):
    async def scenario():
        async with watched(
            tmp_path_factory.mktemp("any"), every(6, 40), settings(interval="weekly"), reflect=short_report
        ) as one:
            for quarter in moments:
                await one.look_at(START + quarter * HOUR // 4)
            return await one.claims()

    claims = played(scenario())
    ran = [claim.key.slot for claim in claims if claim.state == "done"]
    skipped = [claim.key.slot for claim in claims if claim.state == "skipped"]
    assert all(later - earlier >= WEEK for earlier, later in zip(ran, ran[1:], strict=False))
    assert all(is_slot(slot, "weekly") for slot in skipped)
    assert len(claims) == len({claim.key.slot for claim in claims})
