"""Memories, questions, histories and the slow answer that the compiled pass is held against."""

from collections import Counter
from functools import cache

import numpy as np
from hypothesis import strategies as st

from schemas.episode import Episode
from schemas.settings import MemorySettings
from schemas.vocabulary import FailureMode
from services.memory.episode_memory import EpisodeMemory
from services.ports import MemoryQuery
from tests.services.playbooks.samples import DAY, NOON, episode
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard

MIDDLE = (0.5, 0.5, 0.5, 0.5, 0.5)
LATE = NOON + 10_000 * DAY
QUOTAS = {"winners": 3, "losers": 3, "failures": 2}


def memory(*episodes: Episode, settings: MemorySettings | None = None, now: int = LATE) -> EpisodeMemory:
    found = EpisodeMemory(settings or MemorySettings(), SimulatedClock(now), TickGuard())
    for item in episodes:
        found.add(item)
    return found


def query(fingerprint: tuple[float, ...] = MIDDLE, playbook="alpha", direction="long", symbol="TEST"):
    return MemoryQuery(symbol=symbol, playbook_id=playbook, direction=direction, fingerprint=fingerprint)


def ids(cases) -> list[int]:
    return [int(case.episode_id, 16) for case in cases]


@cache
def points(width: int = 5):
    """Ranks, often the same few: ties in distance must happen."""
    rank = st.one_of(st.sampled_from([0.25, 0.5, 0.75]), st.floats(0, 1, width=32))
    return st.tuples(*[rank] * width)


@cache
def drawn_parts(width: int, days: int):
    """What of an episode is drawn; made once, since hypothesis examines every strategy that is new to it."""
    return st.fixed_dictionaries(
        {
            "known_at": st.integers(0, 20).map(lambda day: NOON + day * DAY),
            "entry_label": st.integers(1, days).map(lambda half: NOON - half * DAY // 2),
            "r": st.sampled_from([-1.0, -0.3, 0.0, 0.5, 0.51, 2.0]),
            "failure_mode": st.sampled_from([None, *FailureMode]),
            "playbook_id": st.sampled_from(["alpha", "alpha", "beta"]),
            "direction": st.sampled_from(["long", "long", "short"]),
            "fingerprint": points(width),
        }
    )


@st.composite
def histories(draw, width=5, most=30, days=4):
    """Episodes of two playbooks and directions, entered on few days and known on any."""
    parts = drawn_parts(width, days)
    found = [episode(number, **draw(parts)) for number in range(draw(st.integers(0, most)))]
    return draw(st.permutations(found))


def distance(item: Episode, memory_query: MemoryQuery) -> int:
    a, b = (
        np.array(pair, dtype=np.float32).astype(float)
        for pair in (item.fingerprint, memory_query.fingerprint)
    )
    return round(float(np.sqrt(sum((a - b) ** 2)) / 1e-9))


def eligible(history, memory_query: MemoryQuery, known_at: int) -> list[Episode]:
    pool = [
        e
        for e in history
        if e.playbook_id == memory_query.playbook_id and e.direction == memory_query.direction
    ]
    return [e for e in pool if e.known_at <= known_at]


def buckets_of(pool: list[Episode]) -> dict[str, list[Episode]]:
    lost = [e for e in pool if e.outcome == "loss"]
    named = [e for e in lost if e.failure_mode not in (None, FailureMode.UNCLASSIFIED)]
    return {"winners": [e for e in pool if e.outcome == "win"], "losers": lost, "failures": named}


def greedy(items: list[Episode], memory_query: MemoryQuery, quota: int) -> list[Episode]:
    """Sort everything, then take the next whose day has not half the quota."""
    taken: list[Episode] = []
    days: Counter[int] = Counter()
    for item in sorted(items, key=lambda e: (distance(e, memory_query), e.episode_id)):
        day = item.entry_label // DAY
        if len(taken) < quota and days[day] < max(1, quota // 2):
            taken.append(item)
            days[day] += 1
    return taken
