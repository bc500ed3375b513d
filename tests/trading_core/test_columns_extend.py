import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import InvariantViolation, RuleError
from tests.trading_core.growing_bars import edges, first_rows, gappy, taken
from tests.trading_core.price_paths import one_symbol, walk
from trading_core.features import FeatureColumns, feature_names
from trading_core.regime import RegimeTracker, regime_columns
from trading_core.rules import RuleColumns

ROWS = 330
HIGHER = ("sma_5_1h", "close_4h", "atr_5_1h", "close_1d", "true_range_1h_rank")
NAMES = (*feature_names(), *HIGHER)
RULES = (
    "crosses_above(sma_5, sma_20)",
    "close > highest_20 and not rsi_14 > 70 or prev(close < lowest_20, 3)",
    "prev(volume_rank, 7) > 0.5 and between(zscore_20, -1, 1)",
    "close > sma_5_1h",
)
LEVELS = ("close - 2 * atr_14", "min(lowest_5, prev(low, 300))", "3", "max(close, sma_20, open) / sma_5")
splits = st.lists(st.integers(0, ROWS), max_size=6)


def _followed(bars, counts, *, late=()):
    """Columns of a series followed count by count; `late` names are asked for on the way."""
    columns = RuleColumns(first_rows(bars, counts[0]))
    columns.features.load([name for name in NAMES if name not in late])
    _rules(columns)
    for k, count in enumerate(counts[1:]):
        columns.extend(first_rows(bars, count))
        columns.features.load(late[k :: max(1, len(counts) - 1)])
    return columns


def _rules(columns):
    return [
        *(columns.boolean(text, s) for text in RULES for s in range(2)),
        *(columns.number(text, s) for text in LEVELS for s in range(2)),
    ]


def _same(a, b):
    for name in NAMES:
        assert a.features.scatter(name).tobytes() == b.features.scatter(name).tobytes(), name
    for left, right in zip(_rules(a), _rules(b), strict=True):
        assert left.tobytes() == right.tobytes()


@settings(max_examples=15, deadline=None)
@given(splits, st.integers(0, 50), st.sampled_from([0.0, 0.1, 0.6]), st.sampled_from(["open", "close"]))
def test_columns_over_any_split_and_missing_bars_give_the_same_bits(cuts, seed, share, label):
    bars = gappy(seed, ROWS, share, label=label)
    _same(_followed(bars, [ROWS]), _followed(bars, edges(cuts, ROWS), late=NAMES[::3]))


def test_columns_one_bar_at_a_time_give_the_same_bits():
    bars = gappy(3, ROWS, 0.2)
    _same(_followed(bars, [ROWS]), _followed(bars, list(range(1, ROWS + 1)), late=NAMES[::5]))


def test_columns_over_a_gap_in_time_give_the_same_calendar():
    keep = np.r_[0:100, 130:ROWS]
    holes = taken(gappy(4, ROWS, 0.0), keep)
    _same(_followed(holes, [keep.size]), _followed(holes, [1, 90, 98, 101, 102, 250, keep.size]))


def test_columns_that_outgrow_their_room_keep_their_bits_and_old_views():
    bars = one_symbol(walk(1, 9_500), timeframe="1m")
    columns = RuleColumns(first_rows(bars, 40))
    early = columns.number("sma_20", 0)
    seen = early.copy()
    for rows in (8_000, 8_300, 9_500):
        columns.extend(first_rows(bars, rows))
    whole = RuleColumns(bars)
    assert columns.number("sma_20", 0).tobytes() == whole.number("sma_20", 0).tobytes()
    assert early.tobytes() == seen.tobytes()
    assert early.size == 40


def test_columns_by_place_are_the_kernel_s_own_without_a_copy():
    bars = gappy(5, 100, 0.1)
    columns = RuleColumns(bars)
    truth, level = columns.place(RULES[0], 1), columns.place(LEVELS[0], 1)
    assert np.shares_memory(columns.bank.truths, columns.boolean(RULES[0], 1))
    assert columns.bank.truths[truth.index, :100].tobytes() == columns.boolean(RULES[0], 1).tobytes()
    assert columns.bank.numbers[level.index, :100].tobytes() == columns.number(LEVELS[0], 1).tobytes()


