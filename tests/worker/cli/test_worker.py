"""`thinktwice worker` and `thinktwice reports`, as a person and as a program would use them."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path

import pytest

from schemas.settings import Settings
from services.store import open_store
from tests.commands.started import thinktwice
from tests.services.store.stores import new_run
from tests.worker.slow_worker.prepared import DAY, START, resolved, trade
from tests.worker.slow_worker.test_judge_evidence import by_models, planning, recommending
from tests.worker.wire import wire

ROOT = Path(__file__).parents[3]
TRADES = [resolved(n, START + (n + 1) * DAY // 24) for n in range(72)]
DATE = "2024-01-04"


def store_run(settings):
    """A run of three days of hourly trades, in the default store."""

    async def made() -> str:
        data = {"timeframe": "1h", "symbols": ["AAPL"], "bars": 72}
        run = new_run(config=settings.payload(), config_hash=settings.config_hash, data=data)
        async with await open_store("sqlite:///thinktwice.db", create=True) as store:
            run_id = (await store.runs.create(run)).run_id
            await trade(store, run_id, TRADES)
            return run_id

    assert asyncio.run(made()) == "r0001"


@pytest.fixture
def stored(shell):
    store_run(Settings())
    return shell


def test_worker_once_reports_what_is_due_and_tells_the_judge(stored):
    first = stored.run("worker", "--once", "--at", DATE)
    assert first.exit_code == 0
    due, text, judged = first.stdout.splitlines()
    assert "slot 2024-01-04 is due (slot): 72 episodes, 72 new" in due
    assert "reported: " in text
    assert "judged: " in judged
    assert first.stderr == ""
    again = stored.run("worker", "--once", "--at", DATE)
    assert "nothing is due: decided up to 2024-01-04, the next slot is 2024-01-05" in again.stdout


def test_worker_once_skips_a_slot_with_its_reason(stored):
    printed = stored.run("worker", "--once", "--at", "2024-01-01 20:00").stdout
    assert "nothing is due: no slot is decided yet" in printed
    stored.run("worker", "--once", "--at", "2024-01-03")
    printed = stored.run("worker", "--once", "--at", "2024-01-05 12:00").stdout
    assert "slot 2024-01-05 is due" in printed
    printed = stored.run("worker", "--once", "--at", "2024-01-06").stdout
    assert "slot 2024-01-06 skipped: insufficient_episodes (0 of 20 new episodes, next 2024-01-07)" in printed


def test_worker_json_is_one_object_per_event_with_times_in_ns(stored):
    lines = stored.run("worker", "--once", "--at", DATE, "--json")
    events = [json.loads(line) for line in lines.stdout.splitlines()]
    assert lines.stderr == ""
    assert [event["event"] for event in events] == [
        "lease_taken",
        "slot_claimed",
        "report_written",
        "report_delivered",
        "lease_released",
    ]
    assert {event["at"] for event in events} == {START + 3 * DAY}
    assert {event["run_id"] for event in events} == {"r0001"}


def test_reports_list_slots_with_report_and_verdict(stored):
    assert stored.run("reports").stdout == ""
    stored.run("worker", "--once", "--at", DATE)
    stored.run("worker", "--once", "--at", "2024-01-05")
    found = json.loads(stored.run("reports", "--json").stdout)
    assert [(trial["slot"], trial["by"], trial["state"], trial["delivery"]) for trial in found["slots"]] == [
        (START + 3 * DAY, "worker", "done", "delivered"),
        (START + 4 * DAY, "worker", "skipped", None),
    ]
    assert found["slots"][1]["reason"] == "insufficient_episodes"
    assert found["lease"]["epoch"] == 2
    printed = stored.run("reports", "r0001").stdout
    assert found["slots"][0]["report_id"] in printed
    assert "skipped: insufficient_episodes" in printed


def test_reports_of_nothing_print_nothing_and_of_an_unknown_run_fail(shell):
    assert (shell.run("reports").stdout, shell.run("reports").exit_code) == ("", 0)
    assert "no run 'r0007'" in shell.complaint("reports", "r0007")
    assert not (shell.folder / "thinktwice.db").exists()


def test_worker_config_sets_the_cadence_and_nothing_else(stored):
    weekly = stored.folder / "weekly.toml"
    weekly.write_text('[high_level]\ninterval = "weekly"\n')
    printed = stored.run("worker", "weekly.toml", "--once", "--at", "2024-01-10").stdout
    assert "slot 2024-01-08 is due (slot)" in printed
    weekly.write_text("[policy_loop.regime]\nchop_bars = 90\n")
    text = stored.complaint("worker", "weekly.toml", "--once", "--at", "2024-01-10")
    assert "policy_loop.regime.chop_bars is 90 (file weekly.toml) and run r0001 was made with 100" in text


def test_worker_asks_the_models_of_the_runs_judge_and_says_where_it_cannot(shell, monkeypatch):
    store_run(by_models())
    monkeypatch.setattr("worker.slow_worker.wiring.threaded_reflection", lambda settings: recommending)
    words = ("worker", "--once", "--json", "--at")
    bare = [json.loads(line) for line in shell.run(*words, "2024-01-03").stdout.splitlines()]
    assert [reason["reason"][:39] for reason in bare if reason["event"] == "judge_without_model"] == [
        "the planner of evidence needs a key: se"
    ]
    assert "report_delivered" in [event["event"] for event in bare]
    with wire(monkeypatch, planning(0.8)) as server:
        shown = [json.loads(line) for line in shell.run(*words, "2024-01-05").stdout.splitlines()]
    assert [
        event["event"] for event in shown if event["event"] in ("report_delivered", "judge_without_model")
    ] == ["report_delivered"]
    assert "mean_reversion" in json.dumps([body for _, body in server.requests])


def test_worker_process_works_until_it_is_told_to_stop(stored):
    words = [thinktwice(), "worker", "--json"]
    words += ["--db", f"sqlite:///{stored.folder}/thinktwice.db"]
    events = []
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            events.append(json.loads(line)["event"])
            if events[-1] == "report_delivered":
                process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    assert events[0] == "worker_started"
    assert events[-3:] == ["stopping", "lease_released", "stopped"]
    assert events.count("report_written") == 1


def test_report_shows_what_a_worker_wrote_with_the_judges_verdict(stored):
    assert "no report" in stored.complaint("report", "latest")
    stored.run("worker", "--once", "--at", DATE)
    stored.run("worker", "--once", "--at", "2024-01-05")
    payload = json.loads(stored.run("reports", "--json").stdout)["slots"][0]
    found = json.loads(stored.run("report", "r0001", payload["report_id"][:6], "--json").stdout)
    assert found["report_id"] == payload["report_id"]
    assert found["report"]["n_episodes"] == payload["episodes"] == 72
    assert found["verdict"]["decision"] == payload["verdict"]
    latest = stored.run("report", "latest")
    assert latest.stdout.startswith(f"# Report {payload['report_id']}\n")
    assert stored.run("report", "latest", "--html", "page.html").exit_code == 0
    assert payload["report_id"] in (stored.folder / "page.html").read_text("utf-8")
