"""Features of the caller's own: equal live and in a batch, checked for look-ahead, hashed by source."""

from typing import Any

import numba
import numpy as np
import pytest

from schemas.errors import ConfigError, RuleError
from tests.trading_core.growing_bars import first_rows, gappy
from tests.trading_core.price_paths import one_symbol, walk
from trading_core.features import FeatureColumns, own, resolve
from trading_core.features.registry import define_feature, own_features_of
from trading_core.rules import RuleColumns, lint, parse

ROWS = 260
BARS = gappy(5, ROWS, 0.2)
FACTOR = 2.0


def change(open, high, low, close, volume):
    found = np.full(close.size, np.nan)
    found[10:] = FACTOR * (close[10:] / close[:-10] - 1.0)
    return found


@numba.njit
def spread(open, high, low, close, volume):
    found = np.full(close.size, np.nan)
    for i in range(5, close.size):
        found[i] = np.max(high[i - 5 : i + 1]) - np.min(low[i - 5 : i + 1])
    return found


@pytest.fixture(autouse=True)
def nothing_else_is_defined(monkeypatch):
    monkeypatch.setattr(own, "_defined", {})
    yield
    resolve.cache_clear()
    parse.cache_clear()


@pytest.fixture
def defined():
    define_feature("change", change, 10)
    define_feature("spread", spread, 5)


def test_own_feature_is_the_function_of_own_bars(defined):
    for s in range(2):
        there = BARS.present[:, s]
        columns = [getattr(BARS, name)[there, s] for name in ("open", "high", "low", "close", "volume")]
        for name, function in (("change", change), ("spread", spread)):
            found = FeatureColumns(BARS).scatter(name)[:, s]
            np.testing.assert_allclose(found[there], function(*columns), rtol=1e-12, equal_nan=True)
            assert np.isnan(found[~there]).all()
    assert resolve("change").lookback == 10
    assert parse("prev(spread, 2) > 1").lookback == 7


@pytest.mark.parametrize("cuts", [tuple(range(1, ROWS)), (40, 41, 150)])
def test_own_feature_followed_bar_by_bar_gives_the_same_bits(defined, cuts):
    names = ("change", "spread", "change@BBB", "rank_cs(spread)")
    whole, live = FeatureColumns(BARS), FeatureColumns(first_rows(BARS, cuts[0]))
    for columns in (whole, live):
        columns.load(names)
    for count in (*cuts[1:], ROWS):
        live.extend(first_rows(BARS, count))
    for name in names:
        assert whole.scatter(name).tobytes() == live.scatter(name).tobytes(), name
        assert np.isfinite(whole.scatter(name)).any()


def test_own_feature_in_rules_is_linted_like_any_other(defined):
    columns = RuleColumns(BARS)
    assert (columns.boolean("change > 0 and spread > 0", 0) == 1).any()
    (finding,) = lint({"setup": "chnge > 0"}, columns, 0, ROWS)
    assert finding.code == "unknown_feature"


def ahead_by_the_mean(open, high, low, close, volume):
    return close - close.mean()


def ahead_by_one_bar(open, high, low, close, volume):
    return np.append(close[1:], np.nan)


def ahead_at_the_end(open, high, low, close, volume):
    return np.full(close.size, close[-1])


@pytest.mark.parametrize("function", [ahead_by_the_mean, ahead_by_one_bar, ahead_at_the_end])
def test_function_that_looks_ahead_is_refused_when_bars_are_loaded(function):
    define_feature("cheat", function, 20)
    with pytest.raises(
        RuleError, match=r"feature 'cheat' looks ahead: at 20\d\d-.* up to there and .* of all"
    ):
        FeatureColumns(BARS).load(["cheat"])


def confirmed_low(open, high, low, close, volume):
    found = np.zeros(close.size)
    for i in range(20, close.size):
        if low[i] == low[i - 20 : i + 4].min():
            found[i] = close[i]
    return found


