"""Quantiles: of measured latencies, as the JSON document shows them, and of trades."""

from collections.abc import Sequence
from math import floor

import numpy as np


def quantiles(latencies_ms: list[float]) -> dict[str, float | None]:
    """p50, p95, p99 in ms; None without a measurement. Telemetry, never hashed."""
    if not latencies_ms:
        return {"p50": None, "p95": None, "p99": None}
    p50, p95, p99 = np.quantile(np.asarray(latencies_ms), [0.5, 0.95, 0.99])
    return {"p50": float(p50), "p95": float(p95), "p99": float(p99)}


def quantile(values: Sequence[float], share: float) -> float:
    """As numpy's linear one, bit for bit, without arrays; 0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    below = floor(place)
    low, high, part = ordered[below], ordered[min(below + 1, len(ordered) - 1)], place - below
    return high - (high - low) * (1.0 - part) if part >= 0.5 else low + (high - low) * part
