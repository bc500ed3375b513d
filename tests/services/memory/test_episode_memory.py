from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.episode import Episode
from schemas.errors import InvariantViolation
from schemas.regime import FINGERPRINT
from schemas.settings import MemorySettings
from schemas.vocabulary import FailureMode
from services.memory import scan, store
from services.memory.episode_memory import EpisodeMemory
from services.ports import MemoryQuery
from tests.services.playbooks.samples import DAY, NOON, episode, loser
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard

MIDDLE = (0.5, 0.5, 0.5, 0.5, 0.5)
LATE = NOON + 10_000 * DAY


def memory(*episodes: Episode, now: int = LATE, guard: TickGuard | None = None) -> EpisodeMemory:
    found = EpisodeMemory(MemorySettings(), SimulatedClock(now), guard or TickGuard())
    for item in episodes:
        found.add(item)
    return found


def query(fingerprint: tuple[float, ...] = MIDDLE, playbook: str = "alpha", direction="long") -> MemoryQuery:
    return MemoryQuery(symbol="TEST", playbook_id=playbook, direction=direction, fingerprint=fingerprint)


def ids(cases) -> list[int]:
    return [int(case.episode_id, 16) for case in cases]


def test_cases_are_those_of_versions_under_the_same_rules():
    """A version that replaced its parent's rules is not held to what those rules lost."""
    rules = {"a" * 64: "old", "b" * 64: "new", "c" * 64: "old"}
    found = EpisodeMemory(MemorySettings(), SimulatedClock(LATE), TickGuard(), rules_of=rules.__getitem__)
    for number, version in enumerate(rules):
        found.add(episode(number, playbook_hash=version, r=-1.0))
    reader = found.reader()
    request = {version: replace(query(), playbook_hash=version) for version in rules}
    answers = {version: reader.retrieve(entry, LATE) for version, entry in request.items()}
    assert {name[0]: sorted(ids(answer.losers)) for name, answer in answers.items()} == {
        "a": [0, 2],
        "b": [1],
        "c": [0, 2],
    }
    assert answers["b" * 64].base_rates.population == 1
    assert reader.base_rates(LATE).population == 3


ranks = st.floats(0, 1, width=32)
points = st.tuples(ranks, ranks, ranks, ranks, ranks)


@st.composite
def episodes(draw, least=0, most=40):
    found = []
    for number in range(draw(st.integers(least, most))):
        found.append(
            episode(
                number,
                known_at=NOON + draw(st.integers(0, 20)) * DAY,
                r=draw(st.sampled_from([-1.0, -0.3, 0.0, 0.5, 0.51, 2.0])),
                failure_mode=draw(st.sampled_from([None, *FailureMode])),
                playbook_id=draw(st.sampled_from(["alpha", "beta"])),
                direction=draw(st.sampled_from(["long", "short"])),
                fingerprint=draw(st.one_of(points, st.just(MIDDLE))),
            )
        )
    return draw(st.permutations(found))


def oracle(history: list[Episode], memory_query: MemoryQuery, known_at: int) -> dict[str, list[str]]:
    """The same answer by sorting everything with numpy."""
    pool = [
        e
        for e in history
        if e.playbook_id == memory_query.playbook_id and e.direction == memory_query.direction
    ]
    pool = [e for e in pool if e.known_at <= known_at]

    def distance(item: Episode) -> int:
        a, b = (
            np.array(point, dtype=np.float32).astype(float)
            for point in (item.fingerprint, memory_query.fingerprint)
        )
        return round(float(np.sqrt(sum((a - b) ** 2)) / 1e-9))

    def nearest(items: list[Episode], quota: int) -> list[str]:
        return [e.episode_id for e in sorted(items, key=lambda e: (distance(e), e.episode_id))[:quota]]

    lost = [e for e in pool if e.outcome == "loss"]
    named = [e for e in lost if e.failure_mode not in (None, FailureMode.UNCLASSIFIED)]
    return {
        "winners": nearest([e for e in pool if e.outcome == "win"], 3),
        "losers": nearest(lost, 3),
        "failures": nearest(named, 2),
    }


