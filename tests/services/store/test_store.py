"""One conformance suite for every dialect."""

import asyncio
from contextlib import asynccontextmanager, closing
from dataclasses import replace

import pytest
from sqlalchemy.dialects import sqlite

from schemas.errors import ConfigError, StoreError
from services.journal.chain import GENESIS_HASH, check_chain
from services.journal.sinks import StoreSink
from services.journal.sparse_index import KeyReference, RowSpan, Sought
from services.journal.writer import JournalWriter
from services.store import journal_repository, open_store
from services.store.journal_repository import PlaceTaken
from tests.services.journal.decisions import ENTRY, EXIT, decision_rows
from tests.services.journal.rows import written_rows
from tests.services.store.stores import new_run, opened

ROWS = written_rows(12)


@asynccontextmanager
async def one_run(address, **changes):
    async with await open_store(address, create=True) as store:
        yield store, (await store.runs.create(new_run(**changes))).run_id


def test_store_run_comes_back_as_it_was_given(address):
    async def scenario():
        async with one_run(address, config={"x": 0.1, "y": "ä"}) as (store, run_id):
            created = await store.runs.find(run_id)
            await store.runs.close(run_id, "finished", {"errors": 0})
            return created, await store.runs.find("latest")

    created, closed = asyncio.run(scenario())
    assert (created.run_id, created.number, created.status, created.events) == ("r0001", 1, "running", 0)
    assert (created.config, created.head_hash, created.document) == ({"x": 0.1, "y": "ä"}, GENESIS_HASH, None)
    assert closed == replace(created, status="finished", document={"errors": 0})


def test_store_rows_come_back_byte_for_byte_with_the_run_row_agreeing(address):
    async def scenario():
        async with one_run(address) as (store, run_id):
            await store.journal.append(run_id, ROWS[:5])
            await store.journal.append(run_id, ROWS[5:])
            run = await store.runs.find(run_id)
            rows = [row async for row in store.journal.rows(run_id)]
            chain = await check_chain(store.journal.rows(run_id), events=run.events, head_hash=run.head_hash)
            return rows, run, chain

    rows, run, chain = asyncio.run(scenario())
    assert rows == ROWS
    assert (run.events, run.head_hash) == (12, ROWS[-1].hash)
    assert chain.ok


@pytest.mark.parametrize("again", [ROWS[:8], ROWS[7:8], ROWS[5:12]])
def test_store_rows_whose_place_is_taken_are_refused_to_who_must_be_first(address, again):
    """Two processes may decide the very same: only one of them did it."""

    async def scenario():
        async with one_run(address) as (store, run_id):
            await store.journal.append(run_id, ROWS[:8], first=True)
            with pytest.raises(PlaceTaken, match="is stored already"):
                await store.journal.append(run_id, again, first=True)
            return (await store.runs.find(run_id)).events

    assert asyncio.run(scenario()) == 8


@pytest.mark.parametrize("again", [ROWS[:8], ROWS[3:8], ROWS[5:12], ROWS, ROWS[7:8]])
def test_store_rows_sent_twice_are_kept_once(address, again):
    async def scenario():
        async with one_run(address) as (store, run_id):
            await store.journal.append(run_id, ROWS[:8])
            await store.journal.append(run_id, again)
            return [row async for row in store.journal.rows(run_id)]

    assert asyncio.run(scenario()) == ROWS[: max(8, again[-1].seq + 1)]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (ROWS[9:], "gap"),
        (written_rows(12, seed=1)[8:], "does not follow"),
        (written_rows(12, seed=1)[6:], "other content"),
    ],
)
def test_store_rows_that_do_not_continue_the_journal_are_refused(address, rows, problem):
    async def scenario():
        async with one_run(address) as (store, run_id):
            await store.journal.append(run_id, ROWS[:8])
            with pytest.raises(StoreError, match=problem):
                await store.journal.append(run_id, rows)
            return [row async for row in store.journal.rows(run_id)]

    assert asyncio.run(scenario()) == ROWS[:8]


def test_store_closed_run_takes_no_rows_and_no_second_end(address):
    async def scenario():
        async with one_run(address) as (store, run_id):
            await store.runs.close(run_id, "interrupted")
            with pytest.raises(StoreError, match="interrupted"):
                await store.journal.append(run_id, ROWS)
            with pytest.raises(StoreError, match="not running"):
                await store.runs.close(run_id, "finished", {})

    asyncio.run(scenario())


