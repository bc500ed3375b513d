"""At most half of a bucket from one day, exactly, and nothing from the future in any of it."""

from collections import Counter
from itertools import permutations
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import InvariantViolation
from schemas.settings import MemorySettings
from schemas.vocabulary import FailureMode
from services.memory.scan import LANES
from services.memory.store import CHUNK, MAX_WIDTH
from tests.each_case import check_each
from tests.services.memory.worlds import (
    LATE,
    QUOTAS,
    buckets_of,
    eligible,
    greedy,
    histories,
    ids,
    memory,
    points,
    query,
)
from tests.services.playbooks.samples import DAY, NOON, episode, loser


def at(first_rank: float) -> tuple[float, ...]:
    return (first_rank, 0.5, 0.5, 0.5, 0.5)


def near(number: int, day: int, **changes):
    """Winner `number`, the nearer the smaller its number, entered at noon of a day."""
    return episode(number, fingerprint=at(0.5 + number / 100), entry_label=NOON + day * DAY, **changes)


@given(histories(), points(), st.integers(-1, 21), st.sampled_from([(3, 3, 2), (1, 1, 1), (5, 4, 7)]))
@settings(max_examples=200)
def test_diverse_buckets_equal_sorting_everything_and_skipping_full_days(history, point, day, quotas):
    wanted = dict(zip(QUOTAS, quotas, strict=True))
    request, known_at = query(point), NOON + day * DAY
    found = memory(*history, settings=MemorySettings(**wanted)).reader().retrieve(request, known_at)
    for name, items in buckets_of(eligible(history, request, known_at)).items():
        taken = greedy(items, request, wanted[name])
        assert [case.episode_id for case in getattr(found, name)] == [e.episode_id for e in taken]
        assert (name in found.insufficient) == (len(taken) < wanted[name])


