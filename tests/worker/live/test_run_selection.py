"""Which run a process goes on with: when its file is not quite what it was, when several start at once."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schemas.settings import DataSettings, RuntimeSettings, Settings
from services.store import RunRecord, Store, open_store
from tests.worker.feeds.growing import HEADER, line
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import address, rows_stored
from worker.feeds.opening import open_feed
from worker.live.process import PaperOutcome, PaperProcess
from worker.live.process_inputs import ProcessInputs
from worker.live.run_selection import left_behind, run_to_trade

FLEET = 4


def following(path: Path | str, symbols: tuple[str, ...] = (), **data: Any) -> Settings:
    """Of a process that follows a file."""
    return Settings(data=DataSettings(symbols=symbols, **data), runtime=RuntimeSettings(data=str(path)))


def bars(*symbols: str, start: int = 0, stop: int = 4) -> str:
    return "".join(line(number, symbol) for number in range(start, stop) for symbol in symbols)


@pytest.fixture
def file(tmp_path) -> Path:
    path: Path = tmp_path / "bars.csv"
    path.write_text(HEADER + bars("A", "B"))
    return path


Decision = tuple[str, tuple[str, ...], list[str]]


def decided(folder: Path, settings: Settings, *, new: bool = False) -> Decision:
    """The run that a start with `--feed csv` trades, the symbols of its feed, and what it leaves behind."""

    async def decide() -> Decision:
        async with await open_store(address(folder), create=True) as store:
            feed = open_feed("csv", settings)
            left = [str(run) for run in await left_behind(store, settings, feed, new=new)]
            record = await run_to_trade(store, settings, feed, "test", new=new)
            await feed.close()
            return record.run_id, feed.symbols, left

    return asyncio.run(decide())


def traded(folder: Path, settings: Settings, rows: int) -> PaperOutcome:
    """A process on a growing file, stopped when it has taken so many rows."""

    async def trade() -> PaperOutcome:
        feed = open_feed("csv", settings)
        async with await open_store(address(folder), create=True) as store:

            def progress(recovered: int, taken: int) -> None:
                if taken == rows:
                    process.stop("the test")

            around = NullMonitor(lambda kind, detail: None)
            process = PaperProcess(
                ProcessInputs(
                    settings,
                    feed,
                    store,
                    f"host:1:{os.urandom(4).hex()}",
                    around,
                    progress=progress,
                    look_s=0.02,
                )
            )
            outcome = await process.run("test")
        await feed.close()
        return outcome

    return asyncio.run(trade())


def test_paper_on_a_file_that_has_new_symbols_goes_on_with_its_own_and_tells_of_the_others(
    tmp_path, file
) -> None:
    settings = following(file)
    first = traded(tmp_path, settings, 4)
    file.write_text(HEADER + bars("A", "B", "C") + bars("A", "B", "C", start=4, stop=7))
    second = traded(tmp_path, settings, 3)
    assert (first.record.run_id, second.record.run_id) == ("r0001", "r0001")
    assert second.record.data["symbols"] == ["A", "B"]
    shown = [row.payload for row in rows_stored(tmp_path, "r0001", "feed_anomaly")]
    assert [text for text in shown if '"unknown symbol"' in text and '"C"' in text]

    async def taken(store: Store) -> list[set[str]]:
        return [set(row.bars) async for row in store.trading.rows("r0001")]

    async def read() -> list[set[str]]:
        async with await open_store(address(tmp_path), create=False) as store:
            return await taken(store)

    assert asyncio.run(read()) == 7 * [{"A", "B"}]


@pytest.mark.parametrize("there", [("A",), ("B", "C"), ("A", "B", "C")])
def test_run_on_a_file_with_some_of_its_symbols_goes_on(tmp_path, file, there) -> None:
    settings = following(file)
    assert decided(tmp_path, settings) == ("r0001", ("A", "B"), [])
    file.write_text(HEADER + bars(*there))
    assert decided(tmp_path, settings) == ("r0001", ("A", "B"), [])


def test_run_on_a_file_with_none_of_its_symbols_is_left_behind_aloud(tmp_path, file) -> None:
    decided(tmp_path, following(file))
    file.write_text(HEADER + bars("C", "D"))
    run_id, symbols, left = decided(tmp_path, following(file))
    assert (run_id, symbols) == ("r0002", ("C", "D"))
    assert left == [
        "run r0001 is not over and does not go on: symbols then ['A', 'B'], now ['C', 'D']; a new run is "
        "traded. See `thinktwice status r0001`"
    ]


def test_run_whose_symbols_were_named_does_not_go_on_with_others(tmp_path, file) -> None:
    decided(tmp_path, following(file, ("A",)))
    run_id, symbols, left = decided(tmp_path, following(file, ("A", "B")))
    assert (run_id, symbols) == ("r0002", ("A", "B"))
    assert [name.split(";")[0] for name in left] == [
        f"run r0001 is not over and does not go on: it has another configuration on the same {str(file)!r}"
    ]


def test_run_on_a_link_goes_on_when_the_link_leads_elsewhere(tmp_path, file) -> None:
    link, other = tmp_path / "link.csv", tmp_path / "other.csv"
    link.symlink_to(file)
    assert decided(tmp_path, following(link)) == ("r0001", ("A", "B"), [])
    other.write_text(HEADER + bars("A", "B", start=4, stop=8))
    link.unlink()
    link.symlink_to(other)
    assert decided(tmp_path, following(link)) == ("r0001", ("A", "B"), [])


def test_run_on_a_link_is_not_that_of_the_file_behind_it_when_it_has_its_own(tmp_path, file) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(file)
    assert decided(tmp_path, following(link))[0] == "r0001"
    assert decided(tmp_path, following(file), new=True)[0] == "r0002"
    assert decided(tmp_path, following(link))[0] == "r0001"


def test_run_goes_on_by_whichever_words_name_its_file(tmp_path, file, monkeypatch) -> None:
    decided(tmp_path, following(file))
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    assert decided(tmp_path, following("../bars.csv")) == ("r0001", ("A", "B"), [])
    assert decided(tmp_path, following("../folder/../bars.csv")) == ("r0001", ("A", "B"), [])


def test_runs_that_are_left_behind_for_a_new_one_are_named_the_newest_first(tmp_path, file) -> None:
    for number in range(5):
        run_id, _, left = decided(tmp_path, following(file), new=True)
        assert run_id == f"r{number + 1:04d}"
    assert [name.split(";")[0] for name in left] == [
        f"run r000{number} is not over and does not go on: --new was given" for number in (4, 3, 2)
    ]


def test_run_of_something_else_is_not_named(tmp_path, file) -> None:
    other = tmp_path / "other.csv"
    other.write_text(HEADER + bars("A", "B"))
    decided(tmp_path, following(file, timeframe="1m"))
    assert decided(tmp_path, following(other)) == ("r0002", ("A", "B"), [])


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_processes_that_start_at_the_same_time_trade_one_run(tmp_path, request, file, dialect) -> None:
    where = address(tmp_path) if dialect == "sqlite" else request.getfixturevalue("postgres_url")
    settings = following(file)

    async def start(store: Store) -> RunRecord:
        return await run_to_trade(store, settings, open_feed("csv", settings), "test", new=False)

    async def all_at_once() -> list[RunRecord]:
        opened = [await open_store(where, create=True) for _ in range(FLEET)]
        try:
            return await asyncio.gather(*(start(store) for store in opened))
        finally:
            for store in opened:
                await store.close()

    found = asyncio.run(all_at_once())
    assert {record.run_id for record in found} == {"r0001"}
    assert all(replace(record, head_hash=found[0].head_hash) == found[0] for record in found)


def test_process_that_died_while_it_decided_is_not_waited_for(tmp_path, file) -> None:
    settings = following(file)

    async def start() -> str:
        async with await open_store(address(tmp_path), create=True) as store:
            gone = f"{os.uname().nodename}:{2**22 + 1}:dead"
            assert await store.leases.take(f"starting/{settings.config_hash}", gone, 3_600_000)
            async with asyncio.timeout(10.0):
                record = await run_to_trade(store, settings, open_feed("csv", settings), "test", new=False)
            return record.run_id

    assert asyncio.run(start()) == "r0001"
