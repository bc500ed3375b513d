# mypy: ignore-errors
"""OpenPit: its built-in policies (validation, order size, rate, P&L bounds); the switch blocks the account.

It is a kit whose policies are written by its user; asked here is what it brings. It has no allow list, no
price check, no stop, no target, no drawdown and no duplicates.
"""

import datetime

import openpit
from case import price_of, run
from openpit.param import AccountId, Asset, Pnl, Price, Side, TradeAmount, Volume
from openpit.pretrade import policies as built_in

ACCOUNT = AccountId.from_int(47)


def judge(case, limits):
    """Its reject codes."""
    equity = case["equity"]
    bounds = built_in.PnlBoundsBrokerBarrier(
        settlement_asset=Asset("USD"), lower_bound=Pnl(str(round(-limits["daily_loss"] * equity, 2)))
    )
    engine = (
        openpit.Engine.builder()
        .no_sync()
        .builtin(built_in.build_order_validation())
        .builtin(
            built_in.build_order_size_limit().broker_barrier(
                built_in.OrderSizeBrokerBarrier(
                    limit=built_in.OrderSizeLimit(max_notional=Volume(str(limits["order_share"] * equity)))
                )
            )
        )
        .builtin(
            built_in.build_rate_limit().account_barriers(
                built_in.RateLimitAccountBarrier(
                    limit=built_in.RateLimit(limits["entries_a_day"], datetime.timedelta(days=1)),
                    account_id=ACCOUNT,
                )
            )
        )
        .builtin(
            built_in.build_pnl_bounds_killswitch().account_barriers(
                built_in.PnlBoundsAccountAssetBarrier(
                    barrier=bounds, account_id=ACCOUNT, initial_pnl=Pnl(str(round(case["day_result"], 2)))
                )
            )
        )
        .build()
    )
    for before in case["earlier"]:
        sent = engine.execute_pre_trade(order=order_of(before["order"]))
        if sent.ok:
            sent.reservation.commit()
    if case["kill_switch"]:
        engine.accounts().block(ACCOUNT, "operator")
    found = engine.execute_pre_trade(order=order_of(case["order"]))
    if found.ok:
        found.reservation.commit()
        return ""
    return ", ".join(str(reject.code) for reject in found.rejects)


def order_of(order):
    """The order in its words."""
    return openpit.Order(
        operation=openpit.OrderOperation(
            instrument=openpit.Instrument(order["symbol"], "USD"),
            account_id=ACCOUNT,
            side=Side.BUY if order["side"] == "buy" else Side.SELL,
            trade_amount=TradeAmount.quantity(str(order["quantity"])),
            price=Price(str(round(price_of(order), 4))),
        )
    )


run("openpit", judge)
