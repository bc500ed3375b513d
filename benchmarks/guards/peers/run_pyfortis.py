# mypy: ignore-errors
"""PyFortis: a monitor with limits and breakers, breakers on `reduce_only`; orders before are submitted first.

It has no stop and no target. The operator's switch is a feed that has gone silent.
"""

from datetime import timedelta
from decimal import Decimal

from case import last_of, moment, peak_of, quoted_at, run
from pyfortis import Account, Order, PnlSnapshot, Position, RiskEngine
from pyfortis.monitor import RiskMonitor

KINDS = {"market": "market", "limit": "limit", "stop": "stop"}


def judge(case, limits):
    """The limits that failed where it rejects."""
    at = [moment(case["now"])]
    monitor = RiskMonitor(RiskEngine.from_dict(policy(limits, case["equity"])), clock=lambda: at[0])
    worth = sum(
        row["quantity"] * (last_of(case, symbol) or row["price"]) for symbol, row in case["positions"].items()
    )
    cash = money(case["equity"] - worth)
    monitor.update_account(Account(nav=money(case["equity"]), cash=cash, buying_power=cash))
    monitor.update_positions(
        Position(
            symbol=symbol,
            quantity=Decimal(row["quantity"]),
            avg_cost=money(row["price"]),
            last_price=money(last_of(case, symbol) or row["price"]),
        )
        for symbol, row in case["positions"].items()
    )
    monitor.update_prices({symbol: money(quote["last"]) for symbol, quote in case["quotes"].items()})
    monitor.update_pnl(
        PnlSnapshot(
            daily_pnl=money(case["day_result"]),
            peak_value=money(peak_of(case)),
            current_value=money(case["equity"]),
        )
    )
    silent = timedelta(days=1) if case["kill_switch"] else timedelta(0)
    monitor.update_feed_ages({"prices": at[0] - quoted_at(case), "operator": silent})
    monitor.tick()
    for before in case["earlier"]:
        at[0] = moment(before["at"])
        monitor.submit(order_of(before["order"]))
    at[0] = moment(case["now"])
    found = monitor.submit(order_of(case["order"]))
    if found.passed:
        return ""
    return ", ".join(check.name for check in found.failed_checks) or str(found.verdict)


def policy(limits, equity):
    """Comparable limits in its own terms."""

    def limit(name, kind, scope, **params):
        return {"name": name, "type": kind, "scope": scope, "severity": "CRITICAL", "params": params}

    def breaker(name, kind, **params):
        trip = {"action": "reduce_only", "severity": "CRITICAL"}
        return {
            "name": name,
            "type": kind,
            "scope": "portfolio",
            "params": params,
            "trip": trip,
            "rearm": "auto",
        }

    return {
        "api_version": "pyfortis.io/v1",
        "kind": "RiskPolicy",
        "metadata": {"name": "crash", "namespace": "crash", "version": "1.0.0"},
        "spec": {
            "mode": "enforce",
            "base_currency": "USD",
            "universe": {"allow": {"symbols": limits["symbols"]}},
            "limits": [
                limit(
                    "collar", "price_collar", "order", max_deviation_pct=limits["collar"], reference="last"
                ),
                limit("notional", "order_notional", "order", max=limits["order_share"] * equity),
                limit("short", "position", "instrument", max_short=0),
                limit("universe", "instrument_eligibility", "order"),
                limit("duplicates", "duplicate_order", "actor", window=f"{limits['duplicate_s']}s"),
                limit(
                    "symbol", "concentration", "portfolio", by="symbol", max_pct_nav=limits["symbol_share"]
                ),
                limit("cash", "buying_power", "portfolio"),
                limit("entries", "actor_budget", "actor", orders_per_day=limits["entries_a_day"]),
            ],
            "circuit_breakers": [
                breaker("loss", "daily_pnl", max_loss_pct_nav=limits["daily_loss"]),
                breaker("fall", "drawdown", max_drawdown=limits["drawdown"]),
                breaker("stale", "stale_data", max_age=f"{limits['stale_s']}s", feeds=["prices"]),
                breaker("operator", "stale_data", max_age="1h", feeds=["operator"]),
            ],
        },
    }


def order_of(order):
    """An order in its words."""
    prices = {"limit": "limit_price", "stop": "stop_price"}
    price = {prices[order["kind"]]: money(order["price"])} if order["kind"] in prices else {}
    return Order(
        order_id=order["id"],
        symbol=order["symbol"],
        side=order["side"],
        quantity=Decimal(str(order["quantity"])),
        order_type=KINDS[order["kind"]],
        actor="agent:test",
        **price,
    )


def money(value):
    """An exact decimal."""
    return Decimal(str(round(value, 4)))


run("pyfortis", judge)
