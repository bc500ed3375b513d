"""Quantiles of measured latencies, as the JSON document shows them; telemetry, never hashed."""

import numpy as np


def quantiles(latencies_ms: list[float]) -> dict[str, float | None]:
    """p50, p95, p99 in ms; None without a measurement."""
    if not latencies_ms:
        return {"p50": None, "p95": None, "p99": None}
    p50, p95, p99 = np.quantile(np.asarray(latencies_ms), [0.5, 0.95, 0.99])
    return {"p50": float(p50), "p95": float(p95), "p99": float(p99)}
