"""Notifications over a real connection: what arrives, how often, and what trouble costs the one who tells."""

import asyncio
import hashlib
import hmac
import json
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from schemas.errors import ConfigError
from schemas.settings.live import OperationsSettings
from tests.worker.operations.receiver import HANG, OK, receiving, status
from worker.operations.alerts import SEVERITIES, Alert, of_journal, of_worker
from worker.operations.notifications import (
    MOST_ATTEMPTS,
    MOST_OF_A_TOPIC,
    Notifier,
    Outcome,
    Webhook,
    check_webhook,
    configured_webhook,
)
from worker.secrets.redaction import Redactor

CANARY = "c4nary-0123456789"
AT = 1_700_000_000 * 10**9
AWAY = Alert("store_away", "the store is away", AT, topic="store")
BACK = Alert("recovered", "the store is back", AT, topic="store")


class Sleeps:
    """Waits that take no time and are kept."""

    def __init__(self):
        self.taken = []

    async def __call__(self, seconds):
        self.taken.append(seconds)
        await asyncio.sleep(0)


class Timer:
    now = 0.0

    def __call__(self):
        return self.now


class Never:
    """A receiver that answers nothing, or says it is out of order."""

    def __init__(self, error=None):
        self.error = error

    async def send(self, body, key):
        if self.error is not None:
            raise self.error
        await asyncio.Event().wait()
        return Outcome("sent", "")

    async def close(self):
        pass


def notifier(receiver, timer=None, **given):
    settings = OperationsSettings(**{n: given.pop(n) for n in ("notify", "notify_window_s") if n in given})
    standing: dict[str, Any] = {"sleep": Sleeps(), "first_wait_s": 1.0, "timer": timer or Timer()}
    return Notifier(receiver, settings, "r0001", "paper", Redactor([CANARY]), **(standing | given))


def webhook(url, secret=None, attempt_s=5.0):
    return Webhook(url, secret, now=lambda: 1_700_000_000.5, attempt_s=attempt_s)


def delivered(*alerts, script=(OK,), secret=None, attempt_s=5.0, **given):
    """What a receiver got of some alerts, and what became of them; counts of nothing are left out."""

    async def play():
        async with receiving(*script) as there:
            sender = notifier(webhook(there.url, secret, attempt_s), **given)
            sender.start()
            assert [sender.tell(alert) for alert in alerts] == [True] * len(alerts)
            await sender.close()
            return there.got, {name: count for name, count in sender.counts.items() if count}

    return asyncio.run(play())


def counted(receiver, *alerts, **given):
    """What became of alerts at a receiver of ours."""

    async def play():
        sender = notifier(receiver, **given)
        sender.start()
        for alert in alerts:
            sender.tell(alert)
        await sender.close()
        return sender.counts

    return asyncio.run(play())


def test_news_arrives_as_signed_json_without_secrets():
    alert = Alert("error", f"failed with {CANARY}", AT, "AAPL", detail={"api_key": "x" * 20})
    [(path, fields, body)], counts = delivered(alert, secret="s3cret-of-the-hook")
    assert path == "/hook/abcdefghijklmnopqrst"
    assert json.loads(body) == {
        "v": 1,
        "kind": "error",
        "severity": "warning",
        "text": "thinktwice r0001 (paper): failed with ***",
        "summary": "failed with ***",
        "run_id": "r0001",
        "mode": "paper",
        "at": "2023-11-14T22:13:20+00:00",
        "about": "AAPL",
        "detail": {"api_key": "***"},
        "repeated": 0,
    }
    digest = hmac.new(b"s3cret-of-the-hook", b"1700000000." + body, hashlib.sha256).hexdigest()
    assert fields["x-thinktwice-signature"] == f"t=1700000000,v1={digest}"
    assert fields["content-type"] == "application/json"
    assert counts == {"sent": 1}


def test_webhook_without_a_secret_signs_nothing():
    [(_, fields, _)], _ = delivered(AWAY)
    assert "x-thinktwice-signature" not in fields
    assert len(fields["idempotency-key"]) == 32


