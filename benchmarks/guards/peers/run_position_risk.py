# mypy: ignore-errors
"""Position Risk MCP: `check_trade` of its engine, with shares entered as futures of one dollar a point.

A size that it lowers counts as stopped; exits are never asked of it, and its daily lock stands for a kill
switch. Its approvals expire and are spent by a fill that is told afterwards: by then the order has left. It
has no price check, no target, no duplicates and no count of entries.
"""

import tempfile
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from case import is_exit, moment, peak_of, price_of, run
from trading_position_risk_mcp.engine import RiskEngine
from trading_position_risk_mcp.instruments import Instrument, InstrumentRegistry
from trading_position_risk_mcp.rules import Rulebook
from trading_position_risk_mcp.state import JsonFileStore


def judge(case, limits):
    """Its rules where it rejects or lowers the size."""
    if is_exit(case):
        return ""
    with tempfile.TemporaryDirectory() as folder:
        clock = [moment(case["now"]) - timedelta(seconds=240)]
        engine = RiskEngine(rules(case, limits), catalogue(limits), store=None, now=lambda: clock[0])
        engine.store = JsonFileStore(Path(folder) / "state.json", factory=engine.new_state)
        with engine.store.transaction() as state:
            state.equity, state.peak_equity = money(case["equity"]), money(peak_of(case))
            state.day.start_equity = money(case["equity"] - case["day_result"])
            state.day.realized_pnl = money(case["day_result"])
            # The close that loses so much locks the day; here the loss is given without its closes.
            lost = case["day_result"] <= -limits["daily_loss"] * case["equity"]
            state.day.locked, state.day.lock_reason = case["kill_switch"] or lost, "locked"
        for before in case["earlier"]:
            clock[0] = moment(before["at"])
            found = ask(engine, before["order"])
            engine.record_fill(approval_id=found["approval_id"], fill_price=price_of(before["order"]))
        clock[0] = moment(case["now"])
        found = ask(engine, case["order"])
    if found["verdict"] == "APPROVED":
        return ""
    return ", ".join(reason["rule"] for reason in found["reasons"])


def ask(engine, order):
    """Its answer to an order."""
    return engine.check_trade(
        symbol=order["symbol"],
        side="long" if order["side"] == "buy" else "short",
        entry=price_of(order),
        stop=order["stop"],
        contracts=order["quantity"],
        risk_pct=1,
    )


def rules(case, limits):
    """Comparable limits; what a trade may risk is a percent, of a symbol and of all it bounds nothing."""
    return Rulebook(
        version="1",
        account={"starting_equity": money(case["equity"]), "timezone": "UTC"},
        per_trade={"default_risk_pct": 1, "max_risk_pct": 1},
        portfolio={"max_open_risk_pct": 10, "max_bucket_risk_pct": 10, "max_open_positions": 10},
        daily={"max_daily_loss_pct": money(100 * limits["daily_loss"]), "reserve_open_risk": False},
        drawdown_tiers=[{"from_peak_pct": money(100 * limits["drawdown"]), "size_multiplier": 0}],
        costs={"commission_round_turn": {"default": 0}, "slippage_ticks": 0},
        approvals={"ttl_seconds": limits["expires_s"]},
        max_contracts={"default": 1_000_000},
    )


def catalogue(limits):
    """One share a contract, in cents."""
    return InstrumentRegistry(
        {
            symbol: Instrument(symbol, symbol, "future", Decimal(1), Decimal("0.01"), symbol)
            for symbol in limits["symbols"]
        }
    )


def money(value):
    """An exact decimal."""
    return Decimal(str(round(value, 4)))


run("trading-position-risk-mcp", judge)
