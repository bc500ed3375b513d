import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import DataError
from services.statistics.expectancy import DAY_NS, Trades, block_labels, observe, resolve_unit, winsorise

MONDAY = 4 * DAY_NS  # 1970-01-05

ROWS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 30), st.floats(-8, 12)), min_size=1, max_size=40
)


def trades(rows):
    return Trades.of([((start + hold) * DAY_NS, start * DAY_NS, r) for start, hold, r in rows])


def test_winsorise_outside_the_bounds_is_clipped():
    assert winsorise(np.array([-9.0, 0.5, 9.0]), -3.0, 4.0).tolist() == [-3.0, 0.5, 4.0]


def test_unit_auto_is_the_week_and_the_month_on_daily_bars():
    assert [resolve_unit("auto", frame) for frame in ("1m", "4h", "1d")] == ["week", "week", "month"]
    assert resolve_unit("trade", "1d") == "trade"


@pytest.mark.parametrize(
    ("unit", "apart", "blocks"),
    [
        ("week", (MONDAY - 1, MONDAY), 2),
        ("week", (MONDAY, MONDAY + 7 * DAY_NS - 1), 1),
        ("day", (MONDAY - 1, MONDAY), 2),
        ("month", (30 * DAY_NS, 31 * DAY_NS), 2),
        ("month", (0, 30 * DAY_NS), 1),
        ("trade", (MONDAY, MONDAY), 1),
        ("trade", (MONDAY, MONDAY + 1), 2),
    ],
)
def test_blocks_at_the_edge_of_a_period_split_there(unit, apart, blocks):
    batch = Trades.of([(exit_ns, exit_ns, 0.1) for exit_ns in apart])
    assert len(observe(batch, unit, -3.0, 4.0)) == blocks


def test_overlap_chain_is_one_block_and_a_gap_starts_another():
    chain = Trades.of([(5, 0, 1.0), (9, 5, 1.0), (20, 10, 1.0), (12, 11, 1.0)])
    labels = block_labels(chain, "overlap")
    assert labels[0] == labels[1] != labels[2] == labels[3]


@given(ROWS, st.sampled_from(["trade", "overlap", "day", "week", "month"]), st.randoms(use_true_random=False))
def test_observations_of_shuffled_trades_are_identical(rows, unit, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    first, second = (observe(trades(order), unit, -3.0, 4.0) for order in (rows, shuffled))
    assert first.values.tobytes() == second.values.tobytes()
    assert first.exit_ns.tolist() == second.exit_ns.tolist()


@given(ROWS, st.sampled_from(["overlap", "week", "month"]), st.floats(-2.5, 3.5))
def test_observations_lie_inside_bounds_around_the_reference_and_cover_every_trade(rows, unit, reference):
    seen = observe(trades(rows), unit, -3.0, 4.0, reference)
    assert int(seen.sizes.sum()) == len(rows)
    assert np.all((seen.low <= seen.values) & (seen.values <= seen.high))
    assert np.all((seen.low < reference) & (reference < seen.high))
    assert np.all(np.diff(seen.exit_ns) >= 0)


def test_block_mean_of_four_is_clipped_like_a_mean_of_four():
    seen = observe(Trades.of([(10, 0, 4.0)] * 4), "trade", -3.0, 4.0)
    assert seen.values.tolist() == [0.75 * 3.0 / 2.0]
    assert observe(Trades.of([(10, 0, 4.0)]), "trade", -3.0, 4.0).values.tolist() == [4.0]


def test_no_trades_give_no_observations():
    assert len(observe(Trades.of([]), "week", -3.0, 4.0)) == 0


@pytest.mark.parametrize("rows", [[(1, 2, 0.0)], [(2, 1, float("nan"))]])
def test_trade_that_cannot_be_is_refused(rows):
    with pytest.raises(DataError, match="trade 0"):
        Trades.of(rows)


def test_reference_outside_the_winsor_bounds_is_refused():
    with pytest.raises(DataError, match="strictly between"):
        observe(Trades.of([]), "week", -3.0, 4.0, 4.0)


def test_unresolved_unit_is_refused():
    with pytest.raises(DataError, match="not resolved"):
        block_labels(Trades.of([]), "auto")