def test_function_that_reads_later_bars_at_few_bars_only_is_refused_each_time():
    define_feature("confirmed_low", confirmed_low, 20)
    columns = FeatureColumns(BARS)
    for _ in range(2):
        with pytest.raises(
            RuleError, match=r"feature 'confirmed_low' looks ahead: at 20\d\d-.* 0 of all bars"
        ):
            columns.load(["confirmed_low"])


def test_function_that_looks_further_back_than_it_says_is_refused():
    define_feature("change", change, 4)
    with pytest.raises(RuleError, match="looks further back than lookback=4: .* give a larger lookback"):
        FeatureColumns(BARS).load(["change"])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            lambda open, high, low, close, volume: close[1:],
            r"shape \(\d+,\) of \d+ bars: give one number a bar",
        ),
        (lambda open, high, low, close, volume: 1 / 0, "fails on .* bars: ZeroDivisionError"),
        (lambda open, high, low, close, volume: ["x"] * close.size, "fails on .* bars: ValueError"),
        (lambda close: close, "fails on .* bars: TypeError"),
    ],
)
def test_function_that_gives_no_numbers_is_refused(function, words):
    define_feature("broken", function, 1)
    with pytest.raises(RuleError, match=f"feature 'broken' .*{words}|feature 'broken' {words}"):
        FeatureColumns(BARS).load(["broken"])


def test_function_changes_no_bar_and_its_infinities_are_unknown():
    def writes(open, high, low, close, volume):
        close[:] = np.inf
        return close

    bars = one_symbol(walk(1, 50))
    before = bars.close.copy()
    define_feature("writes", writes, 1)
    assert np.isnan(FeatureColumns(bars).scatter("writes")).all()
    assert (bars.close == before).all()


def test_changed_source_factor_or_lookback_is_another_hash():
    def hashed(function, lookback=10):
        define_feature("change", function, lookback)
        return own_features_of(["change", "sma_20"])["change"]

    def scaled(factor):
        def change(open, high, low, close, volume):
            return factor * close

        return change

    def of_a_helper(helper):
        def by_a_helper(open, high, low, close, volume):
            return helper(close)

        return by_a_helper

    def doubled(x):
        return 2 * x

    def halved(x):
        return x / 2

    hashes = [hashed(change), hashed(change, 11), hashed(scaled(1.0)), hashed(scaled(2.0))]
    hashes += [hashed(of_a_helper(doubled)), hashed(of_a_helper(halved)), hashed(spread)]
    assert len(set(hashes)) == 7
    assert hashed(change) == hashes[0]
    assert own.list_changed({"change": hashes[0]}) == []
    assert own.list_changed({"change": hashes[1], "gone": "x"}) == ["change", "gone"]


def test_own_feature_of_others_is_part_of_what_a_run_reads(defined):
    assert set(own_features_of(["change@AAA", "rank_cs(spread)", "close"])) == {"change", "spread"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("close", "a name of ours"),
        ("sma", "a name of ours"),
        ("x", "a name of ours"),
        ("Change", "lower-case words"),
        ("my_20", "lower-case words"),
        ("close@SPY", "lower-case words"),
        ("", "lower-case words"),
    ],
)
def test_name_that_cannot_be_is_refused(name, words):
    with pytest.raises(ConfigError, match=words):
        define_feature(name, change, 10)


def test_function_that_reads_what_cannot_be_hashed_is_refused():
    state = {"n": 1}

    def stateful(open, high, low, close, volume):
        return close * state["n"]

    with pytest.raises(ConfigError, match="reads 'state' around it, a dict that no run can keep"):
        define_feature("stateful", stateful, 1)
    others: Any = ((np.sin, "is no plain function"), (3, "is no function of open"))
    for function, words in others:
        with pytest.raises(ConfigError, match=words):
            define_feature("other", function, 1)
    lookbacks: Any = (-1, 1.5, True, 5_001)
    for lookback in lookbacks:
        with pytest.raises(ConfigError, match="lookback .* is no whole number of 0..5000"):
            define_feature("other", change, lookback)
