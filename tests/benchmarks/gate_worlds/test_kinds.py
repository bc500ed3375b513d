"""Kinds of worlds: their true means, and the trait that each is named after."""

import numpy as np
import pytest

from benchmarks.gate_worlds.calendar import HOUR_NS, MONDAY_NS, WEEK_NS
from benchmarks.gate_worlds.catalogue import KINDS, world_of
from benchmarks.gate_worlds.payoffs import Parameters
from tests.each_case import check_each

LONG = {"years": 20, "playbooks": 2, "regimes": 2}
LASTING = ("persistent", "swinging", "paths")
FINITE = {"trend": {"tail": 4.0}}


def drawn(kind, seed=1, given=None, **rest):
    return world_of(kind, given or {}, **rest).draw(np.random.Generator(np.random.PCG64([seed])))


def weeks_of(cell):
    return (cell.entry_ns - MONDAY_NS) // WEEK_NS


def weekly_sums(cell, weeks, mean):
    return np.bincount(weeks_of(cell), weights=cell.r - mean, minlength=weeks)


@check_each("kind", sorted(KINDS))
@check_each("edge", [0.0, 0.1])
def test_mean_of_a_kind_is_what_it_states(kind, edge):
    world = world_of(kind, FINITE.get(kind, {}), edge=0.0 if kind == "bursts" else edge, **LONG)
    cells = world.draw(np.random.Generator(np.random.PCG64([7])))
    truth = world.truth()[0, 0]
    # Sums of four weeks are nearly independent in every kind; sums less n times the mean have mean nought.
    sums = np.concatenate(
        [weekly_sums(cell, world.weeks, truth).reshape(-1, 4).sum(axis=1) for cell in cells]
    )
    if kind in ("shock", "sequential", *LASTING):  # one shock for all cells; a position reaches over weeks
        sums = np.sum([weekly_sums(cell, world.weeks, truth) for cell in cells], axis=0)
    error = sums.std(ddof=1) / np.sqrt(len(sums))
    assert abs(sums.mean()) <= 3.5 * error


@check_each("kind", sorted(KINDS))
def test_same_seed_draws_the_same_trades_and_another_others(kind):
    first, again, other = (drawn(kind, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a.r, b.r) for a, b in zip(first, again, strict=True))
    assert all(np.array_equal(a.entry_ns, b.entry_ns) for a, b in zip(first, again, strict=True))
    assert any(not np.array_equal(a.r, b.r) for a, b in zip(first, other, strict=True))


@check_each("kind", sorted(KINDS))
def test_trades_begin_inside_the_world_and_end_after_they_began(kind):
    for cell in drawn(kind):
        assert np.all((weeks_of(cell) >= 0) & (weeks_of(cell) < 52))
        assert np.all(cell.exit_ns > cell.entry_ns)
        assert np.all(np.isfinite(cell.r))


def test_symbols_share_bar_and_bet():
    (cell,) = drawn("symbols", given={"symbols": 4, "rho": 0.9}, playbooks=1, regimes=1, years=5)
    bets = cell.r.reshape(-1, 4)
    assert np.all(np.diff(cell.entry_ns.reshape(-1, 4), axis=1) == 0)
    assert np.corrcoef(bets[:, 0], bets[:, 1])[0, 1] > 0.7


def test_copies_are_rows_of_one_bet_with_one_outcome():
    cells = drawn("copies", given={"rows_low": 2, "rows_high": 5})
    for cell in cells:
        for week in range(52):
            rows = cell.r[weeks_of(cell) == week]
            assert 2 <= len(rows) <= 5
            assert len(set(rows)) == 1


def test_factor_ties_trades_of_a_week_that_never_overlap():
    (cell,) = drawn("factor", given={"target": 0.0}, playbooks=1, regimes=1, years=5)
    assert np.all(cell.entry_ns[1:] >= cell.exit_ns[:-1])
    weeks = cell.r.reshape(-1, 8)
    assert np.corrcoef(weeks[:, 0], weeks[:, 5])[0, 1] > 0.7


def test_sequential_winners_are_slow_and_positions_follow_each_other():
    (cell,) = drawn("sequential", playbooks=1, regimes=1)
    assert np.all(cell.entry_ns[1:] > cell.exit_ns[:-1])
    hours = (cell.exit_ns - cell.entry_ns) / HOUR_NS
    assert set(hours[cell.r > 0]) == {60.0}
    assert set(hours[cell.r < 0]) == {4.0}


