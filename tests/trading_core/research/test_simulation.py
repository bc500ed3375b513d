"""`simulate` against an independent reading of its rules, and the guarantees that every trade list has to
keep.
"""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import ConfigError, RuleError
from tests.each_case import check_each
from tests.trading_core.bracket_oracle import Rules, walk
from tests.trading_core.market import random_series, series
from trading_core.bars import BarSeries
from trading_core.kernel.loop import advance
from trading_core.research.simulation import simulate

ENTRY = "close > prev(close, 1) and close > open"


def _signal(bars: BarSeries, s: int = 0) -> np.ndarray:
    """The entry rule over the present bars of a symbol, false on the others."""
    rows = np.flatnonzero(bars.present[:, s])
    close, open_ = bars.close[rows, s], bars.open[rows, s]
    signal = np.zeros(bars.shape[0], dtype=np.bool_)
    signal[rows] = np.r_[False, close[1:] > close[:-1]] & (close > open_)
    return signal


rules_strategy = st.builds(
    Rules,
    direction=st.sampled_from(["long", "short"]),
    stop_pct=st.sampled_from([0.003, 0.01, 0.02]),
    target_pct=st.sampled_from([0.003, 0.015, 0.04]),
    time_stop_bars=st.sampled_from([1, 3, 20]),
    fee_bps=st.sampled_from([0.0, 5.0]),
    slippage_bps=st.sampled_from([0.0, 2.0]),
    quantity=st.sampled_from([1.0, 7.5, 0.05]),
    fill=st.sampled_from(["next_open", "close"]),
    level_base=st.sampled_from(["fill", "signal_close"]),
    entry_bar_exits=st.booleans(),
    both_hit=st.sampled_from(["stop", "target", "ohlc", "near", "color"]),
    gap=st.sampled_from(["open", "level"]),
    limit_fill=st.sampled_from(["touch", "through"]),
    time_exit=st.sampled_from(["open", "after_stops", "close"]),
    reentry=st.booleans(),
    tick_size=st.sampled_from([0.0, 0.25, 1.0]),
    lot_size=st.sampled_from([0.0, 0.1, 2.0]),
    maker_fee_bps=st.sampled_from([None, -1.0, 2.0]),
    fee_per_trade=st.sampled_from([0.0, 0.35]),
    fee_rounding=st.sampled_from([0.0, 0.01]),
    funding_bps=st.sampled_from([0.0, 3.0, -3.0]),
    borrow_bps=st.sampled_from([0.0, 2.0]),
)
FREE: dict[str, Any] = {"slippage_bps": 0.0}
COMPARED = (
    "entry_price", "exit_price", "quantity", "fees", "pnl", "r", "mae_r", "mfe_r", "bars_held",
)  # fmt: skip


def _rounded_bars(seed: int, symbols: int) -> BarSeries:
    """Prices on a grid of a quarter, so that levels are touched exactly and closes repeat."""
    bars = random_series(seed, 160, symbols, missing=0.1)
    for name in ("open", "high", "low", "close"):
        part = getattr(bars, name)
        part[:] = np.round(part * 4) / 4
    return bars


@given(seed=st.integers(0, 10_000), grid=st.booleans(), rules=rules_strategy)
@settings(max_examples=200)
def test_simulation_any_switches_agrees_with_oracle_trade_by_trade(seed, grid, rules):
    bars = _rounded_bars(seed, 2) if grid else random_series(seed, 160, 2, missing=0.1)
    trades = simulate(bars, ENTRY, **rules.switches()).trades
    rows = {int(label): t for t, label in enumerate(bars.times.tolist())}
    for s, symbol in enumerate(bars.symbols):
        found = trades[trades["symbol"] == symbol]
        expected = walk(bars, _signal(bars, s), rules, s)
        assert [rows[stamp.value] for stamp in found["entry_time"]] == [trade.entry for trade in expected]
        assert [rows[stamp.value] for stamp in found["exit_time"]] == [trade.exit for trade in expected]
        assert found["exit_reason"].tolist() == [trade.reason for trade in expected]
        for column in COMPARED:
            assert found[column].tolist() == pytest.approx(
                [getattr(trade, column) for trade in expected], abs=1e-9
            ), column


