"""Stores that were written once: today's program opens, upgrades, reads, verifies and replays them."""

import asyncio
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import ConfigError
from services.journal.chain import JournalRow, check_chain
from services.journal.index import JournalIndex
from services.journal.kinds import PLAN_KINDS
from services.journal.references import check_references
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.store import RunRecord, Store, open_store
from services.store.migrations import HEAD, REVISIONS
from tests.golden.comparing import difference
from tests.golden.decoding import undecoded
from tests.golden.fingerprint import fingerprint
from tests.golden.stored import HOW, RELEASED, Golden, next_name, release, released
from tests.golden.tables import digests
from tests.golden.world import BACKTEST, PAPER, backtest_bars
from worker.live.replay import PaperScript
from worker.operations.environment import PROGRAM
from worker.runs.backtest import run_backtest
from worker.runs.replay import compared_document
from worker.runs.stored_settings import stored_settings

LARGEST = 700_000  # payloads are packed one by one in the store: nothing packs them again
ALL = pytest.mark.parametrize("golden", released(), ids=lambda entry: entry.name)


@cache
def newest() -> Golden:
    """The store that has to come out as it was."""
    return released()[-1]


async def opened(file: Path) -> Store:
    """A store, upgraded by opening it."""
    return await open_store(f"sqlite:///{file}", create=True)


async def rows_of(store: Store, run_id: str) -> list[JournalRow]:
    return [row async for row in store.journal.rows(run_id)]


def test_golden_stores_are_there_for_every_revision_and_are_small() -> None:
    assert {golden.revision for golden in released()} == set(REVISIONS), f"no store of revision {HEAD}: {HOW}"
    assert newest().revision == HEAD
    assert sum(path.stat().st_size for path in RELEASED.glob(f"{newest().name}.*")) < LARGEST


def test_golden_store_is_never_overwritten(tmp_path) -> None:
    assert next_name(HEAD) not in {golden.name for golden in released()}
    with pytest.raises(FileExistsError):
        release(newest().name, newest().unpacked(tmp_path), {})


@ALL
def test_golden_store_is_upgraded_and_keeps_every_row_of_its_day(golden, tmp_path) -> None:
    file = golden.unpacked(tmp_path)
    written = golden.facts["tables"]
    assert written["journal"]["rows"] > 0
    assert digests(file) == written, "the file is not the one that was released"

    async def open_and_close() -> None:
        async with await opened(file):
            pass

    asyncio.run(open_and_close())
    kept = {name: item for name, item in written.items() if name != "thinktwice_revision"}
    assert digests(file, kept) == kept, "a revision changed rows that users have stored"
    assert (
        digests(file)["thinktwice_revision"]["sha256"]
        == digests(newest().unpacked(tmp_path), {"thinktwice_revision": {"columns": ["version_num"]}})[
            "thinktwice_revision"
        ]["sha256"]
    ), f"it was not brought to {HEAD}"


@ALL
def test_golden_journal_holds_to_its_recorded_head_and_every_row_is_read(golden, tmp_path) -> None:
    """Contracts have changed since the older ones, and no release holds any: their chain alone is checked."""

    async def play() -> None:
        async with await opened(golden.unpacked(tmp_path)) as store:
            for payload in golden.facts["runs"]:
                rows = store.journal.rows(payload["run_id"])
                chain = await check_chain(rows, events=payload["events"], head_hash=payload["head_hash"])
                assert chain.ok, f"{golden.name} {payload['run_id']}: {chain.problem}"
                index = await JournalIndex.read(store.journal.rows(payload["run_id"]))
                unread = [text for event in index.events if (text := undecoded(event)) is not None]
                assert golden.name != newest().name or unread == [], "today's contracts refuse what is stored"
                found = check_references(index, finished=payload["status"] == "finished")
                assert (found.dangling, found.problem) == ((), None)
                assert found.checked > 0

    asyncio.run(play())


async def paper_again(store: Store, record: RunRecord) -> list[JournalRow]:
    """The paper run from what it took in."""
    sink = MemorySink()
    journal = JournalWriter(sink)
    await PaperScript(stored_settings(record), store, record).play(journal, None, None)
    await journal.flush()
    return list(sink.rows)


async def backtest_again(store: Store, record: RunRecord) -> list[JournalRow]:
    """The backtest over the bars that the paper run holds."""
    sink = MemorySink()
    await run_backtest(stored_settings(record), await backtest_bars(store), JournalWriter(sink))
    return list(sink.rows)


