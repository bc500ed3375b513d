"""The `performance` part of a run's document: what a trader reads first; undefined is None."""

from collections import Counter
from math import isfinite
from typing import Any

from schemas.settings import ExecutionSettings
from services.policy_loop.invariant_context import cost_bps
from trading_core.accounting import (
    FloatArray,
    buy_and_hold_return,
    cagr,
    calmar,
    drawdown_days,
    exposure_share,
    hold_curve,
    max_drawdown,
    sharpe,
    sortino,
    volatility,
)
from trading_core.robust_errors import market_line, sharpe_interval
from trading_core.trade_figures import (
    GROUPS,
    average_hold_bars,
    break_even_cost_bps,
    expectancy_r,
    grouped,
    payoff,
    profit_factor,
    turnover,
    win_rate,
)
from worker.runs.contamination import Course


def performance(
    course: Course, gross: FloatArray, execution: ExecutionSettings, *, fees: float, model_cost: float
) -> dict[str, Any]:
    """Figures of a finished run.

    Args:
        course: the curve, which begins with the cash, and the trades.
        gross: (T,) exposure in quote currency at each close.
        execution: what a fill cost.
        fees: of all fills.
        model_cost: of the calls of language models.
    """
    trades, curve, times = course.trades, course.curve, course.times
    cash, cost = float(curve[0]), cost_bps(execution) * 1e-4
    return {
        "total_return": float(curve[-1]) / cash - 1.0,
        "model_cost": model_cost,
        "net_return": (float(curve[-1]) - model_cost) / cash - 1.0,
        "buy_and_hold_return": buy_and_hold_return(course.bars, cost),
        "sharpe": sharpe(curve, times),
        "max_drawdown": max_drawdown(curve),
        "trades": len(trades),
        "win_rate": win_rate(trades),
        "expectancy_r": expectancy_r(trades),
        "fees": fees,
        "exposure": exposure_share(gross),
        "exit_reasons": dict(sorted(Counter(str(trade.exit_reason) for trade in trades).items())),
        **_of_curve(course, cost),
        "profit_factor": profit_factor(trades),
        "payoff": payoff(trades),
        "average_hold_bars": average_hold_bars(trades),
        "best_r": max((trade.r for trade in trades), default=None),
        "worst_r": min((trade.r for trade in trades), default=None),
        "turnover": _finite(turnover(trades, curve, times)),
        "break_even_cost_bps": break_even_cost_bps(trades, cost_bps(execution) - execution.fee_bps),
        **{name: grouped(trades, name_of) for name, name_of in GROUPS.items()},
    }


def _of_curve(course: Course, cost: float) -> dict[str, Any]:
    curve, times = course.curve, course.times
    interval = sharpe_interval(curve, times)
    line = market_line(curve, hold_curve(course.bars, float(curve[0]), cost), times)
    return {
        "cagr": cagr(curve, times),
        "volatility": _finite(volatility(curve, times)),
        "sortino": _finite(sortino(curve, times)),
        "calmar": _finite(calmar(curve, times)),
        "sharpe_interval": None if interval is None else list(interval),
        "drawdown_days": drawdown_days(curve, times),
        "beta": None if line is None else _finite(line.beta),
        "alpha": None if line is None else _finite(line.alpha),
        "alpha_t": None if line is None else _finite(line.alpha_t),
    }


def _finite(value: float | None) -> float | None:
    """A figure of prices that overflow says nothing."""
    return value if value is not None and isfinite(value) else None
