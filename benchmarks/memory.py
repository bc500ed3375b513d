"""Retrieval from memory: the whole service on populations of ten thousand to a million, sixteen ranks each.

`uv run python -m benchmarks.memory` prints the table. The populations are seeded: uniform ranks, forty
entries a day, two in five won. Worst cases stand beside them: no failure pattern at all, so that its bucket
never fills, and one day of entry, so that none does.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schemas.episode import Episode
from schemas.settings import MemorySettings
from schemas.vocabulary import ExitReason, FailureMode
from services.memory.episode_memory import MemoryView
from services.memory.reuse import MemoryTelemetry
from services.memory.scan import FAILURE, LANES, LOSS, SCRATCH, WIN, Cases
from services.memory.store import ID_BYTES, Population, Populations
from services.ports import MemoryQuery
from tools.docs_pages import table
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard

SEED = 20_240_607
WIDTH = 16
RETRIEVALS = 200
WARM_UP = 20
ENTRIES_A_DAY = 40
SHARES = {WIN: 0.4, LOSS: 0.3, FAILURE: 0.2, SCRATCH: 0.1}
NO_FAILURES = {WIN: 0.4, LOSS: 0.5, SCRATCH: 0.1}
WORLDS = (
    ("10,000", 10_000, SHARES, ENTRIES_A_DAY),
    ("100,000", 100_000, SHARES, ENTRIES_A_DAY),
    ("1,000,000", 1_000_000, SHARES, ENTRIES_A_DAY),
    ("1,000,000, no failure pattern", 1_000_000, NO_FAILURES, ENTRIES_A_DAY),
    ("1,000,000, all entered on one day", 1_000_000, SHARES, 10**9),
)
NOW = 2**60


@dataclass(frozen=True)
class Retrievals:
    """CPU milliseconds of one retrieval.

    Attributes:
        world: what was searched.
        p50: median.
        p95: the slowest in twenty.
        slowest: of all.
    """

    world: str
    p50: float
    p95: float
    slowest: float


def time_memory() -> list[Retrievals]:
    """Retrievals in every world."""
    return [time_world(name, size, shares, a_day) for name, size, shares, a_day in WORLDS]


def time_world(name: str, size: int, shares: Mapping[int, float], a_day: int) -> Retrievals:
    """Retrievals for seeded questions; the first twenty, which compile and fill caches, are not counted."""
    rng = np.random.default_rng(SEED)
    reader = reader_of(columns(rng, size, shares, a_day), size)
    spent = np.empty(WARM_UP + RETRIEVALS)
    for k, point in enumerate(rng.random((spent.size, WIDTH)).tolist()):
        query = MemoryQuery(symbol=f"S{k}", playbook_id="bench", direction="long", fingerprint=tuple(point))
        started = time.process_time_ns()
        reader.retrieve(query, NOW)
        spent[k] = time.process_time_ns() - started
    p50, p95, slowest = np.percentile(spent[WARM_UP:] / 1e6, [50, 95, 100])
    return Retrievals(name, float(p50), float(p95), float(slowest))


def reader_of(cases: Cases, size: int) -> MemoryView:
    """A reader as the fast path has it."""
    held = Populations()
    population = Population(cases.points.shape[1])
    population.episodes, population._cases = EpisodesOfRows(size, cases), cases
    held.hold("bench", "long", population)
    parts = (MemorySettings(), SimulatedClock(NOW), TickGuard(), MemoryTelemetry(), time.perf_counter_ns)
    return MemoryView(held, *parts, None)


def columns(rng: np.random.Generator, size: int, shares: Mapping[int, float], a_day: int) -> Cases:
    """Seeded columns with room for `size` rows, rounded up to whole blocks."""
    room = -(-size // LANES) * LANES
    kinds, weights = np.array(list(shares), dtype=np.int8), list(shares.values())
    return Cases(
        points=rng.random((room // LANES, WIDTH, LANES), dtype=np.float32),
        known_at=np.arange(room, dtype=np.int64),
        kind=rng.choice(kinds, room, p=weights),
        day=np.arange(room, dtype=np.int64) // a_day,
        ids=rng.integers(48, 58, (room, ID_BYTES), dtype=np.uint8),
    )


class EpisodesOfRows(list[Episode]):
    """The episode of each row, made when it is looked at."""

    def __init__(self, size: int, cases: Cases) -> None:
        self._size, self._cases = size, cases

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, row: Any) -> Any:
        return episode_of(int(row), int(self._cases.kind[row]))


def episode_of(row: int, kind: int) -> Episode:
    """A trade that ended as its kind says; a scratch ended at nothing."""
    r = {WIN: 1.0, SCRATCH: 0.0}.get(kind, -1.0)
    return Episode(
        episode_id=f"{row:016x}", symbol="BENCH", timeframe="1h", playbook_id="bench", playbook_version=1,
        playbook_hash="0" * 64, policy_id="0" * 16, direction="long", regime="up/mid", structure="neutral",
        fingerprint=(0.5,) * WIDTH, conviction=0.5, entry_label=0, exit_label=1, known_at=2,
        entry_price=100.0, exit_price=100.0 + r, quantity=1.0, fees=0.0, pnl=r, r=r, mae_r=min(r, -0.2),
        mfe_r=max(r, 0.2), hold_bars=4, exit_reason=ExitReason.TARGET if r > 0 else ExitReason.STOP,
        failure_mode=FailureMode.CHOP if kind == FAILURE else None,
    )  # fmt: skip


def memory_table(found: Sequence[Retrievals]) -> str:
    """One line a world."""
    rows = [
        (timing.world, f"{timing.p50:.2f}", f"{timing.p95:.2f}", f"{timing.slowest:.2f}") for timing in found
    ]
    return table(("episodes of one playbook and direction", "p50, CPU ms", "p95, CPU ms", "slowest"), rows)


if __name__ == "__main__":
    sys.stdout.write(memory_table(time_memory()) + "\n")
