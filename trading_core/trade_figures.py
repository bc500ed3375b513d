"""Figures of closed positions, of all of them and by what they share: plain functions of episodes.

Money is net of fees and slippage; an undefined figure is None, never NaN.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from schemas.episode import Episode
from trading_core.accounting import YEAR_NS, FloatArray, IntArray

Trades = Sequence[Episode]
GROUPS: Mapping[str, Callable[[Episode], str]] = {
    "by_direction": lambda trade: str(trade.direction),
    "by_playbook": lambda trade: trade.playbook_id,
    "by_symbol": lambda trade: trade.symbol,
    "by_regime": lambda trade: trade.regime,
    "by_exit": lambda trade: str(trade.exit_reason),
}


def win_rate(trades: Trades) -> float | None:
    """Share of trades with R above zero."""
    return float(np.mean([trade.r > 0.0 for trade in trades])) if trades else None


def expectancy_r(trades: Trades) -> float | None:
    """Mean R after costs."""
    return float(np.mean(np.array([trade.r for trade in trades]))) if trades else None


def profit_factor(trades: Trades) -> float | None:
    """Money that winners made over money that losers lost; None without a loss."""
    won, lost = _won_and_lost(trades)
    return float(won.sum() / -lost.sum()) if lost.size else None


def payoff(trades: Trades) -> float | None:
    """Mean winner over mean loser, in money; None without one of them."""
    won, lost = _won_and_lost(trades)
    return float(won.mean() / -lost.mean()) if won.size and lost.size else None


def average_hold_bars(trades: Trades) -> float | None:
    """Mean bars from entry to exit, own bars of the symbol."""
    return float(np.mean([trade.hold_bars for trade in trades])) if trades else None


def traded_notional(trades: Trades) -> float:
    """Money bought and sold by the closed positions, both sides."""
    return float(sum(trade.quantity * (trade.entry_price + trade.exit_price) for trade in trades))


def turnover(trades: Trades, equity: FloatArray, times: IntArray) -> float | None:
    """Money bought and sold a year over mean equity.

    Args:
        trades: closed positions.
        equity: (T,) at the bar closes.
        times: (T,) ns.
    """
    if equity.size < 2 or times[-1] <= times[0] or float(equity.mean()) <= 0.0:
        return None
    years = float(times[-1] - times[0]) / YEAR_NS
    return traded_notional(trades) / float(equity.mean()) / years


def break_even_cost_bps(trades: Trades, slippage_bps: float, carry: float) -> float | None:
    """Cost a side in basis points of notional, fees and slippage, at which the trades earn nothing.

    Fees are taken as they were paid, slippage as if every fill had paid it, and carry stays paid: it goes by
    the bars held, not by the sides. Below zero the trades lose without any cost a side.

    Args:
        trades: closed positions.
        slippage_bps: that their prices hold, a side.
        carry: funding and borrow that their fees hold, in money; below zero they received it.
    """
    notional = traded_notional(trades)
    if notional <= 0.0:
        return None
    return slippage_bps + 1e4 * (sum(trade.pnl + trade.fees for trade in trades) - carry) / notional


def group_trades(trades: Trades, name_of: Callable[[Episode], str]) -> list[dict[str, Any]]:
    """Figures of the trades by name, most trades first, then by name."""
    groups: dict[str, list[Episode]] = {}
    for trade in trades:
        groups.setdefault(name_of(trade), []).append(trade)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"name": name} | _figures(group) for name, group in ordered]


def _figures(trades: Trades) -> dict[str, Any]:
    return {
        "trades": len(trades),
        "win_rate": win_rate(trades),
        "expectancy_r": expectancy_r(trades),
        "total_r": float(sum(trade.r for trade in trades)),
        "pnl": float(sum(trade.pnl for trade in trades)),
        "profit_factor": profit_factor(trades),
        "average_hold_bars": average_hold_bars(trades),
    }


def _won_and_lost(trades: Trades) -> tuple[FloatArray, FloatArray]:
    money = np.array([trade.pnl for trade in trades], dtype=np.float64)
    return money[money > 0.0], money[money < 0.0]
