"""The families of features in standard names, by subject. Read by the registry only."""

from trading_core.features.families import (
    averages,
    bands,
    bars,
    distances,
    oscillators,
    ranks,
    sessions,
    trend,
    volatility,
    volume,
)
from trading_core.features.families.family import ANY, UNIT_INTERVAL, FeatureFamily

FAMILIES = (
    *bars.FAMILIES,
    *sessions.FAMILIES,
    *averages.FAMILIES,
    *trend.FAMILIES,
    *oscillators.FAMILIES,
    *volatility.FAMILIES,
    *bands.FAMILIES,
    *volume.FAMILIES,
    *distances.FAMILIES,
    *ranks.FAMILIES,
)

__all__ = ["ANY", "FAMILIES", "UNIT_INTERVAL", "FeatureFamily"]
