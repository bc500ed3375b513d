"""What an operated paper run tells, logs and answers: safe mode, declined changes, a feed that is away."""

import asyncio
import logging
import os
import signal
import socket
import time
from typing import Any

import pytest

from schemas.errors import ConfigError
from schemas.judge import JudgeAction
from schemas.settings import Settings
from services.store import open_store
from tests.worker.live.paper_runs import Killed, RunningFeed, killed, waiting_feed
from tests.worker.live.paper_runs import traded as paper
from tests.worker.operations.operated_paper import (
    free_port,
    logged,
    news,
    operated,
    prepared_for,
    settings_of,
    until_ready,
)
from tests.worker.operations.receiver import receiving
from tests.worker.operations.test_paper_is_operated import value
from tests.worker.planted_store import definitions
from tests.worker.shared_runs import embedded_bars, losing_settings
from worker.feeds.sample_data.worlds import make_world
from worker.live.monitor import OperatedMonitor
from worker.live.process import PaperProcess
from worker.live.process_inputs import ProcessInputs
from worker.operations.logs import LEVELS, configure_logging
from worker.operations.metrics import PREFIX
from worker.operations.monitoring import prepare

MONTH = {"start": "2000-03-01", "end": "2000-03-31"}
BARS = ("--symbols", "AAPL", "--from", "2000-03-01", "--to", "2000-03-31")
CRASHES = 6
HOUR_MS = 3_600_000


async def crash(store, run_id="r0001"):
    """What processes leave that crashed just now."""
    for number in range(CRASHES):
        await store.leases.take(f"start/{run_id}/{number}", f"gone{number}", HOUR_MS)


async def starts(address):
    """Owners of the starts that are left."""
    async with await open_store(address, create=True) as store:
        return [start.owner for start in await store.leases.list_in_force("start/")]


def test_run_whose_processes_crashed_is_told_to_be_in_safe_mode_and_the_next_run_is_not(tmp_path):
    settings = settings_of(tmp_path, data={"symbols": ["AAPL"]}, runtime=MONTH)

    async def play():
        async with await open_store(settings.runtime.db, create=True) as store:
            await crash(store)
        async with receiving() as there:
            first = await operated(settings, there)
            message = news(there)
            second = await operated(settings, there)
            return first, message, second, news(there)

    first, shown, second, all_told = asyncio.run(play())
    assert (first.record.run_id, second.record.run_id) == ("r0001", "r0002")
    assert [(event["kind"], event["about"], event["run_id"]) for event in shown] == [
        ("safe_mode", "crash_loop", "r0001")
    ]
    assert all_told == shown
    left = asyncio.run(starts(settings.runtime.db))
    assert len(left) == CRASHES, "an orderly end takes back its own start only"
    assert [item["level"] for item in logged(tmp_path, "safe_mode")] == ["warning"]


def test_refused_second_process_leaves_the_crashes_of_the_run_as_they_are(shell, monkeypatch):
    async def taken(process, tenure, record):
        raise ConfigError(f"run {record.run_id} is being traded by another process")

    monkeypatch.setattr(PaperProcess, "_lease", taken)
    address = f"sqlite:///{shell.folder}/thinktwice.db"

    async def leave():
        async with await open_store(address, create=True) as store:
            await crash(store)

    asyncio.run(leave())
    before = asyncio.run(starts(address))
    assert "is being traded" in shell.complaint("paper", *BARS)
    assert asyncio.run(starts(address)) == before


def test_process_that_dies_while_it_recovers_has_begun_before(tmp_path):
    questions: list[str] = []

    async def ask_of(run_id):
        questions.append(run_id)
        return False

    def die(recovered, taken):
        raise Killed(recovered)

    feed = waiting_feed(embedded_bars("2009-01-01", "2009-03-31").select(("AAPL",)))
    assert killed(tmp_path, Settings(), feed, "committed", 20)
    with pytest.raises(Killed):
        paper(tmp_path, Settings(), feed, progress=die, crashed_too_often=ask_of)
    assert questions == ["r0001"]


def waiting_changes(folder, **judge):
    """What is told to wait for a person in a run of the planted world under these settings of the judge."""
    world = make_world("reverting", seed=3, bars=330, symbols=6)
    planted = losing_settings()
    given = {"judge": planted.judge.model_copy(update=judge), "runtime": settings_of(folder).runtime}
    settings = planted.model_copy(update=given)

    async def play():
        async with receiving() as there, await open_store(settings.runtime.db, create=True) as store:
            around = OperatedMonitor(prepared_for(settings, there))
            feed, books = waiting_feed(world), definitions()
            await PaperProcess(
                ProcessInputs(settings, feed, store, "host:1:a", around, definitions=books)
            ).run("test")
            return news(there)

    with configure_logging(settings):
        shown = asyncio.run(play())
    return [event for event in shown if event["kind"] == "approval_waits"]


