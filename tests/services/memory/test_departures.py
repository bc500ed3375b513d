"""What trades around a fingerprint are expected to bring: in a planted region, without one, and never late.

Small versions of `python -m benchmarks.memory_worlds`; each claim with the world that would break it.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.memory_worlds import REGIONS, World, spoken_shares
from services.memory.departures import inside, regions
from tests.services.memory.worlds import LATE, histories, memory, points, query
from tests.services.playbooks.samples import DAY, NOON, episode

HALF = REGIONS["half"]


def lost_above(rank: float, n: int = 200):
    """Cases of `alpha` that lose above a half of the first rank, and earn below it."""
    rng = np.random.default_rng(7)
    for k, point in enumerate(rng.random((n, 5)).tolist()):
        r = float(rng.normal(-0.8 if point[0] > rank else 0.5))
        at = NOON + k * DAY
        yield episode(k, r=r, fingerprint=tuple(point), entry_label=at, exit_label=at, known_at=at + DAY)


def test_regions_are_the_splits_of_every_rank_and_the_corners_of_every_pair():
    assert regions(5).prior.size == 5 * 18 + 10 * 36
    assert regions(5).prior.sum() == pytest.approx(0.5)
    assert regions(1).prior.size == 18
    held = inside(np.array([0.05, 0.95, 0.5, 0.5, 0.5]))
    assert held.sum() == 5 * 9 + 10 * 9  # of a rank each edge has one side, of a pair of edges one corner


def test_estimate_is_below_zero_where_cases_lost_and_above_where_they_won():
    reader = memory(*lost_above(0.5)).reader()
    bad, good = (reader.retrieve(query((rank, 0.5, 0.5, 0.5, 0.5)), LATE).estimates[0] for rank in (0.8, 0.2))
    assert bad.contradicts
    assert not good.contradicts
    assert bad.upper_r < 0 < good.lower_r
    assert (bad.n, good.n) == (200, 200)


def test_estimate_sees_smaller_departures_the_more_cases_there_are():
    few, many = (memory(*lost_above(0.5, n)).reader().retrieve(query(), LATE).estimates[0] for n in (50, 200))
    assert (many.unseen_r or 0.0) < (few.unseen_r or 0.0)
    assert memory().reader().retrieve(query(), LATE).estimates[0].unseen_r is None


def test_estimate_of_rules_without_cases_rests_on_the_residuals_of_the_others():
    own, pooled = memory(*lost_above(0.5)).reader().retrieve(query(playbook="beta"), LATE).estimates
    assert (own.n, pooled.n) == (0, 200)
    assert own.departs < 0.4


@given(history=histories(most=25), point=points(), day=st.integers(0, 20))
def test_estimate_knows_nothing_that_came_later_and_no_order_of_arrival(history, point, day):
    known_at, asked = NOON + day * DAY, query(point)
    whole = memory(*history).reader().retrieve(asked, known_at)
    known = [item for item in history if item.known_at <= known_at]
    alone = memory(*reversed(known)).reader().retrieve(asked, known_at)
    assert whole.estimates == alone.estimates


def test_estimate_continued_case_by_case_is_that_of_all_at_once():
    cases = list(lost_above(0.5, 60))
    grown = memory()
    for case in cases:
        grown.add(case)
        seen = grown.reader().retrieve(query(), LATE).estimates
    assert seen == memory(*cases).reader().retrieve(query(), LATE).estimates


def test_trades_open_together_count_for_less_than_as_many_apart():
    def band(hold_days: int) -> float:
        rng = np.random.default_rng(3)
        shared = rng.normal(size=30).repeat(5)
        cases = [
            episode(
                k, r=float(shared[k] + 0.1 * rng.normal()), fingerprint=tuple(rng.random(5).tolist()),
                entry_label=NOON + (k // 5) * 10 * DAY, exit_label=NOON + ((k // 5) * 10 + hold_days) * DAY,
                known_at=NOON + ((k // 5) * 10 + hold_days) * DAY,
            )
            if hold_days
            else episode(
                k, r=float(shared[k] + 0.1 * rng.normal()), fingerprint=tuple(rng.random(5).tolist()),
                entry_label=NOON + k * DAY, exit_label=NOON + k * DAY, known_at=NOON + k * DAY,
            )
            for k in range(150)
        ]  # fmt: skip
        found = memory(*cases).reader().retrieve(query(), LATE).estimates[0]
        return found.upper_r - found.lower_r

    assert band(5) > 1.5 * band(0)


@pytest.mark.parametrize(
    ("world", "n", "within", "outside"),
    [
        (World("t3", -0.6, region=HALF), 150, (0.60, 1.0), 0.10),
        (World("t3", -0.6, region=HALF), 300, (0.85, 1.0), 0.15),
        (World("bracket", -0.6, region=HALF), 300, (0.70, 1.0), 0.15),
        (World("t3", 0.0), 300, (0.0, 0.05), 0.05),
        (World("bracket", 0.0), 300, (0.0, 0.05), 0.05),
        (World("t3", 0.0, mean=0.1), 150, (0.0, 0.05), 0.05),
        (World("t3", 0.0, together=5), 150, (0.0, 0.05), 0.05),
    ],
)
def test_memory_asks_to_revise_in_planted_regions_and_hardly_elsewhere(world, n, within, outside):
    found = spoken_shares(world, n, runs=20)
    spread = 2.0 * 0.10  # of a mean over 20 runs
    assert within[0] - spread <= found.within <= within[1] + spread
    assert found.outside <= outside + 0.5 * spread
