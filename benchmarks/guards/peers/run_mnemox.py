# mypy: ignore-errors
"""Mnemox Control: one evaluation of a sealed policy, account, market and catalogue; exits are `reduce_only`.

Its kill switch is the halt `REDUCE_ONLY`. It has no duplicates, no count of entries and no target.
"""

from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from case import is_exit, moment, quoted_at, run
from mnemox_control import (
    InstrumentCatalog,
    MarketSnapshot,
    OrderIntent,
    PolicyBundle,
    TrustedAccountSnapshot,
    evaluate,
)

ID = UUID(int=47)
NAMES = {"account_id": "a", "broker": "b"}


def judge(case, limits):
    """Its reason codes where it does not allow."""
    now = moment(case["now"])
    found = evaluate(
        policy=policy(case, limits, now),
        intent=intent(case, now),
        account=account(case, now),
        market=market(case),
        instruments=catalogue(limits, now),
        evaluated_at=now,
    )
    if found.decision == "ALLOW":
        return ""
    return ", ".join(str(rule.code) for rule in found.rules if str(rule.outcome) in ("DENY", "ESCALATE"))


def policy(case, limits, now):
    """Comparable limits; stops from a tenth to a quarter of the price away."""
    order, symbol = (money(limits[name] * case["equity"]) for name in ("order_share", "symbol_share"))
    return PolicyBundle(
        policy_id=ID,
        revision=1,
        owner_id="o",
        **NAMES,
        allowed_symbols=limits["symbols"],
        max_order_notional=order,
        max_position_notional=symbol,
        max_leverage=Decimal(1),
        max_daily_loss=money(limits["daily_loss"] * case["equity"]),
        max_drawdown=money(limits["drawdown"]),
        approval_notional=order,
        max_state_age_seconds=300,
        max_market_age_seconds=limits["stale_s"],
        max_instrument_age_seconds=86_400,
        max_price_deviation_bps=money(1e4 * limits["collar"]),
        max_open_orders=100,
        max_order_quantity=None,
        require_protective_stop=True,
        max_stop_distance_bps=round(1e4 * limits["stop_share"]),
        min_stop_distance_bps=10,
        allow_position_reversal=False,
        risk_day_start_hour_utc=0,
        allowed_weekly_windows=({"start_minute_utc": 0, "end_minute_utc": 10_080},),
        valid_from=now - timedelta(days=1),
        expires_at=now + timedelta(days=1),
        created_at=now - timedelta(days=1),
    ).with_content_hash()


def intent(case, now):
    """The order."""
    order, leaves = case["order"], is_exit(case)
    price = {"limit": "limit_price", "stop": "stop_price"}.get(order["kind"])
    return OrderIntent(
        intent_id=ID,
        agent_id="agent",
        **NAMES,
        symbol=order["symbol"],
        side=order["side"].upper(),
        order_type=order["kind"].upper(),
        quantity=Decimal(str(order["quantity"])),
        reduce_only=leaves,
        protective_stop_price=None if leaves or order["stop"] is None else money(order["stop"]),
        strategy_id="s",
        reason=order["reasons"] or "none",
        market_data_as_of=quoted_at(case),
        created_at=now,
        **({price: money(order["price"])} if price else {}),
    )


def account(case, now):
    """The account, observed now."""
    start = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return TrustedAccountSnapshot(
        snapshot_id=ID,
        state_version=1,
        source="s",
        **NAMES,
        equity=money(case["equity"]),
        cash_balance=money(case["cash"]),
        realized_pnl_today=money(case["day_result"]),
        realized_pnl_period_start=start,
        realized_pnl_period_end=start + timedelta(days=1),
        drawdown_from_peak=money(case["drawdown"]),
        open_orders=(),
        positions=[
            {"symbol": symbol, "signed_quantity": Decimal(row["quantity"])}
            for symbol, row in case["positions"].items()
        ],
        halt_state="REDUCE_ONLY" if case["kill_switch"] else "NORMAL",
        observed_at=now,
    ).with_content_hash()


def market(case):
    """The quotes; without one, that of another symbol, so that coverage is missing and not the snapshot."""
    quotes = case["quotes"] or {"NONE": {"last": 1.0}}
    return MarketSnapshot(
        snapshot_id=ID,
        source="s",
        observed_at=quoted_at(case),
        quotes=[
            {"symbol": symbol, **dict.fromkeys(("bid", "ask", "mark"), money(quote["last"]))}
            for symbol, quote in quotes.items()
        ],
    ).with_content_hash()


def catalogue(limits, now):
    """Spot shares in whole units and cents."""
    return InstrumentCatalog(
        catalog_id=ID,
        version="1",
        broker="b",
        observed_at=now,
        instruments=[
            {
                "instrument_id": symbol,
                "version": "1",
                "broker": "b",
                "symbol": symbol,
                "instrument_type": "SPOT",
                "position_mode": "ONE_WAY",
                "allows_short": False,
                "base_asset": symbol,
                "quote_asset": "USD",
                "contract_multiplier": 1,
                "quantity_step": 1,
                "price_tick": Decimal("0.01"),
                "min_quantity": 1,
                "min_notional": Decimal("0.01"),
            }
            for symbol in limits["symbols"]
        ],
    ).with_content_hash()


def money(value):
    """An exact decimal."""
    return Decimal(str(round(value, 4)))


run("mnemox-control", judge)