@given(histories(), points(), st.integers(0, 21))
def test_no_bucket_takes_more_than_half_its_quota_from_one_day(history, point, day):
    entered = {e.episode_id: e.entry_label // DAY for e in history}
    found = memory(*history).reader().retrieve(query(point), NOON + day * DAY)
    for name, quota in QUOTAS.items():
        days = Counter(entered[case.episode_id] for case in getattr(found, name))
        assert max(days.values(), default=0) <= max(1, quota // 2)


@given(histories(), histories(), points(), st.integers(-1, 21))
def test_whatever_the_future_holds_the_answer_is_the_same(past, future, point, day):
    known_at = NOON + day * DAY
    known = [e for e in past if e.known_at <= known_at]
    later = [
        e.model_copy(update={"episode_id": f"f{k:015x}", "known_at": known_at + 1 + k})
        for k, e in enumerate(future)
    ]
    ends = [memory(*order).reader() for order in (known, later + known, known + later)]
    assert len({end.retrieve(query(point), known_at).content_hash for end in ends}) == 1
    assert len({end.base_rates(known_at).model_dump_json() for end in ends}) == 1


def test_second_nearest_of_one_day_gives_way_to_the_next_day():
    history = [near(1, 0), near(2, 0), near(3, 5), near(4, 7)]
    found = memory(*history).reader().retrieve(query(), LATE)
    assert ids(found.winners) == [1, 3, 4]


def test_loser_kept_out_by_its_day_may_be_among_the_failures():
    settings = MemorySettings(winners=2, losers=2, failures=4)
    lost = {"r": -1.0, "failure_mode": FailureMode.CHOP}
    history = [near(1, 0), near(2, 5, **lost), near(3, 5, **lost), near(4, 6, **lost)]
    found = memory(*history, settings=settings).reader().retrieve(query(), LATE)
    assert ids(found.losers) == [2, 4]
    assert {*ids(found.losers), *ids(found.failures)} == {2, 3, 4}


def test_bucket_of_one_day_only_stays_short_and_says_so():
    found = memory(*[near(k, 0) for k in range(5)]).reader().retrieve(query(), LATE)
    assert ids(found.winners) == [0]
    assert found.insufficient == ("winners", "losers", "failures")
    assert found.base_rates.winners == 5


def test_day_is_the_utc_day_of_the_entry_not_of_the_exit():
    same_entry = [near(k, 0, known_at=NOON + k * DAY) for k in range(3)]
    same_exit = [near(k, -k, known_at=NOON) for k in range(3)]
    assert ids(memory(*same_entry).reader().retrieve(query(), LATE).winners) == [0]
    assert ids(memory(*same_exit).reader().retrieve(query(), LATE).winners) == [0, 1, 2]
    midnight = (NOON // DAY) * DAY
    across = [near(k, 0).model_copy(update={"entry_label": midnight + k - 1}) for k in range(3)]
    assert ids(memory(*across).reader().retrieve(query(), LATE).winners) == [0, 1]


@check_each("order", list(permutations(range(4))))
def test_case_as_far_as_the_last_of_a_full_bucket_gives_way_by_its_id_in_any_order(order):
    history = [near(1, 0), near(2, 5), near(4, 7), near(4, 0, episode_id=f"{9:016x}")]
    found = memory(*(history[k] for k in order)).reader().retrieve(query(), LATE)
    assert ids(found.winners) == [1, 2, 4]


def test_failures_of_one_day_are_never_both_patterns():
    lost = [
        loser(k, FailureMode.CHOP, entry_label=NOON + day * DAY, fingerprint=at(0.5 + k / 100))
        for k, day in enumerate((0, 0, 9))
    ]
    assert ids(memory(*lost).reader().retrieve(query(), LATE).failures) == [0, 2]


@pytest.mark.parametrize("width", [1, 2, 8, MAX_WIDTH])
def test_memory_is_as_wide_as_its_first_fingerprint(width):
    found = memory(episode(1, fingerprint=(0.25,) * width))
    (case,) = found.reader().retrieve(query((0.75,) * width), LATE).winners
    assert case.distance == round(0.5 * width**0.5, 9)
    for other in (width - 1, width + 1):
        with pytest.raises(InvariantViolation, match=f"does not hold {width} ranks"):
            found.add(episode(2, playbook_id="beta", fingerprint=(0.5,) * other))
        with pytest.raises(InvariantViolation, match=f"does not hold {width} ranks"):
            found.reader().retrieve(query((0.5,) * other), LATE)
    assert len(found) == 1


@pytest.mark.parametrize("width", [0, MAX_WIDTH + 1])
def test_memory_refuses_a_first_fingerprint_that_is_empty_or_too_wide(width):
    with pytest.raises(InvariantViolation, match="1 to 16 ranks"):
        memory(episode(1, fingerprint=(0.5,) * width))


@given(histories(width=16, most=30), points(16))
@settings(max_examples=50)
def test_sixteen_ranks_equal_sorting_everything(history, point):
    request = query(point)
    found = memory(*history).reader().retrieve(request, LATE)
    for name, items in buckets_of(eligible(history, request, LATE)).items():
        taken = greedy(items, request, QUOTAS[name])
        assert [case.episode_id for case in getattr(found, name)] == [e.episode_id for e in taken]


@pytest.mark.parametrize("rows", [LANES - 1, LANES, LANES + 1, 5 * LANES + 7])
def test_every_row_is_seen_whatever_the_number_of_blocks(rows):
    history = [episode(k, entry_label=k * DAY, fingerprint=at(k / rows)) for k in range(rows)]
    reader = memory(*history).reader()
    for wanted in (0, rows // 2, rows - 1):
        found = reader.retrieve(query(at(wanted / rows)), LATE)
        assert ids(found.winners)[0] == wanted
        assert found.base_rates.population == rows


def test_answer_over_several_chunks_equals_sorting_everything_with_numpy():
    rng = np.random.default_rng(5)
    rows = CHUNK + 3 * LANES + 5
    ranks = rng.integers(0, 9, (rows, 5)) / 8.0
    days = rng.integers(0, rows // 4, rows)
    template = episode(0)
    history = [
        template.model_copy(
            update={
                "episode_id": f"{k:016x}",
                "fingerprint": tuple(point),
                "entry_label": int(day) * DAY,
                "known_at": NOON + k,
            }
        )
        for k, (point, day) in enumerate(zip(ranks.tolist(), days, strict=True))
    ]
    known = rows - 100
    found = memory(*history).reader().retrieve(query(), NOON + known - 1)
    exact = np.round(np.sqrt(((ranks[:known] - 0.5) ** 2).sum(axis=1)) / 1e-9)
    taken: list[int] = []
    for k in np.lexsort((np.arange(known), exact)):
        if sum(days[k] == days[other] for other in taken) < 2:
            taken.append(int(k))
        if len(taken) == 3:
            break
    assert ids(found.winners) == taken
    assert found.base_rates.population == known


def test_distance_of_nothing_found_is_no_distance():
    found = memory().reader().retrieve(query(), LATE)
    assert (found.winners, found.degraded) == ((), None)
    assert min((case.distance for case in found.losers), default=inf) == inf
