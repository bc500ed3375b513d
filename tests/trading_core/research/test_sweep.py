"""Sets of a sweep: each trades as `simulate` does, whatever stands beside it, and a bad one costs itself."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from schemas.errors import DataError
from tests.trading_core.market import random_series
from trading_core.research.simulation import simulate
from trading_core.research.sweep import hold_returns, run_sets

RULES = (
    "crosses_above(sma_{f}, sma_{s})", "rsi_14 < {f} + 20", "close > highest_{s}",
    "sma_{f} > sma_{s} and close > open",
)  # fmt: skip


def some_sets(count: int) -> list[dict[str, Any]]:
    """Sets whose rules, levels, costs, direction and management differ."""
    draw = np.random.default_rng(3)
    made = []
    for _ in range(count):
        fast, slow = int(draw.integers(2, 20)), int(draw.integers(20, 60))
        made.append(
            {
                "entry": str(draw.choice(RULES)).format(f=fast, s=slow),
                "direction": str(draw.choice(["long", "short"])),
                "stop_pct": float(draw.choice([0.01, 0.03])),
                "target_pct": [None, 0.02, 0.06][int(draw.integers(3))],
                "time_stop_bars": int(draw.integers(3, 40)),
                "exit": [None, f"close < sma_{slow}"][int(draw.integers(2))],
                "fee_bps": float(draw.choice([0.0, 10.0])),
                "quantity": float(draw.choice([1.0, 7.0])),
                "break_even_r": [None, 1.0][int(draw.integers(2))],
            }
        )
    return made


@pytest.fixture(scope="module")
def bars():
    return random_series(4, 900, 2)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_sweep_trades_every_set_as_simulate_does(missing):
    bars, sets = random_series(4, 900, 2, missing=missing), some_sets(40)
    for given, row in zip(sets, run_sets(bars, sets), strict=True):
        alone = simulate(bars, **given)
        assert row.problem is None
        assert row.r.tobytes() == alone.records["r"].tobytes()
        assert (row.entry_rows == alone.records["entry_t"]).all()
        assert (row.exit_rows == alone.records["exit_t"]).all()
        assert row.trades == len(alone.trades)
        if not missing:
            money = given["quantity"] * bars.close[0].sum()
            assert row.gain == pytest.approx((alone.values[-1] - 100_000.0) / money, rel=1e-12)


def test_sweep_returns_of_periods_sum_to_those_of_the_bars(bars):
    given = some_sets(1)[0]
    (row,) = run_sets(bars, [given])
    prices = bars.close.sum(axis=1) * given["quantity"]
    returns = np.diff(simulate(bars, **given).values) / prices[:-1]
    excess = returns.sum() - row.exposure * hold_returns(bars).sum()
    assert row.excess.sum() == pytest.approx(excess, abs=1e-12)
    years = (bars.times[-1] - bars.times[0]) / (365.25 * 86_400e9)
    expected = returns.mean() / returns.std(ddof=1) * np.sqrt(len(returns) / years)
    assert row.sharpe == pytest.approx(expected, rel=1e-9)


def test_sweep_has_the_same_returns_at_any_size_of_prices(bars):
    given = some_sets(1)[0]
    rows = []
    for size in (1.0, 2.0**-40):
        tables = {name: getattr(bars, name) * size for name in ("open", "high", "low", "close")}
        rows += run_sets(replace(bars, **tables), [given])
    assert rows[0].trades > 10
    assert [rows[1].gain, rows[1].sharpe] == pytest.approx([rows[0].gain, rows[0].sharpe], rel=1e-9)


def test_sweep_set_that_is_always_long_is_exposed_as_holding_is(bars):
    (row,) = run_sets(bars, [{"entry": "close > 0", "stop_pct": 0.99, "target_pct": None,
                              "time_stop_bars": 10_000, "fee_bps": 0.0, "slippage_bps": 0.0}])  # fmt: skip
    assert row.exposure == pytest.approx(1.0, abs=0.01)
    assert np.abs(row.excess).sum() < 0.1


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"entry": "sma_20 >"}, "sma_20"),
        ({"entry": "close"}, "boolean is needed"),
        ({"entry": "nothing_3 > 1"}, "nothing"),
        ({"entry": "close > open", "stop_pct": 2.0}, "stop_pct"),
        ({"entry": "close > open", "stop": "no_such_9"}, "no_such"),
        ({"entry": "close > open", "symbols": ["Z"]}, "'Z'"),
        ({"entry": "close > open", "stopp_pct": 0.1}, "stopp_pct"),
    ],
)
def test_sweep_bad_set_costs_itself_alone(bars, bad, message):
    good = some_sets(3)
    rows = run_sets(bars, [good[0], bad, *good[1:]])
    assert rows[1].trades == 0
    assert message in str(rows[1].problem)
    assert [row.r.tobytes() for row in (rows[0], *rows[2:])] == [
        row.r.tobytes() for row in run_sets(bars, good)
    ]


def test_sweep_rows_do_not_depend_on_the_chunk(bars):
    sets = some_sets(12)
    whole = run_sets(bars, sets)
    parts = [row for k in range(0, 12, 5) for row in run_sets(bars, sets[k : k + 5])]
    for row, other in zip(whole, parts, strict=True):
        assert row.excess.tobytes() == other.excess.tobytes()
        assert (row.trades, row.total_r, row.gain) == (other.trades, other.total_r, other.gain)


def test_sweep_of_symbols_trades_each_alone(bars):
    rows = run_sets(bars, [{"entry": "rsi_14 < 40", "symbols": symbol} for symbol in ("S00", "S01")])
    for symbol, row in zip(("S00", "S01"), rows, strict=True):
        alone = simulate(bars.select(symbols=(symbol,)), "rsi_14 < 40")
        assert row.r.tobytes() == alone.records["r"].tobytes()


def test_sweep_of_one_bar_is_refused(bars):
    with pytest.raises(DataError, match="1 bar: a sweep needs at least 2"):
        run_sets(bars.take(np.array([0]), np.array([0, 1])), [{"entry": "close > 0"}])
