"""A run that trades, seen and decided on in a real browser: at its next bar, over gaps, over a kill."""

import json
import os
import signal
import socket
import subprocess
import sys

import httpx
import numpy as np
import pandas as pd
import pytest

from tests.pages.browser import needs_browser
from tests.services.plans.plan_worlds import NAME
from tests.worker.console.asked import started
from tests.worker.console.live_runs import stepped
from tests.worker.console.test_browser import opened
from tests.worker.live.real_paper import ROOT, words, written
from tools.chromium import tab

pytestmark = needs_browser
HOSTILE = (
    "<img src=x onerror=document.title='WIPED'>",
    "'\"><script>document.title='WIPED'</script>",
    "\u202egnp",
    "L" * 60,
)


def sequence(page):
    return page.evaluate("[...document.querySelectorAll('#rows tr')].map((row) => Number(row.dataset.seq))")


def test_live_plan_is_edited_and_approved_and_acts_at_the_next_bar_under_the_open_page(tmp_path):
    faults: list[str] = []
    with stepped(tmp_path) as run, tab(online=True) as page:
        run.to(60)
        plan, before = run.plan(0.008), run.risk()
        opened(page, run.url, faults)
        page.goto(f"{run.url}/plans")
        page.click(f"text=Plan {plan.plan_id}")
        page.fill("input[name='steps.1.value']", "0.006")
        page.click("text=Save as a new revision")
        page.wait_for_selector("text=Revision 2")
        page.click("text=Approve this revision")
        run.to(62)
        page.wait_for_selector("text=completed")
        assert run.risk() == 0.006 != before
    assert faults == []


def test_live_plan_that_nobody_decides_ends_under_the_open_page(tmp_path):
    faults: list[str] = []
    with stepped(tmp_path) as run, tab(online=True) as page:
        run.to(60)
        run.approve(run.plan(0.008))
        run.to(62)
        run.request("rollback", {"playbook_id": NAME})
        run.to(63)
        opened(page, run.url, faults)
        page.goto(f"{run.url}/plans")
        page.click("article a")
        page.wait_for_selector("text=Approve this revision")
        run.to(75)
        page.wait_for_selector("main .outcome.declined")
        assert page.locator("text=Approve this revision").count() == 0
        assert run.risk() == 0.008
    assert faults == []


def test_live_plan_counts_down_by_its_bars_and_is_over_with_them_under_the_open_page(tmp_path):
    with stepped(tmp_path) as run, tab(online=True) as page:
        run.to(60)
        plan, before = run.plan(0.008), run.risk()
        faults: list[str] = []
        opened(page, run.url, faults)
        page.goto(f"{run.url}/plans/{plan.plan_id}")
        page.wait_for_selector(".countdown:has-text('of bars left')")
        first = page.inner_text(".countdown")
        run.to(62)
        page.wait_for_function("(text) => document.querySelector('.countdown').innerText !== text", arg=first)
        run.to(75)
        page.wait_for_selector("main .outcome.expired")
        assert page.locator("text=Approve this revision").count() == 0
        path = f"{run.url}/api/plans/{plan.plan_id}/approve"
        late = httpx.post(path, json={"hash": plan.content_hash})
        assert (late.status_code, "expired" in late.text) == (409, True)
        assert run.risk() == before
    assert [fault for fault in faults if "409" not in fault] == []


def test_live_page_fetches_rows_that_its_stream_left_out(tmp_path):
    with stepped(tmp_path) as run, tab(online=True) as page:
        run.to(30)
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        bodies = ["retry: 200\n\n"]
        page.route(
            "**/events?*", lambda route: route.fulfill(content_type="text/event-stream", body=bodies[-1])
        )
        page.goto(f"{run.url}/live?run=r0001")
        last = max(sequence(page))
        run.to(60)
        rows = page.evaluate(f"fetch('/api/runs/r0001/journal?after={last}').then((found) => found.text())")
        later = [json.loads(line) for line in rows.splitlines()]
        assert len(later) > 5
        kept = later[-1]
        assert sequence(page)[0] == last
        bodies.append(f"retry: 200\nid: {kept['seq']}\nevent: row\ndata: {json.dumps(kept)}\n\n")
        page.wait_for_selector(f"#rows tr:first-child[data-seq='{kept['seq']}']")
        shown = sequence(page)
    assert shown == list(range(shown[0], shown[0] - len(shown), -1))
    assert faults == []


