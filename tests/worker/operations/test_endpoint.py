"""The endpoint over real sockets: what it serves, to whom, and what it does with everything else."""

import asyncio
import json
import resource
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from starlette.exceptions import HTTPException

from schemas.errors import ConfigError
from schemas.settings.live import OperationsSettings
from tests.each_case import check_each
from tests.worker.operations.asking import (
    NOW,
    Shown,
    endpoint,
    get,
    parsed,
    read_requests,
    request,
    sent,
    status,
)
from worker.operations.endpoint import LONGEST_HEAD
from worker.operations.endpoint_access import MOST_CONNECTIONS, guard_of, is_loopback, most_connections
from worker.operations.status import SECOND

TOKEN = "c3b5a1f09e7d48260f1e8d7c6b3a5942"


def during(scenario):
    return asyncio.run(scenario)


def answered(ask):
    """What was answered, or the status of the refusal; any other exception fails the test."""
    try:
        return ask(), None
    except HTTPException as refused:
        return None, refused.status_code


def test_metrics_are_valid_openmetrics_with_every_sign():
    full = status(
        state="safe_mode",
        reason="store_away",
        bars_validated=7,
        store_ok=False,
        store_away_since=NOW - 9 * SECOND,
        buffered_rows=12,
        evaluations={"frozen": 3, "stood_down": 1},
        skips={"hold_lock": 4},
        in_flight=1,
        errors=2,
        open_positions={"BTC/USDT": -0.5},
        equity=99_000.5,
        kill_switch=True,
        plans_waiting=("0123456789abcdef", "fedcba9876543210"),
        model_spend=0.25,
        model_calls={"reply": 2, "network": 116},
        models_failing={"fake:1 (strategist)": 116},
        model_silence="the model answered 2 of 118 questions",
        slow_loop_last=NOW - 86_400 * SECOND,
        slow_loop_next=NOW,
        tick_latency_ms={"p50": 0.5, "p99": None},
        notifications={"sent": 5, "dropped": 1},
        stale_symbols=("BTC/USDT",),
        blocked={"BTC/USDT": "stale", "ETH/USDT": "conflicting bars", "SOL/USDT": "conflicting bars"},
    )

    async def scrape():
        async with endpoint(Shown(full)) as one:
            return await read_requests(one, "/metrics")

    reply = during(scrape())
    assert reply.status == 200
    assert reply.fields["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(reply.body)
        for sample in family.samples
    }
    expected = {
        ("thinktwice_run_info", "host:1:ab", "paper", "r0001", "trading"): 1,
        ("thinktwice_state", "safe_mode"): 1,
        ("thinktwice_state", "running"): 0,
        ("thinktwice_ready",): 0,
        ("thinktwice_started_timestamp_seconds",): 1_699_996_400,
        ("thinktwice_last_bar_timestamp_seconds", "BTC/USDT"): 1_699_999_940,
        ("thinktwice_bar_lag_seconds",): 5,
        ("thinktwice_bars_validated_total",): 7,
        ("thinktwice_feed_up",): 1,
        ("thinktwice_stale_symbols",): 1,
        ("thinktwice_blocked_symbols", "stale"): 1,
        ("thinktwice_blocked_symbols", "conflicting bars"): 2,
        ("thinktwice_tick_latency_seconds", "p50"): 0.0005,
        ("thinktwice_store_up",): 0,
        ("thinktwice_store_away_seconds",): 9,
        ("thinktwice_journal_buffered_rows",): 12,
        ("thinktwice_change_plans_waiting",): 2,
        ("thinktwice_policy_evaluations_total", "frozen"): 3,
        ("thinktwice_policy_evaluations_total", "stood_down"): 1,
        ("thinktwice_policy_skips_total", "hold_lock"): 4,
        ("thinktwice_policy_evaluations_in_flight",): 1,
        ("thinktwice_errors_total",): 2,
        ("thinktwice_model_spend_usd_total",): 0.25,
        ("thinktwice_model_calls_total", "network"): 116,
        ("thinktwice_models_failing",): 1,
        ("thinktwice_notifications_total", "sent"): 5,
        ("thinktwice_notifications_total", "dropped"): 1,
        ("thinktwice_position_quantity", "BTC/USDT"): -0.5,
        ("thinktwice_equity",): 99_000.5,
        ("thinktwice_kill_switch",): 1,
        ("thinktwice_slow_loop_last_slot_timestamp_seconds",): 1_699_913_600,
        ("thinktwice_slow_loop_next_slot_timestamp_seconds",): 1_700_000_000,
    }
    assert {key: found.get(key) for key in expected} == expected
    assert ("thinktwice_tick_latency_seconds", "p99") not in found
    assert "# HELP thinktwice_bars_validated Bars through the engine." in reply.body
    assert "thinktwice_process_open_fds" in {key[0] for key in found}


