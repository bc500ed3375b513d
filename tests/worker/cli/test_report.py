"""Any report of a stored run: as Markdown, as a page that stands alone, as JSON, and beside each other."""

import asyncio
import json

import pytest

from schemas.errors import InvariantViolation
from services.store import open_store
from tests.services.store import artefacts
from tests.worker.cli.fake_runner import REPORT_ID
from tests.worker.pages.reading import entries, read
from worker.runs.out_folder import report_files


@pytest.fixture
def stored(shell):
    assert shell.backtest().exit_code == 0
    return shell


def test_report_latest_is_printed_as_markdown(stored):
    plain, named = stored.run("report", "latest"), stored.run("report", "r0001", REPORT_ID[:4])
    assert plain.exit_code == 0
    assert plain.stdout == named.stdout
    assert plain.stdout.startswith(f"# Report {REPORT_ID}\n")
    assert "| trend_pullback | all | 21 | 9 | +0.10 R | -0.20 R | +0.40 R |" in plain.stdout


def test_report_json_is_the_stored_report_with_its_verdict(stored):
    found = json.loads(stored.run("report", "latest", "--json").stdout)
    assert sorted(found) == ["evidence", "report", "report_id", "request_hash", "verdict"]
    assert (found["report_id"], found["report"]["n_episodes"]) == (REPORT_ID, 21)
    assert found["verdict"]["decision"] == "hold"


def test_report_latest_is_the_newest_one_though_it_was_made_on_demand(stored):
    known_at = json.loads(stored.run("report", "latest", "--json").stdout)["report"]["known_at"]
    made = {move: artefacts.report(artefacts.request(known_at + move)) for move in (1, -1)}

    async def requested() -> None:
        async with await open_store("sqlite:///thinktwice.db", create=True) as store:
            for shown in made.values():
                await store.on_demand.put("r0001", artefacts.request(shown.known_at), shown)

    asyncio.run(requested())
    latest = json.loads(stored.run("report", "latest", "--json").stdout)
    assert latest["report_id"] == made[1].content_hash[:16]
    assert stored.run("report", "latest", "--html", "page.html").exit_code == 0


def test_report_html_is_one_file_that_leads_nowhere(stored):
    result = stored.run("report", "latest", "--html", "page.html")
    assert (result.exit_code, result.stdout) == (0, "")
    tree = read((stored.folder / "page.html").read_text("utf-8"))
    assert "trend_pullback" in tree.text
    assert tree.all("a") == []


def test_report_html_and_json_may_be_asked_for_together(stored):
    result = stored.run("report", "latest", "--html", "page.html", "--json")
    assert json.loads(result.stdout)["report_id"] == REPORT_ID
    assert (stored.folder / "page.html").exists()


def test_report_of_a_run_without_one_says_where_the_reason_is(shell):
    shell.engine.fail_at = 3
    shell.backtest()
    assert "--kind slow_skip" in shell.complaint("report", "latest")


def test_report_pages_of_two_equal_runs_are_the_same_bytes(shell):
    for folder in ("one", "two"):
        assert shell.backtest("--out", folder, "--db", f"sqlite:///{folder}.db").exit_code == 0
    pages = [
        {path.name: path.read_bytes() for path in (shell.folder / folder / "reports").iterdir()}
        for folder in ("one", "two")
    ]
    assert pages[0] == pages[1]
    assert set(pages[0]) == {f"{REPORT_ID}.{kind}" for kind in ("json", "md", "html")} | {"index.html"}


def test_report_files_lead_from_page_to_page_and_every_link_has_its_file():
    files = report_files(entries())
    assert set(files) == {"reports/index.html"} | {
        f"reports/{entry['report_id']}.{kind}" for entry in entries() for kind in ("json", "md", "html")
    }
    linked = 0
    for name, text in files.items():
        if name.endswith(".html"):
            for link in read(text).all("a"):
                linked += 1
                assert f"reports/{link.attributes['href']}" in files
    assert linked == 3 * 3 + 2 + 3 + 2


def test_report_files_show_the_drift_of_the_reports_up_to_each_one():
    files = report_files(entries())
    pages = [read(files[f"reports/{entry['report_id']}.html"]) for entry in entries()]
    lines = [page.all("polyline")[0].attributes["points"] for page in pages]
    assert [len(str(line).split()) for line in lines] == [1, 2, 3]


@pytest.mark.parametrize("name", ["../../outside", "index", "AB" * 8, ""])
def test_report_file_is_never_named_by_what_is_no_report_id(name):
    with pytest.raises(InvariantViolation, match="no report id"):
        report_files([entries()[0] | {"report_id": name}])