@pytest.mark.parametrize("page", [1, 3, 12, 100])
def test_store_rows_by_kind_and_time_keep_their_order(address, page, monkeypatch):
    monkeypatch.setattr(journal_repository, "PAGE_ROWS", page)

    async def scenario():
        async with one_run(address) as (store, run_id):
            await store.journal.append(run_id, ROWS)
            kinds = {"policy_event", "entry_filled"}
            return (
                [row async for row in store.journal.rows(run_id, kinds=kinds)],
                [row async for row in store.journal.rows(run_id, until=ROWS[4].known_at)],
                await store.journal.hashes(run_id, 10, 20),
            )

    by_kind, by_time, hashes = asyncio.run(scenario())
    assert by_kind == [row for row in ROWS if row.kind in ("policy_event", "entry_filled")]
    assert by_time == ROWS[:5]
    assert hashes == [row.hash for row in ROWS[10:]]


@pytest.mark.parametrize("most", [0, 20])
def test_store_rows_that_are_sought_come_by_key_by_its_start_and_by_place(address, most, monkeypatch):
    monkeypatch.setattr(journal_repository, "MOST_TEXTS", most)
    rows = decision_rows().rows
    (entry,) = (row for row in rows if row.kind == "entry_filled")
    odd = KeyReference("entry_filled", "fill_id", '%_"\\ä')
    sought = {
        "key": [KeyReference("entry_filled", "fill_id", ENTRY)],
        "start": [KeyReference("exit_filled", "fill_id", EXIT[:1], whole=False)],
        "span": [RowSpan(("thesis_armed", "entry_filled"), entry.symbol, entry.seq - 9, entry.seq)],
        "no such": [odd] if most else [],
        "both": [KeyReference("entry_filled", "fill_id", ENTRY), odd, RowSpan(("genesis",), None, -1, 1)],
    }

    async def scenario():
        async with one_run(address) as (store, run_id):
            await store.journal.append(run_id, rows)
            return {
                name: [row async for row in store.journal.rows(run_id, sought=these)]
                for name, these in sought.items()
            }

    found = asyncio.run(scenario())
    assert found.pop("span") == [
        row
        for row in rows[entry.seq - 8 : entry.seq]
        if row.kind in ("thesis_armed", "entry_filled") and row.symbol == entry.symbol
    ]
    kinds = {name: [row.kind for row in these] for name, these in found.items()}
    assert kinds == {
        "key": ["entry_filled"],
        "start": ["exit_filled"],
        "no such": [],
        "both": ["genesis", "entry_filled"],
    }


def test_store_rows_that_are_sought_are_found_by_the_index_of_kinds(tmp_path):
    sought: list[Sought] = [
        KeyReference("entry_filled", "fill_id", ENTRY),
        RowSpan(("thesis_armed",), "AAPL", 5, 9),
    ]
    query = journal_repository.page_query(journal_repository.ROW_COLUMNS, "r0001", sought=sought)
    text = str(query.compile(dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}))
    asyncio.run(_make(path := tmp_path / "store.db"))
    with closing(opened(path)) as store:
        plan = [row[-1] for row in store.execute(f"EXPLAIN QUERY PLAN {text}")]
    assert "journal_kinds (run_id=? AND kind=?)" in plan[0]


async def _make(path):
    async with await open_store(f"sqlite:///{path}", create=True):
        pass


def test_store_runs_made_at_once_by_several_connections_get_different_ids(address):
    async def several():
        async with await open_store(address, create=True) as store:
            return [(await store.runs.create(new_run())).run_id for _ in range(8)]

    async def scenario():
        async with await open_store(address, create=True):
            found = await asyncio.gather(several(), several(), several())
        async with await open_store(address, create=False) as store:
            return [run_id for part in found for run_id in part], await store.runs.all()

    made, stored = asyncio.run(scenario())
    assert sorted(made) == [f"r{number:04d}" for number in range(1, 25)]
    assert [run.run_id for run in stored] == sorted(made)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("latest", "r0012"),
        ("r0003", "r0003"),
        ("r0012", "r0012"),
        ("r001", "not unique: 3 runs"),
        ("r0099", "no run 'r0099'.*Did you mean"),
        ("", "no run ''"),
        ("%", "no run '%'"),
    ],
)
def test_store_run_is_found_by_id_prefix_or_latest(address, name, expected):
    async def scenario():
        async with await open_store(address, create=True) as store:
            for _ in range(12):
                await store.runs.create(new_run())
            return (await store.runs.find(name)).run_id

    if expected.startswith("r0"):
        assert asyncio.run(scenario()) == expected
    else:
        with pytest.raises(ConfigError, match=expected):
            asyncio.run(scenario())


def test_store_sink_writes_what_the_writer_appends(address):
    async def scenario():
        async with one_run(address) as (store, run_id):
            writer = JournalWriter(StoreSink(store.journal, run_id), flush_rows=4)
            for n in range(10):
                writer.append("policy_event", ts_event=n, known_at=n, payload={"n": n})
                await writer.checkpoint()
            before = (await store.runs.find(run_id)).events
            await writer.flush()
            return before, await store.runs.find(run_id), writer.head_hash

    before, run, head = asyncio.run(scenario())
    assert before == 8
    assert (run.events, run.head_hash) == (10, head)
