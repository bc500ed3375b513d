"""A forked command is the command: same bytes, exit code and end as one with an interpreter of its own."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.commands.started import on_path, python, run_to_end, thinktwice
from tests.worker.cli.terminals import in_terminal
from tests.worker.cli.test_lost_store import STORE, environment, rows_of
from tools.docs_examples import shell_environment, without_waiting
from tools.docs_pages import ROOT

FRESH = str(Path(sys.executable).with_name("thinktwice"))
PERIOD = ("--symbols", "AAPL", "--from", "2004-01-01", "--to", "2004-06-30")
# What is measured, and the padding that depends on it.
FIGURES = re.compile(r"[\d,.]+ (?:bars/s|ms|s)\b|(?<=budget )[\d.]+| +$", re.MULTILINE)
WORDS = {
    "help": (("--help",), 0),
    "run": (("backtest", *PERIOD), 0),
    "journal": (("journal", "latest", "--jsonl"), 0),
    "bad symbol": (("backtest", "--symbols", "NONE"), 2),
    "bad input": (("check", "-"), 2),
}


def ended(words: list[str], folder: Path, **environment: str) -> tuple[int, str, str]:
    """Exit code and what was printed, without what was measured."""
    given = shell_environment({"COLUMNS": "70", **environment})
    done = run_to_end(words, folder, env=given, input="{not json")
    printed, reply = (FIGURES.sub("#", without_waiting(text)) for text in (done.stdout, done.stderr))
    return done.returncode, printed, reply


def test_forked_command_prints_the_bytes_of_a_fresh_one_and_ends_as_it_does(tmp_path):
    folders = {FRESH: tmp_path / "fresh", thinktwice(): tmp_path / "forked"}
    for folder in folders.values():
        folder.mkdir()
    for what, (words, code) in WORDS.items():
        fresh, forked = (ended([program, *words], folder) for program, folder in folders.items())
        assert (what, forked) == (what, fresh)
        assert (what, fresh[0]) == (what, code)
    left = [sorted(path.name for path in folder.iterdir()) for folder in folders.values()]
    assert left[0] == left[1] == ["thinktwice.db"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_forked_command_that_is_stopped_ends_as_a_fresh_one(tmp_path, number, code):
    shown = []
    for program, name in ((FRESH, "fresh"), (thinktwice(), "forked")):
        folder = tmp_path / name
        folder.mkdir()
        words = [program, "paper", *PERIOD, "--speed", "8640000", "--json"]
        process = subprocess.Popen(words, cwd=folder, env=environment(), stdout=PIPE, stderr=PIPE, text=True)
        while rows_of(folder / STORE, "paper_bars") < 3:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(number)
        printed, text = process.communicate(timeout=60)
        shown.append((process.returncode, printed, text.splitlines()[-1]))
    assert shown[0] == shown[1]
    assert shown[0][0] == code


PROGRAM = """
import os, signal, sys
print(sys.argv, os.getcwd(), os.environ["OWN"], sorted(os.environ), sys.stdin.read(), __name__)
print(os.umask(0), sys.stdin.isatty(), sys.stdout.line_buffering, sys.stderr.errors, flush=True)
print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP))
print([stream.encoding for stream in (sys.stdin, sys.stdout, sys.stderr)], len(os.listdir("/proc/self/fd")))
sys.stderr.write("said \\udc80\\n")
import atexit, threading
atexit.register(print, "at the end")
threading.Thread(target=lambda: (threading.main_thread().join(), print("after the main thread"))).start()
{last}
"""


@pytest.mark.parametrize("last", ["", "sys.exit(7)", "sys.exit('words')", "os.kill(os.getpid(), 15)"])
def test_forked_program_finds_what_a_fresh_one_finds_and_ends_as_it_does(tmp_path, last):
    words = ["-c", PROGRAM.format(last=last), "a", "b c"]
    fresh, forked = (ended([program, *words], tmp_path, OWN="own") for program in (sys.executable, python()))
    assert forked == fresh


def test_forked_module_and_file_run_as_the_main_program(tmp_path):
    (tmp_path / "file.py").write_text("import sys, beside; print(sys.argv, __name__, beside.WORD)")
    (tmp_path / "beside.py").write_text("WORD = 'found'")
    for words in (["file.py", "x"], ["-m", "this"], ["-m", "thinktwice", "nonsense"]):
        fresh, forked = (
            ended([program, *words], tmp_path, PYTHONPATH=str(ROOT)) for program in (sys.executable, python())
        )
        assert forked == fresh


def test_forked_command_that_fails_shows_its_traceback(tmp_path):
    code, printed, text = ended([python(), "-c", "1 / 0"], tmp_path)
    assert (code, printed, text.splitlines()[-1]) == (1, "", "ZeroDivisionError: division by zero")


def test_forked_command_dies_with_the_process_that_stands_for_it(tmp_path):
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with subprocess.Popen([python(), "-c", program], stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert pid != process.pid
        process.kill()
    with suppress(ProcessLookupError):
        for _ in range(1_000):
            os.kill(pid, 0)
            time.sleep(0.01)
        raise AssertionError("it lives on")


def test_shell_finds_the_forked_commands_and_its_terminal_is_theirs(tmp_path):
    words = ["sh", "-c", 'thinktwice --help | head -n 1 && python -c "import os; print(os.isatty(0))"; tty']
    seen = in_terminal(words, tmp_path)
    assert "True" in seen.lines, seen.end
    assert shell_environment(on_path())["PATH"].startswith(str(Path(thinktwice()).parent))


def test_forked_command_hears_a_signal_that_it_was_started_to_ignore_if_it_asks_for_it(tmp_path):
    """As of a job that a shell has put behind itself."""
    heard = "import signal, sys, time; signal.signal(signal.SIGINT, lambda *_: sys.exit(9)); "
    wait = "print('on', flush=True); time.sleep(60)"
    for first, request, code in (
        (heard, [signal.SIGINT], 9),
        ("import time; ", [signal.SIGINT, signal.SIGTERM], -15),
    ):
        words = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", python(), "-c", first + wait]
        with subprocess.Popen(words, cwd=tmp_path, stdout=PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "on\n"
            for number in request:
                process.send_signal(number)
        assert process.returncode == code
