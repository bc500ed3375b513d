"""The kernel against the plain reading of its execution rules, on a fixed selection of settings and markets.

`test_simulation.py` draws its settings; these few are the same in every run, quick enough to be run against
every mutant of the kernel, and together take every value of every switch. The account is held against
the trades at every close.
"""

import random
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from tests.trading_core.bracket_oracle import OracleTrade, Rules, walk
from tests.trading_core.market import random_series
from trading_core.bars import BarSeries
from trading_core.research.simulation import simulate

ENTRY = "close > open"
CASH = 100_000.0
VALUES: dict[str, tuple[Any, ...]] = {
    "direction": ("long", "short"),
    "stop_pct": (0.003, 0.01, 0.02),
    "target_pct": (0.003, 0.015, 0.04),
    "time_stop_bars": (1, 3, 20),
    "fee_bps": (0.0, 5.0),
    "slippage_bps": (0.0, 2.0),
    "quantity": (1.0, 7.5),
    "fill": ("next_open", "close"),
    "level_base": ("fill", "signal_close"),
    "entry_bar_exits": (True, False),
    "both_hit": ("stop", "target", "ohlc", "near", "color"),
    "gap": ("open", "level"),
    "limit_fill": ("touch", "through"),
    "time_exit": ("open", "after_stops", "close"),
    "reentry": (True, False),
    "tick_size": (0.0, 0.25, 0.3),  # 0.3 divides no whole price
    "lot_size": (0.0, 0.1),
    "maker_fee_bps": (None, -1.0, 2.0),
    "fee_per_trade": (0.0, 0.35),
    "fee_rounding": (0.0, 0.01),
    "funding_bps": (0.0, 3.0, -3.0),
    "borrow_bps": (0.0, 2.0),
}
COMPARED = (
    "entry_price", "exit_price", "quantity", "fees", "pnl", "r", "mae_r", "mfe_r", "bars_held",
)  # fmt: skip
CASES = 12


def _drawn(case: int) -> Rules:
    """Settings of a case: every switch goes through its values, each in an order of its own."""
    picked = {}
    for name, values in VALUES.items():
        order = [values[k % len(values)] for k in range(CASES)]
        random.Random(name).shuffle(order)
        picked[name] = order[case]
    return Rules(**picked)


SETTINGS = [_drawn(case) for case in range(CASES)]


def _market(case: int, symbols: int = 2, missing: float = 0.1) -> BarSeries:
    """Gaps, wide and missing bars; in every other case the prices lie on a grid of a quarter."""
    bars = random_series(100 + case, 90, symbols, missing=missing)
    if case % 2:
        for name in ("open", "high", "low", "close"):
            part = getattr(bars, name)
            part[:] = np.round(part * 4) / 4
    return bars


def _signal(bars: BarSeries, s: int) -> np.ndarray:
    return bars.present[:, s] & (bars.close[:, s] > bars.open[:, s])


def test_kernel_differential_settings_take_every_value_of_every_switch():
    assert set(VALUES) == {field.name for field in fields(Rules)}
    for name, values in VALUES.items():
        assert {getattr(rules, name) for rules in SETTINGS} == set(values), name


@pytest.mark.parametrize("case", range(CASES))
def test_kernel_differential_trades_are_those_of_the_plain_reading(case):
    bars, rules = _market(case), SETTINGS[case]
    trades = simulate(bars, ENTRY, **rules.switches()).trades
    rows = {int(label): t for t, label in enumerate(bars.times.tolist())}
    for s, symbol in enumerate(bars.symbols):
        found = trades[trades["symbol"] == symbol]
        expected = walk(bars, _signal(bars, s), rules, s)
        assert len(expected) > 2
        assert [rows[stamp.value] for stamp in found["entry_time"]] == [trade.entry for trade in expected]
        assert [rows[stamp.value] for stamp in found["exit_time"]] == [trade.exit for trade in expected]
        assert found["exit_reason"].tolist() == [trade.reason for trade in expected]
        for column in COMPARED:
            assert found[column].tolist() == pytest.approx(
                [getattr(trade, column) for trade in expected], rel=1e-9, abs=1e-9
            ), column


def _account(bars: BarSeries, trades: list[OracleTrade], rules: Rules) -> list[float]:
    """Cash and position at every close before the last exit, from the trades of one symbol."""
    worth = []
    for t in range(trades[-1].exit):
        total = CASH + sum(trade.pnl for trade in trades if trade.exit <= t)
        for trade in trades:
            if trade.entry <= t < trade.exit:
                moved = rules.sign * trade.quantity * (bars.close[t, 0] - trade.entry_price)
                total += moved - _costs(bars, trade, rules, t)
        worth.append(float(total))
    return worth


def _costs(bars: BarSeries, trade: OracleTrade, rules: Rules, t: int) -> float:
    """Fee of the entry and carry of every close since; the close that filled the entry carries nothing."""
    rate = rules.funding_bps if rules.sign > 0 else rules.borrow_bps - rules.funding_bps
    first = trade.entry + (1 if rules.fill == "close" else 0)
    carried = float(bars.close[first : t + 1, 0].sum()) * rate * 1e-4
    fee = trade.quantity * trade.entry_price * rules.fee_bps * 1e-4 + rules.fee_per_trade
    return fee + trade.quantity * carried


@pytest.mark.parametrize("case", range(CASES))
def test_kernel_differential_account_follows_the_trades_at_every_close(case):
    """Fees are exact here: a rounded one is told by the trades alone."""
    bars, rules = _market(case, symbols=1, missing=0.0), replace(SETTINGS[case], fee_rounding=0.0)
    equity = simulate(bars, ENTRY, cash=CASH, **rules.switches()).equity.to_numpy()
    expected = _account(bars, walk(bars, _signal(bars, 0), rules), rules)
    assert equity[: len(expected)] == pytest.approx(expected, abs=1e-6)
