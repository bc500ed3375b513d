# mypy: ignore-errors
"""AgentRisk: `check_trade_risk` with an inline policy. A WARN lets the order pass, as its contract has it.

It has no allow list, no price check, no stop, no daily loss and no drawdown. A stop order goes as a sale at
its price.
"""

from agentrisk import check_trade_risk
from case import is_exit, last_of, moment, price_of, quoted_at, run


def judge(case, limits):
    """Its summary where it blocks."""
    order = case["order"]
    policy = {
        "limits": {"max_single_position_pct": 100 * limits["symbol_share"]},
        "order_rules": {"max_order_pct_of_portfolio": 100 * limits["order_share"], "min_cash_pct": 0},
        "data_rules": {"max_snapshot_age_hours": limits["stale_s"] / 3600},
    }
    positions = [
        {"symbol": symbol, "quantity": row["quantity"], "price": last_of(case, symbol) or row["price"]}
        for symbol, row in case["positions"].items()
    ]
    worth = sum(row["quantity"] * row["price"] for row in positions)
    portfolio = {"as_of": quoted_at(case), "cash": round(case["equity"] - worth, 2), "positions": positions}
    price = (
        {"limit_price": order["price"]} if order["kind"] == "limit" else {"estimated_price": price_of(order)}
    )
    if order["kind"] == "stop" and is_exit(case):
        price = {"estimated_price": min(price_of(order), last_of(case, order["symbol"]))}
    trade = {
        "action": order["side"],
        "symbol": order["symbol"],
        "quantity": order["quantity"],
        "order_type": "limit" if order["kind"] == "limit" else "market",
        "rationale": order["reasons"] or None,
        **price,
    }
    found = check_trade_risk(portfolio, trade, policy=policy, now=moment(case["now"]))
    return "" if found.proceed else found.summary


run("agentrisk", judge)
