import asyncio
from dataclasses import replace

import pytest

from services.journal.sinks import ComparingSink, ReplayStopped
from tests.services.journal.rows import written_rows

ROWS = written_rows(10)


class StoredHashes:
    def __init__(self, hashes: list[str]) -> None:
        self._hashes = hashes

    async def hashes(self, run_id: str, first: int, last: int) -> list[str]:
        return self._hashes[first : last + 1]


def sink_over(stored: int) -> ComparingSink:
    return ComparingSink(StoredHashes([row.hash for row in ROWS[:stored]]), "r0001", stored)


def test_comparing_sink_equal_rows_are_counted():
    sink = sink_over(10)
    asyncio.run(sink.write(ROWS[:4]))
    asyncio.run(sink.write(ROWS[4:]))
    assert sink.compared == 10


def test_comparing_sink_first_differing_row_stops_the_replay():
    sink = sink_over(10)
    rows = [*ROWS[:6], replace(ROWS[6], hash="0" * 64), *ROWS[7:]]
    with pytest.raises(ReplayStopped) as stopped:
        asyncio.run(sink.write(rows))
    assert stopped.value.row == rows[6]
    assert sink.compared == 6


@pytest.mark.parametrize("stored", [0, 3, 9])
def test_comparing_sink_past_the_last_stored_row_stops_the_replay(stored):
    sink = sink_over(stored)
    with pytest.raises(ReplayStopped) as stopped:
        asyncio.run(sink.write(ROWS))
    assert stopped.value.row is None
    assert sink.compared == stored