@given(episodes(), points, st.integers(-1, 21))
def test_retrieve_equals_sorting_the_whole_population(history, point, day):
    known_at = NOON + day * DAY
    found = memory(*history).reader().retrieve(query(point), known_at)
    expected = oracle(history, query(point), known_at)
    for bucket, wanted in expected.items():
        assert [case.episode_id for case in getattr(found, bucket)] == wanted


@given(episodes(), points, st.integers(-1, 21), st.randoms())
def test_retrieve_and_base_rates_do_not_change_when_the_future_is_added(history, point, day, random):
    known_at = NOON + day * DAY
    past = [item for item in history if item.known_at <= known_at]
    mixed = list(history)
    random.shuffle(mixed)
    now, later = memory(*past).reader(), memory(*mixed).reader()
    assert now.retrieve(query(point), known_at).payload() == later.retrieve(query(point), known_at).payload()
    assert now.base_rates(known_at) == later.base_rates(known_at)


@given(episodes(10, 60))
@settings(max_examples=30)
def test_base_rates_count_the_whole_population_never_the_bundle(history):
    found = memory(*history).reader()
    outcomes = Counter(e.outcome for e in history if e.playbook_id == "alpha" and e.direction == "long")
    rates = found.retrieve(query(), LATE).base_rates
    assert (rates.winners, rates.losers, rates.population) == (
        outcomes["win"],
        outcomes["loss"],
        outcomes.total(),
    )
    everything = Counter(e.outcome for e in history)
    assert found.base_rates(LATE).winners == everything["win"]
    assert found.base_rates(LATE).population == len(history)


def test_base_rates_count_each_episode_that_arrives_and_none_before_it_is_known():
    found = memory()
    reader = found.reader()
    counts = []
    for number in (3, 1, 2):
        found.add(episode(number))
        counts += [reader.base_rates(LATE).population for _ in range(2)]
    assert counts == [1, 1, 2, 2, 3, 3]
    assert [reader.base_rates(NOON + day * DAY).population for day in range(5)] == [0, 1, 2, 3, 3]


def test_base_rates_of_a_lopsided_history_stay_lopsided():
    history = [episode(k) for k in range(5)] + [loser(100 + k) for k in range(95)]
    found = memory(*history).reader().retrieve(query(), LATE)
    assert len(found.winners) == len(found.losers) == 3
    assert found.base_rates.losers / found.base_rates.population == 0.95


def test_ties_in_distance_go_to_the_smaller_id_whatever_the_order_of_arrival():
    history = [episode(k) for k in (7, 3, 9, 1, 5)]
    assert ids(memory(*history).reader().retrieve(query(), LATE).winners) == [1, 3, 5]
    assert ids(memory(*reversed(history)).reader().retrieve(query(), LATE).winners) == [1, 3, 5]


def test_distance_is_euclidean_on_ranks_and_rounded():
    far = (0.5, 0.5, 0.5, 0.5, 0.8)
    found = memory(episode(1, fingerprint=far)).reader().retrieve(query(), LATE)
    assert found.winners[0].distance == round(float(np.float32(0.8)) - 0.5, 9)


def test_insufficient_names_exactly_the_buckets_below_their_quota():
    reader = memory(*[episode(k) for k in range(3)], *[loser(10 + k) for k in range(2)]).reader()
    assert reader.retrieve(query(), LATE).insufficient == ("losers", "failures")
    assert reader.retrieve(query(playbook="nobody"), LATE).insufficient == ("winners", "losers", "failures")
    modes = [loser(20 + k, FailureMode.CHOP) for k in range(2)]
    full = memory(*[episode(k) for k in range(3)], loser(10), *modes).reader()
    assert full.retrieve(query(), LATE).insufficient == ()


def test_failures_are_losers_with_a_recognised_mode_only():
    won = episode(1, failure_mode=FailureMode.CHOP)
    history = [won, loser(2), loser(3, FailureMode.UNCLASSIFIED), loser(4, FailureMode.LATE_ENTRY)]
    found = memory(*history).reader().retrieve(query(), LATE)
    assert [(case.episode_id[-1], case.failure_mode) for case in found.failures] == [("4", "late_entry")]
    assert ids(found.losers) == [2, 3, 4]


