import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.statistics.expectancy import DAY_NS, Trades
from services.statistics.growing import ARRAYS, GrowingTrades
from services.statistics.sample import sample

ROWS = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 30), st.floats(-8, 12)), min_size=1, max_size=60
)


def same(first, second):
    return all(getattr(first, name).tobytes() == getattr(second, name).tobytes() for name in ARRAYS)


@settings(max_examples=60)
@given(ROWS, st.sampled_from(["trade", "overlap", "day", "week", "month"]), st.floats(0.0, 1.0))
def test_look_at_the_known_trades_equals_the_sample_of_those_trades(rows, unit, share):
    trades = Trades.of([((start + hold) * DAY_NS, start * DAY_NS, r) for start, hold, r in rows])
    growing = GrowingTrades(trades, unit, -3.0, 4.0, 0.1)
    at = int(np.quantile(trades.exit_ns, share))
    count = growing.count(at)
    known = trades.exit_ns <= at
    assert count == known.sum()
    plain = Trades(trades.entry_ns[known], trades.exit_ns[known], trades.r[known])
    wanted, found = sample(plain, unit, -3.0, 4.0, 0.1), growing.sample(count)
    assert (found.n, found.mean_r, found.log_e) == (wanted.n, wanted.mean_r, wanted.log_e)
    assert all(same(a, b) for a, b in zip(found.units, wanted.units, strict=True))


@pytest.mark.parametrize("unit", ["week", "trade"])
def test_nothing_known_is_a_sample_of_nothing(unit):
    growing = GrowingTrades(Trades.of([(DAY_NS, 0, 1.0)]), unit, -3.0, 4.0, 0.0)
    assert growing.count(DAY_NS - 1) == 0
    assert growing.sample(0).e_value == 1.0


def test_dependent_blocks_are_widened_at_the_same_look():
    draw = np.random.default_rng(3).standard_normal(120)
    for t in range(1, 120):
        draw[t] += 0.9 * draw[t - 1]
    trades = Trades.of([(k * 7 * DAY_NS, k * 7 * DAY_NS, float(r)) for k, r in enumerate(draw)])
    growing = GrowingTrades(trades, "week", -3.0, 4.0, 0.0)
    for count in (30, 60, 101, 120):
        known = Trades(trades.entry_ns[:count], trades.exit_ns[:count], trades.r[:count])
        assert growing.sample(count).unit == sample(known, "week", -3.0, 4.0, 0.0).unit
    assert growing.sample(120).unit != "week"
