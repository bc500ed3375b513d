"""Features: named recurrences over each symbol's own present bars."""

from trading_core.features.registry import FEATURES, FeatureFamily, FeatureSpec, feature_names, resolve

__all__ = ["FEATURES", "FeatureFamily", "FeatureSpec", "feature_names", "resolve"]
