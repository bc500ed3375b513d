"""Limits of single orders: each fault is stopped by its code, and right orders are not."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.guard import Account, BarFacts, GuardSettings, Order, Verdict
from schemas.reflection import Remedy
from services.guard.ledger import DAY_NS, NS, CheckedOrder, Ledger
from services.guard.limits import OrderContext, check_limits
from services.guard.runs import CHECKS

NOW = 20_000 * DAY_NS + 12 * 3_600 * NS
FACTS = BarFacts(
    bars="", timeframe="1h", label=NOW - 3_600 * NS, known_at=NOW, close=100.0, atr=1.0, jump=0.5, missed=0,
    regime=None,
)  # fmt: skip
ACCOUNT = {"equity": 100_000.0, "day_result": 0.0, "drawdown": 0.0, "orders": ()}
LISTED = {"envelope": {"allowed_symbols": ["IBM", "AAPL"]}}
BUY = {"symbol": "IBM", "side": "buy", "quantity": 100, "stop": 98.0, "target": 104.0}
LONG = {"positions": {"IBM": {"quantity": 100, "price": 100.0}}}
SHORT = {"positions": {"IBM": {"quantity": -100, "price": 100.0}}}


def context(order=(), account=(), settings=LISTED, facts=(), ledger=None, now=NOW):
    return OrderContext(
        Order.model_validate(BUY | dict(order)),
        None if account is None else Account.model_validate(ACCOUNT | dict(account)),
        GuardSettings.model_validate(settings),
        None if facts is None else FACTS.model_copy(update=dict(facts)),
        ledger or Ledger(),
        now,
    )


def passed(at=NOW - 3_600 * NS, position=0.0, notional=10_000.0, **order) -> CheckedOrder:
    """An order that was let pass."""
    made = Order.model_validate(BUY | order)
    verdict = Verdict(
        id=f"tt{at}{made.content_hash[:6]}", order_hash=made.content_hash, status="pass", reply="pass", at=at,
        expires_at=at + 300 * NS, mode="enforce",
    )  # fmt: skip
    return CheckedOrder(made, verdict, position, made.quantity, notional)


def ledger_of(*orders: CheckedOrder) -> Ledger:
    ledger = Ledger()
    for checked in orders:
        ledger.take(checked)
    return ledger


def codes(seen: OrderContext) -> set[str]:
    return {found.code for found in check_limits(seen)[0]}


def test_right_order_is_found_nothing_of_and_everything_is_asked():
    assert check_limits(context()) == ([], [])


@pytest.mark.parametrize(
    ("order", "code"),
    [
        ({"kind": "limit", "price": 10_000.0}, "price_outside_collar"),  # in cents
        ({"kind": "limit", "price": 1_000.0, "stop": 980.0}, "price_outside_collar"),  # ten times
        ({"price": 10.0}, "price_outside_collar"),  # the price that a market order expects
        ({"kind": "limit", "price": 106.0}, "limit_through_market"),
        ({"kind": "stop", "price": 99.0}, "entry_on_wrong_side"),
        ({"quantity": 2_000}, "share_of_equity_over_limit"),
        ({"quantity": None, "notional": 120_000}, "gross_exposure_over_limit"),
        ({"quantity": 200, "stop": 92.0}, "risk_over_cap"),
        ({"stop": None}, "missing_stop"),
        ({"stop": 103.0, "target": None}, "stop_on_wrong_side"),
        ({"side": "sell"}, "stop_on_wrong_side"),  # buy was meant
        ({"stop": 5.0}, "stop_too_far"),
        ({"stop": 88.0}, "stop_too_far"),  # 12 ATR
        ({"stop": 99.99}, "stop_too_near"),
        ({"target": 96.0}, "target_on_wrong_side"),
        ({"symbol": "IMB"}, "symbol_not_allowed"),
        ({"symbol": "IВM"}, "symbol_not_allowed"),  # a Cyrillic letter
    ],
)
def test_faulty_order_is_stopped_by_its_code(order, code):
    assert code in codes(context(order))


@pytest.mark.parametrize(
    ("account", "code"),
    [
        ({"day_result": -3_500.0}, "daily_loss_reached"),
        ({"drawdown": 0.25}, "drawdown_reached"),
        ({"positions": {"AAPL": {"quantity": 950, "price": 100.0}}}, "gross_exposure_over_limit"),
        (
            {"orders": [BUY | {"symbol": "AAPL", "notional": 95_000, "quantity": None}]},
            "gross_exposure_over_limit",
        ),
        ({"positions": {"IBM": {"quantity": 100, "price": 110.0}}}, "averaging_down"),
    ],
)
def test_account_stops_an_order_by_its_code(account, code):
    assert code in codes(context(account=account))


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        ({"kill_switch": True}, "kill_switch"),
        ({"allowed_directions": ["short"]}, "direction_not_allowed"),
        ({"no_learn_zones": [{"start": NOW - 1, "end": NOW + 1, "reason": "split"}]}, "no_learn_zone_active"),
        ({"no_trade_windows": [{"reason": "news", "from_minute": 0, "to_minute": 1440}]}, "no_trade_window"),
        ({"max_symbol_exposure": 0.05}, "symbol_exposure_over_limit"),
        ({"max_net_exposure": 0.05}, "net_exposure_over_limit"),
    ],
)
def test_envelope_stops_an_order_by_its_code(envelope, code):
    assert code in codes(context(settings={"envelope": envelope}))


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({"missed": 3}, "stale_bars"),
        ({"jump": 40.0}, "last_price_implausible"),
        ({"close": 1_000.0}, "stop_too_far"),  # a forged last price, or bars of another symbol
    ],
)
def test_bars_stop_an_order_by_its_code(facts, code):
    assert code in codes(context(facts=facts))


def test_same_order_within_the_window_is_stopped_whatever_it_is_called():
    ledger = ledger_of(passed(at=NOW - 59 * NS))
    renamed = context({"reasons": "another thought", "strategy": "other"}, ledger=ledger)
    assert "duplicate_order" in codes(renamed)
    assert "duplicate_order" not in codes(context(ledger=ledger, now=NOW + 2 * NS))
    assert "duplicate_order" not in codes(context({"quantity": 101}, ledger=ledger))


def test_entries_of_a_day_are_counted_from_midnight():
    day = NOW // DAY_NS * DAY_NS
    ledger = ledger_of(*(passed(at=day + n * NS, quantity=n + 1) for n in range(9)))
    limits = LISTED | {"limits": {"entries_a_day": 9}}
    assert "too_many_entries" in codes(context(settings=limits, ledger=ledger))
    assert "too_many_entries" not in codes(context(settings=limits, ledger=ledger, now=NOW + DAY_NS))


def test_adds_to_a_losing_position_are_counted_since_it_was_opened():
    losing = {"positions": {"IBM": {"quantity": 100, "price": 105.0}}}
    limits = LISTED | {"limits": {"averaging_down": 1}}
    opened, added = passed(at=NOW - 9 * NS, quantity=70), passed(at=NOW - 8 * NS, position=70.0, quantity=30)
    assert "averaging_down" not in codes(context(account=losing, settings=limits, ledger=ledger_of(opened)))
    assert "averaging_down" in codes(
        context(account=losing, settings=limits, ledger=ledger_of(opened, added))
    )


@pytest.mark.parametrize(("first", "severity"), [(90.0, "blocker"), (100.2, "info"), (100.3, "blocker")])
def test_bar_that_closed_otherwise_when_it_was_shown_first_is_stopped_beyond_the_noise(first, severity):
    ledger = Ledger()
    ledger.closes["IBM", "1h", FACTS.label] = first
    (found,) = check_limits(context(ledger=ledger))[0]
    assert (found.code, found.severity) == ("bars_changed", severity)


def test_entry_whose_worth_nobody_knows_is_named_and_required_by_default():
    _, missing = check_limits(context({"quantity": 1e9}, facts=None))
    assert "notional" in missing
    assert GuardSettings().limits.required == ("notional",)
    assert "notional" not in check_limits(context({"price": 100.0}, facts=None))[1]
    assert "notional" not in check_limits(context({"quantity": None, "notional": 9.0}, facts=None))[1]


def test_entries_that_the_position_does_not_show_yet_are_exposure_where_orders_are_not_known():
    ledger = ledger_of(
        *(passed(at=NOW - 30 * NS, quantity=size, notional=size * 100.0) for size in (300, 500))
    )
    unknown = {"orders": None}
    order = {"quantity": 250, "stop": 99.0}
    assert "gross_exposure_over_limit" in codes(context(order, unknown, ledger=ledger))
    assert "gross_exposure_over_limit" not in codes(context(order, ledger=ledger))  # none is open
    late = context(order, unknown, ledger=ledger, now=NOW + 31 * NS)
    assert "gross_exposure_over_limit" not in codes(late)
    # 600 units of the 800 have come, and are counted once
    come = {"positions": {"IBM": {"quantity": 600, "price": 100.0}}}
    part = context(order | {"quantity": 190}, unknown | come, ledger=ledger)
    assert "gross_exposure_over_limit" not in codes(part)
    assert "gross_exposure_over_limit" in codes(
        context(order | {"quantity": 210}, unknown | come, ledger=ledger)
    )
    other = context(order | {"symbol": "AAPL"}, unknown, ledger=ledger)
    assert "gross_exposure_over_limit" in codes(other)


def test_cash_pays_for_what_is_bought_where_it_must():
    on = LISTED | {"limits": {"needs_cash": True}}
    assert "cash_too_low" in codes(context(account={"cash": 9_000.0}, settings=on))
    assert codes(context(account={"cash": 9_000.0})) == set()
    assert codes(context(account={"cash": 11_000.0}, settings=on)) == set()
    sell = {"side": "sell", "stop": 102.0, "target": 96.0}
    assert check_limits(context(sell, {"cash": 0.0}, settings=on)) == ([], [])
    assert check_limits(context(settings=on)) == ([], ["cash"])
    assert check_limits(context()) == ([], [])


def test_point_value_scales_worth_risk_and_exposure():
    points = LISTED | {"limits": {"point_value": {"IBM": 50.0}}}
    seen = context({"quantity": 2}, settings=points)
    assert (seen.notional, seen.risk) == (10_000.0, 200.0)
    assert context({"quantity": None, "notional": 10_000.0}, settings=points).quantity == 2.0
    assert context(settings=points, account=LONG).exposures(100_000.0) == {"IBM": 5.0}
    (found,) = [
        finding
        for finding in check_limits(context({"quantity": 20}, settings=points))[0]
        if finding.code == "share_of_equity_over_limit"
    ]
    assert found.remedy is not None
    assert found.remedy.value == 5.0


def test_entries_that_did_not_pass_are_counted_in_neither_mode():
    sent = passed()
    held_back = sent.verdict.model_copy(update={"status": "revise", "mode": "shadow"})
    assert len(ledger_of(sent).entries(0, NOW)) == 1
    assert len(ledger_of(replace(sent, verdict=held_back)).entries(0, NOW)) == 0


@pytest.mark.parametrize(("ahead_s", "found"), [(5, True), (61, True), (24 * 3_600, False)])
def test_verdicts_of_a_clock_that_was_ahead_count_as_long_as_others(ahead_s, found):
    limits = LISTED | {"limits": {"entries_a_day": 1}}
    ledger = ledger_of(passed(at=NOW + ahead_s * NS))
    assert ("too_many_entries" in codes(context(settings=limits, ledger=ledger))) is found
    assert ("duplicate_order" in codes(context(settings=limits, ledger=ledger))) is (ahead_s < 60)
    hour = LISTED | {"envelope": {"max_entries_per_hour": 1}}
    assert ("too_many_entries" in codes(context(settings=hour, ledger=ledger))) is found


def test_order_is_found_again_among_those_of_a_clock_that_was_set_back_and_on():
    ledger = ledger_of(passed(at=NOW - 10 * NS), passed(at=NOW - 400 * NS, quantity=7))
    assert "duplicate_order" in codes(context(ledger=ledger))


def test_exit_counts_against_one_of_a_clock_that_was_ahead():
    again, account = OUT | {"quantity": 60}, LONG | {"orders": None}
    assert not context(again, account, ledger=sent_exit(at=NOW + 5 * NS)).reduces
    assert context(again, account, ledger=sent_exit(at=NOW + 61 * NS)).reduces


def test_order_of_a_clock_that_was_ahead_is_settled_now():
    ahead = passed(at=NOW + 5 * NS)
    assert ledger_of(ahead).settlement({"client_order_id": ahead.id, "r": 1.0}, NOW)["closed_at"] == ahead.at


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ({"quantity": 100.09}, True),
        ({"quantity": 100.2}, False),
        ({"kind": "limit", "price": 100.05}, True),
        ({"kind": "limit", "price": 99.8}, False),
        ({"quantity": None, "notional": 10_004.0}, True),
        ({"stop": 97.9}, True),
        ({"stop": 97.9, "strategy": "other"}, False),
        ({"symbol": "AAPL"}, False),
        ({"side": "sell", "stop": 102.0, "target": 96.0}, False),
    ],
)
def test_order_that_differs_by_less_than_a_thousandth_is_the_same(change, is_same):
    ledger = ledger_of(replace(passed(at=NOW - NS), price=100.0))
    assert ("duplicate_order" in codes(context(change, ledger=ledger))) is is_same


@pytest.mark.parametrize("symbol", ["IBM ", " IBM", "I\x00BM"])
def test_symbol_with_blanks_around_it_is_refused_by_name(symbol):
    (found,) = check_limits(context({"symbol": symbol}, settings={}))[0]
    assert found.code == "symbol_not_allowed"
    assert ascii(symbol) in found.message


def test_losses_in_a_row_of_settled_orders_stop_entries():
    lost: dict[str, Any] = {str(n): {"r": -1.0, "pnl": None, "closed_at": NOW} for n in range(12)}
    assert "losses_in_a_row" in codes(context(ledger=Ledger(settled=lost)))


def test_losses_in_a_row_stop_entries_for_a_day_after_the_last_and_say_how_long():
    closed = NOW - 20 * 3_600 * NS
    lost: dict[str, Any] = {str(n): {"r": -1.0, "pnl": None, "closed_at": closed - n} for n in range(12)}
    (found,) = check_limits(context(ledger=Ledger(settled=lost)))[0]
    assert "wait 4.0 h, or let a person approve it" in found.message
    assert codes(context(ledger=Ledger(settled=lost), now=NOW + 4 * 3_600 * NS)) == set()


@pytest.mark.parametrize(
    "order",
    [
        {"quantity": 5_000},
        {"quantity": None, "notional": 90_000},
        {"quantity": 200, "stop": 92.0},
        {"stop": 5.0},
        {"stop": 99.99},
        {"stop": None},
        {"kind": "limit", "price": 10_000.0, "target": None},
        {"kind": "limit", "price": 106.0},
    ],
)
def test_values_of_the_remedies_pass(order):
    changed = dict(order)
    for _ in range(4):
        found = check_limits(context(changed))[0]
        least: dict[str, float] = {}
        for remedy in (seen.remedy for seen in found):
            if remedy is not None:
                least[remedy.field] = min(float(remedy.value), least.get(remedy.field, float("inf")))
        changed |= least
        if not found:
            break
    assert codes(context(changed)) == set()


def test_missing_inputs_are_named_and_are_checks_of_the_list():
    order = {"price": None}
    _, missing = check_limits(context(order, account=None, facts=None, settings={}))
    assert {"daily_loss", "exposure", "risk", "notional", "levels", "price_collar", "staleness"} <= set(
        missing
    )
    assert set(missing) <= set(CHECKS)


# Exits


@pytest.mark.parametrize("quantity", [1, 50, 100])
@pytest.mark.parametrize(("side", "account"), [("sell", LONG), ("buy", SHORT)])
def test_order_up_to_the_position_reduces(quantity, side, account):
    exit_order = {"side": side, "quantity": quantity, "stop": None, "target": None}
    assert context(exit_order, account).reduces
    assert context(exit_order, account, facts=None).reduces


@pytest.mark.parametrize(
    "account",
    [
        {},
        {"positions": {"AAPL": {"quantity": 100, "price": 100.0}}},
        SHORT,
        {"positions": {"IBM": {"quantity": 99, "price": 100.0}}},
    ],
)
def test_order_beyond_the_position_does_not_reduce(account):
    assert not context({"side": "sell", "stop": None, "target": None}, account).reduces


def test_two_half_exits_cannot_flip_the_position():
    half = {"symbol": "IBM", "side": "sell", "quantity": 60}
    account = LONG | {"orders": [half]}
    second = context(half | {"stop": None, "target": None}, account)
    assert not second.reduces
    (found,) = [found for found in check_limits(second)[0] if found.code == "exit_larger_than_position"]
    assert found.remedy is not None
    assert found.remedy.value == 40.0
    assert context(half | {"quantity": 40, "stop": None, "target": None}, account).reduces


OUT = {"symbol": "IBM", "side": "sell", "quantity": 100, "stop": None, "target": None}
STOP, LIMIT = OUT | {"kind": "stop", "price": 95.0}, OUT | {"kind": "limit", "price": 104.0}


def sent_exit(at=NOW - 5 * NS, quantity=60.0, **order) -> Ledger:
    """After an exit that was sent then, of a position of 100."""
    checked = passed(**OUT | {"at": at, "position": 100.0, "quantity": quantity} | order)
    ledger = ledger_of(replace(checked, verdict=checked.verdict.model_copy(update={"reduces": True})))
    ledger.spent[checked.id] = at
    return ledger


@pytest.mark.parametrize(
    ("order", "resting"),
    [
        (STOP, [LIMIT]),
        (LIMIT, [STOP]),
        (STOP | {"price": 96.0}, [STOP]),  # tightened
        (OUT, [STOP, LIMIT]),
    ],
)
def test_exit_is_trapped_by_no_order_that_rests_beside_it(order, resting):
    seen = context(order, LONG | {"orders": resting})
    assert seen.reduces
    assert f"{resting[0]['kind']}" in seen.exit_note
    assert "cancel what must not fill too" in seen.exit_note
    assert "rests" not in context(order, LONG).exit_note


def test_limits_that_close_count_against_limits_that_rest():
    assert not context(LIMIT | {"price": 105.0}, LONG | {"orders": [LIMIT]}).reduces
    assert context(LIMIT | {"quantity": 40}, LONG | {"orders": [LIMIT | {"quantity": 60}]}).reduces


@pytest.mark.parametrize("orders", [None, ()])
def test_market_exit_counts_against_one_that_was_just_sent(orders):
    account, again = LONG | {"orders": orders}, OUT | {"quantity": 60}
    assert not context(again, account, ledger=sent_exit()).reduces
    assert context(again | {"quantity": 40}, account, ledger=sent_exit()).reduces
    assert context(again, account, ledger=sent_exit(), now=NOW + 56 * NS).reduces  # it never arrived
    unsent = sent_exit()
    unsent.spent.clear()
    assert not context(again, account, ledger=unsent).reduces
    late = sent_exit(at=NOW - 90 * NS)
    late.spent = dict.fromkeys(late.spent, NOW - 50 * NS)
    assert not context(again, account, ledger=late).reduces
    assert context(STOP, account, ledger=sent_exit()).reduces
    off = LISTED | {"limits": {"duplicate_window_s": 0.0}}
    assert context(again, account, off, ledger=sent_exit()).reduces


THROUGH = (STOP | {"price": 101.0}, LIMIT | {"price": 99.0})


@pytest.mark.parametrize("order", [OUT, *THROUGH])
@pytest.mark.parametrize("sent", [OUT, *THROUGH])
def test_exits_that_the_market_is_through_count_against_each_other(order, sent):
    ledger = sent_exit(quantity=100, **{name: sent[name] for name in ("kind", "price") if name in sent})
    for orders in (None, ()):
        assert not context(order, LONG | {"orders": orders}, ledger=ledger).reduces
        assert context(order, LONG | {"orders": orders}, ledger=ledger, now=NOW + 56 * NS).reduces
    assert not context(order, LONG | {"orders": [sent]}).reduces


def test_exit_that_went_through_the_market_counts_by_the_price_of_its_check():
    sent = sent_exit(quantity=100, kind="limit", price=104.0)
    (exit_order,) = sent.orders.values()
    account = LONG | {"orders": ()}
    assert context(OUT, account, ledger=ledger_of(replace(exit_order, facts={"close": 103.0}))).reduces
    assert not context(OUT, account, ledger=ledger_of(replace(exit_order, facts={"close": 105.0}))).reduces


def test_limit_of_an_exit_without_bars_may_fill_at_once_and_a_stop_rests():
    account = LONG | {"orders": ()}
    assert not context(LIMIT, account, facts=None, ledger=sent_exit(quantity=100)).reduces
    assert context(STOP, account, facts=None, ledger=sent_exit(quantity=100)).reduces
    assert context(OUT, LONG | {"orders": [LIMIT, STOP]}, facts=None).reduces


def test_resting_limit_in_money_counts_by_its_price():
    rests = LIMIT | {"quantity": None, "notional": 6_240.0}  # 60 units
    account = LONG | {"orders": [rests]}
    assert context(LIMIT | {"quantity": 40, "price": 105.0}, account).reduces
    assert not context(LIMIT | {"quantity": 41, "price": 105.0}, account).reduces


def spent(ledger: Ledger, checked: CheckedOrder) -> None:
    ledger.take(checked)
    ledger.fold(row_of("guard_spent", {"verdict_id": checked.id, "problem": None}))


def row_of(kind: str, payload: dict[str, Any]) -> Any:
    return SimpleNamespace(kind=kind, payload=json.dumps(payload), ts_event=NOW, seq=0, hash="")


@pytest.mark.parametrize("settles_first", [True, False])
def test_units_of_an_entry_that_was_closed_and_settled_are_taken_once(settles_first):
    ledger, bought = Ledger(), [passed(at=NOW - n * NS, quantity=50) for n in (9, 8)]
    for entry in bought:
        spent(ledger, entry)
    closed = passed(at=NOW - 7 * NS, side="sell", quantity=50, stop=None, target=None, position=100.0)
    closed = replace(closed, verdict=closed.verdict.model_copy(update={"reduces": True}))
    settled = row_of("guard_settled", {"verdict_id": bought[0].id, "r": 1.0, "pnl": None, "closed_at": NOW})
    if settles_first:  # by its stop at the broker
        ledger.fold(settled)
        assert ledger.holdings == {"IBM": 50.0}
    spent(ledger, closed)
    if not settles_first:
        ledger.fold(settled)
    assert ledger.holdings == {"IBM": 0.0 if settles_first else 50.0}
    last = row_of("guard_settled", {"verdict_id": bought[1].id, "r": 1.0, "pnl": None, "closed_at": NOW})
    ledger.fold(last)
    assert ledger.holdings == {"IBM": 0.0}


def test_limit_entry_that_was_settled_takes_no_units_of_others():
    ledger, held = Ledger(), passed(at=NOW - 9 * NS, quantity=50)
    waits = passed(at=NOW - 8 * NS, quantity=50, kind="limit", price=99.0)
    for entry in (held, waits):
        spent(ledger, entry)
    ledger.fold(row_of("guard_settled", {"verdict_id": waits.id, "r": 1.0, "pnl": None, "closed_at": NOW}))
    assert ledger.holdings == {"IBM": 50.0}


def test_cash_that_is_required_is_asked_for_and_pays():
    on = LISTED | {"limits": {"required": ["cash"]}}
    assert "cash" in check_limits(context(settings=on))[1]
    assert "cash_too_low" in codes(context(account={"cash": 9_000.0}, settings=on))
    assert "cash" not in check_limits(context())[1]


@pytest.mark.parametrize(
    ("symbol", "change", "is_known"),
    [
        ("AAPL", {}, False),
        ("AAPL", {"price": 90.0}, True),
        ("AAPL", {"quantity": None, "notional": 9.0}, True),
        ("IBM", {}, True),
        ("MSFT", {}, True),  # it is held, so its price is known
    ],
)
def test_exposure_is_not_known_where_an_open_order_has_no_price(symbol, change, is_known):
    resting = {"symbol": symbol, "side": "buy", "quantity": 10} | change
    held = {"MSFT": {"quantity": 1, "price": 50.0}}
    _, missing = check_limits(context(account={"orders": [resting], "positions": held}))
    assert ("exposure" not in missing) is is_known


def test_exit_without_an_account_is_one_where_it_says_so_or_the_own_orders_opened_it():
    out = OUT | {"quantity": 60}
    assert not context(out, None).reduces
    marked = context(out | {"reduce_only": True}, None)
    assert marked.reduces
    assert "says so itself; no account tells what is held" in marked.exit_note
    assert not context(out | {"reduce_only": True}).reduces, "an account that is there holds none"
    opened = Ledger(holdings={"IBM": 60.0})
    assert context(out, None, ledger=opened).reduces
    assert not context(out | {"quantity": 61}, None, ledger=opened).reduces
    assert not context({"quantity": 60, "stop": None}, None, ledger=opened).reduces
    assert not context(out, ledger=opened).reduces, "an account that is there holds none"


@pytest.mark.parametrize(("held", "left"), [(100, 40), (70, 40), (40, 40), (30, 30)])
def test_part_of_a_sent_exit_that_was_filled_is_counted_once(held, left):
    account = {"positions": {"IBM": {"quantity": held, "price": 100.0}}}
    assert context(OUT | {"quantity": left}, account, ledger=sent_exit()).reduces
    assert not context(OUT | {"quantity": left + 1}, account, ledger=sent_exit()).reduces


@pytest.mark.parametrize(
    ("order", "facts", "reduces"),
    [
        ({}, {"close": 100.0}, True),
        ({}, {"close": 50.0}, False),  # 200 units
        ({"price": 1_000.0}, None, False),  # what the agent expects is no price
        (LIMIT | {"price": 200.0, "quantity": None}, None, False),
        (LIMIT | {"price": 50.0, "quantity": None}, {}, False),
        ({}, {"missed": 9}, False),
        ({"kind": "stop", "price": 95.0, "notional": 9_500.0}, {}, True),
    ],
)
def test_exit_in_money_is_one_where_believed_bars_say_its_units(order, facts, reduces):
    seen = context(OUT | {"quantity": None, "notional": 10_000.0} | order, LONG, facts=facts)
    assert seen.reduces is reduces
    assert reduces or "exit_larger_than_position" in codes(seen)


@pytest.mark.parametrize("equity", [0.0, -5_000.0])
def test_account_without_equity_opens_nothing_and_still_closes(equity):
    assert "account_gone" in codes(context(account={"equity": equity}))
    worthless = {"equity": equity, "positions": {"IBM": {"quantity": 100, "price": 0.0}}}
    assert context(OUT, worthless).reduces


def test_text_that_is_too_long_is_cut_and_says_so():
    order = Order.model_validate(OUT | {"reasons": "x" * 4_001})
    assert len(order.reasons) == 4_000
    assert order.reasons.endswith("x [cut at 4000 characters]")


def applied(order: dict[str, object], remedy: Remedy) -> dict[str, object]:
    """The order with the value of a remedy; a quantity stands in place of a notional."""
    size = {"quantity": None, "notional": None} if remedy.field in ("quantity", "notional") else {}
    return order | size | {remedy.field: remedy.value}


REMEDIED = set[str]()


@settings(deadline=None, max_examples=400)
@given(
    side=st.sampled_from(["buy", "sell"]),
    kind=st.sampled_from(["market", "limit", "stop"]),
    size=st.sampled_from([{"quantity": 30.0}, {"quantity": 3e4}, {"quantity": None, "notional": 9e6}]),
    price=st.none() | st.sampled_from([1.0, 89.9, 97.0, 99.0, 99.99, 100.0, 101.0, 104.0, 110.1, 1e4]),
    stop=st.none() | st.sampled_from([1.0, 75.0, 88.0, 90.0, 99.75, 99.99, 100.0, 100.5, 110.0, 300.0]),
    target=st.none() | st.sampled_from([1.0, 96.0, 99.9, 100.0, 104.0]),
    atr=st.none() | st.sampled_from([0.01, 1.0, 20.0]),
    held=st.sampled_from([-500.0, 0.0, 500.0]),
)
def test_value_of_every_remedy_passes_its_check(side, kind, size, price, stop, target, atr, held):
    order = BUY | size | {"side": side, "kind": kind, "stop": stop, "target": target}
    order |= {"price": price if kind == "market" or price is not None else 100.0}
    account = {"cash": 10_000.0, "positions": {"IBM": {"quantity": held, "price": 100.0}} if held else {}}
    limits = {"max_notional": 20_000.0, "needs_cash": True, "point_value": {"IBM": 3.0}, "averaging_down": 9}
    how = LISTED | {"limits": limits}
    for found in check_limits(context(order, account, how, {"atr": atr}))[0]:
        if found.remedy is not None:
            REMEDIED.add(found.code)
            mended = context(applied(order, found.remedy), account, how, {"atr": atr})
            assert mended.reduces or found.code not in codes(mended)


def test_remedies_of_every_code_that_has_one_were_applied():
    assert {
        "notional_over_limit", "share_of_equity_over_limit", "gross_exposure_over_limit", "risk_over_cap",
        "cash_too_low", "exit_larger_than_position", "price_outside_collar", "limit_through_market",
        "entry_on_wrong_side", "missing_stop", "stop_on_wrong_side", "target_on_wrong_side", "stop_too_far",
        "stop_too_near",
    } <= REMEDIED  # fmt: skip


SIZES = st.floats(0.01, 1_000.0)
PRICES = st.floats(1.0, 500.0)


@settings(deadline=None, max_examples=200)
@given(
    position=st.floats(-500.0, 500.0),
    side=st.sampled_from(["buy", "sell"]),
    kind=st.sampled_from(["market", "limit", "stop"]),
    quantity=SIZES | st.none(),
    price=PRICES,
    working=st.lists(
        st.tuples(st.sampled_from(["buy", "sell"]), st.sampled_from(["market", "limit"]), SIZES), max_size=3
    ),
)
def test_order_that_reduces_and_open_ones_of_its_kind_together_turn_no_position_round(
    position, side, kind, quantity, price, working
):
    order = {"side": side, "kind": kind, "price": price, "stop": None, "target": None, "quantity": quantity}
    order |= {} if quantity is not None else {"notional": 100.0 * price}
    orders = [
        {"symbol": "IBM", "side": way, "kind": what, "price": 100.0, "quantity": size}
        for way, what, size in working
    ]
    held = {} if position == 0.0 else {"IBM": {"quantity": position, "price": 100.0}}
    seen = context(order, {"positions": held, "orders": orders})
    found, missing = check_limits(seen)
    assert set(missing) <= set(CHECKS)
    assert all(finding.remedy is None or float(finding.remedy.value) > 0 for finding in found)
    if seen.reduces:
        sign = 1 if side == "buy" else -1
        closing = sum(size for way, what, size in working if (way, what) == (side, kind)) + seen.quantity
        assert position * sign < 0
        assert closing <= abs(position) * (1.0 + 1e-6)
