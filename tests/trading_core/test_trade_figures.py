"""Figures of closed positions against a world small enough to be reckoned by hand."""

import numpy as np
import pytest

from tests.services.high_level.builders import episode
from trading_core.trade_figures import (
    GROUPS,
    average_hold_bars,
    break_even_cost_bps,
    expectancy_r,
    group_trades,
    payoff,
    profit_factor,
    turnover,
    win_rate,
)

DAY = 86_400 * 10**9
YEAR = 365.25 * DAY


def _trade(number, symbol, r, pnl, hold, reason="stop"):
    return episode(
        number=number, r=r, symbol=symbol, pnl=pnl, hold_bars=hold, exit_reason=reason,
        quantity=10.0, entry_price=100.0, exit_price=100.0 + (pnl + 2.0) / 10.0, fees=2.0,
    )  # fmt: skip


TRADES = [
    _trade(0, "AAPL", 2.0, 60.0, 4, "target"),
    _trade(1, "AAPL", -1.0, -30.0, 2),
    _trade(2, "IBM", 1.0, 30.0, 6, "target"),
    _trade(3, "AAPL", -0.5, -15.0, 8, "time_stop"),
]


def test_figures_of_four_trades_are_those_reckoned_by_hand():
    assert win_rate(TRADES) == 0.5
    assert expectancy_r(TRADES) == 0.375
    assert profit_factor(TRADES) == 2.0
    assert payoff(TRADES) == 2.0
    assert average_hold_bars(TRADES) == 5.0


def test_turnover_is_money_bought_and_sold_a_year_over_mean_equity():
    notional = 4 * 1_000.0 + 4 * 1_000.0 + (62 - 28 + 32 - 13)
    equity, times = np.array([900.0, 1_000.0, 1_100.0]), np.array([0, YEAR, 2 * YEAR]).astype(np.int64)
    assert turnover(TRADES, equity, times) == pytest.approx(notional / 1_000.0 / 2.0)
    assert turnover(TRADES, equity[:1], times[:1]) is None
    assert turnover([], equity, times) == 0.0


def test_cost_at_which_trades_earn_nothing_leaves_them_nothing():
    """Fees of that many basis points a side, instead of those paid, take all that was won."""
    found, loser = break_even_cost_bps(TRADES, 0.0, 0.0), break_even_cost_bps(TRADES[1:2], 0.0, 0.0)
    assert found is not None
    assert loser is not None
    sides = sum(trade.quantity * (trade.entry_price + trade.exit_price) for trade in TRADES)
    assert sum(trade.pnl + trade.fees for trade in TRADES) - sides * found * 1e-4 == pytest.approx(0.0)
    assert break_even_cost_bps(TRADES, 3.0, 0.0) == pytest.approx(found + 3.0)
    assert break_even_cost_bps(TRADES, 0.0, 4.0) == pytest.approx(found - 4.0 / sides * 1e4)
    assert loser < 0.0, "it loses without any cost"
    assert break_even_cost_bps([], 3.0, 0.0) is None


def test_groups_hold_every_trade_once_with_the_most_first():
    by_symbol = group_trades(TRADES, GROUPS["by_symbol"])
    assert by_symbol == [
        {
            "name": "AAPL",
            "trades": 3,
            "win_rate": pytest.approx(1 / 3),
            "expectancy_r": pytest.approx(0.5 / 3),
            "total_r": 0.5,
            "pnl": 15.0,
            "profit_factor": pytest.approx(60 / 45),
            "average_hold_bars": pytest.approx(14 / 3),
        },
        {
            "name": "IBM",
            "trades": 1,
            "win_rate": 1.0,
            "expectancy_r": 1.0,
            "total_r": 1.0,
            "pnl": 30.0,
            "profit_factor": None,
            "average_hold_bars": 6.0,
        },
    ]
    assert [group["name"] for group in group_trades(TRADES, GROUPS["by_exit"])] == [
        "target",
        "stop",
        "time_stop",
    ]
    sides = {group["name"]: group["trades"] for group in group_trades(TRADES, GROUPS["by_direction"])}
    assert sides == {
        side: count
        for side in ("long", "short")
        if (count := sum(str(trade.direction) == side for trade in TRADES))
    }


def test_figures_without_trades_are_undefined():
    alone = (win_rate, expectancy_r, profit_factor, payoff, average_hold_bars)
    assert [figure([]) for figure in alone] == [None] * len(alone)
    assert [group_trades([], name_of) for name_of in GROUPS.values()] == [[]] * len(GROUPS)
    assert (profit_factor(TRADES[:1]), payoff(TRADES[:1]), profit_factor(TRADES[1:2])) == (None, None, 0.0)