def test_failures_are_found_beyond_the_nearest_losers():
    near = [loser(k) for k in range(3)]
    far = [loser(10 + k, FailureMode.CHOP, fingerprint=(0.9, 0.9, 0.9, 0.9, 0.9 - k / 100)) for k in range(3)]
    found = memory(*near, *far).reader().retrieve(query(), LATE)
    assert ids(found.losers) == [0, 1, 2]
    assert ids(found.failures) == [12, 11]


def test_episodes_that_may_not_teach_are_refused_and_counted():
    found = memory()
    assert not found.add(episode(1, no_learn=True))
    assert not found.add(episode(2, ledger="shadow"))
    assert found.add(episode(3))
    assert found.ignored == {"no_learn": 1, "shadow": 1, "no_regime": 0}
    assert found.reader().base_rates(LATE).population == len(found) == 1


def test_adding_an_episode_twice_or_without_five_ranks_raises():
    found = memory(episode(1))
    with pytest.raises(InvariantViolation, match="is in memory already"):
        found.add(episode(1))
    for bad in ((0.5,) * 4, (0.5, 0.5, 0.5, 0.5, float("nan")), (0.5, 0.5, 0.5, 0.5, 1.5)):
        with pytest.raises(InvariantViolation, match="ranks"):
            found.add(episode(2, fingerprint=bad))
        with pytest.raises(InvariantViolation, match="ranks"):
            found.reader().retrieve(query(bad), LATE)
    with pytest.raises(InvariantViolation, match="longer than 32 bytes"):
        found.add(episode(2, episode_id="x" * 33))
    assert found.reader().base_rates(LATE).population == 1


def test_reads_after_the_clock_raise():
    reader = memory(episode(1), now=NOON).reader()
    with pytest.raises(InvariantViolation, match="that is the future"):
        reader.retrieve(query(), NOON + 1)
    with pytest.raises(InvariantViolation, match="that is the future"):
        reader.base_rates(NOON + 1)
    assert reader.retrieve(query(), NOON).base_rates.population == 0


def test_reads_and_writes_inside_the_tick_path_raise_and_are_counted():
    guard = TickGuard()
    found = memory(episode(1), guard=guard)
    with guard.tick_path():
        with pytest.raises(InvariantViolation, match="memory_reads"):
            found.reader().retrieve(query(), LATE)
        with pytest.raises(InvariantViolation, match="memory_reads"):
            found.reader().base_rates(LATE)
        with pytest.raises(InvariantViolation, match="policy_writes"):
            found.add(episode(2))
    assert guard.attempts == {"llm_calls": 0, "memory_reads": 2, "policy_writes": 1}
    assert (found.reads, len(found)) == (0, 1)


def test_every_read_is_counted_with_its_latency():
    found = memory(episode(1))
    found.reader().retrieve(query(), LATE)
    found.reader().base_rates(LATE)
    assert found.reads == len(found.latencies_ms) == 2
    assert all(latency >= 0 for latency in found.latencies_ms)


def test_reader_has_no_way_to_add():
    reader = memory(episode(1)).reader()
    assert {name for name in dir(reader) if not name.startswith("_")} == {"base_rates", "retrieve"}
    with pytest.raises(AttributeError):
        reader.add(episode(2))  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        reader.anything = 1  # type: ignore[attr-defined]


def test_population_that_grows_past_its_capacity_keeps_everything():
    history = [episode(k, fingerprint=(k / 1000, 0.0, 0.0, 0.0, 0.0)) for k in range(1000)]
    found = memory(*history).reader().retrieve(query((0.5, 0.0, 0.0, 0.0, 0.0)), LATE)
    assert ids(found.winners) == [500, 499, 501]
    assert found.base_rates.population == 1000


def test_store_is_wide_enough_for_a_fingerprint():
    assert len(FINGERPRINT) <= store.MAX_WIDTH


def test_fused_pass_has_one_compiled_signature():
    test_population_that_grows_past_its_capacity_keeps_everything()
    memory(loser(1, FailureMode.CHOP)).reader().retrieve(query(), NOON)
    assert len(scan.scan.signatures) == 1
