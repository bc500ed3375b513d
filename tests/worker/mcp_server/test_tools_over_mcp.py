"""The evidence tools through the SDK's own client, in memory: what they answer, refuse and never change."""

import asyncio
import gc
import hashlib
import json
import sqlite3
from typing import Any

import pytest
from mcp import Client

from schemas.errors import InvariantViolation
from services.evidence.tools import TOOLS
from services.evidence_tools.run_view import RunRows
from services.journal.chain import JournalRow
from services.journal.index import Event, RecentRows
from services.journal.kinds import JOURNAL_KINDS
from services.store.tables import metadata
from tests.each_case import check_each
from tests.services.store.stores import opened, seal_again
from tests.worker.evidence_stores import CLOCK, START, client_of, server_of
from worker.cli.printing import time_option

AT = time_option(CLOCK, "--at")
READING = set(TOOLS) - {"rule"}  # which notes what it tries: see test_rule_trials.py
MODES = ("auto", "legacy", "2026-07-28")


def rows_of(path, *kinds):
    marks = ",".join("?" * len(kinds))
    with opened(path) as store:
        found = store.execute(
            f"select seq, unpacked(payload) from journal where kind in ({marks}) order by seq", kinds
        )
        return [(seq, json.loads(payload)) for seq, payload in found]


def calls_of(path):
    """One call of every tool, and some more with their arguments."""
    fill = rows_of(path, "exit_filled")[3][1]["fill_id"]
    report = rows_of(path, "high_level_report")[0][1]["report_id"]
    plan = {"symbol": "IBM", "playbook_id": "trend_pullback", "direction": "long"}
    return [
        ("runs", {}),
        ("market", {}),
        ("market", {"symbol": "IBM"}),
        ("playbooks", {}),
        ("playbooks", {"playbook_id": "channel_breakout"}),
        ("trades", {"playbook_id": "channel_breakout", "limit": 5}),
        ("trades", {"by": "symbol", "direction": "long", "period": "2003/2004"}),
        ("trades", {"order": "worst", "limit": 3}),
        ("account", {}),
        ("costs", {}),
        ("decisions", {"symbol": "IBM"}),
        ("reports", {}),
        ("reports", {"report_id": report}),
        ("gate", {"regime": "sideways/mid"}),
        ("why", {"fill_id": fill, "limit": 100}),
        ("check", plan),
        ("check", {**plan, "stop": "close + 1"}),
    ]


async def answers(client, calls):
    return {json.dumps(call): await client.call_tool(*call) for call in calls}


@pytest.fixture(scope="module")
def tools(stored):
    """Calls a tool with arguments, through one client."""
    with asyncio.Runner() as runner:
        called: asyncio.Queue[Any] = asyncio.Queue()

        async def serve():
            async with client_of(stored) as client:
                while (given := await called.get()) is not None:
                    tool, arguments, reply = given
                    reply.set_result(await client.call_tool(tool, arguments))

        async def call(tool, arguments):
            reply = asyncio.get_running_loop().create_future()
            await called.put((tool, arguments, reply))
            await asyncio.wait({reply, serving}, return_when=asyncio.FIRST_COMPLETED)
            return reply.result() if reply.done() else serving.result()

        async def begin():
            return asyncio.create_task(serve())

        async def end():
            await called.put(None)
            await serving

        serving = runner.run(begin())
        yield lambda tool, **arguments: runner.run(call(tool, arguments))
        runner.run(end())


def texts(found):
    return {call: (result.is_error, result.content[0].text) for call, result in found.items()}


def tables_of(path):
    with sqlite3.connect(path) as store:
        tables = {name: store.execute(f"select * from {name}").fetchall() for name in metadata.tables}
    return tables, hashlib.sha256(path.read_bytes()).hexdigest()


def listed_and_answered(path, mode):
    async def scenario():
        async with client_of(path, mode=mode) as client:
            return (await client.list_tools()).tools, await answers(client, calls_of(path))

    return asyncio.run(scenario())


@pytest.fixture(scope="module")
def asked(stored):
    """The tools, what each call brings, and the store before and after them."""
    before = tables_of(stored)
    return *listed_and_answered(stored, "auto"), before, tables_of(stored)