def test_live_page_shows_each_symbol_and_follows_the_process(tmp_path):
    with stepped(tmp_path) as run, tab(online=True) as page:
        run.to(40)
        faults: list[str] = []
        opened(page, run.url, faults)
        page.goto(f"{run.url}/live?run=r0001")
        page.wait_for_selector("#status tbody tr")
        cells = page.locator("[aria-label=Symbols] td:first-child").all_inner_texts()
        assert cells == ["AAPL", "IBM"]
        limits = page.locator("[aria-label^=Limits] tbody tr").all_inner_texts()
        assert [line.split("\t")[0] for line in limits[:4]] == [
            *("kill switch", "daily loss", "drawdown", "consecutive losses")
        ]
        assert limits[1].split("\t")[3] == "3.0 %"
        before = page.inner_text("#status")
        run.to(45)
        page.wait_for_function("(text) => document.getElementById('status').innerText !== text", arg=before)
        page.click("text=Turn on")
        page.wait_for_selector("#status >> text=/kill switch\\s*⊘ on/")
        assert "kill_switch" in page.inner_text("#status tbody tr:first-child td:last-child")
    assert faults == []


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def process_of(folder, port):
    """A paper process with its console on a port, once it answers."""
    command = [sys.executable, "-m", "thinktwice", *words(folder / "bars.csv", f"sqlite:///{folder}/t.db")]
    process = subprocess.Popen(
        [*command, "--speed", "240", "--console-port", str(port)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_STATE_HOME": str(folder)},
    )
    lines: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        lines.append(line)
        if "console_open" in line:
            return process
    raise AssertionError("".join(lines))


def test_page_outlives_a_process_that_is_killed_and_misses_no_row(tmp_path):
    written(tmp_path, 5_000)
    port = free_port()
    first = process_of(tmp_path, port)
    try:
        with tab(online=True) as page:
            page.set_default_timeout(90_000)
            page.goto(f"http://127.0.0.1:{port}/live?run=latest")
            page.wait_for_selector("#stream:has-text('connected')")
            first.send_signal(signal.SIGKILL)
            first.wait(30)
            page.wait_for_selector("#stream:has-text('connection lost')")
            page.wait_for_selector("#notice:has-text('does not answer')")
            before = sequence(page)
            second = process_of(tmp_path, port)
            try:
                page.wait_for_selector("#stream:has-text('connected')")
                page.wait_for_selector("#notice:has-text('does not answer')", state="detached")
                page.wait_for_function(
                    "(last) => Number(document.querySelector('#rows tr').dataset.seq) > last",
                    arg=before[0] + 5,
                )
                shown = sequence(page)
            finally:
                second.terminate()
                second.communicate(timeout=60)
    finally:
        first.kill()
        first.communicate()
    assert shown == list(range(shown[0], shown[0] - len(shown), -1))


@pytest.fixture
def hostile(shell):
    random, frames = np.random.default_rng(5), []
    for name in HOSTILE:
        close = 100.0 * np.exp(np.cumsum(random.normal(0.0005, 0.02, 300)))
        frame = pd.DataFrame({"open": close, "high": close * 1.01, "low": close * 0.99, "close": close})
        frames.append(
            frame.assign(
                symbol=name, volume=10.0, time=pd.date_range("2020-01-01", periods=len(frame), tz="UTC")
            )
        )
    pd.concat(frames).to_parquet("bars.parquet")
    command = [sys.executable, "-m", "thinktwice", "backtest", "--data", "bars.parquet"]
    subprocess.run(command, check=True, capture_output=True)


def test_hostile_symbols_are_text_on_every_page_and_the_stepper_shows_decisions(hostile):
    faults: list[str] = []
    with started() as url, tab(online=True) as page:
        opened(page, url, faults)
        for place in ("/runs", "/live?run=latest", "/ask", "/plans"):
            page.goto(url + place)
            assert "WIPED" not in page.title()
        page.goto(f"{url}/live?run=latest")
        assert HOSTILE[0] in page.inner_text("#status")
        page.goto(f"{url}/runs/latest")
        page.wait_for_selector("#chart[data-drawn]")
        names = page.locator("#symbol option").all_inner_texts()
        assert any("<img" in name for name in names)
        page.click("#previous")
        page.wait_for_selector("#decision li")
        newest = page.inner_text("#decision p")
        page.click("#previous")
        page.wait_for_function(
            "(text) => document.querySelector('#decision p').innerText !== text", arg=newest
        )
        page.click("#next")
        page.wait_for_function(
            "(text) => document.querySelector('#decision p').innerText === text", arg=newest
        )
        page.click("#decision a >> nth=0")
        page.wait_for_selector("h1:has-text('Journal of run')")
        page.go_back()
        page.wait_for_selector("#chart[data-drawn]")
        bands = page.evaluate("Bokeh.documents.at(-1).get_model_by_name('states').data.state")
        assert "IDLE" in bands
        assert "WIPED" not in page.title()
        assert page.locator("img[src=x]").count() == 0
        assert page.evaluate("element('p', '\\u202egnp\\u3164').textContent") == r"\u202egnp\u3164"
        page.set_viewport_size({"width": 400, "height": 900})
        for place in ("", "/journal", "/page", "/reports"):
            page.goto(f"{url}/runs/latest{place}")
            page.wait_for_load_state("networkidle")
            assert page.evaluate("document.documentElement.scrollWidth") == 400, place
    assert faults == []


def test_chart_moves_no_further_than_its_last_candle(hostile):
    with started() as url, tab(online=True) as page:
        page.goto(f"{url}/runs/latest")
        page.wait_for_selector("#chart[data-drawn]")
        for way in ("#on", "#back"):
            for _ in range(12):
                page.click(way)
            page.wait_for_load_state("networkidle")
            assert page.get_attribute("#chart", "data-drawn") not in (None, "0"), way