@pytest.mark.parametrize(
    ("script", "attempts", "counts", "waits"),
    [
        ([status(500), status(503), OK], 3, {"sent": 1, "retried": 2}, [1.0, 2.0]),
        ([status(429, "Retry-After: 7"), OK], 2, {"sent": 1, "retried": 1}, [7.0]),
        ([status(429, "Retry-After: 99999"), OK], 2, {"sent": 1, "retried": 1}, [30.0]),
        ([status(429, "Retry-After: soon"), OK], 2, {"sent": 1, "retried": 1}, [1.0]),
        ([status(500)], MOST_ATTEMPTS, {"dropped": 1, "retried": 4}, [1.0, 2.0, 4.0, 8.0]),
        ([status(404)], 1, {"dropped": 1}, []),
        ([status(302, "Location: http://127.0.0.1:1/")], 1, {"dropped": 1}, []),
        ([b"not http\r\n\r\n", OK], 2, {"sent": 1, "retried": 1}, [1.0]),
    ],
)
def test_receiver_in_trouble_is_tried_again_where_that_may_help(script, attempts, counts, waits):
    sleeps = Sleeps()
    got, found = delivered(AWAY, script=script, sleep=sleeps)
    assert (len(got), found, sleeps.taken) == (attempts, counts, waits)
    assert len({fields["idempotency-key"] for _, fields, _ in got}) == 1


def test_receiver_whose_pause_is_cut_short_is_told_of_in_the_log():
    with capture_logs() as reply:
        delivered(AWAY, script=(status(429, "Retry-After: 99999"), OK))
    assert [(line["event"], line["reason"]) for line in reply] == [
        ("pause_cut_short", "status 429: it asks for a pause of 99999 s, of which 30 s are kept")
    ]


def test_receiver_that_hangs_costs_one_attempt_its_time_and_the_teller_none():
    got, counts = delivered(AWAY, script=(HANG, OK), attempt_s=0.1)
    assert (len(got), counts) == (2, {"sent": 1, "retried": 1})


def test_receiver_that_nobody_runs_is_given_up_after_the_attempts():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        counts = counted(webhook(f"http://127.0.0.1:{taken.getsockname()[1]}/x"), AWAY)
    assert counts == {"retried": MOST_ATTEMPTS - 1, "dropped": 1}


def test_message_that_is_not_delivered_within_its_deadline_makes_way_for_the_next():
    assert counted(Never(), AWAY, Alert("error", "x", AT), deadline_s=0.05) == {"dropped": 2}


def test_receiver_that_raises_is_a_dropped_message_and_the_next_is_tried():
    beyond = Alert("error", "x", 10**30)  # a time that no calendar has
    assert counted(Never(RuntimeError("bug")), AWAY, beyond) == {"dropped": 2}


def test_full_queue_drops_and_counts_and_never_waits():
    async def play():
        one = notifier(Never(), queue=3)
        messages = [one.tell(Alert("error", "x", AT, f"s{n}")) for n in range(10)]
        one.start()
        await one.close(grace_s=0.01)
        return messages, one.counts

    shown, counts = asyncio.run(play())
    assert shown == [True] * 3 + [False] * 7
    assert counts["dropped"] == 10


def test_stopping_delivers_what_waits():
    got, counts = delivered(*(Alert("error", "x", AT, f"s{n}") for n in range(5)))
    assert (len(got), counts) == (5, {"sent": 5})


def test_the_same_news_is_sent_once_in_a_window_and_repeats_are_told_with_the_next():
    timer, bodies = Timer(), []

    class Kept(Never):
        async def send(self, body, key):
            bodies.append(json.loads(body))
            return Outcome("sent", "")

    async def play():
        one = notifier(Kept(), timer=timer, notify_window_s=300.0)
        one.start()
        assert [one.tell(AWAY), one.tell(AWAY), one.tell(AWAY)] == [True, False, False]
        assert one.tell(BACK)  # another kind on the same topic is news
        assert one.tell(AWAY)
        timer.now = 301.0
        assert one.tell(AWAY)
        await one.close()
        return one.counts

    assert asyncio.run(play())["suppressed"] == 2
    assert [(body["kind"], body["repeated"]) for body in bodies] == [
        ("store_away", 0),
        ("recovered", 2),
        ("store_away", 0),
        ("store_away", 0),
    ]


@given(st.lists(st.tuples(st.sampled_from([AWAY, BACK]), st.floats(0, 50)), max_size=60))
def test_a_topic_that_goes_to_and_fro_is_heard_a_few_times_in_a_window(steps):
    timer = Timer()

    async def play():
        one = notifier(Never(), timer=timer, notify_window_s=300.0)
        sent = []
        for news, later in steps:
            timer.now += later
            if one.tell(news):
                sent.append(timer.now)
        return sent

    sent = asyncio.run(play())
    assert all(sum(at <= other < at + 300 for other in sent) <= 2 * MOST_OF_A_TOPIC for at in sent)
    assert len(sent) >= min(1, len(steps))


