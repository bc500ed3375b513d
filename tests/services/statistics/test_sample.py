import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from services.statistics.eprocess import log_e_two_sided
from services.statistics.expectancy import DAY_NS, Trades
from services.statistics.sample import sample

WEEK_NS = 7 * DAY_NS


def weekly(outcomes):
    """One trade a week, on its Monday."""
    return Trades.of([(4 * DAY_NS + k * WEEK_NS,) * 2 + (float(r),) for k, r in enumerate(outcomes)])


def slow_waves(seed, n, phi=0.85):
    draw = np.random.default_rng(seed).standard_normal(n)
    for t in range(1, n):
        draw[t] += phi * draw[t - 1]
    return np.clip(draw * 0.6, -3.0, 4.0)


def test_independent_blocks_keep_the_declared_unit():
    seen = sample(weekly(np.random.default_rng(1).standard_normal(80)), "week", -3.0, 4.0, 0.0)
    assert (seen.unit, seen.widened, seen.note) == ("week", (), "")
    assert seen.observations is seen.declared


def test_dependent_blocks_are_widened_until_they_are_not_and_the_note_says_so():
    seen = sample(weekly(slow_waves(3, 120)), "week", -3.0, 4.0, 0.0)
    assert [step.unit for step in seen.widened][0] == "week"
    assert seen.unit in ("month", "quarter")
    assert len(seen.observations) < len(seen.declared)
    assert seen.note.startswith(f"unit widened from week to {seen.unit}: autocorrelation 0.")
    assert "over 120 blocks" in seen.note


@given(st.integers(0, 300), st.floats(-0.5, 0.95))
def test_looking_at_the_blocks_first_never_makes_evidence(seed, phi):
    trades = weekly(slow_waves(seed, 90, phi))
    seen = sample(trades, "week", -3.0, 4.0, 0.0)
    for one in seen.units:
        assert seen.log_e <= log_e_two_sided(one.values, one.low, one.high, 0.0) + 1e-12


def test_widening_brings_false_alarms_of_dependent_trades_down():
    # Mean zero, weekly trades with phi 0.7: against bets on single weeks, the price of 1/20 is often reached.
    plain, widened = [], []
    for seed in range(150):
        seen = sample(weekly(slow_waves(seed, 104, 0.7)), "week", -3.0, 4.0, 0.0)
        one = seen.declared
        plain.append(float(log_e_two_sided(one.values, one.low, one.high, 0.0)) >= np.log(20))
        widened.append(seen.log_e >= np.log(20))
    assert np.mean(plain) > 0.1
    assert np.mean(widened) < 0.6 * np.mean(plain)


def test_no_trades_are_a_sample_of_nothing():
    seen = sample(Trades.of([]), "week", -3.0, 4.0, 0.0)
    assert (seen.n, seen.mean_r, seen.e_value, len(seen.observations)) == (0, None, 1.0, 0)