@pytest.mark.parametrize("mode", MODES)
def test_every_tool_is_listed_as_reading_and_answers_by_its_schema(stored, asked, mode):
    listed, found = asked[:2] if mode == "auto" else listed_and_answered(stored, mode)
    assert [tool.name for tool in listed] == list(TOOLS)
    for tool in listed:
        assert tool.annotations.read_only_hint is (tool.name in READING)
        assert not tool.annotations.destructive_hint
        assert tool.input_schema["additionalProperties"] is False
        assert len(tool.description) <= 100
    assert {json.loads(call)[0] for call in found} == READING
    for call, result in found.items():
        assert not result.is_error, (call, result.content)
        assert json.loads(result.content[0].text) == result.structured_content
        TOOLS[json.loads(call)[0]].result.model_validate_json(result.content[0].text)


def test_rows_that_an_answer_names_are_those_of_the_journal(stored, asked):
    with sqlite3.connect(stored) as store:
        kinds = dict(store.execute("select seq, kind from journal"))
    held = list(kinds.values()).count("entry_filled") - list(kinds.values()).count("exit_filled")
    for call, result in asked[1].items():
        rows = result.structured_content["rows"]
        tool = json.loads(call)[0]
        assert bool(rows) is (tool != "account" or held > 0), call  # an account names its open positions
        assert result.structured_content["known_at"], call
        assert all(kinds[row["seq"]] == row["kind"] for row in rows), call


@check_each("tool", ["trades", "market", "playbooks", "gate", "reports", "account", "costs"])
def test_answer_of_a_tool_carries_its_claims_in_words_with_their_rows(stored, tools, tool):
    statements = tools(tool).structured_content["statements"]
    with sqlite3.connect(stored) as store:
        kinds = dict(store.execute("select seq, kind from journal"))
    assert statements
    for answer in statements:
        assert answer["text"].endswith(".")
        assert answer["claim"]["kind"] in {"value", "grade", "advice"}
        assert all(kinds[row["seq"]] == row["kind"] for row in answer["rows"] if row["seq"] is not None)


def test_pages_of_episodes_are_all_of_them_once_newest_first(stored, tools):
    payload = tools("trades", limit=7).structured_content
    pages, figures = [payload], payload["figures"]
    while payload["next_cursor"] is not None:
        payload = tools("trades", limit=7, cursor=payload["next_cursor"]).structured_content
        pages.append(payload)
    seen = [episode["row"]["seq"] for page in pages for episode in page["trades"]]
    assert [page["figures"] for page in pages] == [figures] * len(pages)
    stored_rows = [seq for seq, _ in rows_of(stored, "episode")]
    assert seen == stored_rows[::-1]
    r = [payload["episode"]["r"] for _, payload in rows_of(stored, "episode")]
    assert (figures["trades"], figures["total_r"]) == (len(r), pytest.approx(sum(r)))


@check_each(
    ("tool", "more"),
    [("decisions", {}), ("playbooks", {}), ("trades", {"order": "worst"}), ("trades", {"symbol": "IBM"})],
)
def test_cursor_of_another_call_is_refused(tools, tool, more):
    cursor = tools("trades", limit=2).structured_content["next_cursor"]
    result = tools(tool, limit=2, **more, cursor=cursor)
    assert result.is_error
    assert f"it is of another call; give next_cursor of a call of {tool}" in result.content[0].text


def test_fill_that_an_episode_names_is_its_exit(stored, tools):
    shown = tools("trades", limit=100).structured_content["trades"]
    root = tools("why", fill_id=shown[0]["fill_id"]).structured_content["steps"][0]
    fills = {payload["fill_id"]: payload for _, payload in rows_of(stored, "exit_filled")}
    episodes = {payload["episode_id"]: payload["episode"] for _, payload in rows_of(stored, "episode")}
    assert len({episode["fill_id"] for episode in shown}) == len(shown)
    for episode in shown:
        fill = fills[episode["fill_id"]]
        assert fill["policy_id"] == episodes[episode["episode_id"]]["policy_id"]
        assert fill["bar_label"] == episodes[episode["episode_id"]]["exit_label"]
    assert root["facts"]["bar_label"] == shown[0]["exited"]


