"""Long payloads lie compressed in a SQLite store; what is read and hashed is their text."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from services.journal.chain import GENESIS_HASH, JournalRow, relink
from services.journal.sparse_index import KeyReference
from services.store import open_store
from services.store.packed_text import LEAST, pack, unpack
from tests.services.store.stores import new_run
from tests.services.store.test_leases import of_store

LONG = '{"rationale":"' + "close below the mean. " * 400 + '","snapshot_hash":"f00d"}'


def row_of(payload: str) -> JournalRow:
    """The first row of a run."""
    made = JournalRow(0, 1, 2, "policy_proposal", "AAPL", payload, None, GENESIS_HASH, "")
    return JournalRow(0, 1, 2, "policy_proposal", "AAPL", payload, None, GENESIS_HASH, relink(made))


async def append(store, payload: str) -> str:
    run_id: str = (await store.runs.create(new_run())).run_id
    await store.journal.append(run_id, [row_of(payload)])
    return run_id


def test_long_payload_is_read_as_it_was_written_and_found_by_an_id_in_it(address):
    async def scenario(store):
        run_id = await append(store, LONG)
        sought = [KeyReference("policy_proposal", "snapshot_hash", "f00d")]
        missed = [KeyReference("policy_proposal", "snapshot_hash", "beef")]
        return [
            [row.payload async for row in store.journal.rows(run_id, **bounds)]
            for bounds in ({}, {"sought": sought}, {"sought": missed})
        ]

    assert of_store(address, scenario) == [[LONG], [LONG], []]


def test_long_payload_takes_a_tenth_of_its_length_in_a_sqlite_file(tmp_path):
    async def scenario():
        async with await open_store(f"sqlite:///{tmp_path}/store.db", create=True) as store:
            await append(store, LONG)

    asyncio.run(scenario())
    with closing(sqlite3.connect(tmp_path / "store.db")) as store:
        kind, length = store.execute("SELECT typeof(payload), length(payload) FROM journal").fetchone()
        ((page,),) = store.execute("PRAGMA page_size").fetchall()
    assert (kind, page) == ("blob", 16_384)
    assert length < len(LONG) / 10


@pytest.mark.parametrize("text", ["", "{}", "x" * LEAST, LONG, "x\x9cä" * LEAST])
def test_text_that_is_packed_comes_back(text):
    assert unpack(pack(text)) == text


@pytest.mark.parametrize("stored", [b"\xff", pack(LONG)[:-9]], ids=["no_text", "cut_off"])
def test_bytes_that_are_no_packed_text_fit_no_hash(stored):
    with pytest.raises(UnicodeEncodeError):
        unpack(stored).encode()
