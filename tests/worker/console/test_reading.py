"""What the console shows of a store: the documents of the commands, row by row, changing nothing."""

import asyncio
import json
import re
import sqlite3
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import ValidationError

import worker
from schemas.canonical import text_to_ns
from services.journal.chain import JournalRow
from services.journal.index import JournalIndex
from services.store import journal_repository, open_store
from tests.commands.started import thinktwice
from tests.worker.cli.test_plans import made
from tests.worker.console.asked import DB, ask, get, settings_of, token_of
from tests.worker.console.rows_of_a_run import row_of_bars, stored
from worker.console.backtests import BacktestForm
from worker.console.chart import Charts
from worker.console.decisions import NS_PER_MS, decisions_of
from worker.console.reflections import making_of
from worker.pages.figures import number, shown_time
from worker.pages.run_marks import marks_of
from worker.review.rebuilt import traded_bars
from worker.runs.kept_run import kept_bars

PARTS = tuple(f"/runs/latest/{part}" for part in ("reflections", "lessons", "reports", "models", "journal"))
PAGES = ("/plans", "/live?run=latest", "/runs", "/runs/latest", "/ask", "/audit", *PARTS)
READ = (
    *("/api/me", "/api/runs", "/api/runs/latest", "/api/runs/latest/status", "/api/runs/latest/reflections"),
    *("/api/runs/latest/playbooks", "/api/runs/latest/reports", "/api/runs/latest/requests", "/api/plans"),
    *("/api/tools", "/api/trials", "/api/audit", "/api/bars", "/api/backtests", "/api/openapi.json"),
    *("/api/compare?first=latest&second=latest", "/api/runs/latest/models", "/api/config"),
)


def rows_of_every_table():
    with sqlite3.connect("thinktwice.db") as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in sorted(names)}


def test_reading_everything_changes_no_row(planted):
    made(planted)
    before = rows_of_every_table()

    async def steps(client):
        found = [await client.get(path) for path in READ]
        pages = [await client.get(path, headers={"accept": "text/html"}) for path in PAGES]
        return [(answer.url.path, answer.status_code) for answer in (*found, *pages)]

    assert {status for _, status in ask(steps)} == {200}
    assert rows_of_every_table() == before


def test_run_whose_old_texts_were_pruned_is_still_read(shell):
    """Red where a row without its text is read as one, or called changed."""
    words = ("backtest", "--symbols", "IBM", "--from", "2003-01-01", "--to", "2004-12-31")
    subprocess.run([thinktwice(), *words], check=True, capture_output=True)
    pruned = shell.run("db", "prune", "latest", "--before", "2004-01-01", "--json").stdout
    assert json.loads(pruned)["rows"] > 100
    at = text_to_ns("2004-01-01") // NS_PER_MS

    async def steps(client):
        moves = [f"decision?symbol=0&at={at}&move={way}&skips=true" for way in ("previous", "next")]
        window = f"window?symbol=0&start=0&end={2 * at}"
        found = [await client.get(f"/api/runs/latest/{path}") for path in (window, *moves)]
        pages = [await client.get(path, headers={"accept": "text/html"}) for path in (*PAGES, *READ)]
        return found, [(answer.url.path, answer.status_code) for answer in (*found, *pages)]

    found, statuses = ask(steps)
    assert [path for path, status in statuses if status != 200] == []
    assert found[0].json()["candles"]["x"]
    assert found[2].json()["at"] >= at


def test_documents_are_those_of_the_commands(planted):
    for path, words in {
        "/api/runs": ("runs", "--json"),
        "/api/runs/latest/reports": ("reports", "latest", "--json"),
        "/api/runs/latest/playbooks": ("playbooks", "list", "latest", "--json"),
    }.items():
        printed, served = json.loads(planted.run(*words).stdout), get(path).json()
        if isinstance(served, dict):
            served.pop("reports", None)
        assert served == printed, path


def test_journal_is_sent_as_lines_behind_a_row(planted):
    printed = planted.run("journal", "latest", "--jsonl").stdout.splitlines()
    found = get("/api/runs/latest/journal?after=4&limit=3").text.splitlines()
    assert [json.loads(line)["hash"] for line in found] == [json.loads(line)["hash"] for line in printed[5:8]]
    assert get("/api/runs/latest/journal?kind=no_such_row").status_code == 422


def test_stream_gives_each_row_behind_the_one_that_was_seen_and_ends_with_the_run(planted):
    count = json.loads(planted.run("runs", "--json").stdout)[-1]["events"]

    async def steps(client):
        return await client.get("/api/runs/latest/events", headers={"last-event-id": str(count - 4)})

    text = ask(steps).text.replace("\r\n", "\n")
    assert [line for line in text.splitlines() if line.startswith("id: ")] == [
        f"id: {count - k}" for k in (3, 2, 1)
    ]
    assert text.rstrip().endswith('data: {"status": "finished"}')


