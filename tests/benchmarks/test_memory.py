"""The benchmark of retrieval from memory asks the service for bundles that a run could have."""

import numpy as np

from benchmarks.memory import SHARES, columns, reader_of, time_world
from services.ports import MemoryQuery

SIZE = 600


def test_benchmark_of_memory_times_bundles_of_winners_losers_and_failures():
    rng = np.random.default_rng(1)
    reader = reader_of(columns(rng, SIZE, SHARES, 40), SIZE)
    query = MemoryQuery(symbol="S", playbook_id="bench", direction="long", fingerprint=(0.5,) * 16)
    found = reader.retrieve(query, 2**60)
    assert (len(found.winners), len(found.losers), len(found.failures)) == (3, 3, 2)
    timed = time_world("few", SIZE, SHARES, 40)
    assert 0.0 < timed.p50 <= timed.p95 <= timed.slowest