def test_bursts_lose_by_rare_weeks_of_many_trades():
    world = world_of("bursts", years=20, playbooks=1, regimes=1)
    (cell,) = world.draw(np.random.Generator(np.random.PCG64([1])))
    assert world.truth()[0, 0] == pytest.approx(-0.378, abs=0.001)
    sizes = np.bincount(weeks_of(cell), minlength=world.weeks)
    assert set(sizes) == {2, 30}
    assert 1 / 18 < np.mean(sizes == 30) < 1 / 9
    assert np.all(cell.r[sizes[weeks_of(cell)] == 30] == -1.0)


def test_shock_over_weeks_is_one_for_all_cells_and_lasts():
    cells = drawn("shock", given={"share": 0.9, "span": 4}, years=5)
    first, second = (weekly_sums(cell, 260, 0.0) for cell in cells[:2])
    assert np.corrcoef(first, second)[0, 1] > 0.7
    assert np.corrcoef(first[1:], first[:-1])[0, 1] > 0.4


def test_autocorrelated_outcomes_lean_on_the_one_before():
    (cell,) = drawn("autocorrelated", given={"phi": 0.6}, playbooks=1, regimes=1, years=5)
    assert np.corrcoef(cell.r[1:], cell.r[:-1])[0, 1] > 0.3


def test_volatility_and_garch_cluster():
    for kind, weeks in (("volatility", 1), ("garch", 1)):
        cells = drawn(kind, given={"per_week": 15.0}, years=10)
        size = np.concatenate([np.minimum(np.abs(cell.r), 4.0)[None, :] for cell in cells])
        before, after = size[:, :-weeks].ravel(), size[:, weeks:].ravel()
        assert np.corrcoef(before, after)[0, 1] > 0.03


def test_garch_is_wilder_after_a_loss():
    cells = drawn("garch", years=20)
    after_loss = np.concatenate([np.abs(cell.r[1:])[cell.r[:-1] < -1.5] for cell in cells])
    after_win = np.concatenate([np.abs(cell.r[1:])[cell.r[:-1] > 1.5] for cell in cells])
    assert after_loss.mean() > after_win.mean()


def test_counts_vary_and_holidays_are_empty():
    (tiny, *_), (away, *_) = drawn("counts", given={"per_week": 0.3}), drawn("holidays", years=2)
    assert 5 < len(tiny.r) < 35
    empty = np.bincount(weeks_of(away), minlength=104) == 0
    assert empty[28:32].all()
    assert empty[44:48].all()


def test_crowded_weeks_lose_and_quiet_ones_gain():
    (cell,) = drawn("crowded", playbooks=1, regimes=1, years=20)
    sizes = np.bincount(weeks_of(cell))[weeks_of(cell)]
    assert cell.r[sizes == 12].mean() < -0.1 < 0.2 < cell.r[sizes == 2].mean()


def test_weekend_trades_exit_in_the_next_block_and_share_it():
    (cell,) = drawn("weekends", playbooks=1, regimes=1, years=5)
    assert np.all((cell.exit_ns - MONDAY_NS) // WEEK_NS == weeks_of(cell) + 1)
    assert np.corrcoef(cell.r.reshape(-1, 5)[:, 0], cell.r.reshape(-1, 5)[:, 4])[0, 1] > 0.35


def test_one_symbol_dominates_and_its_trades_are_one_view():
    (cell,) = drawn("dominated", playbooks=1, regimes=1, years=5)
    weeks = cell.r.reshape(-1, 14)
    assert np.corrcoef(weeks[:, 0], weeks[:, 9])[0, 1] > 0.7
    assert abs(np.corrcoef(weeks[:, 0], weeks[:, 12])[0, 1]) < 0.2


def test_planted_and_turning_edges_stand_where_they_should():
    planted = world_of("independent", first=-0.4).edges()
    assert np.all(planted[0] == -0.4)
    assert not planted[1:].any()
    turning = world_of("independent", first=0.3, later=-0.3, changed=3).edges()
    assert np.array_equal(np.flatnonzero(turning.any(axis=1)), [0, 4, 8])
    assert np.array_equal(turning[4], np.repeat([0.3, -0.3], 26))


def test_every_parameter_is_read_by_a_kind():
    names = set(Parameters.__dataclass_fields__)
    assert set().union(*(kind.takes for kind in KINDS.values())) == names
