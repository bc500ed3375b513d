import re

import numpy as np
import pytest

from schemas.errors import RuleError
from tests.each_case import check_each
from tests.trading_core.price_paths import one_symbol, walk
from trading_core.features import FEATURES, compute, feature_names, resolve
from trading_core.features.families import FAMILIES
from trading_core.features.registry import check_timeframes

BARS = one_symbol(walk(3, 400))
MINUTES = one_symbol(walk(4, 4_000), timeframe="15m")


UNITS = {"price", "fraction", "percent", "ratio", "rank", "shares", "bars", "calendar"}


def test_registry_has_at_least_fifty_features_with_unit_and_doc():
    assert len(FEATURES) >= 50
    assert {family.unit for family in FEATURES.values()} == UNITS
    assert all(family.doc.endswith(".") for family in FEATURES.values())


def test_registry_has_one_family_for_each_name():
    assert len({(family.stem, len(family.defaults)) for family in FAMILIES}) == len(FAMILIES)
    assert all(resolve(family.example).name == family.example for family in FAMILIES)


@check_each("name", feature_names())
def test_feature_first_known_bar_is_its_lookback(name):
    column = compute(BARS, [name])[name][:, 0]
    lookback = resolve(name).lookback
    assert np.isnan(column[:lookback]).all()
    assert np.isfinite(column[lookback:]).all()


@check_each("name", feature_names())
def test_feature_of_intraday_bars_is_known_from_one_bar_on_not_before_its_lookback(name):
    known = np.isfinite(compute(MINUTES, [name])[name][:, 0])
    first = int(np.argmax(known))
    assert first >= resolve(name).lookback
    assert known[first:].all()


@check_each("bars", [BARS, MINUTES], ids=["1d", "15m"])
@check_each("name", feature_names())
def test_feature_values_stay_within_declared_bounds(name, bars):
    column = compute(bars, [name])[name][:, 0]
    low, high = resolve(name).bounds
    known = column[np.isfinite(column)]
    assert known.min() >= low
    assert known.max() <= high + 1e-9


def test_resolve_rank_of_any_feature_is_a_rank():
    spec = resolve("rsi_14_rank")
    assert (spec.unit, spec.lookback, spec.bounds) == ("rank", 14 + 59, (0.0, 1.0))


def test_resolve_higher_timeframe_keeps_unit_and_bounds_and_says_the_timeframe():
    spec, own = resolve("rsi_14_4h"), resolve("rsi_14")
    assert (spec.unit, spec.bounds, spec.lookback) == (own.unit, own.bounds, own.lookback)
    assert (spec.timeframe, own.timeframe) == ("4h", None)
    assert spec.doc == "On 4h bars: Wilder's RSI; unknown on a flat price."


def test_resolve_rank_of_a_higher_timeframe_is_a_rank_over_higher_bars():
    spec = resolve("rsi_14_1h_rank")
    assert (spec.unit, spec.bounds, spec.timeframe) == ("rank", (0.0, 1.0), "1h")
    assert resolve("trend_rank_1h").unit == "rank"


def test_check_timeframes_names_the_feature():
    check_timeframes(["sma_20", "sma_20_1h"], "15m")
    with pytest.raises(RuleError, match="'sma_20_1h': no '1h' bars can be made of '4h' bars: use one of 1d"):
        check_timeframes(["sma_20", "sma_20_1h"], "4h")


@check_each(
    ("name", "words"),
    [
        ("sna_20_1h", "Did you mean 'sma_20_1h'?"),
        ("sna_20_1h_rank", "Did you mean 'sma_20_1h'?"),
        ("volume_rank_1h", "The rank comes last: volume_1h_rank."),
        ("sma_20_7h", "'7h' is no timeframe of higher bars: use one of 5m, 10m, 15m, 30m, 1h, 2h, 4h, 1d"),
        ("close_1m", "use one of 5m, 10m, 15m"),
        ("close_1h_4h", "unknown feature"),
        ("close_1h_rank_rank", "unknown feature"),
        ("hour_1d", "have no timeframe: leave out '_1d'"),
        ("session_vwap_1h", "have no timeframe: leave out '_1h'"),
        ("distance_session_open_14_1d_rank", "have no timeframe"),
        ("sma_0_1h", "lies in 1..5000"),
        ("sma_20_01h", "unknown feature"),
        ("_1h", "unknown feature"),
        ("smaa_20", "Did you mean 'sma_20'?"),
        ("sma", ": write sma_20 (Simple moving average)"),
        ("rsi14", ": write rsi_14 ("),
        ("RSI_14", ": write rsi_14 ("),
        ("rsi14_1h", ": write rsi_14_1h ("),
        ("bb_lower_20", ": write bollinger_lower_20 ("),
        ("lower_kc_10", ": write keltner_lower_10 ("),
        ("williamsr_14", ": write williams_r_14 ("),
        ("macd_8_21_5", ": write macd_8_21 ("),
        ("Close", ": write close ("),
        ("volume_ratio", ": write volume_ratio_20 ("),
        ("sma_020", "unknown feature"),
        ("sma_0", "lies in 1..5000"),
        ("stdev_1", "lies in 2..5000"),
        ("sma_5001", "lies in 1..5000"),
        ("sma_99999999999", "unknown feature"),
        ("trend_strength_50_20", "must be below"),
        ("rank", "unknown feature"),
        ("sma_20" + "_rank" * 100, "unknown feature"),
        ("SMA_20", "unknown feature"),
        ("qqqqqqqqqqqqqqqq", "Known are"),
        ("sma_٢٠", "unknown feature"),
    ],
)
def test_resolve_unknown_name_says_what_would_work(name, words):
    with pytest.raises(RuleError, match=re.escape(words)):
        resolve(name)