@pytest.mark.parametrize(("run_id", "again"), [(PAPER, paper_again), (BACKTEST, backtest_again)])
def test_newest_golden_run_comes_out_as_it_was(run_id, again, tmp_path) -> None:
    golden = newest()
    here, there = fingerprint(), golden.facts["made_on"]

    async def play() -> tuple[list[JournalRow], list[JournalRow]]:
        async with await opened(golden.unpacked(tmp_path)) as store:
            record = await store.runs.find(run_id)
            try:
                return await rows_of(store, run_id), await again(store, record)
            except ConfigError as error:
                raise AssertionError(f"golden store {golden.name}: {error}; {HOW}") from error

    stored, played = asyncio.run(play())
    other = difference(stored, played)
    assert other is None, f"{run_id} of golden store {golden.name} no longer comes out: {other}; {HOW}"
    head = next(fact["head_hash"] for fact in golden.facts["runs"] if fact["run_id"] == run_id)
    if here == there:
        assert played[-1].hash == head, f"equal but for last bits on the machine that made it; {HOW}"


def test_document_of_another_version_that_lacks_a_figure_is_no_other_than_it_was(tmp_path) -> None:
    """A later version may add a figure: what both documents have is compared."""
    golden = newest()

    async def play() -> tuple[RunRecord, tuple[str, ...] | None, tuple[str, ...] | None]:
        async with await opened(golden.unpacked(tmp_path)) as store:
            record = await store.runs.find(PAPER)
            journal = JournalWriter(MemorySink())
            outcome = await PaperScript(stored_settings(record), store, record).play(journal, None, None)
            document = dict(record.document or {})
            figures = {name: item for name, item in document["performance"].items() if name != "cagr"}
            lacking = replace(record, document=document | {"performance": figures})
            elsewhere = replace(lacking, environment={**record.environment, PROGRAM: "another one"})
            of_another = compared_document(elsewhere, outcome, store.url)
            return record, of_another, compared_document(lacking, outcome, store.url)

    record, of_another, of_this = asyncio.run(play())
    assert "cagr" in (record.document or {})["performance"]
    assert not any("cagr" in line for line in of_another or ())
    assert any(line.startswith("performance.cagr is missing and comes out as") for line in of_this or ())
    if fingerprint() == golden.facts["made_on"]:
        assert of_another == ()


def test_golden_store_holds_what_a_run_can_hold(tmp_path) -> None:
    async def play() -> dict[str, set[str]]:
        async with await opened(newest().unpacked(tmp_path)) as store:
            return {run: {row.kind for row in await rows_of(store, run)} for run in (PAPER, BACKTEST)}

    kinds = asyncio.run(play())
    taken_in = {"feed_anomaly", "answer_arrived", "operator_command", "entries_blocked"}
    thought = {"policy_frozen", "episode", "high_level_report", "replan_verdict", "envelope_breach"}
    thought |= PLAN_KINDS
    assert kinds[PAPER] >= taken_in | thought
    assert kinds[BACKTEST] >= {"policy_frozen", "episode", "run_finished"}
    tables: dict[str, Any] = newest().facts["tables"]
    empty = sorted(name for name, table in tables.items() if not table["rows"])
    unasked = {"conversation_turns", "savepoints", "tool_pins", "console_users", "console_audit"}
    assert set(empty) <= unasked, "nobody asked, no run keeps any"


def changed(rows: list[JournalRow], number: int, **payload: Any) -> list[JournalRow]:
    """The same journal with another payload in one row."""
    fields = json.loads(rows[number].payload) | payload
    found = list(rows)
    found[number] = replace(rows[number], payload=json.dumps(fields))
    return found


def test_comparison_passes_last_bits_and_nothing_else(tmp_path) -> None:
    async def read() -> list[JournalRow]:
        async with await opened(newest().unpacked(tmp_path)) as store:
            return await rows_of(store, BACKTEST)

    rows = asyncio.run(read())
    number = next(n for n, row in enumerate(rows) if row.kind == "order_accepted")
    payload = json.loads(rows[number].payload)
    assert difference(rows, rows) is None
    assert difference(rows, changed(rows, number, stop=payload["stop"] * (1 + 1e-12))) is None
    assert difference(rows, rows[:-1]) == f"{len(rows) - 1} rows and were {len(rows)}"
    for name, value in (
        ("stop", payload["stop"] * (1 + 1e-6)),
        ("direction", "sideways"),
        ("bar_label", payload["bar_label"] + 1),
        ("policy_id", "0" * 16),
        ("quantity", None),
        ("more", 1),
    ):
        found = difference(rows, changed(rows, number, **{name: value}))
        assert found is not None, name
        assert name in found