@pytest.mark.parametrize(
    ("changed", "quoted"),
    [
        ({}, None),
        ({"store_ok": False, "buffered_rows": 3}, "store is away, 3 rows wait for it"),
        ({"state": "safe_mode", "reason": "clock_jump"}, "safe_mode: clock_jump"),
        ({"state": "stopping"}, "stopping: no reason given"),
        ({"last_bar_at": None}, "no bar has come yet"),
        ({"last_bar_at": NOW - 181 * SECOND}, "no bar for 181 s, 3 bars of 60 s are allowed"),
        ({"last_bar_at": NOW - 180 * SECOND}, None),
        ({"stale_symbols": ("BTC/USDT",)}, "every symbol is stale"),
        ({"blocked": {"BTC/USDT": "conflicting bars"}}, "no symbol may enter: conflicting bars"),
        ({"feed_ok": False, "feed": "ccxt:kraken"}, "feed ccxt:kraken is away"),
        ({"role": "slow_loop", "last_bar_at": None, "feed_ok": None}, None),
        ({"role": "slow_loop", "store_ok": False}, "store is away, 0 rows wait for it"),
    ],
)
def test_ready_answers_200_only_while_bars_flow_and_the_store_is_there(changed, quoted):
    async def ask():
        async with endpoint(Shown(status(**changed))) as one:
            return await read_requests(one, "/ready"), await read_requests(one, "/health")

    ready, health = during(ask())
    assert (ready.status, ready.body) == ((200, "ready\n") if quoted is None else (503, f"{quoted}\n"))
    assert health.status == 200


def test_status_is_one_json_object_and_head_has_no_body():
    async def ask():
        async with endpoint(
            Shown(
                status(reason="token=c4nary-0123", equity=float("nan")),
            ),
            known=["c4nary-0123"],
        ) as one:
            return await read_requests(one, "/status?x=1"), await read_requests(one, "/status", method="HEAD")

    shown, head = during(ask())
    document = json.loads(shown.body)
    assert document["run_id"] == "r0001"
    assert document["bar_lag_s"] == 5.0
    assert document["not_ready"] == []
    assert "c4nary" not in shown.body
    assert (head.status, head.body) == (200, "")
    assert int(head.fields["Content-Length"]) == len(shown.body)


