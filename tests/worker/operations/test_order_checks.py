"""`POST /check` on the endpoint of a guard: an order in, its verdict out, by the rules of the endpoint."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import closing
from typing import Any

import pytest
from typer.testing import CliRunner

from schemas.errors import ConfigError, StoreError
from schemas.guard import MOST_BODY, GuardSettings
from services.guard import plans
from services.guard.desk import GuardDesk
from tests.doors.brokers import LIMITS, RIGHT, TOO_LARGE, rows
from tests.worker.operations.asking import endpoint, get, parsed, sent
from tools.docs_pages import ROOT
from worker.cli.app import app
from worker.operations import order_checks
from worker.operations.order_checks import OrderChecks

TOKEN = "0123456789abcdef" * 4
JSON = {"Content_Type": "application/json"}


def post(body, path="/check", **fields):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = get(path, method="POST", **{**JSON, "Content_Length": len(text), **fields})
    return head + text


@pytest.fixture
def store(tmp_path):
    return tmp_path / "guard.sqlite"


def replies(store, *requests, mode="enforce", token=None):
    """What the endpoint of a guard answers to each request."""

    async def scenario(opened):
        return [parsed(await sent(opened.port, request)) for request in requests]

    return during(store, scenario, mode=mode, token=token)


def during(store, scenario, mode="enforce", token=None):
    """What a scenario gives beside the endpoint of a guard."""

    async def run():
        settings = GuardSettings.model_validate(LIMITS)
        address = f"sqlite:///{store}"
        desk = await GuardDesk.open(
            address, settings, mode=mode, name="guard", clock=time.time_ns, environment={}
        )
        try:
            checks = OrderChecks(desk)
            async with endpoint(checks, token, check=checks) as opened:
                return await scenario(opened)
        finally:
            await desk.close()

    return asyncio.run(run())


def test_order_gets_its_verdict_which_is_spent_where_that_is_asked_for(store):
    account = {"equity": 100_000.0, "positions": {"AAPL": {"quantity": -10.0, "price": 100.0}}}
    passed, refused, exits = (
        json.loads(reply.body)
        for reply in replies(
            store,
            post({"order": RIGHT, "why": "it rose", "spend": True}),
            post({"order": TOO_LARGE, "spend": True}),
            post({"order": {"symbol": "AAPL", "side": "buy", "quantity": 10}, "account": account}),
        )
    )
    assert (passed["send"], passed["status"]) == (True, "pass")
    assert (refused["send"], refused["status"]) == (False, "revise")
    assert "quantity at most 100.0" in refused["reply"]
    assert (exits["send"], exits["reduces"]) == (True, True)
    assert [row["verdict_id"] for row in rows(store, "guard_spent")] == [passed["id"]]
    assert rows(store, "guard_verdict")[0]["why"] == "it rose"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"order": {**RIGHT, "side": "hold"}}, "check.order.side = 'hold'"),
        ({"order": {**RIGHT, "quantity": True}}, "check.order.quantity: True is no number: give one"),
        ({"why": "it rose"}, "check.order: missing"),
        ([], "check.order: missing"),
        (b"{", "the body is no JSON"),
        (b"[" * 60_000, "the body is no JSON"),
        ({"order": {**RIGHT, "quantity": 1e308, "price": 1e308}}, "no number holds what it is worth"),
        ({"order": {**RIGHT, "symbol": "\ud83d"}}, "check.order.symbol = '\\ud83d'"),
        ({"order": {**RIGHT, "symbol": "AA\u202ePL", "side": "\u202e"}}, r"check.order.side = '\u202e'"),
    ],
)  # fmt: skip
def test_body_that_is_no_order_is_refused_in_one_line(store, body, shown):
    [reply] = replies(store, post(body))
    assert reply.status == 400
    assert shown in json.loads(reply.body)["error"]
    assert rows(store, "guard_verdict") == []


def test_account_that_cannot_be_read_is_refused_once_that_is_recorded_but_for_an_exit(store):
    account = {"equity": None, "positions": {"AAPL": {"quantity": -10.0, "price": 100.0}}}
    cover = {"symbol": "AAPL", "side": "buy", "quantity": 10}
    entry, exits = replies(
        store, *(post({"order": order, "account": account}) for order in ({**RIGHT, "symbol": "IBM"}, cover))
    )
    assert entry.status == 400
    assert "account.equity = None" in json.loads(entry.body)["error"]
    assert json.loads(exits.body)["send"] is True
    assert len(rows(store, "guard_verdict")) == 2


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ({"why": "x" * 5_000}, "x [cut at 4000 characters]"),
        ({"why": 7}, "7"),
        ({"why": "\ud83d"}, r"\ud83d"),
        ({"acount": {}}, ""),
    ],
)
def test_words_beside_an_exit_keep_it_from_nothing(store, words, kept):
    account = {"equity": 1e5, "positions": {"AAPL": {"quantity": -10.0, "price": 100.0}}}
    cover = {"symbol": "AAPL", "side": "BUY", "quantity": 10, "reasons": 7, "strategy": "mean reversion"}
    [reply] = replies(store, post({"order": cover, "account": account, "spend": True, **words}))
    verdict = json.loads(reply.body)
    assert (reply.status, verdict["send"], verdict["reduces"]) == (200, True, True)
    assert rows(store, "guard_verdict")[0]["why"].endswith(kept)
    assert len(rows(store, "guard_spent")) == 1
    assert ("check.acount: no such field" in verdict["findings"][0]["message"]) is ("acount" in words)


def test_unknown_field_beside_an_entry_is_refused_once_that_is_recorded(store):
    [reply] = replies(store, post({"order": RIGHT, "acount": {}, "spend": True}))
    assert reply.status == 400
    assert "check.acount: no such field. Did you mean 'account'?" in json.loads(reply.body)["error"]
    assert rows(store, "guard_spent") == []


def test_exit_that_says_so_itself_is_one_where_an_account_or_the_own_orders_show_it(store):
    bought = {"symbol": "AAPL", "side": "buy", "quantity": 10, "price": 100, "stop": 95}
    out = {"symbol": "AAPL", "side": "sell", "quantity": 10, "reduce_only": True}
    before, _, after = replies(
        store, post({"order": out}), post({"order": bought, "spend": True}), post({"order": out})
    )
    assert json.loads(before.body)["reduces"] is False
    assert json.loads(after.body)["reduces"] is True


def bars(count=40, **last):
    """Hourly rows up to the last full hour."""
    hour = int(time.time()) // 3_600 - count
    rows = [{"t": 3_600 * (hour + n), "o": 100.0, "h": 101.0, "l": 99.0, "c": 100.0} for n in range(count)]
    return [*rows[:-1], {**rows[-1], **last}]


def test_bars_of_an_order_are_checked_and_without_them_their_checks_are_named(store):
    far = {**RIGHT, "stop": 70.0}
    plain, right, stopped, exits = (
        json.loads(reply.body)
        for reply in replies(
            store,
            post({"order": RIGHT}),
            post({"order": {**RIGHT, "symbol": "IBM", "target": 115.0}, "bars": bars()}),
            post({"order": {**far, "symbol": "IBM"}, "bars": bars()}),
            post(
                {
                    "order": {"symbol": "MSFT", "side": "sell", "quantity": 1},
                    "account": {"equity": 1e5, "positions": {"MSFT": {"quantity": 1, "price": 9}}},
                    "bars": [{}],
                }
            ),
        )
    )
    named = {"price_collar", "stop_distance", "staleness"}
    assert named <= set(plain["not_checked"])
    assert right["status"] == "pass"
    assert not named & set(right["not_checked"])
    assert "stop_too_far" in stopped["reply"]
    assert exits["send"] is True, "an exit does not wait for bars that cannot be read"
    assert "check.bars.0" in exits["findings"][0]["message"]


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (bars(c=None), "check.bars.39.c = None"),
        (bars(x=1.0), "check.bars.39.x: no such field"),
        (bars(501), "check.bars"),
        (bars()[:1], "check.bars"),
        (bars(h=50.0), "high"),
        (bars(t="2026-03-02T14:00"), "has no zone: write it as 2026-03-02T14:00Z"),
    ],
)
def test_bars_that_cannot_be_read_are_refused_in_one_line(store, rows, shown):
    [reply] = replies(store, post({"order": RIGHT, "bars": rows}))
    assert reply.status == 400
    assert shown in json.loads(reply.body)["error"]


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (post({"order": RIGHT}, host="evil.example"), 421),
        (post({"order": RIGHT}, Origin="http://localhost"), 403),
        (post({"order": RIGHT}), 401),
        (post({"order": RIGHT}, Authorization="Bearer wrong"), 401),
        (post({"order": RIGHT}, Authorization=f"Bearer {TOKEN}", Content_Type="text/plain"), 415),
        (post(b"", Authorization=f"Bearer {TOKEN}", Content_Length=MOST_BODY + 1), 413),
        (get("/check", method="POST", Authorization=f"Bearer {TOKEN}", **JSON), 411),
        (post({"order": RIGHT}, "/status", Authorization=f"Bearer {TOKEN}"), 405),
        (get("/check", Authorization=f"Bearer {TOKEN}"), 404),
        (post({"order": RIGHT}, Authorization=f"Bearer {TOKEN}"), 200),
    ],
)
def test_order_of_a_stranger_is_not_checked(store, request_bytes, status):
    [reply] = replies(store, request_bytes, token=TOKEN)
    assert reply.status == status
    assert len(rows(store, "guard_verdict")) == (status == 200)


def test_refusal_of_the_endpoint_is_an_error_as_json(store):
    [reply] = replies(store, post({"order": RIGHT}, Content_Type="text/plain"))
    assert (reply.status, json.loads(reply.body)) == (
        415, {"error": "an order is checked as application/json"}
    )  # fmt: skip


def test_bars_as_long_as_they_may_be_are_taken_and_an_exit_waits_for_none_that_are_longer(store):
    long = {"t": "2026-03-02T14:00:00.000000+00:00", "v": 12345678.901234567}
    row = long | dict.fromkeys("ohlc", 123456.78901234567)
    account = {"equity": 1e5, "positions": {"MSFT": {"quantity": 1, "price": 9}}}
    out = {"symbol": "MSFT", "side": "sell", "quantity": 1}
    entry, exits = replies(
        store,
        post({"order": {**RIGHT, "symbol": "IBM"}, "bars": bars(500, **{"v": 1.2345678901234567})}),
        post({"order": out, "account": account, "bars": [row] * 5_000}),
    )
    assert entry.status == 200
    assert json.loads(exits.body)["send"] is True


def test_check_that_takes_too_long_is_an_answer_and_leaves_nothing_behind(store, monkeypatch):
    loading, slow = threading.Event(), order_checks._read_bars

    def read_late(*given):
        loading.wait(20)
        return slow(*given)

    monkeypatch.setattr(order_checks, "CHECK_S", 0.2)
    monkeypatch.setattr(order_checks, "_read_bars", read_late)
    request = {"order": RIGHT, "spend": True}

    async def scenario(opened):
        account = {"equity": 1e5, "positions": {"MSFT": {"quantity": 1, "price": 9}}}
        out = {"order": {"symbol": "MSFT", "side": "sell", "quantity": 1}, "account": account}
        waits = asyncio.ensure_future(sent(opened.port, post({**request, "bars": bars()})))
        exits = parsed(await sent(opened.port, post(out)))
        assert not waits.done(), "an exit waits for no bars of another order"
        late = parsed(await waits)
        loading.set()
        return exits, late, parsed(await sent(opened.port, post(request)))

    exits, late, again = during(store, scenario)
    assert json.loads(exits.body)["send"] is True
    assert (late.status, json.loads(late.body)) == (
        503, {"error": "the guard cannot record it, so nothing may be sent"}
    )  # fmt: skip
    assert json.loads(again.body)["send"] is True, "it was not spent, nor is it a duplicate"
    assert len(rows(store, "guard_spent")) == 1


def test_check_of_a_client_that_left_spends_nothing(store, monkeypatch):
    reached, go_on, slow = threading.Event(), threading.Event(), order_checks._read_bars

    def read_late(*given):
        reached.set()
        go_on.wait(20)
        return slow(*given)

    monkeypatch.setattr(order_checks, "_read_bars", read_late)

    async def scenario(opened):
        _, writer = await asyncio.open_connection("127.0.0.1", opened.port)
        writer.write(post({"order": RIGHT, "spend": True, "bars": bars()}))
        await writer.drain()
        await asyncio.to_thread(reached.wait, 20)
        writer.close()
        await writer.wait_closed()
        while opened._places:  # noqa: ASYNC110 - the end of the connection is seen there alone
            await asyncio.sleep(0)
        go_on.set()
        checks = {task for task in asyncio.all_tasks() if "answer" in str(task.get_coro())}
        if checks:
            await asyncio.wait(checks)
        return parsed(await sent(opened.port, post({"order": RIGHT})))

    assert json.loads(during(store, scenario).body)["status"] == "pass"
    assert rows(store, "guard_spent") == []


@pytest.mark.parametrize(("mode", "status", "send"), [("enforce", 503, None), ("shadow", 200, True)])
def test_store_that_is_locked_is_an_answer_that_stops_nobody_in_shadow(
    store, monkeypatch, mode, status, send
):
    monkeypatch.setattr(order_checks, "CHECK_S", 0.3)

    async def scenario(opened):
        with closing(sqlite3.connect(store, isolation_level=None)) as other:
            other.execute("begin immediate")
            return parsed(await sent(opened.port, post({"order": RIGHT, "spend": True})))

    reply = during(store, scenario, mode=mode)
    body = json.loads(reply.body)
    assert (reply.status, body.get("send")) == (status, send)
    assert "the guard cannot record it" in body.get("error", body.get("reply"))
    assert rows(store, "guard_verdict", "guard_spent") == []


def test_status_tells_what_another_process_switched(store):
    async def scenario(opened):
        other = await GuardDesk.open(
            f"sqlite:///{store}", GuardSettings.model_validate(LIMITS), mode="enforce", name="guard",
            clock=time.time_ns, environment={},
        )  # fmt: skip
        await other.kill(on=True, by="ann")
        await other.close()
        paths = ("/status", "/metrics")
        return [parsed(await sent(opened.port, get(path))).body for path in paths]

    status, metrics = during(store, scenario)
    assert json.loads(status)["kill_switch"] is True
    assert "thinktwice_kill_switch 1" in metrics


def test_endpoint_without_a_guard_takes_no_order(store):
    async def scenario():
        async with endpoint() as opened:
            return parsed(await sent(opened.port, post({"order": RIGHT})))

    assert asyncio.run(scenario()).status == 405


def test_order_whose_verdict_cannot_be_recorded_gets_none(store, monkeypatch):
    async def fail(*given, **named):
        raise StoreError("the store is away")

    monkeypatch.setattr(GuardDesk, "check", fail)
    [reply] = replies(store, post({"order": RIGHT}))
    assert (reply.status, json.loads(reply.body)) == (
        503, {"error": "the guard cannot record it, so nothing may be sent"}
    )  # fmt: skip


def test_guard_is_ready_and_tells_its_verdicts(store):
    _, ready, status = replies(store, post({"order": TOO_LARGE}), get("/ready"), get("/status"))
    assert (ready.status, ready.body) == (200, "ready\n")
    document = json.loads(status.body)
    assert (document["role"], document["evaluations"]) == ("guard", {"revise": 1})


def test_command_serves_until_it_is_stopped(tmp_path):
    words = [
        "guard",
        "serve",
        "--db",
        f"sqlite:///{tmp_path}/guard.sqlite",
        "--mode",
        "enforce",
        "--port",
        "0",
    ]
    pipes: dict[str, Any] = {"stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-m", "thinktwice", *words], env=environment, **pipes) as program:
        try:
            shown: Any = program.stderr
            address = next(word for line in shown for word in line.split() if word.endswith("/check"))
            body = json.dumps({"order": {**RIGHT, "stop": None}}).encode()
            request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=20) as reply:
                assert json.load(reply)["send"] is False
        finally:
            program.terminate()
        assert program.wait(20) == 143


def test_what_reads_bars_is_compiled_before_anybody_is_heard(tmp_path, monkeypatch):
    async def tell(desk, make_ready):
        raise ConfigError(f"nobody is heard yet, the store holds {desk.run_id}")

    monkeypatch.setattr(order_checks, "warm_up", tell)
    words = ["guard", "serve", "--db", f"sqlite:///{tmp_path}/guard.sqlite", "--port", "0"]
    done = CliRunner().invoke(app, words)
    assert "nobody is heard yet" in done.stderr


def test_bars_that_are_compiled_for_pass_every_step_of_a_check(store, monkeypatch):
    warmed = list[Any]()
    made = plans.OrderReflection.reflect

    async def note(self, seen, bars, why):
        warmed.append((seen.facts.close, bars.shape[0]))
        return await made(self, seen, bars, why)

    monkeypatch.setattr(plans.OrderReflection, "reflect", note)

    async def scenario(opened):
        await order_checks.warm_up(opened._check._desk, lambda: warmed.append("ready"))

    during(store, scenario)
    assert warmed.pop(0) == "ready"
    assert warmed == [(9.0, 40)]
    assert rows(store, "guard_verdict") == []
