# mypy: ignore-errors
"""deadman: order sanity, daily limits and, for a kill switch that lets exits out, its entry halt.

It has no stop, no target, no drawdown and no duplicates. A missing quote denies.
"""

import tempfile
from datetime import timedelta

from case import held, is_exit, moment, price_of, quoted_at, run
from deadman import (
    DailyLimits,
    EntryHalt,
    FakeClock,
    Intent,
    Limits,
    OrderSanity,
    Paths,
    PositionSnapshot,
    WriterIdentity,
    net_position_is_exit,
    resolve_units,
)


def judge(case, limits):
    """The code of its denial."""
    with tempfile.TemporaryDirectory() as folder:
        return check(case, limits, Paths(folder))


def check(case, limits, paths):
    """Each primitive in the order of its quick start."""
    order, leaves = case["order"], is_exit(case)
    clock = FakeClock(moment(case["now"]) - timedelta(seconds=240))
    ident = WriterIdentity(clock)
    daily = DailyLimits(
        paths,
        Limits(
            max_trades_per_day=limits["entries_a_day"],
            max_daily_loss_usd=limits["daily_loss"] * case["equity"],
            max_notional_usd_per_order=limits["order_share"] * case["equity"],
            worst_case_fee_bps=1.0,
        ),
        net_position_is_exit,
        clock,
        ident,
    )
    for before in case["earlier"]:
        daily.record_fill(
            intent_of(before["order"], False), before["order"]["quantity"] * price_of(before["order"]), 0.0
        )
    daily.record_pnl(case["day_result"])
    clock.advance(240)
    halt = EntryHalt(paths, clock, ident)
    if case["kill_switch"]:
        halt.set("operator", "user")
    if halt.active() is not None and not leaves:
        return "ENTRY_HALT"
    given = intent_of(order, leaves)
    resolved = resolve_units(given, price_of(order))
    position = PositionSnapshot(order["symbol"], float(held(case)), moment(case["now"]).isoformat())
    verdict = daily.check(given, resolved, position)
    if not verdict.allowed:
        return verdict.code
    last = case["quotes"][order["symbol"]]["last"] if order["symbol"] in case["quotes"] else None
    sanity = OrderSanity(
        frozenset(limits["symbols"]),
        1e3 * limits["stale_s"],
        10.0,
        max_ref_deviation_bps=1e4 * limits["collar"],
    )
    age_ms = (moment(case["now"]) - quoted_at(case)).total_seconds() * 1e3
    verdict = sanity.check(
        given,
        resolved,
        broker_status="connected",
        latency_ms=age_ms,
        bid=None if last is None else last * 0.9999,
        ask=None if last is None else last * 1.0001,
        size_available=float(held(case)) if leaves else case["cash"],
        is_exit=leaves,
        ref_price=price_of(order),
    )
    return "" if verdict.allowed else verdict.code


def intent_of(order, leaves):
    """The order in its words."""
    kind = "EXIT" if leaves else "ENTRY"
    return Intent(order["symbol"], order["side"], "BASE", order["quantity"], kind, order["id"])


run("deadman-kit", judge)
