"""Every command of the README and the tutorial, and every one with a bar, as a person runs it: in a terminal.

The commands of the pages are read from the pages; the README's run on the bars of a year, as in `tests/docs`.
"""

import ast
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.test_examples import FEWER_BARS
from tests.worker.cli.terminals import in_terminal
from tools.docs_examples import Ran, as_installed, commands, consoles, run_block, shell_words, write_files
from tools.docs_pages import DOCS, README, ROOT

PAGES = [README, *sorted((DOCS / "tutorial").glob("*.md"))]
# Of the commands with a bar that no such page has, with their exit codes, in this order in one folder.
OTHERS = {
    "thinktwice backtest --symbols AAPL --from 2004-01-01 --to 2004-12-31 --out out": 0,
    "thinktwice page latest --html run.html": 0,
    'thinktwice ask "why did squeeze_breakout lose?"': 0,
    "thinktwice reflect --json": 0,
    "thinktwice replan latest": 0,
    "thinktwice playbooks rollback mean_reversion": 2,
    "thinktwice ablate --symbols AAPL --from 2004-01-01 --to 2004-12-31 --seeds 1": 0,
    "thinktwice paper --symbols AAPL --from 2004-01-01 --to 2004-12-31 --speed max --db sqlite:///p.db": 0,
    "thinktwice gate out/trades.csv --looks weekly": 0,
    "thinktwice sweep --playbook channel_breakout --symbols AAPL --from 2004-01-01 --to 2004-12-31": 0,
}
# Commands with a bar that ask a model or an exchange: their bar is the same, drawn in test_progress.py.
ASK_OTHERS = {"data fetch", "ask-again"}
BARS = ("progress_bar", "rebuilt_run", "ReadingBar", "told_rows")
GROUPS = {"playbooks", "data", "db", "config"}


def run(command: str, folder: Path, extra: Mapping[str, str]) -> Ran:
    seen = in_terminal(shell_words(command), folder, extra)
    seen.demand_clean()
    return Ran(command, seen.code, seen.text)


def named(command: str) -> set[str]:
    """The commands of ours in a line of a page."""
    words = shlex.split(as_installed(command))
    found = [words[k + 1 : k + 3] for k, word in enumerate(words) if word == "thinktwice"]
    return {" ".join(pair) if pair[0] in GROUPS else pair[0] for pair in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_run_in_a_terminal_with_the_exit_code_of_the_page(page, tmp_path):
    write_files(page, tmp_path)
    extra = FEWER_BARS if page == README else {}
    for fence in consoles(page):
        if "skip" not in fence.options:
            for ran in run_block(fence, tmp_path, extra, run):
                assert ran.output.strip(), ran.command


def test_commands_with_a_bar_that_no_page_has_run_in_a_terminal(tmp_path):
    for command, code in OTHERS.items():
        ran = run(command, tmp_path, {})
        assert (command, ran.code) == (command, code), ran.output


def test_every_command_with_a_bar_is_run_in_a_terminal():
    """What draws a bar, by module, against the commands that the tests of this file run."""
    drawing = {
        path.stem
        for path in (ROOT / "worker" / "cli").glob("*.py")
        if path.stem != "progress"  # where the bars are made
        and any(
            isinstance(node, ast.Call) and getattr(node.func, "id", "") in BARS
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
        )
    }
    of_pages = [
        command
        for page in PAGES
        for fence in consoles(page)
        for command in commands(fence)
        if "skip" not in fence.options
    ]
    run_here = ASK_OTHERS.union(*map(named, [*of_pages, *OTHERS]))
    assert {"backtest", "verify", "reflect", "replan", "playbooks rollback", "ablate", "gate"} <= run_here
    elsewhere = {"reports": "reflect", "runs": "why", "ask_again": "ask-again"}
    modules = {name.partition(" ")[0] for name in run_here}
    assert {elsewhere.get(name, name) for name in drawing} <= modules
