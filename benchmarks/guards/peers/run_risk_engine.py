# mypy: ignore-errors
"""Trading Risk Engine: its decision on an entry, and its size, which an order may not exceed.

Exits are never asked of it. It has no symbols, no price check, no target, no duplicates and no count.
"""

from case import is_exit, peak_of, price_of, run
from risk_engine.core.config import RiskConfig
from risk_engine.core.engine import RiskEngine
from risk_engine.core.state import RiskState
from risk_engine.interfaces.position import PositionSide, TradeRequest


def judge(case, limits):
    """Its reason, or that its size is smaller."""
    order = case["order"]
    if is_exit(case):
        return ""
    config = RiskConfig(
        max_account_drawdown=limits["drawdown"],
        session_drawdown=limits["daily_loss"],
        max_position_size=limits["order_share"],
        max_open_positions=10,
        max_leverage=1.0,
        risk_per_trade=0.01,
    )
    loss = max(0.0, -case["day_result"] / case["equity"])
    state = RiskState(equity_peak=peak_of(case), current_equity=case["equity"], session_loss=loss)
    engine = RiskEngine(config, state)
    if case["kill_switch"]:
        engine.emergency_shutdown("operator")
    side = PositionSide.LONG if order["side"] == "buy" else PositionSide.SHORT
    request = TradeRequest(order["symbol"], side, price_of(order), order["stop"], order["target"])
    found = engine.evaluate_trade(request)
    if not found.is_approved:
        return found.reason
    return "" if 0 < order["quantity"] <= found.position_size else f"allows {found.position_size:.0f} units"


run("trading-risk-engine", judge)