@check_each("switch", [name for name in Rules().switches() if name not in ("direction", "quantity")])
def test_simulation_every_switch_matters_to_the_comparison(switch):
    """A switch that the oracle and the kernel both forgot would be equal for no reason."""
    changed: dict[str, Any] = {
        "stop_pct": 0.01, "target_pct": 0.02, "time_stop_bars": 3, "fee_bps": 1.0, "slippage_bps": 3.0,
        "fill": "close", "level_base": "signal_close", "entry_bar_exits": False, "both_hit": "target",
        "gap": "level", "limit_fill": "through", "time_exit": "close", "reentry": False, "tick_size": 0.1,
        "lot_size": 0.3, "maker_fee_bps": 1.0, "fee_per_trade": 0.1, "fee_rounding": 0.1, "funding_bps": 1.0,
        "borrow_bps": 1.0,
    }  # fmt: skip
    start = Rules(direction="short", stop_pct=0.02, target_pct=0.015, time_stop_bars=10, slippage_bps=1.0)
    if switch == "limit_fill":  # levels on the grid of the prices are touched exactly
        start = replace(start, tick_size=0.25)
    other = replace(start, **{switch: changed[switch]})
    worlds = [_rounded_bars(seed, 1) for seed in range(5)]
    assert any(walk(bars, _signal(bars), start) != walk(bars, _signal(bars), other) for bars in worlds)


@given(seed=st.integers(0, 10_000), symbols=st.integers(1, 4), rules=rules_strategy)
@settings(max_examples=60)
def test_simulation_cash_and_trades_are_conserved(seed: int, symbols: int, rules: Any) -> None:
    bars = random_series(seed, 120, symbols, missing=0.15)
    result = simulate(
        bars, ENTRY, direction=rules.direction, stop_pct=rules.stop_pct, target_pct=rules.target_pct,
        time_stop_bars=rules.time_stop_bars, slippage_bps=rules.slippage_bps, quantity=3.0, cash=10_000.0,
    )  # fmt: skip
    trades = result.trades
    sign = 1.0 if rules.direction == "long" else -1.0
    gross = sign * trades["quantity"] * (trades["exit_price"] - trades["entry_price"])
    assert trades["pnl"].tolist() == pytest.approx((gross - trades["fees"]).tolist(), abs=1e-9)
    assert (trades["mae_r"] <= 0.0).all()
    assert (trades["mfe_r"] >= 0.0).all()
    last_exit = trades["exit_time"].max() if len(trades) else None
    for _, part in trades.groupby("symbol"):
        assert (part["entry_time"].to_numpy()[1:] >= part["exit_time"].to_numpy()[:-1]).all()
    if last_exit is not None and simulate_is_flat(bars, result):
        assert result.equity.iloc[-1] == pytest.approx(10_000.0 + trades["pnl"].sum(), abs=1e-6)


def simulate_is_flat(bars, result):
    """Whether no position is open at the end: equity stands still when prices do not matter any more."""
    doubled = result.equity.iloc[-1] - result.equity.iloc[-2]
    return bool(doubled == 0.0) and bool(bars.present[-1].all())


@pytest.mark.parametrize("direction", ["long", "short"])
def test_simulation_without_gaps_fills_inside_the_bar(direction: Any) -> None:
    bars = random_series(3, 400)
    trades = simulate(bars, ENTRY, direction=direction, stop_pct=0.01, target_pct=0.01, **FREE).trades
    rows = {int(label): t for t, label in enumerate(bars.times.tolist())}
    assert len(trades) > 20
    rows_of: Any = trades.itertuples()
    for trade in rows_of:
        for when, price in ((trade.entry_time, trade.entry_price), (trade.exit_time, trade.exit_price)):
            t = rows[when.value]
            assert bars.low[t, 0] - 1e-9 <= price <= bars.high[t, 0] + 1e-9


def test_simulation_stop_and_target_in_one_bar_takes_the_stop_by_default():
    rows = [
        (100, 100, 100, 100),
        (100, 101, 99.9, 101),
        (101, 101, 101, 101),
        (101, 120, 80, 101),
        (101, 101, 101, 101),
    ]
    trade = simulate(series(rows), ENTRY, stop_pct=0.02, target_pct=0.04, **FREE).trades.iloc[0]
    assert (trade["exit_reason"], trade["exit_price"]) == ("stop", pytest.approx(101 * 0.98))


def test_simulation_gap_through_the_stop_fills_at_the_open():
    rows = [
        (100, 100, 100, 100),
        (100, 101, 99.9, 101),
        (101, 101, 101, 101),
        (90, 92, 89, 91),
        (91, 91, 91, 91),
    ]
    trade = simulate(series(rows), ENTRY, stop_pct=0.02, target_pct=0.04, **FREE).trades.iloc[0]
    assert (trade["exit_reason"], trade["exit_price"]) == ("stop", 90.0)
    level = simulate(series(rows), ENTRY, stop_pct=0.02, target_pct=0.04, gap="level", **FREE).trades.iloc[0]
    assert level["exit_price"] == pytest.approx(101 * 0.98)


