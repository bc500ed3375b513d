"""One evaluation, one answer to one question; everything else is looked up anew, counted by its reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.episode import Episode
from schemas.settings import MemorySettings
from services.memory.episode_memory import EpisodeMemory
from tests.services.memory.worlds import LATE, MIDDLE, memory, query
from tests.services.playbooks.samples import DAY, NOON, episode, loser
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard

NOTHING = {"playbook": 0, "direction": 0, "fingerprint": 0, "new_episodes": 0}


def read_text(found: EpisodeMemory) -> tuple[int, int, dict[str, int]]:
    document = found.document()
    return document["reads"], document["reused"], document["requeried"]


def test_same_question_within_an_evaluation_is_answered_without_a_read():
    found = memory(episode(1))
    reader = found.reader()
    first = reader.retrieve(query(), LATE)
    assert reader.retrieve(query(), LATE) is first
    assert read_text(found) == (1, 1, NOTHING)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (query(playbook="beta"), "playbook"),
        (query(direction="short"), "direction"),
        (query(playbook="beta", direction="short"), "playbook"),
        (query((0.5, 0.5, 0.5, 0.5, 0.6)), "fingerprint"),
    ],
)
def test_another_question_of_an_evaluation_is_a_requery_with_its_reason(other, reason):
    found = memory(episode(1))
    reader = found.reader()
    reader.retrieve(query(), LATE)
    assert reader.retrieve(other, LATE) == memory(episode(1)).reader().retrieve(other, LATE)
    assert read_text(found) == (2, 0, NOTHING | {reason: 1})


def test_question_asked_before_the_last_one_is_still_answered_without_a_read():
    found = memory(episode(1))
    reader = found.reader()
    first = reader.retrieve(query(), LATE)
    reader.retrieve(query(playbook="beta"), LATE)
    assert reader.retrieve(query(), LATE) is first
    assert read_text(found) == (2, 1, NOTHING | {"playbook": 1})


def test_episode_that_arrives_between_two_rounds_is_seen_and_the_requery_says_why():
    found = memory(episode(1))
    reader = found.reader()
    assert reader.retrieve(query(), LATE).base_rates.population == 1
    found.add(loser(2))
    assert reader.retrieve(query(), LATE).base_rates.population == 2
    assert read_text(found) == (2, 0, NOTHING | {"new_episodes": 1})


def test_another_evaluation_gets_its_own_answer_and_is_no_requery():
    found = memory(episode(1))
    reader = found.reader()
    for request, known_at in ((query(), LATE), (query(symbol="NEXT"), LATE), (query(), LATE - 1)):
        reader.retrieve(request, known_at)
    assert read_text(found) == (3, 0, NOTHING)
    reader.retrieve(query(), LATE)
    assert read_text(found) == (4, 0, NOTHING)


def test_answer_of_an_earlier_time_is_never_given_later():
    found = memory(episode(1), episode(9))
    reader = found.reader()
    early = reader.retrieve(query(), NOON + DAY)
    late = reader.retrieve(query(), NOON + 9 * DAY)
    assert (early.known_at, early.base_rates.population) == (NOON + DAY, 1)
    assert (late.known_at, late.base_rates.population) == (NOON + 9 * DAY, 2)


def test_episode_that_may_not_teach_ends_no_reuse():
    found = memory(episode(1))
    reader = found.reader()
    reader.retrieve(query(), LATE)
    found.add(episode(2, ledger="shadow"))
    found.add(episode(3, no_learn=True))
    reader.retrieve(query(), LATE)
    assert read_text(found) == (1, 1, NOTHING)
    assert found.document()["ignored"] == {"no_learn": 1, "shadow": 1, "no_regime": 0}


steps = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.sampled_from(["alpha", "beta"]), st.sampled_from(["long", "short"])),
        st.tuples(st.just("add"), st.sampled_from(["alpha", "beta"]), st.sampled_from([-1.0, 1.0])),
        st.tuples(st.just("wait"), st.integers(0, 3), st.none()),
    ),
    max_size=40,
)


@given(steps)
def test_reused_answers_are_those_of_a_memory_that_never_reuses(found_steps):
    clock = SimulatedClock(NOON)
    found = EpisodeMemory(MemorySettings(), clock, TickGuard())
    held: list[Episode] = []
    reader, request = found.reader(), 0
    for kind, a, b in found_steps:
        if kind == "wait":
            clock.advance(clock.now + a * DAY)
        elif kind == "add":
            held.append(episode(len(held), playbook_id=a, r=b, known_at=NOON + 3 * len(held) * DAY))
            found.add(held[-1])
        else:
            request += 1
            wanted = memory(*held).reader().retrieve(query(MIDDLE, a, b), clock.now)
            assert reader.retrieve(query(MIDDLE, a, b), clock.now).content_hash == wanted.content_hash
    reads, reused, _ = read_text(found)
    assert reads + reused == request
