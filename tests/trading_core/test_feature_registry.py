import numpy as np
import pytest

from schemas.errors import RuleError
from tests.trading_core.price_paths import one_symbol, walk
from trading_core.features import FEATURES, compute, feature_names, resolve

BARS = one_symbol(walk(3, 400))


def test_registry_has_at_least_thirty_features_with_unit_and_doc():
    assert len(FEATURES) >= 30
    assert all(family.unit and family.doc.endswith(".") for family in FEATURES.values())


@pytest.mark.parametrize("name", feature_names())
def test_feature_first_known_bar_is_its_lookback(name):
    column = compute(BARS, [name])[name][:, 0]
    lookback = resolve(name).lookback
    assert np.isnan(column[:lookback]).all()
    assert np.isfinite(column[lookback:]).all()


@pytest.mark.parametrize("name", feature_names())
def test_feature_values_stay_within_declared_bounds(name):
    column = compute(BARS, [name])[name][:, 0]
    low, high = resolve(name).bounds
    known = column[np.isfinite(column)]
    assert known.min() >= low
    assert known.max() <= high + 1e-9


def test_resolve_rank_of_any_feature_is_a_rank():
    spec = resolve("rsi_14_rank")
    assert (spec.unit, spec.lookback, spec.bounds) == ("rank", 14 + 59, (0.0, 1.0))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("smaa_20", "Did you mean 'sma_20'?"),
        ("sma", "Did you mean 'sma_20'?"),
        ("volume_ratio", "Did you mean 'volume_ratio_20'?"),
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
    with pytest.raises(RuleError, match=words.replace("?", r"\?").replace(".", r"\.")):
        resolve(name)