@check_each(
    ("data", "status"),
    [
        (get("/"), 404),
        (get("/metrics/../status"), 404),
        (get("/status", method="POST"), 405),
        (get("/status", method="DELETE"), 405),
        (get("/status", host="evil.example.com"), 421),
        (get("/status", host="127.0.0.1.evil.example.com"), 421),
        (get("/status", host="10.0.0.1"), 421),
        (get("/status", host=""), 400),
        (b"GET /status HTTP/1.1\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (get("/status", Origin="https://evil.example.com"), 403),
        (get("/status", Content_Length=5) + b"12345", 413),
        (get("/status", Transfer_Encoding="chunked"), 413),
        (b"GET http://localhost/status HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET  /status HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /status HTTP/2.0\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n", 400),
        (b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (get("/status", X="y" * LONGEST_HEAD), 431),
        (b"GET /status HTTP/1.1\r\nHost: localhost\r\n" + b"a: b\r\n" * 70 + b"\r\n", 431),
        (b"GET /status HTTP/1.1\r\nHost: localhost\r\n" + b"Authorization: Bearer x\r\n" * 2 + b"\r\n", 400),
        (get("/status", host="localhost:65536"), 400),
        (get("/status", Transfer_Encoding="chunked") + b"no chunk\r\n", 400),
        (get("/status", method="get"), 405),
        (get("/status", X="y" * 4 * LONGEST_HEAD)[:-4], 400),  # never ends: uvicorn knows no 431
    ],
)
def test_request_that_is_not_a_plain_reading_of_ours_is_refused(data, status):
    async def ask():
        async with endpoint() as one:
            reply = parsed(await sent(one.port, data))
            assert (await read_requests(one, "/health", host="localhost:80")).status == 200
            return reply

    reply = during(ask())
    assert reply.status == status
    assert "r0001" not in reply.body


def test_names_in_the_settings_are_hosts_of_ours():
    async def ask():
        async with endpoint(hosts=("metrics.example.org",)) as one:
            found = [
                await read_requests(one, "/health", host=h)
                for h in ("Metrics.example.org", "[::1]:9", "localhost.")
            ]
            return [reply.status for reply in found]

    assert during(ask()) == [200, 200, 200]


def test_token_is_demanded_from_everybody_once_it_is_set():
    async def ask():
        async with endpoint(token=TOKEN) as one:
            given = ("", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}", f"bearer {TOKEN}")
            replies = [await read_requests(one, "/status", Authorization=word) for word in given]
            bare = await read_requests(one, "/metrics")
            # With a token a name that somebody else gave to this address reads nothing either.
            foreign = await read_requests(
                one, "/status", host="evil.example.com", Authorization=f"Bearer {TOKEN}"
            )
            address = await read_requests(one, "/status", host="10.0.0.1", Authorization=f"Bearer {TOKEN}")
            found = [reply.status for reply in (*replies, bare, foreign, address)]
            return found, replies[0].fields["WWW-Authenticate"]

    assert during(ask()) == ([401, 401, 401, 401, 200, 200, 401, 421, 200], "Bearer")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "db.example.org", "", "127.0.0.1.nip.io"])
def test_address_that_others_reach_needs_a_strong_secret(host, tmp_path):
    settings = OperationsSettings(host=host)
    with pytest.raises(ConfigError, match="is reached by others: set THINKTWICE_OPERATIONS_TOKEN"):
        guard_of(settings, {})
    with pytest.raises(ConfigError, match="too weak") as refused:
        guard_of(settings, {"THINKTWICE_OPERATIONS_TOKEN": TOKEN[:31]})
    assert TOKEN[:31] not in str(refused.value)
    with pytest.raises(ConfigError, match="too weak"):
        guard_of(settings, {"THINKTWICE_OPERATIONS_TOKEN": "a" * 64})
    (tmp_path / "token").write_text(TOKEN + "\n")
    assert guard_of(settings, {"THINKTWICE_OPERATIONS_TOKEN_FILE": str(tmp_path / "token")}) == TOKEN


def test_loopback_needs_no_secret_and_takes_no_weak_one():
    assert guard_of(OperationsSettings(), {}) is None
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    with pytest.raises(ConfigError, match="too weak"):
        guard_of(OperationsSettings(), {"THINKTWICE_OPERATIONS_TOKEN": "short"})
    with pytest.raises(ConfigError, match="a blank or a character"):
        guard_of(OperationsSettings(), {"THINKTWICE_OPERATIONS_TOKEN": TOKEN + " é"})


def test_port_that_is_taken_is_said_with_the_next_step():
    async def ask():
        async with endpoint() as first:
            with pytest.raises(ConfigError, match=f"port {first.port} .*: name another port, or 0 for any"):
                await endpoint(port=first.port).open()

    during(ask())


def test_request_that_takes_too_long_is_cut_off_and_others_are_served():
    async def ask():
        async with endpoint(deadline_s=0.2) as one:
            slow = asyncio.create_task(sent(one.port, b"GET /status HTTP/1.1\r\nHost: loc"))
            served = await read_requests(one, "/health")
            await asyncio.wait([slow])
            return served.status, slow.exception() or slow.result()

    status, cut = during(ask())
    assert status == 200
    assert isinstance(cut, ConnectionError) or not cut


def test_connections_that_say_nothing_are_broken_off_without_a_word_when_the_process_ends():
    """Also one whose place was taken: an error on the log would be an alarm about a probe."""

    async def closed() -> list[dict[str, object]]:
        wrong: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: wrong.append(context))
        async with endpoint() as one:
            idle = [await asyncio.open_connection("127.0.0.1", one.port) for _ in range(MOST_CONNECTIONS + 1)]
            assert await asyncio.wait_for(idle[0][0].read(), 20) == b""
        await asyncio.sleep(0.05)
        for _, writer in idle:
            writer.close()
        return wrong

    assert asyncio.run(closed()) == []