BACKWARDS = {"since": "2004-01-01", "at": "2003-01-01"}
REFUSED = [
    ("trades", {"period": "2004/2003"}, "ends before it begins"),
    ("trades", {"period": "soon"}, "write a year, a month, a day"),
    ("decisions", BACKWARDS, "since lies after at"),
    ("trades", {"sybol": "IBM"}, "Did you mean 'symbol'?"),
    ("trades", {"symbol": "IBN"}, "Did you mean 'IBM'?"),
    ("trades", {"playbook_id": "chanel_breakout"}, "Did you mean 'channel_breakout'?"),
    ("trades", {"regime": "up/lo"}, "Did you mean 'up/low'?"),
    ("trades", {"limit": 101}, "limit 101: input should be less than or equal to 100"),
    ("trades", {"limit": True}, "limit True: input should be a valid integer"),
    ("trades", {"cursor": "x; drop"}, "cursor 'x; drop'"),
    ("trades", {"at": "tomorrow"}, "write a time like 2012-01-31"),
    ("trades", {"at": "1990-01-01"}, f"had begun at no bar by that time: give a time from {START}"),
    ("trades", {"run": "r9\u202e"}, "no single run 'r9\\u202e': the newest are r0001"),
    ("why", {}, "why needs fill_id"),
    ("why", {"fill_id": "zz"}, "no fill 'zz'"),
    ("why", {"fill_id": "x" * 65}, "at most 64 characters"),
    ("reports", {"report_id": "zz"}, "no report 'zz'"),
    (
        "check",
        {"symbol": "IBM", "playbook_id": "trend", "direction": "long"},
        "no active playbook 'trend'",
    ),
    ("check", {"symbol": "IBM", "playbook_id": "trend_pullback", "direction": "up"}, "direction 'up'"),
    ("trade", {}, "Did you mean 'trades'?"),
]


@check_each(("tool", "arguments", "quoted"), REFUSED)
def test_refused_call_says_in_one_line_what_would_work(stored, tools, tool, arguments, quoted):
    result = tools(tool, **arguments)
    text = result.content[0].text
    assert result.is_error
    assert quoted in text
    assert "\n" not in text
    assert str(stored.parent) not in text
    assert "Traceback" not in text


def test_crash_and_store_failure_tell_nothing_of_inside(stored, monkeypatch):
    from agents.tool_hosts.in_process import STORE_FAILED, TOOL_FAILED
    from schemas.errors import StoreError
    from worker.review.run_views import RunViews

    async def scenario(error):
        async def broken(*_):
            raise error

        async with client_of(stored) as client:
            monkeypatch.setattr(RunViews, "view", broken)
            return await client.call_tool("trades", {})

    for error, reply in (
        (StoreError(f"store sqlite:///{stored} is locked"), STORE_FAILED),
        (KeyError("x"), TOOL_FAILED),
    ):
        result = asyncio.run(scenario(error))
        assert (result.is_error, result.content[0].text) == (True, reply)


def test_no_tool_changes_a_table(asked):
    _, found, before, after = asked
    assert {json.loads(call)[0] for call in found} == READING
    assert after == before


def test_connection_of_the_server_cannot_write_and_a_file_that_cannot_be_written_is_enough(stored, tmp_path):
    import shutil

    from sqlalchemy import text as sql

    from services.store import open_store

    path = tmp_path / "thinktwice.db"
    shutil.copy(stored, path)
    path.chmod(0o400)

    async def scenario():
        async with await open_store(f"sqlite:///{path}", create=False, read_only=True) as store:
            with pytest.raises(Exception, match=r"readonly|query_only|attempt to write"):
                async with store._engine.begin() as connection:
                    await connection.execute(sql("delete from journal"))
        async with client_of(path) as client:
            return await client.call_tool("trades", {})

    assert not asyncio.run(scenario()).is_error


def test_future_after_the_clock_changes_no_byte_of_any_answer(stored, ended_earlier):
    async def scenario(path, at, calls):
        async with client_of(path, at=at) as client:
            resources = [
                (await client.read_resource(f"thinktwice://runs/r0001/{part}")).contents[0].text
                for part in ("summary", "playbooks/channel_breakout")
            ]
            return texts(await answers(client, calls)), resources

    calls = calls_of(ended_earlier)
    calls += [("market", {"at": "2003-01-31"}), ("trades", {"at": "2004-07-01"})]
    assert asyncio.run(scenario(stored, AT, calls)) == asyncio.run(scenario(ended_earlier, AT, calls))
    late, early = (asyncio.run(scenario(path, None, calls[-1:])) for path in (stored, ended_earlier))
    assert late != early  # without the clock the two stores do differ


