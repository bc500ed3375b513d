import asyncio
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.canonical import canonical_json
from schemas.errors import InvariantViolation, StoreError
from services.journal.chain import GENESIS_HASH, JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from tests.services.journal.rows import written_rows

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class FailingOnce(MemorySink):
    """A sink that keeps its rows and still reports a failure, like a commit whose answer was lost."""

    failed = False

    async def write(self, rows: list[JournalRow]) -> None:
        await super().write(rows)
        if not self.failed:
            self.failed = True
            raise StoreError("the answer was lost", retryable=True)


def append_one(writer, payload):
    return writer.append("genesis", ts_event=1, known_at=2, payload=payload)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_payload_stored_text_read_and_written_again_is_the_same_bytes(payload):
    row = append_one(JournalWriter(MemorySink()), payload)
    assert canonical_json(json.loads(row.payload)) == row.payload


@given(st.integers(1, 40), st.integers(1, 50))
def test_writer_head_does_not_depend_on_when_rows_are_flushed(count, flush_rows):
    assert written_rows(count, flush_rows=flush_rows) == written_rows(count)


def test_writer_counts_rows_and_kinds_before_they_are_flushed():
    writer = JournalWriter(MemorySink())
    assert (writer.events, writer.head_hash) == (0, GENESIS_HASH)
    row = append_one(writer, {})
    assert (writer.events, writer.head_hash, dict(writer.counts)) == (1, row.hash, {"genesis": 1})


def test_writer_checkpoint_waits_for_enough_rows():
    sink = MemorySink()
    writer = JournalWriter(sink, flush_rows=2)
    append_one(writer, {})
    asyncio.run(writer.checkpoint())
    assert sink.rows == []
    append_one(writer, {})
    asyncio.run(writer.checkpoint())
    assert [row.seq for row in sink.rows] == [0, 1]


def test_writer_failed_flush_keeps_its_rows_and_repeats_them_without_doubles():
    sink = FailingOnce()
    writer = JournalWriter(sink)
    append_one(writer, {"n": 0})
    with pytest.raises(StoreError):
        asyncio.run(writer.flush())
    append_one(writer, {"n": 1})
    asyncio.run(writer.flush())
    assert [row.seq for row in sink.rows] == [0, 1]


def test_writer_unknown_kind_names_the_nearest():
    with pytest.raises(InvariantViolation, match="'policy_frozen'"):
        JournalWriter(MemorySink()).append("policy_froze", ts_event=0, known_at=0, payload={})


def test_writer_known_before_it_happened_is_refused():
    with pytest.raises(InvariantViolation, match="before it happened"):
        JournalWriter(MemorySink()).append("genesis", ts_event=2, known_at=1, payload={})


@pytest.mark.parametrize("value", [math.nan, math.inf, object()])
def test_writer_payload_without_a_canonical_form_leaves_no_row(value):
    writer = JournalWriter(MemorySink())
    with pytest.raises((ValueError, TypeError)):
        append_one(writer, {"x": value})
    assert writer.events == 0