def test_connection_beyond_the_limit_takes_the_place_of_the_oldest():
    async def ask():
        async with endpoint(deadline_s=30.0) as one:
            idle = [await asyncio.open_connection("127.0.0.1", one.port) for _ in range(MOST_CONNECTIONS)]
            served = (await read_requests(one, "/health")).status
            cut = await asyncio.wait_for(idle[0][0].read(), 20)
            for _, writer in idle[1:]:
                writer.write(get("/health"))
            rest = [parsed(await reader.read()).status for reader, _ in idle[1:]]
            for _, writer in idle:
                writer.close()
            return served, cut, set(rest), len(rest)

    assert during(ask()) == (200, b"", {200}, MOST_CONNECTIONS - 1)


@pytest.fixture
def handles():
    """How many sockets a test may open beside an endpoint, with the limit as high as it goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 4_096 if hard == resource.RLIM_INFINITY else min(4_096, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    yield max(soft, most) - 400
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("count", [64, 1_000])
@pytest.mark.parametrize("dripping", [False, True], ids=["idle", "dripping"])
def test_health_answers_in_time_beside_clients_that_never_finish_a_request(count, dripping, handles):
    head = get("/status", X_Drip="x" * 200)

    async def drip(writer):
        for byte in head[:-1]:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.05)

    async def ask():
        async with endpoint(deadline_s=30.0) as one:
            opened = [
                await asyncio.open_connection("127.0.0.1", one.port) for _ in range(min(count, handles))
            ]
            drips = [asyncio.create_task(drip(writer)) for _, writer in opened] if dripping else []
            answers = []
            for _ in range(5):
                began = time.monotonic()
                answers.append((await read_requests(one, "/health")).status)
                answers.append(time.monotonic() - began < 2.0)
            for task in drips:
                task.cancel()
            await asyncio.gather(*drips, return_exceptions=True)
            for _, writer in opened:
                writer.transport.abort()
            return answers

    assert during(ask()) == [200, True] * 5


@pytest.mark.parametrize(
    ("soft", "most"), [(resource.RLIM_INFINITY, 128), (1_048_576, 128), (1_024, 128), (256, 32), (12, 2)]
)
def test_fewer_connections_are_taken_where_few_files_may_be_open(monkeypatch, soft, most):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, soft))
    assert most_connections() == most


def test_source_that_fails_is_an_answer_and_not_the_end():
    class Broken:
        def status(self):
            raise RuntimeError("c4nary")

    async def ask():
        async with endpoint(Broken()) as one:
            return await read_requests(one, "/status"), await read_requests(one, "/metrics")

    status, metrics = during(ask())
    assert (status.status, metrics.status) == (500, 500)
    assert status.body == "RuntimeError\n"


@given(st.one_of(st.binary(max_size=300), st.binary(max_size=60).map(lambda b: get("/status")[:-4] + b)))
def test_any_bytes_are_a_request_or_refused(data):
    wrong = []

    async def ask():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: wrong.append(context))
        async with endpoint() as one:
            return await sent(one.port, data, ends=True)

    reply = during(ask())
    assert not reply or parsed(reply).status in (200, 400, 405, 413, 421, 431)
    assert wrong == []


NAMES = [b"host", b"authorization", b"origin", b"x"]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.binary(max_size=40)), max_size=6))
def test_any_fields_get_an_answer_or_are_refused(fields):
    one = endpoint(token=TOKEN)
    answer, status = answered(lambda: one.answer(request("/status", fields)))
    assert status in (400, 401, 403, 421)
    assert answer is None


def test_command_that_serves_nothing_loads_no_server():
    code = (
        "import worker.cli.paper, worker.cli.worker, worker.cli.doctor, worker.operations.monitoring, sys; "
    )
    found = [sys.executable, "-c", code + "print({'uvicorn', 'starlette', 'jinja2'} & sys.modules.keys())"]
    assert subprocess.run(found, capture_output=True, text=True, check=True).stdout == "set()\n"