def test_no_argument_reaches_beyond_the_clock_of_the_server(stored):
    async def scenario():
        async with client_of(stored, at=AT) as client:
            beyond = await client.call_tool("trades", {"at": "2006-01-01"})
            whole = (await client.call_tool("trades", {"limit": 100})).structured_content
            return beyond, whole, (await client.call_tool("runs", {})).structured_content["runs"]

    beyond, whole, runs = asyncio.run(scenario())
    assert beyond.is_error
    assert "lies after the clock of this server: give a time up to 2004-06-30" in beyond.content[0].text
    assert whole["known_at"].startswith(CLOCK)
    assert max(episode["exited"] for episode in whole["trades"]) < CLOCK
    assert (runs[0]["status"], runs[0]["trades"], runs[0]["events"]) == (None, None, None)


def test_server_of_one_run_answers_for_no_other(stored):
    async def scenario():
        async with client_of(stored, run="r0001") as client:
            other = await client.call_tool("trades", {"run": "r0002"})
            return other, await client.call_tool("trades", {"run": "r0001"})

    other, own = asyncio.run(scenario())
    assert other.content[0].text == "this server answers for run r0001 alone: leave run out"
    assert not own.is_error


def test_run_in_progress_is_answered_as_of_its_newest_row(stored, tmp_path):
    import shutil

    path = tmp_path / "thinktwice.db"
    shutil.copy(stored, path)
    with sqlite3.connect(path) as store:
        whole = store.execute("select * from journal order by seq").fetchall()
        names = [item[1] for item in store.execute("pragma table_info(journal)")]
        held = len(whole) // 2

        def keep(count):
            store.execute("delete from journal")
            marks = ",".join("?" * len(names))
            store.executemany(f"insert into journal values ({marks})", whole[:count])
            store.execute("update runs set status = 'running', document = null, events = ?", (count,))
            store.commit()
            seal_again(path)
            store.execute("pragma wal_checkpoint")  # a file with more rows than its log is taken for another

        async def scenario():
            async with client_of(path) as client:
                keep(held)
                half = (await client.call_tool("trades", {})).structured_content
                keep(len(whole))
                return half, (await client.call_tool("trades", {})).structured_content

        keep(held)
        half, rest = asyncio.run(scenario())
    known = names.index("known_at")
    assert time_option(half["known_at"], "") == whole[held - 1][known]
    assert time_option(rest["known_at"], "") == whole[-1][known]
    assert half["figures"]["trades"] < rest["figures"]["trades"] == len(rows_of(stored, "episode"))


def test_moment_after_the_newest_row_is_that_row(tools):
    moments = (None, "2030-01-01", "9999-12-31T23:59:59-14:00")
    now, later, latest = (tools("trades", limit=1, at=at) for at in moments)
    assert not latest.is_error
    assert now.content[0].text == later.content[0].text == latest.content[0].text


def test_rows_that_were_read_are_walked_over_by_no_collection(stored, monkeypatch):
    monkeypatch.setattr("worker.runs.garbage.COLLECT_AT", 100)

    async def scenario():
        async with client_of(stored) as client:
            await client.call_tool("market", {})

    before = gc.get_freeze_count()
    asyncio.run(scenario())
    assert gc.get_freeze_count() > before
    gc.unfreeze()


def test_first_reading_of_many_rows_is_told_to_the_client_and_to_the_log(stored, monkeypatch, caplog):
    monkeypatch.setattr("worker.review.run_views.TOLD_EACH", 500)
    caplog.set_level("INFO", "thinktwice.tools")
    steps = []

    async def shown(progress, total, message):
        steps.append((progress, total, message))

    async def scenario():
        async with client_of(stored) as client:
            await client.call_tool("market", {}, progress_callback=shown)
            first = list(steps)
            await client.call_tool("market", {}, progress_callback=shown)
            return first

    first = asyncio.run(scenario())
    rows = len(rows_of(stored, *JOURNAL_KINDS))
    assert [progress for progress, _, _ in first] == [*range(0, rows, 500), rows]
    assert {total for _, total, _ in first} == {rows}
    assert first[0][2] == "reading the rows of r0001"
    assert steps == first, "rows that were read are not read again"
    assert [record.message for record in caplog.records] == ["reading_rows", "rows_read"]