def test_columns_of_many_rules_keep_the_columns_before():
    columns = RuleColumns(one_symbol(walk(2, 60)))
    texts = [f"close > {k}" for k in range(90, 130)] + [f"prev(close, {k})" for k in range(1, 40)]
    first = [columns.boolean(t, 0) if ">" in t else columns.number(t, 0) for t in texts]
    again = [columns.boolean(t, 0) if ">" in t else columns.number(t, 0) for t in texts]
    assert [column.tobytes() for column in first] == [column.tobytes() for column in again]
    assert first[-1][39:].tolist() == columns.bars.close[: 60 - 39, 0].tolist()


def test_columns_shared_by_two_readers_extend_once_for_both():
    bars = gappy(6, 200, 0.1)
    one = RuleColumns(first_rows(bars, 120))
    other = RuleColumns(one.bars, one.features)
    assert other.boolean(RULES[0], 0) is not None
    one.extend(bars)
    other.extend(bars)
    assert other.boolean(RULES[0], 0).tobytes() == RuleColumns(bars).boolean(RULES[0], 0).tobytes()


def test_columns_of_a_series_that_shrinks_are_refused():
    bars = one_symbol(walk(1, 50))
    columns = FeatureColumns(bars)
    with pytest.raises(InvariantViolation, match="40 rows after 50"):
        columns.extend(first_rows(bars, 40))


def test_columns_unknown_feature_leaves_the_others_whole():
    bars = one_symbol(walk(1, 300))
    columns = FeatureColumns(first_rows(bars, 200))
    columns.load(["sma_20"])
    with pytest.raises(RuleError):
        columns.load(["close_1h", "ema_20"])
    columns.extend(bars)
    for name in ("sma_20", "ema_20"):
        assert columns.scatter(name).tobytes() == FeatureColumns(bars).scatter(name).tobytes()


def test_rules_that_are_loaded_are_made_in_one_pass_of_each_symbol():
    bars = gappy(6, 200, 0.1)
    columns = RuleColumns(bars)
    columns.load([*RULES, *LEVELS])
    made = columns.features.made
    assert [s for s, _ in made] == list(range(len(bars.symbols)))
    for s in range(len(bars.symbols)):
        for text in RULES:
            assert columns.boolean(text, s).tobytes() == RuleColumns(bars).boolean(text, s).tobytes()
        for text in LEVELS:
            assert columns.number(text, s).tobytes() == RuleColumns(bars).number(text, s).tobytes()
    assert columns.features.made == made


REGIME = (
    "trend", "volatility", "structure", "fingerprint", "trend_change", "band_shift", "shock", "flags",
    "reason",
)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 600), max_size=6), st.integers(0, 50), st.sampled_from([0.0, 0.1, 0.5]))
def test_regime_followed_over_any_split_and_missing_bars_gives_the_same_bits(cuts, seed, share):
    bars = gappy(seed, 600, share)
    counts = edges(cuts, 600)
    tracker = RegimeTracker(first_rows(bars, counts[0]))
    held = tracker.columns
    for count in counts[1:]:
        tracker.extend(first_rows(bars, count))
    whole = regime_columns(bars)
    assert held is tracker.columns
    for name in REGIME:
        assert getattr(held, name).tobytes() == getattr(whole, name).tobytes(), name


def test_regime_one_bar_at_a_time_beside_rules_gives_the_same_bits():
    bars = gappy(9, 500, 0.2)
    columns = RuleColumns(first_rows(bars, 1))
    tracker = RegimeTracker(columns.bars, features=columns.features)
    for count in range(2, 501):
        columns.extend(first_rows(bars, count))
        tracker.extend()
    whole = regime_columns(bars)
    for name in REGIME:
        assert getattr(tracker.columns, name).tobytes() == getattr(whole, name).tobytes(), name


def test_regime_flags_hold_the_three_events_as_bits():
    regime = regime_columns(gappy(2, 3_000, 0.1))
    bits = regime.trend_change | regime.band_shift << 1 | regime.shock << 2
    assert regime.flags.tobytes() == bits.tobytes()
    assert set(itertools.chain(*regime.flags.tolist())) >= {0, 1, 2, 4}