def test_simulation_time_stop_exits_at_the_open_that_many_bars_after_the_entry_bar():
    bars = random_series(5, 60, scale=0.0001)
    trades = simulate(bars, ENTRY, stop_pct=0.5, target_pct=0.5, time_stop_bars=7, **FREE).trades
    rows = {int(label): t for t, label in enumerate(bars.times.tolist())}
    first = trades.iloc[0]
    entry, exit_ = rows[first["entry_time"].value], rows[first["exit_time"].value]
    assert (exit_ - entry, first["bars_held"], first["exit_price"]) == (7, 7, bars.open[exit_, 0])


def test_simulation_open_position_at_the_end_is_no_trade():
    rows = [(100, 100, 100, 100), (100, 101, 99.9, 101), (101, 101, 101, 101), (101, 101.5, 100.5, 101)]
    result = simulate(series(rows), ENTRY, stop_pct=0.5, target_pct=0.5)
    assert result.trades.empty
    assert result.equity.iloc[-1] == pytest.approx(100_000.0 - 101 * 5e-4)


def test_simulation_of_symbols_together_equals_each_alone():
    bars = random_series(11, 200, 3, missing=0.2)
    together = simulate(bars, ENTRY, stop_pct=0.01, target_pct=0.02).trades
    for name in bars.symbols:
        alone = simulate(bars.select((name,)), ENTRY, stop_pct=0.01, target_pct=0.02).trades
        part = together[together["symbol"] == name].reset_index(drop=True)
        pd.testing.assert_frame_equal(part, alone)


def test_simulation_kernel_has_one_compiled_signature():
    for symbols, direction in itertools.product((1, 3), ("long", "short")):
        simulate(random_series(1, 40, symbols), ENTRY, direction=direction)
    frame = pd.DataFrame(
        {name: [1.0, 1.0, 1.0] for name in ("open", "high", "low", "close", "volume")},
        index=pd.date_range("2020-01-01", periods=3, tz="UTC"),
    )
    simulate(BarSeries.from_frame(frame), "close > 0")
    assert len(advance.signatures) == 1


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"stop_pct": 0.0}, "stop_pct"),
        ({"target_pct": -1.0}, "target_pct"),
        ({"time_stop_bars": 0}, "time_stop_bars"),
        ({"quantity": float("nan")}, "quantity"),
        ({"direction": "up"}, "direction"),
        ({"time_stop_bars": 2.5}, "time_stop_bars"),
        ({"stop_pct": None}, "stop_pct"),
        ({"fill": "tomorrow"}, "fill"),
        ({"fee_bps": float("nan")}, "fee_bps"),
        ({"both_hit": "luck"}, "both_hit"),
        ({"direction": "short", "target_pct": 1.0}, "target_pct"),
    ],
)
def test_simulation_number_out_of_range_is_refused_by_name(changes, named):
    with pytest.raises(ConfigError, match=named):
        simulate(random_series(1, 20), ENTRY, **changes)


def test_simulation_entry_that_is_no_condition_is_refused():
    with pytest.raises(RuleError):
        simulate(random_series(1, 20), "close + 1")


def test_simulation_says_why_orders_were_refused() -> None:
    bars = random_series(3, 400)
    plain, lots = simulate(bars, ENTRY), simulate(bars, ENTRY, lot_size=10.0)
    assert plain.refused == {}
    assert lots.trades.empty
    assert list(lots.refused) == ["no_capacity"]
    assert lots.refused["no_capacity"] >= len(plain.trades) > 0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"time_stop_bars": 2**63 - 1}, "time_stop_bars"),
        ({"time_stop_bars": 2**64}, "time_stop_bars"),
        ({"fee_per_trade": float("inf")}, "fee_per_trade"),
        ({"lot_size": 5e-324}, "lot_size"),
        ({"tick_size": float("nan")}, "tick_size"),
        ({"fee_rounding": float("inf")}, "fee_rounding"),
        ({"quantity": 1e308}, "quantity"),
        ({"entry": None}, "entry"),
        ({"reentry": "no"}, "reentry"),
        ({"fee_bps": True}, "fee_bps"),
    ],
)
def test_simulation_hostile_argument_is_refused_by_name(changes: Any, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        simulate(random_series(1, 50), **changes)


def test_simulation_of_something_else_than_bars_says_what_to_do() -> None:
    given: Any = np.ones(3)
    with pytest.raises(ConfigError, match=r"BarSeries\.from_frame"):
        simulate(given)
