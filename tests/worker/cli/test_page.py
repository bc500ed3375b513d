"""`thinktwice page` and `backtest --html`: one page of one run, made now or of what the store keeps."""

import errno
import json
import re
import shutil
import signal
import sqlite3
import webbrowser

import pytest

from tests.services.store.stores import seal_again
from tests.worker.cli.conftest import Shell, at_defaults
from tests.worker.planted_store import world
from tests.worker.shared_runs import embedded_bars
from worker.cli import reports
from worker.pages import run_page
from worker.review import rebuilt
from worker.runs import run_inputs
from worker.runs.backtest import run_backtest
from worker.runs.interrupts import RunInterrupted
from worker.runs.replay import Replay

PLAYBOOKS = run_inputs.playbooks
RUN = ("backtest", "--symbols", "IBM", "--from", "2003-07-01", "--to", "2004-06-30")


@pytest.fixture
def real(shell, monkeypatch):
    monkeypatch.setattr(run_inputs, "backtest_runner", lambda *tell: run_backtest)
    monkeypatch.setattr(run_inputs, "playbooks", PLAYBOOKS)
    return shell


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a backtest has stored its run and drawn the page of it."""
    folder = tmp_path_factory.mktemp("paged")
    with pytest.MonkeyPatch.context() as patch:
        at_defaults(folder, patch)
        made = Shell(folder).run(*RUN, "--html", "a.html")
    assert made.exit_code == 0
    assert "page of run r0001: a.html" in made.stderr
    return folder


@pytest.fixture
def paged(real, folder):
    shutil.copytree(folder, real.folder, dirs_exist_ok=True)
    return real


def test_page_of_a_stored_run_is_the_page_of_its_backtest(paged):
    real = paged
    result = real.run("page", "--html", "b.html")
    assert result.stdout.startswith("page of run r0001: b.html (")
    assert (real.folder / "a.html").read_bytes() == (real.folder / "b.html").read_bytes()
    before = (real.folder / "b.html").stat().st_ino
    real.run("page", "r0001", "--html", "b.html")
    assert (real.folder / "b.html").stat().st_ino != before, "an existing page is replaced, not written over"


def refuse(*given, **rest):
    raise AssertionError("the run was played again")


def test_page_of_a_finished_run_is_drawn_without_playing_it_again(paged, monkeypatch):
    monkeypatch.setattr(Replay, "rebuild", refuse)
    result = paged.run("page", "--html", "b.html")
    assert result.exit_code == 0, result.output
    assert (paged.folder / "a.html").read_bytes() == (paged.folder / "b.html").read_bytes()


def test_page_of_a_run_that_left_bars_out_is_drawn_from_those_that_it_traded(real, monkeypatch):
    bars = embedded_bars("2003-01-01", "2004-06-30").select(("IBM",))
    lines = ["time,open,high,low,close,volume"]
    for t, label in enumerate(bars.times.astype("datetime64[ns]").astype("datetime64[D]").astype(str)):
        high = float(bars.high[t, 0]) * (10.0 if t == 200 else 1.0)
        prices = (bars.open[t, 0], high, bars.low[t, 0], bars.close[t, 0], bars.volume[t, 0])
        lines.append(",".join([label, *(repr(float(price)) for price in prices)]))
    (real.folder / "bars.csv").write_text("\n".join(lines))
    (real.folder / "always.toml").write_text('[data]\nplausibility = "always"\n')
    made = real.run(
        "backtest", "always.toml", "--data", "bars.csv", "--tz", "UTC", "--html", "a.html", "--json"
    )
    assert json.loads(made.stdout)["data"]["left_out"]
    monkeypatch.setattr(Replay, "rebuild", refuse)
    result = real.run("page", "--html", "b.html")
    assert result.exit_code == 0, result.output
    assert (real.folder / "a.html").read_bytes() == (real.folder / "b.html").read_bytes()


def test_page_that_finds_no_room_takes_nothing_of_its_backtest_away(real, monkeypatch):
    def full(path, text):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(reports, "replace_file", full)
    made = real.run(*RUN, "--html", "a.html", "--json")
    assert made.exit_code == 2
    assert json.loads(made.stdout)["run_id"] == "r0001"
    assert "--html 'a.html' cannot be written (No space left on device)" in made.stderr
    assert "run r0001 is stored, `thinktwice page r0001 --html OTHER` writes its page" in made.stderr


def test_ctrl_c_while_the_page_of_a_finished_run_is_drawn_says_that_it_is_stored_and_how_to_draw_it(
    real, monkeypatch
):
    def pressed(picture):
        signal.raise_signal(signal.SIGINT)
        return "drawn all the same"

    monkeypatch.setattr(run_page, "run_html", pressed)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a test in the background ignores it
    try:
        stopped = real.run(*RUN, "--html", "its page.html")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (stopped.exit_code, stopped.stdout) == (130, "")
    assert stopped.stderr.splitlines() == [
        "thinktwice: run r0001 is stored, `thinktwice page r0001 --html 'its page.html'` writes its page",
        "thinktwice: stopped by SIGINT",
    ]
    assert not (real.folder / "its page.html").exists()
    assert "finished" in real.run("runs").stdout


def test_page_of_a_planted_run_shows_every_part(planted):
    result = planted.run("page", "--html", "page.html")
    assert result.exit_code == 0, result.output
    text = (planted.folder / "page.html").read_text("utf-8")
    for name in (
        "summary",
        "course",
        "months",
        "chart",
        "ledger",
        "excursion",
        "hold",
        "groups",
        "reflections",
    ):
        assert f'<section id="{name}">' in text
    assert "This run was not finished" not in text


def test_page_of_an_interrupted_run_says_so_and_until_when_it_goes(real, monkeypatch):
    def stops(*given, progress=None, **rest):
        def stop(done, total):
            if done > 150:
                raise RunInterrupted(2)

        return run_backtest(*given, progress=stop, **rest)

    monkeypatch.setattr(run_inputs, "backtest_runner", lambda *tell: stops)
    stopped = real.run(*RUN, "--html", "its page.html")
    assert stopped.exit_code == 130
    assert "not written: `thinktwice page r0001 --html 'its page.html'` writes it" in stopped.stderr
    monkeypatch.setattr(run_inputs, "backtest_runner", lambda *tell: run_backtest)
    result = real.run("page", "--html", "page.html")
    assert result.exit_code == 0, result.output
    text = (real.folder / "page.html").read_text("utf-8")
    assert "This run was not finished (interrupted): everything here is as of 2004-" in text


def test_page_of_a_run_shows_the_report_that_a_slow_worker_wrote_about_it(real):
    (real.folder / "traded.toml").write_text("[high_level]\nenabled = false\n")
    (real.folder / "worker.toml").write_text("[high_level]\nenabled = true\n")
    period = ("--from", "2004-01-01", "--to", "2006-12-31")
    assert real.run("backtest", "traded.toml", "--symbols", "AAPL,MSFT", *period).exit_code == 0
    real.run("page", "--html", "before.html")
    assert "No report: " in (real.folder / "before.html").read_text("utf-8")
    message = real.run("worker", "worker.toml", "--once", "--at", "2007-01-06").stdout
    [name] = re.findall("reported: ([0-9a-f]{16})", message)
    real.run("page", "--html", "after.html")
    text = (real.folder / "after.html").read_text("utf-8")
    assert f"Report <code>{name}</code>" in text
    assert "No report: " not in text


def test_page_of_a_run_whose_bars_changed_names_the_difference(planted, monkeypatch):
    bars = world()
    fewer = bars.select(end_ns=int(bars.times[-2]))
    monkeypatch.setattr(rebuilt, "load_bars", lambda settings, note: fewer)
    text = planted.complaint("page", "--html", "page.html")
    assert "name those of the run with --data" in text
    assert not (planted.folder / "page.html").exists()


def test_page_is_refused_where_it_cannot_be_written_before_anything_runs(planted):
    (planted.folder / "folder").mkdir()
    assert "says where" in planted.complaint("page")
    assert "a page is not printed" in planted.complaint("page", "--html", "-")
    assert "--html names no file" in planted.complaint("page", "--html", "")
    assert "is a folder" in planted.complaint("page", "--html", "folder")
    assert "there is no folder 'nowhere'" in planted.complaint("page", "--html", "nowhere/page.html")
    assert "there is no folder 'nowhere'" in planted.complaint("backtest", "--html", "nowhere/page.html")


def test_page_of_a_run_under_way_is_refused(planted):
    with sqlite3.connect(planted.folder / "thinktwice.db") as store:
        store.execute("update runs set status = 'running', document = null")
    seal_again(planted.folder / "thinktwice.db")
    assert "under way, or was killed" in planted.complaint("page", "--html", "page.html")


@pytest.mark.parametrize("opens", [True, False])
def test_page_is_opened_and_told_where_no_browser_is(paged, monkeypatch, opens):
    questions = []

    def browser(address):
        questions.append(address)
        return opens

    monkeypatch.setattr(webbrowser, "open", browser)
    result = paged.run("page", "--html", "page.html", "--open")
    assert questions == [(paged.folder / "page.html").as_uri()]
    assert ("no browser could be opened" in result.stderr) is not opens