def test_question_is_answered_by_a_tool_and_refused_without_a_model(planted):
    async def steps(client):
        token = await token_of(client)
        body = {"tool": "trades", "arguments": {"run": "latest"}}
        answered = await client.post("/api/ask", json=body, headers=token)
        nothing = await client.post("/api/ask", json={}, headers=token)
        unknown = await client.post("/api/ask", json={"tool": "drop_tables"}, headers=token)
        return answered.json(), nothing.status_code, unknown.status_code

    answered, nothing, unknown = ask(steps)
    assert answered["status"] == "answered"
    assert answered["sections"]
    assert (nothing, unknown) == (422, 404)


def test_what_a_tool_found_without_a_sentence_is_the_answer_with_its_rows(planted):
    fill = json.loads(get("/api/runs/latest/journal?kind=entry_filled&limit=1").text)["payload"]["fill_id"]

    async def steps(client):
        token = await token_of(client)
        bodies = ({"tool": "why", "arguments": {"run": "latest", "fill_id": fill}}, {"tool": "runs"})
        return [(await client.post("/ask", json=body, headers=token)).text for body in bodies]

    why, runs = ask(steps)
    assert re.search(r"<h3>steps</h3>.*order.*/journal\?after=\d+&amp;limit=1", why, re.DOTALL)
    assert '<a href="/runs/r0001">r0001</a>' in runs


def test_fill_opens_its_chain_and_an_unknown_one_is_not_there(planted):
    fills = get("/api/runs/latest/journal?kind=entry_filled").text.splitlines()
    fill = json.loads(fills[0])["payload"]["fill_id"]
    assert get(f"/api/runs/latest/why/{fill}").json()["id"] == fill
    assert fill[:8] in get(f"/runs/latest/why/{fill}", accept="text/html").text
    assert get("/api/runs/latest/why/ffff").status_code == 404


def test_windows_and_steps_of_a_chart_have_every_mark_and_decision_of_the_journal(shell):
    words = ("--symbols", "IBM,MSFT", "--from", "2003-01-01", "--to", "2004-12-31")
    subprocess.run([thinktwice(), "backtest", *words], check=True, capture_output=True)

    async def work():
        async with await open_store(DB, create=False) as store:
            record = await store.runs.find("latest")
            charted = await Charts(traded_bars, kept_bars).of(store, record)
            index = await JournalIndex.read(store.journal.rows(record.run_id))
            marks, edges = marks_of(index, int(charted.bars.times[-1])), charted.bars.times[::60] // NS_PER_MS
            for symbol, name in enumerate(charted.bars.symbols):
                decided = decisions_of(index, name)
                for start, end in [*pairwise(edges.tolist()), (int(edges[0]), int(edges[-1]))]:
                    found = await charted.window(symbol, start, end)
                    assert drawn(found, start, end) == drawn_of(
                        marks[name], decided, charted.bars, start, end
                    )
                times = sorted({*decided.times(EVERY, skips=False)})
                assert await stepped(charted, symbol, "next", -(10**18)) == times
                assert await stepped(charted, symbol, "previous", 10**19) == times[::-1]

    asyncio.run(work())


EVERY = range(10**9)


def drawn(found, start, end):
    """What a window shows between its edges."""
    lines = sorted(
        (max(x0, start), min(x1, end), y)
        for x0, x1, y in zip(*(found["levels"][name] for name in ("x0", "x1", "y")), strict=True)
    )
    names = ("x0", "x1", "state")
    bands = [*zip(*(found["states"][name] for name in names), strict=True)]
    return found["fills"]["chain"], found["reflections"]["time"], lines, bands, found["until"]


