"""A start that is there without its process is a crash, until it has run out, and of its own run alone."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import ConfigError, DataError, FeedError, ModelError, StoreError
from schemas.settings.live import OperationsSettings
from services.store import Store, open_store
from services.store.repository import LeaseLost
from tests.each_case import check_each
from worker.live.crash_counter import StartLimit

LIMIT = OperationsSettings(start_limit=2, start_window_s=600)
Scenario = Callable[[Store], Awaitable[Any]]
QUOTED = (
    *(ConfigError("x"), DataError("x"), StoreError("x"), LeaseLost("x"), FeedError("x"), ModelError("x")),
    *(asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(1)),
)


def of_store(folder: Path, scenario: Scenario) -> Any:
    async def opened() -> Any:
        async with await open_store(f"sqlite:///{folder}/starts.db", create=True) as store:
            return await scenario(store)

    return asyncio.run(opened())


def limit_of(store: Store, owner: str, shown: list[tuple[str, str]]) -> StartLimit:
    return StartLimit(store.leases, owner, LIMIT, lambda kind, detail: shown.append((kind, detail["reason"])))


async def crash(store: Store, *owners: str, run_id: str = "r0001") -> None:
    """Processes that hold the run one after the other and say nothing of their end."""
    for owner in owners:
        await limit_of(store, owner, []).crashed_too_often(run_id)


async def ended(limit: StartLimit, error: BaseException | None = None) -> None:
    """The end of a process: with an error, or without."""
    with nullcontext() if error is None else pytest.raises(type(error)):
        async with limit.withdrawn():
            if error is not None:
                raise error


async def starts(store: Store) -> list[str]:
    return [start.owner for start in await store.leases.list_in_force("start/")]


def test_process_after_more_crashes_than_the_limit_is_told_and_the_one_before_is_not(tmp_path):
    async def scenario(store):
        return [await limit_of(store, owner, []).crashed_too_often("r0001") for owner in "abcd"]

    assert of_store(tmp_path, scenario) == [False, False, False, True]


def test_crashes_go_on_to_count_while_the_run_is_in_safe_mode(tmp_path):
    async def scenario(store):
        await crash(store, *"abcdef")
        for start in (await store.leases.list_in_force("start/"))[:3]:
            await store.leases.release(start)  # as if it had run out
        return await limit_of(store, "g", []).crashed_too_often("r0001")

    assert of_store(tmp_path, scenario)


def test_orderly_end_takes_back_its_own_start_and_its_place_is_used_again(tmp_path):
    async def scenario(store):
        await crash(store, "a")
        for owner in "bc":
            limit = limit_of(store, owner, [])
            await limit.crashed_too_often("r0001")
            await ended(limit)
        await crash(store, "d")
        return [(start.name, start.owner) for start in await store.leases.list_in_force("start/")]

    assert of_store(tmp_path, scenario) == [("start/r0001/0", "a"), ("start/r0001/1", "d")]


def test_crashes_of_one_run_put_no_other_into_safe_mode(tmp_path):
    async def scenario(store):
        await crash(store, *"abc", run_id="r0002")
        return [await limit_of(store, "d", []).crashed_too_often(run) for run in ("r0001", "r000_", "r0002")]

    assert of_store(tmp_path, scenario) == [False, False, True]


def test_process_that_holds_a_run_again_has_one_start(tmp_path):
    async def scenario(store):
        limit = limit_of(store, "a", [])
        for _ in range(3):
            assert not await limit.crashed_too_often("r0001")
        return await starts(store)

    assert of_store(tmp_path, scenario) == ["a"]


def test_start_runs_out_by_the_clock_of_the_store(tmp_path):
    async def scenario(store):
        await crash(store, "a", "b", "c")
        first, *_ = found = await store.leases.list_in_force("start/")
        await store.leases.take(first.name, first.owner, 0)  # its window is over
        return found, await limit_of(store, "d", []).crashed_too_often("r0001")

    found, looping = of_store(tmp_path, scenario)
    assert max(start.until_ms for start in found) - min(start.until_ms for start in found) < 60_000
    assert not looping


@check_each("error", [*QUOTED, ZeroDivisionError("x"), MemoryError()])
def test_only_an_end_that_says_why_takes_its_start_back(tmp_path, error):
    shown: list[tuple[str, str]] = []

    async def scenario(store):
        limit = limit_of(store, "a", shown)
        await limit.crashed_too_often("r0001")
        await ended(limit, error)
        return await starts(store)

    said_why = error in QUOTED
    assert of_store(tmp_path, scenario) == ([] if said_why else ["a"])
    named = said_why and isinstance(error, Exception)
    assert shown == ([("start_withdrawn", f"{type(error).__name__}: x")] if named else [])


def test_end_of_a_process_that_never_held_its_run_changes_nothing(tmp_path):
    shown: list[tuple[str, str]] = []

    async def scenario(store):
        await crash(store, "a")
        await ended(limit_of(store, "b", shown), ConfigError("x"))
        return await starts(store)

    assert (of_store(tmp_path, scenario), shown) == (["a"], [])


@pytest.mark.parametrize("error", [None, ConfigError("x")])
def test_start_that_cannot_be_taken_back_is_told_and_the_end_keeps_its_reason(tmp_path, monkeypatch, error):
    shown: list[tuple[str, str]] = []

    async def scenario(store):
        async def away(lease):
            raise StoreError("the store is away", retryable=True)

        limit = limit_of(store, "a", shown)
        await limit.crashed_too_often("r0001")
        with monkeypatch.context() as patched:
            patched.setattr(store.leases, "release", away)
            await ended(limit, error)
        return await starts(store)

    assert of_store(tmp_path, scenario) == ["a"]
    assert shown == [("start_not_withdrawn", "the store is away; this end counts as a crash")]
