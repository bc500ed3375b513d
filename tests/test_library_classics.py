"""The classic strategies of the how-to trade as they stand there, and every signal is accounted for."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import thinktwice as tt

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "translate-a-strategy.md"
BLOCK = re.compile(r'```toml title="classics/(\w+)\.toml"\n(.*?)```', re.DOTALL)
CLASSICS: dict[str, str] = dict(BLOCK.findall(PAGE.read_text("utf-8")))
SPAN: dict[str, Any] = {"start": "2003-01-01", "end": "2004-12-31", "symbols": ("AAPL", "IBM", "MSFT")}


def half_range(open, high, low, close, volume):
    return (close - low) / np.where(high > low, high - low, 1.0)


def run_of(name: str, path: Path) -> Any:
    """A run of one classic on bars that suit it."""
    if name == "own_feature":
        tt.feature("half_range", half_range, 0)
    if name in ("opening_range", "half_hours"):
        return tt.backtest(minutes("15min", 6_000), playbooks=path, **resampled(name))
    if name == "negative_funding":
        return tt.backtest(minutes("1h", 3_000), playbooks=path)
    if name == "weekly_breakout":
        with pytest.warns(UserWarning, match="1w bar .* is not complete and left out"):
            return tt.backtest(playbooks=path, resample="1w")
    return tt.backtest(playbooks=path, **SPAN)


def resampled(name: str) -> dict[str, Any]:
    return {"resample": "30m" if name == "half_hours" else "1h"}


@cache
def minutes(spacing: str, bars: int) -> Any:
    """A walk on bars within the day, with a column of funding."""
    import pandas as pd

    rng = np.random.default_rng(7)
    close = 100.0 * np.exp(np.cumsum(rng.normal(0.0, 0.003, bars)))
    before = np.concatenate(([100.0], close[:-1]))
    wide = 1.0 + np.abs(rng.normal(0.0, 0.001, bars))
    return pd.DataFrame(
        {
            "open": before,
            "high": np.maximum(before, close) * wide,
            "low": np.minimum(before, close) / wide,
            "close": close,
            "volume": rng.integers(1, 1_000, bars).astype(float),
            "funding": np.sin(np.arange(bars) / 40.0),
        },
        index=pd.date_range("2024-01-01", periods=bars, freq=spacing, tz="UTC"),
    )


def test_classics_are_fifteen_files_of_at_most_fifteen_lines():
    assert len(CLASSICS) == 15
    assert all(len(text.splitlines()) <= 15 for text in CLASSICS.values())


@pytest.mark.parametrize("name", CLASSICS)
def test_classic_trades_and_its_signals_are_accounted_for_to_the_last(name, tmp_path):
    path = tmp_path / f"{name}.toml"
    path.write_text(CLASSICS[name])
    result = run_of(name, path)
    assert result.summary["trades"] > 0
    (account,) = result.document["signals"]["playbooks"]
    assert account["entry_rule_true"] == account["met"] + sum(account["not_met"].values()) > 0
    assert account["met"] > 0
    assert result.document["errors"] == 0
