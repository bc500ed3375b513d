"""Progress with and without a known total: in terminals of several kinds, and piped."""

import re
import subprocess
import sys
import time
from contextlib import nullcontext
from io import StringIO

import pandas as pd
import pytest
from rich.console import Console

import thinktwice as tt
from schemas.errors import ConfigError
from tests.commands.started import python, run_to_end
from tests.worker.cli.conftest import Shell, at_defaults
from tests.worker.cli.terminals import in_terminal
from tools.docs_examples import shell_environment
from worker.pages.screen import made_bar
from worker.runs import progress, readiness, run_inputs
from worker.runs.interrupts import Interrupts, RunInterrupted
from worker.runs.progress import Activity, progress_bar, step
from worker.runs.warm_up import compile_engine

# Totals that come late, never come, are nothing, or less than there is; and names to be wary of. The bar
# looks at them a hundred times a second, so that each is seen without a long wait.
PROGRAM = """
import time
from worker.pages import screen
from worker.runs import progress
from worker.runs.progress import progress_bar, step
from worker.runs.interrupts import Interrupts
progress.REDRAW_S, made_bar = 0.0, screen.made_bar
def made_fast(text):
    bar = made_bar(text)
    bar.live.refresh_per_second = 100
    return bar
screen.made_bar = made_fast
for totals in ((4, 4, 4, 4, 4), (None, None, 4), (None,) * 3, (0,), (2, 2, 2)):
    with progress_bar("[/x] {task} \\x1b[2J", Interrupts(), first="features of 300 symbols") as draw:
        time.sleep(0.03)
        for done, total in enumerate(totals):
            draw(done, total)
            time.sleep(0.03)
with step("loading \\x1b]0;title\\x07" + "x" * 300) as rename:
    time.sleep(0.03)
    rename("writing")
    time.sleep(0.03)
print("result")
"""
WORDS = ["python", "-c", PROGRAM]


@pytest.mark.parametrize("columns", [60, 200])
@pytest.mark.parametrize("colours", [{}, {"NO_COLOR": "1"}])
def test_progress_is_drawn_on_one_line_whatever_the_total_and_the_width(tmp_path, columns, colours):
    seen = in_terminal(WORDS, tmp_path, colours, columns=columns)
    seen.demand_clean()
    assert (seen.code, seen.lines[-1]) == (0, "result")
    assert max(map(len, seen.lines)) <= columns
    for words in ("[/x] {task} \\x1b[2J: feat", "[/x] {task} \\x1b[2J 1 of 4 bars", "1 bars", "writing"):
        assert words in seen.text, words
    assert ("\x1b[3" in seen.raw or "\x1b[9" in seen.raw) == (not colours), "colour codes"


def test_progress_on_a_terminal_that_moves_no_cursor_is_silent_while_it_is_short(tmp_path):
    seen = in_terminal(WORDS, tmp_path, {"TERM": "dumb"})
    assert (seen.code, seen.raw.replace("\r", "")) == (0, "result\n")


def test_progress_of_a_short_run_that_is_piped_is_silent(tmp_path):
    done = run_to_end([python(), *WORDS[1:]], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "result\n", "")


def test_progress_of_a_long_run_that_is_piped_is_a_plain_line_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(progress, "EVERY_S", 0.05)
    with progress_bar("replay", Interrupts(), first="features of 2 symbols") as draw:
        _wait_for_lines(capsys, ["[0:00] replay: features of 2 symbols"])
        draw(1_000, None)
        _wait_for_lines(capsys, ["[0:00] replay 1,000 bars"])
        draw(1_000, 2_000)
        _wait_for_lines(capsys, ["[0:00] replay 1,000 of 2,000 bars"])
        draw(2_000, 2_000)
        _wait_for_lines(capsys, ["[0:00] replay 2,000 of 2,000 bars, finishing"])
    with step("loading bars of \x1b[2J.csv"):
        _wait_for_lines(capsys, [r"[0:00] loading bars of \x1b[2J.csv"])


def _wait_for_lines(capsys, lines):
    """Until the thread that tells has told these; a machine under load may make a second of them."""
    text = ""
    while not set(lines) <= {re.sub(r"^\[0:\d\d\]", "[0:00]", line) for line in text.splitlines()}:
        found = capsys.readouterr()
        assert found.out == ""
        text += found.err


def test_progress_is_told_at_most_once_in_five_seconds(tmp_path):
    """Read in a process of its own: the tests make their own pauses."""
    program = "from worker.runs import progress; print(progress.EVERY_S)"
    assert float(run_to_end([python(), "-c", program], tmp_path).stdout) == 5.0


ROWS = """
import asyncio, time
from worker.runs import progress
progress.READ_EACH, progress.EVERY_S = 10, 0.02
async def rows():
    for number in range(31):
        time.sleep(0.05 if number % 10 == 1 else 0)
        yield number
async def read():
    return [row async for row in progress.told_rows(rows(), 31)]
print(len(asyncio.run(read())))
"""


