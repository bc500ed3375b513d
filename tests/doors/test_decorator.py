"""`@guard.orders`: a function that sends orders is called with those alone that the guard lets pass."""

import asyncio
from typing import Any

import pytest

import thinktwice as tt
from tests.doors.brokers import RIGHT, TOO_LARGE, fail, rows


@pytest.fixture(params=["plain", "async"])
def send(request, guard, broker):
    """A guarded function of the fields of an order, called the same way plain or async."""

    @guard.orders
    def submit(symbol, side, quantity, kind="market", price=None, stop=None, client_order_id=None):
        return broker.submit(symbol=symbol, quantity=quantity, client_order_id=client_order_id)

    @guard.orders
    async def submit_async(
        symbol, side, quantity, kind="market", price=None, stop=None, client_order_id=None
    ):
        return broker.submit(symbol=symbol, quantity=quantity, client_order_id=client_order_id)

    if request.param == "plain":
        return submit
    return lambda **order: asyncio.run(submit_async(**order))


def test_order_that_passes_is_sent_under_the_id_of_its_spent_verdict(send, store, broker):
    assert send(**RIGHT) == "accepted 1"
    [checked], [spent] = rows(store, "guard_verdict"), rows(store, "guard_spent")
    verdict = checked["verdict"]["id"]
    assert broker.orders == [{"symbol": "AAPL", "quantity": 10.0, "client_order_id": verdict}]
    assert spent["verdict_id"] == verdict


def test_order_over_a_limit_is_refused_with_what_would_pass(send, broker):
    with pytest.raises(tt.OrderRefused, match="quantity at most 100"):
        send(**TOO_LARGE)
    assert broker.orders == []


def test_order_that_cannot_be_read_is_refused_with_its_field(send, broker):
    with pytest.raises(tt.OrderRefused, match=r"order\.side = 'hold'"):
        send(**RIGHT | {"side": "hold"})
    assert broker.orders == []


@pytest.mark.parametrize("step", ["check", "spend"])
def test_order_is_refused_where_the_guard_has_a_fault(send, guard, broker, monkeypatch, step):
    monkeypatch.setattr(guard, step, fail)
    with pytest.raises(tt.OrderRefused, match="the guard has a fault"):
        send(**RIGHT)
    assert broker.orders == []


def test_order_is_refused_where_its_bars_cannot_be_had(guard, broker):
    send = guard.orders(bars=fail)(lambda symbol, side, quantity: broker.submit(symbol=symbol))
    with pytest.raises(tt.OrderRefused, match="the guard has a fault"):
        send("AAPL", "buy", 1.0)
    assert broker.orders == []


def test_exit_is_sent_where_its_bars_cannot_be_had(guard, broker, monkeypatch):
    held = {"equity": 1e5, "positions": {"AAPL": {"quantity": 1.0, "price": 100.0}}}
    monkeypatch.setattr(guard, "_account", lambda: held)
    guard.orders(bars=fail)(lambda symbol, side, quantity: broker.submit(symbol=symbol))("AAPL", "sell", 1.0)
    assert broker.orders == [{"symbol": "AAPL"}]


def test_refusal_is_returned_where_that_is_asked_for(guard, broker):
    send = guard.orders(on_refusal="return", order="ticket")(lambda ticket: broker.submit(**ticket))
    assert "quantity at most 100" in send(TOO_LARGE)
    assert send(RIGHT) == "accepted 1"
    assert broker.orders == [RIGHT]


def test_order_is_made_of_other_arguments_by_a_function(guard, broker, store):
    @guard.orders(to_order=lambda ticker, lots: {**RIGHT, "symbol": ticker, "quantity": 100.0 * lots})
    def buy(ticker, lots):
        return broker.submit(ticker=ticker, lots=lots)

    assert buy("IBM", lots=1) == "accepted 1"
    with pytest.raises(tt.OrderRefused):
        buy("IBM", lots=2)
    assert [row["order"]["quantity"] for row in rows(store, "guard_verdict")] == [100.0, 200.0]
    assert len(broker.orders) == 1


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("how", [{"order": "ticket"}, {"to_order": lambda ticket: ticket["leg"]}])
def test_order_that_is_changed_once_it_was_checked_is_sent_as_it_was_checked(
    guard, broker, monkeypatch, how, asynchronous
):
    ticket: dict[str, Any] = {**RIGHT, "leg": dict(RIGHT)} if "to_order" in how else dict(RIGHT)
    check = guard.check

    def check_and_change(*args, **given):
        verdict = check(*args, **given)
        ticket.get("leg", ticket)["quantity"] = 1_000.0
        return verdict

    async def submit_async(ticket):
        broker.submit(**ticket.get("leg", ticket))

    monkeypatch.setattr(guard, "check", check_and_change)
    if asynchronous:
        asyncio.run(guard.orders(submit_async, **how)(ticket))
    else:
        guard.orders(lambda ticket: broker.submit(**ticket.get("leg", ticket)), **how)(ticket)
    assert broker.orders == [RIGHT]


def test_arguments_with_names_of_their_own_are_named_once(guard, broker, store):
    @guard.orders(names={"quantity": "qty", "price": "limit", "why": "thesis"})
    def buy(symbol, qty, limit, stop, thesis, side="buy", kind="limit", **further):
        return broker.submit(symbol=symbol, qty=qty, **further)

    buy("AAPL", 5.0, 100.0, 96.0, "it rose", tif="day")
    [checked] = rows(store, "guard_verdict")
    assert (checked["order"]["quantity"], checked["order"]["price"], checked["why"]) == (
        5.0,
        100.0,
        "it rose",
    )
    assert broker.orders == [{"symbol": "AAPL", "qty": 5.0, "tif": "day"}]


def test_name_that_no_order_has_is_refused_where_the_function_is_defined(guard):
    with pytest.raises(
        tt.ConfigError, match=r"'quantty' is no field of an order\. Did you mean 'quantity'\?"
    ):
        guard.orders(names={"quantty": "qty"})(lambda symbol: None)


def test_guard_in_mode_shadow_sends_everything_and_warns_of_what_it_could_not_read(shadow, broker, store):
    send = shadow.orders(lambda symbol, side, quantity, kind, price, stop: broker.submit(symbol=symbol))
    send(**TOO_LARGE)
    with pytest.warns(UserWarning, match=r"an order went on unchecked: order\.side = 'hold'"):
        send(**RIGHT | {"side": "hold"})
    unreadable = shadow.orders(lambda ticket: broker.submit(**ticket), to_order=lambda ticket: ticket["no"])
    with pytest.warns(UserWarning, match="an order went on unchecked: 'no'"):
        unreadable(RIGHT)
    assert len(broker.orders) == 3
    assert [row["verdict"]["status"] for row in rows(store, "guard_verdict")] == ["revise"]
