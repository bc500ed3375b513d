"""The tree of commands: grouped in its help, with a version, short help and names that are nearly right."""

from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from schemas.errors import nearest
from worker.cli.app import COMMANDS, GROUPS, app


def read_text(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, words)
    return done.exit_code, done.output


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_lists_every_command_once_below_what_it_is_for(word):
    code, text = read_text(word)
    titles = [line[:-1] for line in text.splitlines() if line.removesuffix(":") in GROUPS]
    listed = [
        line.split()[0] for line in text.splitlines() if line[:2] == "  " and line.split()[0] in COMMANDS
    ]
    assert (code, titles) == (0, list(GROUPS))
    assert listed == list(COMMANDS)


def test_short_help_is_that_of_a_command_too():
    assert read_text("runs", "-h") == read_text("runs", "--help")
    assert read_text("runs", "-h")[0] == 0


def test_version_is_that_of_the_installed_program():
    assert read_text("--version") == (0, f"thinktwice {version('thinktwice')}\n")


def test_command_that_is_nearly_one_names_it():
    code, text = read_text("bactest")
    assert code == 2
    assert "backtest" in text


def test_nearest_name_is_found_whatever_its_case():
    assert nearest("aapl", ["AAPL", "IBM"]) == " Did you mean 'AAPL'?"
    assert nearest("Squeeze_Breakout", ["squeeze_breakout"]) == " Did you mean 'squeeze_breakout'?"
    assert nearest("x", ["AAPL"]) == ""


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("BACKTEST",), "No such command 'BACKTEST'. Did you mean 'backtest'?"),
        (("playbooks", "EXPORT"), "No such command 'EXPORT'. Did you mean 'export'?"),
        (("backtest", "--Data", "x"), "No such option: --Data. Did you mean '--data'?"),
        (("zzz",), "No such command 'zzz'. See --help."),
    ],
)
def test_command_or_option_in_another_case_names_the_one_that_is(words, meant):
    code, text = read_text(*words)
    assert code == 2
    assert meant in text
