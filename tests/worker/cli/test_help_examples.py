"""The examples of every help: there are some, they parse, and those that need nothing run."""

import os
import shlex
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tests.each_case import check_each
from tools.docs_reference import commands
from worker.cli import app
from worker.cli.examples import EXAMPLES

TREE = get_command(app)
WALKED = [" ".join(words) for words in commands()]
LINES = sorted({line for lines in EXAMPLES.values() for line in lines})
NEED_NOTHING = (
    "thinktwice init demo",
    "thinktwice runs",
    "thinktwice playbooks export my_playbooks",
    "thinktwice check --example > plan.json",
    "thinktwice config show",
    "thinktwice db upgrade --db sqlite:///thinktwice.db",
    "thinktwice mcp config",
    "thinktwice schema",
    "thinktwice schema PolicyLevelReflectionRequest",
)


def words_of(line):
    """What the program is given of a line that a shell reads."""
    words = shlex.split(line, comments=True)
    ends = next((k for k, word in enumerate(words) if word in ("<", ">")), len(words))
    return words[1:ends]


@check_each("words", WALKED, ids=lambda words: words or "thinktwice")
def test_help_of_every_command_ends_with_examples_of_it(words):
    text = CliRunner().invoke(app, [*words.split(), "--help"], terminal_width=60).stdout
    shown = text.partition("\nExamples:\n")[2].splitlines()
    assert shown == [f"  {line}" for line in EXAMPLES.get(words, ())]
    assert 1 <= len(shown) <= 3
    assert all(line.startswith(f"  thinktwice {words}".rstrip()) for line in shown[:1])


def test_examples_name_no_command_that_is_gone():
    assert set(EXAMPLES) == set(WALKED)


@check_each("line", LINES)
def test_line_of_an_example_parses(line):
    command: Any = TREE
    words = words_of(line)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    context = command.make_context(command.name, list(words))
    if command.name in ("ask", "guard"):  # words that are no command are a question, or the proxy
        _, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(command.name, list(words))
    assert command is not TREE
    assert not context.args


@pytest.mark.parametrize("line", NEED_NOTHING)
def test_line_that_needs_nothing_runs(line, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("THINKTWICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    assert line in LINES
    done = CliRunner().invoke(app, words_of(line))
    assert done.exit_code == 0, done.output
