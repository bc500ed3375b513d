"""One grammar over all commands: a run first and optionally, or what is asked about first and `--run RUN`."""

from typing import Any, get_args

import pytest
from typer.main import get_command

from services.evidence.tools import TOOLS
from tests.each_case import check_each
from tools.docs_reference import commands
from worker.cli import app

LATEST = "latest"
ABOUT_A_RUN = {
    "status", "requests", "journal", "verify", "page", "report", "reports", "playbooks list", "reflect",
    "replan", "calibration", "ask-again", "db prune",
}  # fmt: skip
OF_A_RUN_OR_ITS_OWN = {"faults"}  # without a run it makes one that is not stored
# Whose subject is a file, a question, a change, or a thing of a run, and that take the newest run.
OF_THE_NEWEST = {
    "why", "kill", "factcheck", "deliberate", "playbooks history", "playbooks rollback",
    "worker",
}  # fmt: skip
# The tools, whose subject is in their name.
TOOLS_OF_ASK = {f"ask {name}" for name in TOOLS} - {"ask runs"}
# A plan is of one run, a list is of every run, a server answers for every run, and an export has a default.
OF_EVERY_RUN = {
    "plans list", "plans show", "plans diff", "plans edit", "plans approve", "plans cancel", "plans rollback",
    "mcp", "mcp config", "playbooks export", "guard questions", "guard approve", "guard refuse",
}  # fmt: skip
TREE = get_command(app)


def parameters_of(words):
    command: Any = TREE
    for word in words:
        command = command.commands[word]
    first = [part for part in command.params if part.param_type_name == "argument"]
    runs = [part for part in command.params if "--run" in part.opts]
    return first, runs


def names_a_run(argument):
    return argument.name == "run" or "RUN" in (argument.metavar or "")


COMMANDS = {" ".join(words): parameters_of(words) for words in commands() if words}
OF_THE_NEWEST |= {words for words in COMMANDS if words.startswith("plans make ")}


def test_every_command_with_a_run_is_of_one_kind():
    first = {words for words, (arguments, _) in COMMANDS.items() if any(map(names_a_run, arguments))}
    option = {words for words, (_, runs) in COMMANDS.items() if runs}
    assert first == ABOUT_A_RUN | OF_A_RUN_OR_ITS_OWN
    assert (
        option - {"replan"} == OF_THE_NEWEST | OF_EVERY_RUN | TOOLS_OF_ASK
    )  # `replan` takes a report in its place, too


@pytest.mark.parametrize("words", sorted(ABOUT_A_RUN))
def test_command_about_a_run_takes_it_first_and_the_newest_without_it(words):
    (run, *others), _ = COMMANDS[words]
    assert (names_a_run(run), run.required, run.default) == (True, False, LATEST)
    assert run.metavar.startswith("RUN")
    assert "[latest]" in run.help
    assert not any(map(names_a_run, others))
    assert not any(other.required for other in others)


@pytest.mark.parametrize("words", sorted(OF_A_RUN_OR_ITS_OWN))
def test_command_that_makes_a_run_where_none_is_named_says_which(words):
    (run,), _ = COMMANDS[words]
    assert (run.metavar, run.required, run.default) == ("RUN", False, None)
    assert run.help.endswith("[a run over embedded bars]")


@check_each("words", sorted(OF_THE_NEWEST | TOOLS_OF_ASK))
def test_command_about_anything_else_takes_that_first_and_the_newest_run_by_option(words):
    arguments, (run,) = COMMANDS[words]
    assert arguments or words in ("worker", "plans make replan") or words in TOOLS_OF_ASK
    assert (run.metavar, run.required) == ("RUN", False)
    assert run.default == LATEST or "[latest" in run.help


@pytest.mark.parametrize("words", sorted(OF_EVERY_RUN))
def test_option_that_takes_another_run_than_the_newest_says_which(words):
    _, (run,) = COMMANDS[words]
    assert (run.metavar, run.required, run.default) == ("RUN", False, None)
    assert run.help.endswith("]")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("why", "latest", "ab"), "Got unexpected extra argument(s) (ab). Usage: thinktwice why [OPTIONS]"),
        (
            ("factcheck", "latest", "note.txt"),
            "file 'latest' does not exist: check the path; a run is named by --run",
        ),
        (("factcheck", "latest"), "'latest' does not exist: check the path; a run is named by --run"),
        (("deliberate", "r0001", "--preset", "pass"), "a run is named by --run"),
        (("kill", "latest", "on"), "'latest' is not one of"),
        (("verify", "note.txt"), "'note.txt' is a file where a run is named"),
        (("journal", "note.txt"), "'note.txt' is a file where a run is named"),
        (("playbooks", "export", "note.txt", "out"), "'note.txt' is a file: name a folder"),
        (("plans", "list", "latest"), "Usage: thinktwice plans list [OPTIONS]"),
        (("playbooks", "export", "latest", "out"), "`thinktwice playbooks export DIR --run latest`"),
    ],
)
def test_words_in_another_order_are_refused_with_the_right_one(shell, words, shown):
    (shell.folder / "note.txt").write_text("A note.", "utf-8")
    assert shown in shell.complaint(*words)


VALUES = {
    "file": "note.txt",
    "direction": "long",
    "preset": "quality",
    "html": "page.html",
    "before": "2020-01-01",
}


def _first_choice(part):
    """A value that a parameter takes."""
    return str((get_args(part.type_descriptor.annotation) or ("1",))[0])


def words_about(words, run):
    """The words of a command about a run, with a value for whatever it needs besides."""
    command: Any = TREE
    for word in words.split():
        command = command.commands[word]
    given = words.split()
    for part in command.params:
        if part.param_type_name == "argument" and names_a_run(part):
            given.append(run)
        elif "--run" in part.opts and run not in given:
            given += ["--run", run]
        elif part.required or (words, part.name) == ("page", "html"):
            value = VALUES.get(part.name) or _first_choice(part)
            named = [] if part.param_type_name == "argument" else [part.opts[0]]
            given += named if part.type_descriptor.annotation is bool else [*named, value]
    return given


READ_A_RUN = sorted(ABOUT_A_RUN | OF_A_RUN_OR_ITS_OWN | OF_THE_NEWEST | TOOLS_OF_ASK)


@pytest.mark.parametrize("stored", [False, True], ids=["no store", "no such run"])
def test_run_that_there_is_not_is_named_in_one_line_by_every_command_and_nothing_is_made(shell, stored):
    (shell.folder / "note.txt").write_text("A note.", "utf-8")
    if stored:
        shell.backtest()
    before = sorted(path.name for path in shell.folder.iterdir())
    wanted = "r0007" if stored else "there is no store at sqlite:///thinktwice.db"
    payload = {words: shell.complaint(*words_about(words, "r0007")) for words in READ_A_RUN}
    assert {words: line for words, line in payload.items() if wanted not in line} == {}
    assert sorted(path.name for path in shell.folder.iterdir()) == before
