"""Features: named recurrences over each symbol's own present bars."""

from trading_core.features.columns import FeatureColumns, compute
from trading_core.features.families import FeatureFamily
from trading_core.features.registry import FEATURES, FeatureSpec, feature_names, resolve

__all__ = [
    "FEATURES",
    "FeatureColumns",
    "FeatureFamily",
    "FeatureSpec",
    "compute",
    "feature_names",
    "resolve",
]
