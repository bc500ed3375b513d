"""The renderer of every command: tables whole at any width, figures to the right, labels, escaped text."""

import io
import sys

import pytest

from schemas.errors import ConfigError
from worker.cli.printing import print_document, time_option
from worker.pages.figures import shown_cell
from worker.pages.text_parts import rows_table

ROWS = [
    {"name": "squeeze_breakout", "n": 1_040, "mean": "+0.12 R", "said": "it loses after costs in each year"},
    {"name": "mean_reversion", "n": None, "mean": "-", "said": None},
]
HEADS = ("name", "n", "mean", "said")


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(monkeypatch, columns: int | None, rows=ROWS) -> list[str]:
    """The lines of a table, in a terminal of so many columns or in a pipe."""
    stream = io.StringIO() if columns is None else Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    print_document(rows, False, lambda found: [rows_table(found, HEADS)])
    return stream.getvalue().splitlines()


def test_table_in_a_pipe_has_every_cell_whole_and_figures_to_the_right(monkeypatch):
    assert printed(monkeypatch, None) == [
        "name                  n     mean  said",
        "squeeze_breakout  1,040  +0.12 R  it loses after costs in each year",
        "mean_reversion        -        -  -",
    ]


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 200])
def test_table_in_a_terminal_of_any_width_keeps_names_whole_and_loses_nothing(monkeypatch, columns):
    lines = printed(monkeypatch, columns)
    assert max(map(len, lines)) <= columns
    text = " ".join(" ".join(lines).split())
    for word in ("squeeze_breakout", "mean_reversion", "1,040", "+0.12 R", "loses", "costs"):
        assert word in text
    parts = sum(line.startswith("name ") for line in lines)
    assert (parts > 1) is (columns < 67)


def test_table_without_rows_is_not_printed(monkeypatch):
    assert printed(monkeypatch, None, rows=[]) == []


@pytest.mark.parametrize(("colours", "styled"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_headings_are_bold_in_a_terminal_that_wants_colours(monkeypatch, colours, styled):
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in colours.items():
        monkeypatch.setenv(name, value)
    print_document(ROWS, False, lambda found: [rows_table(found, HEADS)])
    assert ("\x1b[1m" in stream.getvalue()) is styled


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"), ("", "-"), ([], "-"), (True, "yes"), (1_234, "1,234"), (0.0025, "0.0025"),
        (["a", 2], "a, 2"), ({"on": True}, "on yes"), ({"\x1b[2J": 1}, "\\x1b[2J 1"),
        ("\x1b[2J", "\\x1b[2J"), ("a\nb", "a\\nb"),
    ],
)  # fmt: skip
def test_value_is_shown_on_one_line_with_a_dash_for_nothing(value, shown):
    assert shown_cell(value) == shown


def test_part_with_a_label_stands_behind_a_column_of_labels(capsys):
    print_document({}, False, lambda _: ["head", ("rows", "12"), ("", "and more")])
    assert capsys.readouterr().out == "head\nrows       12\n           and more\n"


def test_time_that_no_journal_reaches_is_refused_in_a_line():
    assert time_option("2262-04-11", "--before") < 2**63
    with pytest.raises(ConfigError, match="--before '2300-01-01' is no time of a journal"):
        time_option("2300-01-01", "--before")