def test_change_that_a_bound_declines_waits_for_a_person_who_is_told_the_command(shell, tmp_path):
    [waits] = waiting_changes(tmp_path, max_open_experiments=0)
    detail = waits["detail"]
    command = f"thinktwice replan {detail['report_id']} --run r0001 --write DIR"
    assert (detail["playbook_id"], detail["version"]) == ("buys_strength", 1)
    assert detail["wanted"] == {"kind": "open_experiment", "parameter": "side", "value": -1.0}
    assert (detail["code"], detail["command"]) == ("too_many_experiments", command)
    assert waits["summary"] == (
        "the judge wanted open_experiment side -1.0 of buys_strength version 1: declined, 0 experiments are "
        f"open, the limit is 0; `{command}`"
    )
    [record] = logged(tmp_path, "change_waits")
    assert record["command"] == command
    shown = shell.run(*command.replace("DIR", "books").split()[1:], "--db", "sqlite:///store.db")
    assert shown.exit_code == 0, shown.output
    assert "too_many_experiments" in shown.stdout
    assert (tmp_path / "books" / "buys_strength.toml").exists()


def test_experiment_that_has_ended_waits_for_a_person(tmp_path):
    waits = waiting_changes(tmp_path, shadow_life_blocks=1)
    assert (waits[0]["about"], waits[0]["detail"]["version"]) == ("buys_strength", 2)
    assert waits[0]["detail"]["code"] == "experiment_ended"
    assert set(waits[0]["detail"]["evidence"]) >= {"n", "e_value"}
    assert waits[0]["summary"].startswith("the judge's experiment buys_strength version 2 has ended")
    assert f"replan {waits[0]['detail']['report_id']} --run r0001" in waits[0]["detail"]["command"]


def test_change_plan_that_waits_is_told_once_with_its_deadline_and_command(tmp_path):
    settings = settings_of(tmp_path)

    async def play():
        async with receiving() as there, await open_store(settings.runtime.db, create=True) as store:

            async def between(number):
                if number:
                    await process.traded.committing.caught_up()
                if number == 20:
                    session = process.traded.stepper.session
                    action = JudgeAction(kind="replan", reason="a lesson")
                    source = ("r" * 16, "v" * 16)
                    seen.append(session.slow_loop.plans.of_verdict([action], session.clock.now, *source))

            seen: list[Any] = []
            bars = embedded_bars("2009-01-01", "2009-03-31").select(("AAPL",))
            around = OperatedMonitor(prepared_for(settings, there))
            process = PaperProcess(
                ProcessInputs(settings, RunningFeed(bars, between), store, "host:1:a", around)
            )
            await process.run("test")
            return seen[0], [news_item for news_item in news(there) if news_item["kind"] == "approval_waits"]

    with configure_logging(settings):
        plan, shown = asyncio.run(play())
    assert [item["detail"]["plan_id"] for item in shown] == [plan.plan_id]
    assert shown[0]["detail"]["plan_hash"] == plan.content_hash
    assert shown[0]["detail"]["command"] == f"thinktwice plans show {plan.plan_id} --run r0001"
    assert shown[0]["summary"].startswith(f"plan {plan.plan_id} waits for a decision until 2009-")


@pytest.mark.parametrize(("event", "level"), [*LEVELS.items(), ("report_heard", logging.INFO)])
def test_events_of_a_trading_process_are_logged_as_loud_as_those_of_a_worker(tmp_path, event, level):
    settings = settings_of(tmp_path)
    with configure_logging(settings) as logs:
        OperatedMonitor(prepare(settings.runtime.operations, logs.redactor, {})).note(event, {"reason": "x"})
    [record] = logged(tmp_path, event)
    assert record["level"] == logging.getLevelName(level).lower()


def hourly(path):
    """A file with the last hours of a market."""
    hour = 3_600
    last = int(time.time()) // hour * hour - hour
    rows = [f"{last - n * hour},100,102,98,101,10" for n in reversed(range(4))]
    path.write_text("\n".join(["time,open,high,low,close,volume", *rows, ""]))


def test_feed_that_is_away_is_not_ready_at_once_and_is_again_when_it_is_back(tmp_path):
    bars, port = tmp_path / "bars.csv", free_port()
    hourly(bars)
    settings = settings_of(
        tmp_path,
        runtime={"data": str(bars), "feed": {"poll_s": 0.02, "continuous": True}},
        operations={"port": port},
        data={"timeframe": "1h"},
    )

    async def play():
        async with receiving() as there:
            trading = asyncio.create_task(operated(settings, there, "csv"))
            seen = [await until_ready(port, 200)]
            bars.rename(tmp_path / "away")
            seen.append(await until_ready(port, 503))
            (tmp_path / "away").rename(bars)
            seen.append(await until_ready(port, 200))
            os.kill(os.getpid(), signal.SIGTERM)
            return (await trading).stopped, seen

    stopped, seen = asyncio.run(play())
    assert stopped == "SIGTERM"
    assert [body for body, _ in seen] == ["ready\n", "feed csv is away\n", "ready\n"]
    assert [value(text, f"{PREFIX}_feed_up") for _, text in seen] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("command", [("paper",), ("worker", "--feed", "replay")])
def test_address_that_cannot_be_had_is_refused_before_a_store_or_a_run_is_made(shell, monkeypatch, command):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        monkeypatch.setenv("THINKTWICE_RUNTIME__OPERATIONS__PORT", str(other.getsockname()[1]))
        assert "address already in use): name another port" in shell.complaint(*command)
    monkeypatch.setenv("THINKTWICE_RUNTIME__OPERATIONS__HOST", "192.0.2.1")
    monkeypatch.setenv("THINKTWICE_OPERATIONS_TOKEN", "c3b5a1f09e7d48260f1e8d7c6b3a5942")
    assert "cannot listen on '192.0.2.1'" in shell.complaint(*command)
    assert not (shell.folder / "thinktwice.db").exists()