def test_reading_of_many_rows_is_drawn_in_a_terminal_and_told_piped(tmp_path):
    seen = in_terminal(["python", "-c", ROWS], tmp_path, {})
    seen.demand_clean()
    assert (seen.code, seen.lines[-1]) == (0, "31")
    assert "reading 10 of 31 rows" in seen.text
    done = run_to_end([python(), "-c", ROWS], tmp_path)
    assert done.stdout == "31\n"
    assert re.search(r"^\[0:\d\d\] reading 10 of 31 rows$", done.stderr, re.M)


def test_reading_of_few_rows_is_silent(tmp_path):
    program = ROWS.replace("READ_EACH, progress.EVERY_S = 10", "READ_EACH, progress.EVERY_S = 31")
    done = run_to_end([python(), "-c", program], tmp_path)
    assert (done.stdout, done.stderr) == ("31\n", "")


def test_progress_hears_a_signal():
    interrupts = Interrupts()
    interrupts._note = lambda signum, frame: None  # type: ignore[method-assign]
    interrupts._signum = 2
    with pytest.raises(RunInterrupted), progress_bar("backtest", interrupts) as draw:
        draw(1, None)


def test_compiling_is_told_at_once_until_the_cache_of_these_sources_is_full(capsys, monkeypatch, tmp_path):
    """A part of it may be there: of a first run that was ended half way, or of another command."""
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "advance.1.nbc").touch()
    monkeypatch.setattr("trading_core.compiled_cache.cache_folder", lambda: tmp_path)
    compile_engine.cache_clear()
    readiness.ready_engine()
    text = "".join(f"[0:00] {words}\n" for words in (readiness.LOADING, readiness.MAKING_READY))
    shown = capsys.readouterr()
    assert (shown.out, shown.err.startswith(text)) == ("", True)
    readiness.ready_engine()
    assert readiness.MAKING_READY not in capsys.readouterr().err


@pytest.mark.parametrize("ready", [readiness.ready_engine, readiness.ready_once])
def test_engine_without_its_compiler_is_refused_before_it_runs(ready, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(ConfigError, match="^NUMBA_DISABLE_JIT is set, and .* compiled only: unset it$"):
        ready()


def test_loading_the_compiled_engine_is_a_step_too(monkeypatch, tmp_path):
    """The mark says that it was compiled once; numba may find it stale, and then a minute passes here."""
    (tmp_path / "engine-compiled").touch()
    monkeypatch.setattr("trading_core.compiled_cache.cache_folder", lambda: tmp_path)
    titles: list[str] = []

    def shown(title, **_):
        titles.append(title)
        return nullcontext()

    monkeypatch.setattr(readiness, "step", shown)
    readiness.ready_engine()
    assert titles == [readiness.LOADING, "loading the compiled engine"]


def test_steps_of_a_backtest_that_take_long_on_many_bars_are_told(tmp_path, monkeypatch):
    at_defaults(tmp_path, monkeypatch)
    shown: list[str] = []

    class Recorded(Activity):
        def __init__(self, title, first, unit):
            super().__init__(title, first, unit)
            shown.append(self.text)

    monkeypatch.setattr(progress, "Activity", Recorded)
    bars = tmp_path / "mine.csv"
    days = pd.bdate_range("2024-01-01", periods=30).strftime("%Y-%m-%d")
    rows = (f"{day},IBM,10,11,9,{10 + k % 2},1000" for k, day in enumerate(days))
    bars.write_text("timestamp,symbol,open,high,low,close,volume\n" + "\n".join(rows) + "\n", "utf-8")
    done = Shell(tmp_path).run(
        "backtest", "--data", str(bars), "--tz", "UTC", "--out", "result", "--html", "run.html"
    )
    assert done.exit_code == 0, done.output
    steps = [
        f"loading bars of {bars}",
        "backtest: features of 1 symbol",
        "writing result",
        "drawing run.html",
    ]
    assert [title for title in shown if "compil" not in title and title != readiness.LOADING] == steps


def test_engine_is_made_ready_before_a_run_waits_for_it(monkeypatch):
    made = []
    monkeypatch.setattr(run_inputs, "ready_engine", lambda: made.append(True))
    run_inputs.backtest_runner()
    assert made


PAPER = ("thinktwice", "paper", "--symbols", "AAPL", "--from", "2010-01-01", "--to", "2010-12-31")


def test_first_paper_run_says_what_it_waits_for_and_how_far_it_is(tmp_path):
    """In a process whose cache of compiled code is empty, up to where the compilation is announced."""
    cold = {"THINKTWICE_CACHE_DIR": str(tmp_path / "cold")}
    seen = in_terminal(
        PAPER, tmp_path, cold, fresh=True, press=lambda text, pid: readiness.MAKING_READY in text
    )
    seen.demand_clean()
    assert seen.code == 130
    assert readiness.LOADING in seen.text
    assert not (tmp_path / "thinktwice.db").exists(), "Ctrl-C found nothing to lose"
    program = [sys.executable, "-m", "thinktwice", *PAPER[1:]]
    piped = subprocess.Popen(
        program, cwd=tmp_path, env=shell_environment({}) | cold, stderr=subprocess.PIPE, text=True
    )
    try:
        assert piped.stderr is not None
        shown = iter(piped.stderr.readline, "")
        assert any(line == f"[0:00] {readiness.LOADING}\n" for line in shown)
        assert any(line == f"[0:00] {readiness.MAKING_READY}\n" for line in shown)
    finally:
        piped.kill()
        piped.communicate()


def test_paper_run_draws_a_bar_over_its_rows(tmp_path):
    seen = in_terminal(PAPER, tmp_path)
    seen.demand_clean()
    assert seen.code == 0, seen.end
    assert re.search(r"paper \d+ rows", seen.text)
    assert seen.lines[-1].startswith("errors: 0")


LIBRARY = "import thinktwice as tt; tt.backtest(symbols=('AAPL',), end='2000-06-30')"


def test_library_says_at_once_that_it_loads_and_compiles_where_nothing_is_compiled(tmp_path):
    cold = shell_environment({}) | {"THINKTWICE_CACHE_DIR": str(tmp_path / "cold")}
    piped = subprocess.Popen(
        [sys.executable, "-c", LIBRARY], env=cold, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    try:
        assert piped.stderr is not None
        shown = iter(piped.stderr.readline, "")
        assert next(shown) == f"[0:00] {readiness.LOADING}\n"
        assert any(line == f"[0:00] {readiness.MAKING_READY}\n" for line in shown)
    finally:
        piped.kill()
        piped.communicate()


FIRST_WORD = """
import os, sys

class Heard:
    def write(self, text):
        print((text, "numba" in sys.modules), flush=True)
        os._exit(0)

    def flush(self): ...

    def isatty(self):
        return {terminal}

{prompt}
sys.stderr = Heard()
import thinktwice as tt
from worker.runs import progress
progress.FIRST_S = progress.EVERY_S = 3_600.0
tt.backtest
print(None)
"""


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ({"prompt": "", "terminal": True}, ("\x1b[?25l", False)),  # a bar hides the cursor
        ({"prompt": "sys.ps1 = 'In : '", "terminal": False}, (f"[0:00] {readiness.LOADING}\n", False)),
        ({"prompt": "", "terminal": False}, None),
    ],
)
def test_library_speaks_before_it_imports_the_engine_where_a_person_waits(words, first, tmp_path):
    """A terminal and a notebook, each with the engine compiled; a script that is piped says nothing."""
    compile_engine()
    shown = shell_environment({"TERM": "xterm"})
    done = run_to_end([sys.executable, "-c", FIRST_WORD.format(**words)], tmp_path, env=shown)
    assert done.stdout == f"{first!r}\n"