def test_kinds_that_are_not_wanted_and_a_missing_receiver_send_nothing():
    async def play():
        return (
            notifier(Never(), notify=("error",)).tell(AWAY),
            notifier(None).tell(AWAY),
            notifier(Never()).tell(None),
        )

    assert asyncio.run(play()) == (False, False, False)


def test_large_detail_is_left_out_and_the_message_still_arrives():
    [(_, _, body)], _ = delivered(
        Alert("error", "y" * 30_000, AT, detail={"x": "y" * 100_000, "n": float("nan")})
    )
    assert len(body) < 16_384
    assert json.loads(body)["detail"]["left_out_bytes"] > 100_000


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/x",
        "file:///etc/passwd",
        "host/x",
        "http:///",
        "https://host:0/x",
        "https://ho st/x",
        "http://[",
    ],
)
def test_address_that_is_no_webhook_is_refused_without_showing_it(url):
    with pytest.raises(ConfigError, match="THINKTWICE_WEBHOOK_URL is no address") as refused:
        check_webhook(f"{url}{CANARY}")
    assert CANARY not in str(refused.value)


def test_webhook_comes_from_the_environment_and_shows_no_path(tmp_path):
    (tmp_path / "url").write_text(f"https://hooks.example.com/{CANARY}\n")
    made = configured_webhook({"THINKTWICE_WEBHOOK_URL_FILE": str(tmp_path / "url")})
    assert made is not None
    assert made.shown == "https://hooks.example.com/***"
    assert configured_webhook({}) is None
    asyncio.run(made.close())


@pytest.mark.parametrize(
    ("kind", "payload", "news"),
    [
        ("envelope_breach", {"limit": "max_drawdown"}, "envelope_breach"),
        ("policy_reflection", {"result": {"status": "block", "findings": [{"code": "x"}]}}, "plan_blocked"),
        ("policy_reflection", {"result": {"status": "pass", "findings": []}}, None),
        ("feed_anomaly", {"anomaly": "stale"}, "feed_stale"),
        ("feed_anomaly", {"anomaly": "disconnected"}, "feed_stale"),
        ("feed_anomaly", {"anomaly": "conflict"}, "entries_blocked"),
        ("feed_anomaly", {"anomaly": "implausible"}, "entries_blocked"),
        ("feed_anomaly", {"anomaly": "unsettled"}, "entries_blocked"),
        ("feed_anomaly", {"anomaly": "clock"}, "entries_blocked"),
        ("feed_anomaly", {"anomaly": "fresh"}, "recovered"),
        ("feed_anomaly", {"anomaly": "duplicate"}, None),
        ("entries_blocked", {"blocked": {"AAPL": "stale"}}, None),
        ("error", {"where": "policy_loop", "type": "ValueError", "message": "x"}, "error"),
        ("exit_filled", {"r": 1.0}, None),
    ],
)
def test_journal_rows_that_matter_to_a_person_are_news(kind, payload, news):
    found = of_journal(kind, payload, AT, "AAPL")
    assert (None if found is None else found.kind) == news


def test_model_that_gives_no_usable_reply_any_more_is_news_once_for_each_model_in_its_servers_words():
    answer = {"failed_in_a_row": 5, "reason": "HTTP 400 'credit balance is too low'"}
    found = [of_worker("model_failing", {"model": f"{model} (fast)", **answer}, AT) for model in "mn"]
    assert [alert and (alert.kind, alert.summary) for alert in found] == [
        (
            "error",
            f"{model} (fast): 5 calls in a row without a usable reply: HTTP 400 'credit balance is too low'; "
            "rules decide instead",
        )
        for model in "mn"
    ]
    assert len({alert.topic for alert in found if alert}) == 2


@pytest.mark.parametrize(
    ("event", "news"),
    [
        ("store_away", "store_away"),
        ("store_back", "recovered"),
        ("slot_failed", "error"),
        ("lease_taken", None),
    ],
)
def test_events_of_the_worker_that_matter_to_a_person_are_news(event, news):
    found = of_worker(event, {"reason": "x"}, AT)
    assert (None if found is None else found.kind) == news


@pytest.mark.parametrize(
    ("change", "news"),
    [
        ("entered", "safe_mode"),
        ("raised", "safe_mode"),
        ("ended", "recovered"),
        ("left", "recovered"),
    ],
)
def test_changes_of_safe_mode_are_news_by_their_reason(change, news):
    found = of_worker("safe_mode", {"change": change, "reason": "crash_loop", "detail": ""}, AT)
    assert (None if found is None else (found.kind, found.key)) == (
        None if news is None else (news, "safe_mode crash_loop")
    )


def test_every_kind_of_the_settings_has_a_severity():
    assert set(SEVERITIES) == set(OperationsSettings().notify)
