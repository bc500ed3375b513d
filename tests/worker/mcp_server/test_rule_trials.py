"""`rule`: noted first, traded in a process of its own, bounded, cancelled, bound to the clock."""

import asyncio
import sqlite3
import subprocess

import pytest
from mcp import Client, StdioServerParameters

from services.store import open_store
from tests.commands.started import python, thinktwice
from tests.worker.evidence_stores import client_of
from worker.cli.printing import time_option
from worker.mcp_server.server import build_server
from worker.review import rule_trial
from worker.review.evidence import store_tools
from worker.review.rule_trial import RuleTrials
from worker.review.run_views import open_views

RULE = {"entry": "crosses_above(sma_10, sma_30)", "symbol": "AAPL"}
BARS = ("--symbols", "AAPL,IBM", "--from", "2000-03-01", "--to")


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Two stores of the command's own runs, which keep where their bars are: the same past, two ends."""
    folder = tmp_path_factory.mktemp("rules")
    for name, end in (("whole", "2002-06-28"), ("earlier", "2001-12-31")):
        words = ["backtest", *BARS, end, "--db", f"sqlite:///{folder}/{name}.db"]
        subprocess.run([thinktwice(), *words], check=True, capture_output=True)
    return folder


@pytest.fixture
def forked(monkeypatch):
    """The process of a rule is forked from one that has loaded the engine."""
    monkeypatch.setattr(rule_trial, "PROCESS", (python(), *rule_trial.PROCESS[1:]))


def ledger(path):
    with sqlite3.connect(path) as store:
        return store.execute("select run_id, hypotheses from trials where run_id like 'rule:%'").fetchall()


def others(path):
    with sqlite3.connect(path) as store:
        names = [row[0] for row in store.execute("select name from sqlite_master where type = 'table'")]
        kept = {name: store.execute(f"select * from {name}").fetchall() for name in names if name != "trials"}
        kept["seals"] = store.execute("select * from seals where run_id not like 'rule:%'").fetchall()
        kept["trials of runs"] = store.execute(
            "select * from trials where run_id not like 'rule:%'"
        ).fetchall()
    return kept


def tried(path, rule, at=None):
    async def scenario():
        steps = []

        async def shown(progress, total, message):
            steps.append((progress, total, message))

        async with client_of(path, at=at) as client:
            return await client.call_tool("rule", rule, progress_callback=shown), steps

    return asyncio.run(scenario())


@pytest.mark.usefixtures("forked")
def test_rule_is_traded_told_of_and_noted_once_and_nothing_else_changes(stores):
    path = stores / "whole.db"
    before, had = others(path), len(ledger(path))
    result, steps = tried(path, RULE)
    again, _ = tried(path, RULE)
    payload = result.structured_content
    assert not result.is_error, result.content
    assert payload == again.structured_content
    assert payload["trades"] == sum(payload["exit_reasons"].values()) > 5
    assert payload["rows"] == [{"seq": 0, "kind": "genesis"}]
    assert [message for _, _, message in steps] == ["reading the bars", "trading the rule", "done"]
    assert len(ledger(path)) == had + 1
    assert others(path) == before
    words = [thinktwice(), "trials", "--db", f"sqlite:///{path}", "--json"]
    shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert '"configurations": 2' in shown  # the run and the rule: the next run on these bars starts with both


@pytest.mark.usefixtures("forked")
def test_bad_rule_is_refused_and_is_no_trial(stores):
    path = stores / "whole.db"
    before = ledger(path)
    for rule, reply in (
        ({"entry": "close >"}, "close >"),
        ({"entry": "close > nothing_12"}, "nothing_12"),
        ({"entry": "close"}, "is a number, but a boolean is needed here"),
        ({**RULE, "symbol": "IBN"}, "Did you mean 'IBM'?"),
        ({**RULE, "stop_pct": 2}, "stop_pct 2"),
    ):
        result, _ = tried(path, rule)
        assert result.is_error, rule
        assert reply in result.content[0].text
    assert ledger(path) == before


@pytest.mark.usefixtures("forked")
def test_bars_after_the_clock_change_nothing(stores):
    at = time_option("2001-06-29", "--at")
    whole, _ = tried(stores / "whole.db", RULE, at)
    earlier, _ = tried(stores / "earlier.db", RULE, at)
    left_out = {"trial"}
    shown = [
        {key: value for key, value in result.structured_content.items() if key not in left_out}
        for result in (whole, earlier)
    ]
    assert shown[0] == shown[1]
    assert shown[0]["last_bar"] < "2001-06-29"
    late, _ = tried(stores / "whole.db", RULE)
    assert late.structured_content["trades"] > shown[0]["trades"]


def test_rule_that_takes_too_long_or_is_cancelled_leaves_no_process(stores, monkeypatch):
    started, make = [], asyncio.create_subprocess_exec
    begun: dict[str, asyncio.Event] = {}

    async def noted(*words, **given):
        started.append(await make(*words, **given))
        if "event" in begun:
            begun["event"].set()
        return started[-1]

    monkeypatch.setattr("worker.review.rule_trial.asyncio.create_subprocess_exec", noted)
    plain = RuleTrials.__init__

    async def bounded():
        async with client_of(stores / "whole.db") as client:
            result = await client.call_tool("rule", RULE)
            return result, await asyncio.wait_for(started[-1].wait(), 10)

    async def cancelled():
        async with client_of(stores / "whole.db") as client:
            begun["event"] = asyncio.Event()
            call = asyncio.ensure_future(client.call_tool("rule", RULE))
            await begun["event"].wait()
            call.cancel()
            return await asyncio.wait_for(started[-1].wait(), 10)

    assert asyncio.run(cancelled()) == -9
    monkeypatch.setattr(RuleTrials, "__init__", lambda self, note: plain(self, note, seconds=0.2))
    result, code = asyncio.run(bounded())
    assert code == -9
    assert result.content[0].text.startswith("the rule took more than 0.2 s")


def test_store_that_cannot_be_written_tries_no_rule(stores, tmp_path):
    async def scenario():
        async with await open_store(f"sqlite:///{stores}/whole.db", create=False, read_only=True) as store:
            server = build_server(store_tools(await open_views(store, None, None)))
            async with Client(server) as client:
                return [tool.name for tool in (await client.list_tools()).tools]

    assert "rule" not in asyncio.run(scenario())


def test_rule_over_standard_streams_does_not_hang_the_server(stores):
    words = ["mcp", "--db", f"sqlite:///{stores}/whole.db", "--at", "2001-06-29"]

    async def scenario():
        async with Client(StdioServerParameters(command=thinktwice(), args=words)) as client:
            first = await client.call_tool("rule", RULE)
            return first, await client.call_tool("runs", {})

    first, second = asyncio.run(scenario())
    assert first.structured_content["trades"] > 0
    assert not second.is_error
