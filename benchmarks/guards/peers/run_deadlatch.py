# mypy: ignore-errors
"""Deadlatch: the engine with its twelve rules; its kill switch stands on `reduce_only`.

It has no allow list, no price check, no stop, no duplicates and no count of entries.
"""

from case import last_of, moment, peak_of, price_of, quoted_at, run
from deadlatch import GuardEngine, Order, Policy, Portfolio, standard_rule_registry


def judge(case, limits):
    """Its rules where it does not pass."""
    order, equity = case["order"], case["equity"]
    policy = Policy(
        version="1",
        mode="enforce",
        base_currency="USD",
        kill_switch="reduce_only" if case["kill_switch"] else "off",
        acknowledged_disabled=["max_order_quantity"],
        limits={
            "max_order_value": limits["order_share"] * equity,
            "max_symbol_exposure_ratio": limits["symbol_share"],
            "max_total_exposure_ratio": 1.0,
            "min_cash": 0,
            "max_options_margin_ratio": 0.35,
            "max_daily_loss_ratio": limits["daily_loss"],
            "max_drawdown_ratio": limits["drawdown"],
            "max_order_age_seconds": limits["expires_s"],
            "max_snapshot_age_seconds": limits["stale_s"],
        },
    )
    positions = [
        {
            "symbol": symbol,
            "instrument_type": "stock",
            "side": "long",
            "quantity": row["quantity"],
            "market_value": round(row["quantity"] * (last_of(case, symbol) or row["price"]), 2),
            "currency": "USD",
        }
        for symbol, row in case["positions"].items()
    ]
    portfolio = Portfolio(
        equity=equity,
        cash=round(equity - sum(row["market_value"] for row in positions), 2),
        day_start_equity=equity - case["day_result"],
        peak_equity=peak_of(case),
        daily_pnl=case["day_result"],
        drawdown_ratio=case["drawdown"],
        snapshot_at=quoted_at(case).isoformat(),
        base_currency="USD",
        positions=positions,
    )
    given = Order(
        symbol=order["symbol"],
        instrument_type="stock",
        side=order["side"],
        quantity=order["quantity"],
        price=price_of(order),
        order_type=order["kind"],
        currency="USD",
        created_at=moment(case["now"]).isoformat(),
    )
    engine = GuardEngine(policy, rules=standard_rule_registry())
    found = engine.check(given, portfolio, now=moment(case["now"]))
    return "" if found.decision in ("PASS", "WARN") else ", ".join(row["rule_id"] for row in found.violations)


run("deadlatch", judge)
