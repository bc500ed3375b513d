"""Stores for tests: a run that is about to start, and where a conformance test may put a store."""

from typing import Any

from services.store import NewRun

CONFIG_HASH = "c" * 64


def new_run(**changes: Any) -> NewRun:
    """A run row with small plausible content."""
    values: dict[str, Any] = {
        "name": "embedded",
        "created_at": 1_700_000_000_000_000_000,
        "mode": "backtest",
        "config_hash": CONFIG_HASH,
        "config": {"seed": 0},
        "data": {
            "source": "embedded",
            "path": None,
            "sha256": "d" * 64,
            "symbols": ["AAPL"],
            "timeframe": "1d",
            "bars": 5,
        },
        "environment": {"python": "3.11"},
    }
    return NewRun(**values | changes)