def test_first_word_of_a_library_comes_before_a_line_every_five_seconds_and_counts_all_steps(
    monkeypatch, capsys
):
    """The second step waits for what is left of the time, and none behind the first word."""
    monkeypatch.setattr(progress, "FIRST_S", 60.0)
    progress.speak_soon()
    with step("loading"):
        pass
    assert capsys.readouterr().err == ""
    assert 0.0 < progress._first_wait() <= 60.0
    progress._FirstWord.due = time.monotonic()  # a minute later
    with step("compiling"):
        _wait_for_lines(capsys, ["[0:00] compiling"])
    assert progress._first_wait() == progress.EVERY_S == 3_600.0


def test_backtest_of_the_library_says_a_word_soon_unless_it_is_told_not_to(monkeypatch, capsys):
    backtest = tt.backtest  # the engine is loaded
    monkeypatch.setattr(progress, "FIRST_S", 0.0)
    monkeypatch.setattr(progress._FirstWord, "due", None)
    backtest(symbols=("AAPL",), end="2000-12-29", progress=False)
    assert "[0:0" not in capsys.readouterr().err
    backtest(symbols=("AAPL",), end="2000-12-29")
    assert len([line for line in capsys.readouterr().err.splitlines() if line.startswith("[0:")]) == 1


def test_library_tells_how_far_a_backtest_is_unless_it_is_told_not_to(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY_S", 0.01)
    tt.backtest(symbols=("AAPL",), end="2000-12-29")
    assert " backtest " in capsys.readouterr().err
    tt.backtest(symbols=("AAPL",), end="2000-12-29", progress=False)
    assert " backtest " not in capsys.readouterr().err


def test_words_of_loading_fit_sixty_columns_with_the_clock():
    bar = made_bar(lambda: Activity(readiness.LOADING, "", "").text)
    bar.add_task("", total=None)
    with StringIO() as drawn:
        Console(file=drawn, width=60).print(bar.get_renderable())
        assert drawn.getvalue().startswith(f"{readiness.LOADING} ")
        assert drawn.getvalue().rstrip().endswith("0:00:00")
