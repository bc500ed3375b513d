"""Limits of single orders: each fault is stopped by its code, and right orders are not."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.guard import Account, BarFacts, GuardSettings, Order, Verdict
from services.guard.ledger import DAY_NS, NS, CheckedOrder, Ledger
from services.guard.limits import CHECKS, OrderContext, check_limits

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


def test_size_a_hundred_times_the_usual_is_stopped():
    ledger = ledger_of(*(passed(at=NOW - (9 - n) * 3_600 * NS, notional=100.0) for n in range(5)))
    assert "size_unusual" in codes(context(ledger=ledger))
    assert "size_unusual" not in codes(context({"quantity": 15}, ledger=ledger))
    assert "size_unusual" not in codes(context({"strategy": "new"}, ledger=ledger))


def test_adds_to_a_losing_position_are_counted_since_it_was_opened():
    losing = {"positions": {"IBM": {"quantity": 100, "price": 105.0}}}
    limits = LISTED | {"limits": {"averaging_down": 1}}
    opened, added = passed(at=NOW - 9 * NS, quantity=70), passed(at=NOW - 8 * NS, position=70.0, quantity=30)
    assert "averaging_down" not in codes(context(account=losing, settings=limits, ledger=ledger_of(opened)))
    assert "averaging_down" in codes(
        context(account=losing, settings=limits, ledger=ledger_of(opened, added))
    )


def test_bar_that_closed_otherwise_when_it_was_shown_before_is_stopped():
    ledger = Ledger()
    ledger.closes["IBM", "1h", FACTS.label] = 90.0
    assert "bars_changed" in codes(context(ledger=ledger))


def test_losses_in_a_row_of_settled_orders_stop_entries():
    lost = {str(n): {"r": -1.0, "pnl": None} for n in range(12)}
    assert "losses_in_a_row" in codes(context(ledger=Ledger(settled=lost)))


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


def test_exit_is_not_trapped_by_the_stop_that_protects_it():
    protecting = {"symbol": "IBM", "side": "sell", "quantity": 100, "kind": "stop", "price": 95.0}
    account = LONG | {"orders": [protecting]}
    assert context({"side": "sell", "stop": None, "target": None}, account).reduces
    assert not context(protecting | {"price": 96.0, "stop": None, "target": None}, account).reduces


def test_exits_count_against_each_other_where_open_orders_are_not_known():
    sent = passed(at=NOW - 5 * NS, position=100.0, side="sell", quantity=60, stop=None, target=None)
    sent = replace(sent, verdict=sent.verdict.model_copy(update={"reduces": True}))
    unknown, again = LONG | {"orders": None}, {"side": "sell", "quantity": 60, "stop": None, "target": None}
    assert not context(again, unknown, ledger=ledger_of(sent)).reduces
    assert context(again, unknown, ledger=ledger_of(sent), now=NOW + 60 * NS).reduces  # it was not filled
    assert context(again, LONG, ledger=ledger_of(sent)).reduces  # the account says that none is open


SIZES = st.floats(0.01, 1_000.0)
PRICES = st.floats(1.0, 500.0)


@settings(deadline=None, max_examples=200)
@given(
    position=st.floats(-500.0, 500.0),
    side=st.sampled_from(["buy", "sell"]),
    kind=st.sampled_from(["market", "limit", "stop"]),
    quantity=SIZES | st.none(),
    price=PRICES,
    working=st.lists(st.tuples(st.sampled_from(["buy", "sell"]), SIZES), max_size=3),
)
def test_order_that_reduces_and_open_orders_together_turn_no_position_round(
    position, side, kind, quantity, price, working
):
    order = {"side": side, "kind": kind, "price": price, "stop": None, "target": None, "quantity": quantity}
    order |= {} if quantity is not None else {"notional": 100.0 * price}
    orders = [{"symbol": "IBM", "side": way, "quantity": size} for way, size in working]
    held = {} if position == 0.0 else {"IBM": {"quantity": position, "price": 100.0}}
    seen = context(order, {"positions": held, "orders": orders})
    found, missing = check_limits(seen)
    assert set(missing) <= set(CHECKS)
    assert all(finding.remedy is None or float(finding.remedy.value) > 0 for finding in found)
    if seen.reduces:
        sign = 1 if side == "buy" else -1
        closing = sum(size for way, size in working if way == side) + seen.quantity
        assert position * sign < 0
        assert closing <= abs(position) * (1.0 + 1e-6)
