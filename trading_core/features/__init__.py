"""Features: named recurrences over each symbol's own present bars."""

from trading_core.features.columns import FeatureColumns, compute
from trading_core.features.registry import FEATURES, feature_names, resolve

__all__ = [
    "FEATURES",
    "FeatureColumns",
    "compute",
    "feature_names",
    "resolve",
]