def test_tool_parses_the_rows_that_it_needs_and_no_other(stored, monkeypatch):
    parsed = []
    plain = RecentRows.glance

    def counted(self, row):
        parsed.append(row.seq)
        return plain(self, row)

    monkeypatch.setattr(RecentRows, "glance", counted)

    async def scenario():
        async with client_of(stored) as client:
            fill = rows_of(stored, "exit_filled")[-1][1]["fill_id"]
            result = await client.call_tool("why", {"fill_id": fill})
            assert len(result.structured_content["steps"]) > 10

    asyncio.run(scenario())
    assert 10 < len(set(parsed)) < len(rows_of(stored, *JOURNAL_KINDS)) / 20


def test_view_of_a_moment_does_not_grow_with_the_run():
    rows = RunRows()
    for seq in range(6):
        row = JournalRow(seq, seq, seq, "genesis" if seq == 0 else "entry_filled", None, "{}", None, "", "")
        rows.add(Event(row, {"fill_id": f"f{seq}"}))
        if seq == 3:
            views = [rows.until(None), rows.until(2)]
    for view, last in zip(views, (3, 2), strict=True):
        assert [event.row.seq for event in view.events] == list(range(last + 1))
        assert [event.row.seq for event in view.of_kind("entry_filled")] == list(range(1, last + 1))
        assert view.get("entry_filled", "f2") is not None
        assert view.get("entry_filled", "f4") is None
        assert view.fills("f5") == []
        with pytest.raises(InvariantViolation):
            view.add(rows.index.events[5])


def test_clients_at_once_get_the_answers_that_each_alone_gets(stored, asked):
    async def scenario():
        async with server_of(stored) as server:

            async def shown(request):
                async with Client(server) as client:
                    return texts(await answers(client, request))

            return await asyncio.gather(*map(shown, zip(calls, reversed(calls), strict=True)))

    calls, alone = calls_of(stored), texts(asked[1])
    together = asyncio.run(scenario())
    assert len(together) == len(calls) > 16
    assert all(found.items() <= alone.items() for found in together)


def test_resources_and_prompts_name_what_the_tools_read(stored):
    async def scenario():
        async with client_of(stored) as client:
            resources = (await client.list_resources()).resources
            templates = (await client.list_resource_templates()).resource_templates
            summary = (await client.read_resource(str(resources[0].uri))).contents[0].text
            prompts = (await client.list_prompts()).prompts
            report = (await client.call_tool("reports", {"limit": 1})).structured_content["reports"][0]
            prompt = await client.get_prompt("review_report", {"report": report["report_id"]})
            refused = []
            for name, given in (("review_report", {"report": "ab12"}), ("why", {"fill": "ab12"})):
                with pytest.raises(Exception) as failure:  # noqa: PT011 - the SDK's own error
                    await client.get_prompt(name, given)
                refused.append(str(failure.value))
            for request in (
                "thinktwice://runs/r0001/rows",
                "file:///etc/passwd",
                "thinktwice://runs/r9/summary",
            ):
                with pytest.raises(Exception) as failure:  # noqa: PT011 - the SDK's own error
                    await client.read_resource(request)
                refused.append(str(failure.value))
            return resources, templates, json.loads(summary), prompts, (report, prompt), refused

    resources, templates, summary, prompts, (report, prompt), refused = asyncio.run(scenario())
    assert [str(item.uri) for item in resources] == ["thinktwice://runs/r0001/summary"]
    assert len(templates) == 3
    assert summary["trades"]["figures"]["trades"] == len(rows_of(stored, "episode"))
    assert [item.name for item in prompts] == ["review_report", "why"]
    assert f"report {report['report_id']} of run latest" in prompt.messages[0].content.text
    assert "no report 'ab12'" in refused[0]
    assert "no fill 'ab12'" in refused[1]
    assert "there are thinktwice://runs/{run}/summary" in refused[2] + refused[3]
    assert "no single run 'r9'" in refused[4]


def test_clock_of_the_tests_lies_inside_both_runs(stored, ended_earlier):
    for path in (stored, ended_earlier):
        with sqlite3.connect(path) as store:
            first, last = store.execute("select min(known_at), max(known_at) from journal").fetchone()
        assert first < AT < last
