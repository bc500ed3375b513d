"""Every example command of the documentation runs; what it prints has the shape that the page shows.

Figures are not compared: `make docs` writes them, and another processor may round the last digit elsewhere.
"""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from schemas.errors import ConfigError
from tests.commands.started import on_path
from tools.docs_examples import (
    Ran,
    as_installed,
    commands,
    consoles,
    in_shell,
    run_block,
    show_block,
    without_waiting,
    write_files,
)
from tools.docs_pages import README, ROOT, Fence, fences, pages
from worker.cli import app

# What the pages run on all bars runs here on a part of them; flags on a page win over these.
FEWER_BARS = {"THINKTWICE_RUNTIME__START": "2004-01-01", "THINKTWICE_RUNTIME__END": "2004-12-31"}
FOUR_YEARS = {"THINKTWICE_RUNTIME__START": "2003-01-01", "THINKTWICE_RUNTIME__END": "2006-12-31"}
WITH_EXAMPLES = [page for page in pages() if any("skip" not in fence.options for fence in consoles(page))]
EXCLUDED = {"skip", "long"}
SUMMARY = "thinktwice backtest"
GROUP = re.compile(r"\w+ +[\d,]+ +[\d.]+ +[-+]")  # trades of one name: other bars, other names


def labels(text: str) -> set[str]:
    """The first column of a summary: what is reported, without the figures."""
    lines = [line for line in text.splitlines() if not line.startswith(" " * 10) and not GROUP.match(line)]
    first = (re.split(r"\s{2,}", line.strip())[0] for line in lines)
    return {label for label in first if re.fullmatch(r"[A-Za-z][A-Za-z -]*", label)}


def compare(fence: Fence, printed: str) -> None:
    command = commands(fence)[0]
    if SUMMARY in command and fence.options.get("exit", "0") == "0":
        assert labels(printed) == labels(fence.text), command
    elif "verify" in command:
        assert [line.split()[0] for line in printed.splitlines()] == [
            line.split()[0] for line in fence.text.splitlines()
        ]
    elif fence.options.get("exit", "0") != "0":
        assert printed == fence.text


def in_process(command: str, folder: Path, extra: Mapping[str, str]) -> Ran:
    """Run a plain `thinktwice` command here, with the engine compiled; anything else in a shell."""
    words = shlex.split(as_installed(command))
    if words[0] != "thinktwice" or {"|", ">"} & set(words):
        return in_shell(command, folder, extra)
    done = CliRunner().invoke(app, words[1:], env=dict(extra))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Ran(command, done.exit_code, without_waiting(done.output))


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_a_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("THINKTWICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    write_files(page, tmp_path)
    for fence in consoles(page):
        if not EXCLUDED & set(fence.options):
            extra = on_path() | (FEWER_BARS if page == README else FOUR_YEARS)
            compare(fence, show_block(fence, run_block(fence, tmp_path, extra, in_process)))


def test_examples_that_are_not_run_say_why():
    everything = [fence for page in pages() for fence in consoles(page)]
    excluded = [fence for fence in everything if EXCLUDED & set(fence.options)]
    assert 0 < 6 * len(excluded) < len(everything), "nearly every example runs"
    assert all(len(fence.options[name]) > 10 for fence in excluded for name in EXCLUDED & set(fence.options))


def test_every_command_of_the_program_appears_only_in_blocks_that_run():
    other = [
        fence
        for page in pages()
        for fence in fences(page)
        if fence.language not in ("console", "text") and "thinktwice backtest" in fence.text
    ]
    assert other == []


def test_command_with_another_exit_code_than_the_page_says_is_an_error(tmp_path):
    fence = Fence(Path("page.md"), "console", {"exit": "3"}, "$ thinktwice runs\n", 0, 0)
    with pytest.raises(ConfigError, match="'thinktwice runs' ended with 0"):
        run_block(fence, tmp_path, {})