def drawn_of(marks, decided, bars, start, end):
    """The same of all rows of a run."""

    def inside(at):
        return start <= at // NS_PER_MS <= end

    lines = sorted(
        (max(line.start // NS_PER_MS, start), min(line.end // NS_PER_MS, end), line.price)
        for line in marks.levels
        if line.start // NS_PER_MS <= end and line.end // NS_PER_MS >= start
    )
    last = min(int(bars.times[-1] + bars.bar_ns), end * NS_PER_MS)
    bands = decided.bands(max(int(bars.times[0]), start * NS_PER_MS), last)
    return (
        [mark.event.own_id for mark in marks.fills if inside(mark.label)],
        [shown_time(mark.known_at) for mark in marks.reflections if inside(mark.known_at)],
        lines,
        [(since // NS_PER_MS, until // NS_PER_MS, state) for since, until, state in bands],
        None,
    )


async def stepped(charted, symbol, move, at):
    """Times, ns, at which something was decided, step by step."""
    found = []
    while (step := await charted.decision(symbol, at, move, skips=False))["at"] is not None:
        at = step["at"] * NS_PER_MS
        found.append(at)
    return found


def test_rows_that_are_read_for_a_view_are_as_many_of_a_run_of_any_length(shell, monkeypatch):
    read = 0

    def counted(*values):
        nonlocal read
        read += 1
        return JournalRow(*values)

    monkeypatch.setattr(journal_repository, "JournalRow", counted)

    async def count(client, path):
        nonlocal read
        read = 0
        answer = await client.get(path, headers={"accept": "text/html"})
        assert answer.status_code == 200, answer.text
        return answer, read

    async def steps(client):
        base = "/api/runs/latest"
        head, reading = await count(client, f"{base}/chart")
        start, end = head.json()["start"], head.json()["end"]
        middle = (head.json()["from"] + end) // 2
        views = (
            f"{base}/window?start={start}&end={end}",
            f"{base}/window?start={middle}&end={middle + end - start}",
            *(f"{base}/decision?at={middle}&move={move}" for move in ("here", "previous", "next")),
            *("/runs/latest", "/live?run=latest"),
        )
        return [reading, *[(await count(client, path))[1] for path in views]]

    counts = []
    for length in (2_400, 4_800, 9_600):
        kinds = ("state_transition", "policy_evaluation", "envelope_breach")
        payload = {"to": "IDLE", "outcome": "held", "reason": None, "limit": "drawdown"}
        stored([(kinds[k % 3], "AAA", payload, None) for k in range(length)], bars=length)
        counts.append(ask(steps))
    assert counts[0] == counts[1] == counts[2]
    assert all(counts[0][1:6])


def test_chart_of_a_run_that_trades_takes_the_bars_that_came_and_reads_none_again(shell):
    stored([], bars=3)
    read = []

    async def reading(store, record):
        read.append(record.run_id)
        return await kept_bars(store, record)

    async def work():
        async with await open_store(DB, create=False) as store:
            charts, lengths = Charts(traded_bars, reading), []
            for more in ((), (3, 4), ()):
                taken = [(number, row_of_bars(number)) for number in more]
                lease = await store.leases.take("r0001", "w", 10**9)
                assert lease is not None
                await store.trading.commit(lease, "r0001", taken, [])
                charted = await charts.of(store, await store.runs.find("r0001"))
                lengths.append((await charted.head())["bars"])
            return lengths, charted.bars.close[:, 0].tolist()

    lengths, closes = asyncio.run(work())
    assert lengths == [3, 5, 5]
    assert closes == [1.0] * 5
    assert read == ["r0001"]


def test_scripts_of_ours_have_600_lines_and_draw_by_one_that_both_pages_load(planted):
    scripts = [path.read_text() for path in Path(next(iter(worker.__path__))).rglob("*.js")]
    assert sum(text.count("\n") for text in scripts) <= 600
    for name in ("element", "time", "embed", "dress", "fitted", "onTap", "candleChart"):
        assert sum(f"function {name}(" in text for text in scripts) == 1, name
    assert "function candleChart(" in get("/chart.js").text
    assert 'src="/chart.js"' in get("/runs/latest", accept="text/html").text
    assert get("/runs/latest/page", accept="text/html").text.count("function candleChart(") == 1


def test_row_opens_whole_as_a_page_and_the_journal_by_pages(planted):
    row = get("/api/runs/latest/journal?after=41&limit=1").json()
    opened = get("/runs/latest/journal?after=41&limit=1", accept="text/html")
    assert opened.headers["content-type"].startswith("text/html")
    assert f">{row['seq']}</a>" in opened.text
    assert row["kind"] in opened.text
    first = get("/runs/latest/journal", accept="text/html").text
    assert "?after=49&amp;limit=50" in first  # later rows
    assert "earlier rows" not in first
    assert "?after=9&amp;limit=50" in get("/runs/latest/journal?after=59", accept="text/html").text
    assert "no row behind 999,999" in get("/runs/latest/journal?after=999999", accept="text/html").text


def test_compared_runs_say_where_they_part(planted):
    planted.run("backtest", "--seed", "1")
    page = get("/runs?first=r0001&second=latest", accept="text/html").text
    assert page.count("Equity of") == 2
    assert page.count("<svg") == 1  # the bars of the planted run are in no file: its picture says so
    found = get("/api/compare?first=r0001&second=latest").json()
    assert {"runs", "settings", "figures", "parted"} == found.keys()


def test_query_that_no_page_takes_is_refused_on_a_page_that_names_it(planted):
    answer = get("/live?run=" + "x" * 65, accept="text/html")
    assert (answer.status_code, answer.headers["content-type"]) == (422, "text/html; charset=utf-8")
    assert "query.run &#39;xxx" in answer.text


@pytest.mark.parametrize("path", ["/runs/none", "/api/runs/none", "/plans/ffffffff", "/runs/none/page"])
def test_what_is_not_there_is_said_on_a_page_and_in_the_api(planted, path):
    answer = get(path, accept="text/html")
    assert answer.status_code in (404, 422)
    assert "none" in answer.text or "ffffffff" in answer.text


def test_bars_of_a_backtest_come_from_the_folder_alone(planted):
    Path("bars").mkdir()
    Path("bars/own.csv").write_text("time,open,high,low,close\n")
    Path("secret.csv").write_text("x")
    Path("bars/out.csv").symlink_to(Path("secret.csv").resolve())

    async def steps(client):
        token = await token_of(client)
        refused = [
            (await client.post("/api/backtests", json={"data": name}, headers=token)).status_code
            for name in ("../secret.csv", "out.csv", "/etc/passwd")
        ]
        return (await client.get("/api/bars")).json(), refused

    files, refused = ask(steps, settings=settings_of(console__folder="bars"))
    assert (files, refused) == ({"files": ["own.csv"]}, [409, 409, 409])


@pytest.mark.parametrize("symbol", ["<b>", "BTC/USD:USD", "\u00c5KER B", "-x", "\u202egnp"])
def test_backtest_is_started_with_symbols_as_a_bar_file_names_them(symbol):
    assert f"--symbols={symbol}" in BacktestForm(symbols=(symbol,)).words(None)


@pytest.mark.parametrize("symbol", ["A,B", "", "A\0"])
def test_symbol_that_no_file_can_name_starts_no_backtest(symbol):
    with pytest.raises(ValidationError, match=r"symbols\.0"):
        BacktestForm(symbols=(symbol,))


def test_lessons_have_their_evidence_and_claims_of_a_report_open_their_rows(planted):
    versions = get("/api/runs/latest/playbooks").json()["versions"]
    page = get("/runs/latest/lessons", accept="text/html").text
    assert all(
        f'<td class="number">{found["account"]["n"]}</td>' in page for found in versions if found["account"]
    )
    shown = [found["account"] for found in versions if (found["account"] or {}).get("lower_r") is not None]
    assert shown
    assert all(f"{number(found['lower_r'])} to {number(found['upper_r'])}" in page for found in shown)
    report = get("/api/runs/latest/reports").json()["reports"][-1]
    claims = get(f"/runs/latest/reports/{report['report_id']}/claims", accept="text/html").text
    statement = report["report"]["sections"][0]["statements"][0]
    assert statement["text"] in claims
    seq = statement["rows"][0]["seq"]
    assert f'href="/runs/r0001/journal?after={seq - 1}&amp;limit=1"' in claims
    assert get("/runs/latest/reports/ffff/claims", accept="text/html").status_code == 404


def test_making_of_a_report_shows_its_cycles_scores_and_chunks(shell):
    def made(deliberation, report, score):
        yield "deliberation", None, {"deliberation_id": deliberation, "report_id": report}, None
        for kind, fields in (("review_cycle", {"quality_score": score}), ("chunk_write", {"chunk_index": 1})):
            yield kind, None, {"deliberation_id": deliberation, **fields}, None

    stored([*made("d1", "r1", 0.7), *made("d2", "r2", 0.2)])

    async def work():
        async with await open_store(DB, create=False) as store:
            return await making_of(store, await store.runs.find("latest"), "r1")

    assert [(row["seq"], row["kind"], row["fields"]) for row in asyncio.run(work())] == [
        (1, "deliberation", {}),
        (2, "review_cycle", {"quality_score": 0.7}),
        (3, "chunk_write", {"chunk_index": 1}),
    ]


def test_run_without_reflection_has_its_page_and_says_what_was_skipped(shell):
    words = ("--symbols", "IBM", "--from", "2003-01-01", "--to", "2004-12-31", "--reflection", "off")
    subprocess.run([thinktwice(), "backtest", *words], check=True, capture_output=True)
    assert "Ledger of trials" in get("/runs/latest/lessons", accept="text/html").text
    found = get("/api/runs/latest/reflections").json()
    assert set(found["outcomes"]) == {"disabled"}
    last = get("/api/runs/latest/decision?at=2e12&move=here&skips=true").json()
    before = get(f"/api/runs/latest/decision?at={last['at']}&move=previous").json()
    assert before["at"] < last["at"]
    assert last["entries"]
    assert before["state"] in (
        "IDLE",
        "THESIS_ARMED",
        "POSITION_OPEN",
        "HOLD_LOCK",
        "COOLDOWN",
        "INVALIDATED",
    )
    assert get("/api/runs/latest/decision?at=-9e11&move=previous").json()["at"] is None
