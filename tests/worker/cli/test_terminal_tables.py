"""Tables in a terminal that is narrower than they are, and terminals that want no colours."""

import csv
import io
import re
from typing import Any

import pytest

from tests.worker.cli.terminals import in_terminal
from tests.worker.cli.test_gate import HEADER, cell
from worker.cli import worlds
from worker.pages.screen import PlainConsole

STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def table(tmp_path):
    rows = [*cell(1, 60, 0.1, playbook="channel_breakout"), *cell(2, 60, -0.1, regime="sideways/high")]
    with (tmp_path / "trades.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([HEADER, *rows])
    return tmp_path


def shown(folder, *, columns=60, colours=None):
    seen = in_terminal(("thinktwice", "gate", "trades.csv"), folder, colours, columns=columns)
    seen.demand_clean()
    assert seen.code == 0, seen.end
    return seen


def test_gate_in_a_narrow_terminal_folds_its_columns_below_the_clusters(table):
    lines = shown(table).lines
    heads = [number for number, line in enumerate(lines) if line.startswith("cluster ")]
    assert len(heads) > 1
    for head in heads:
        part = lines[head : head + 5]
        assert max(map(len, part)) <= 60
        assert [line.split()[0] for line in part[1:]] == [
            "channel_breakout", "up/mid", "pullback", "sideways/high",
        ]  # fmt: skip
    names = " ".join(" ".join(lines[head].split()[1:]) for head in heads)
    assert names == "n blocks mean R against 95 % at every look E detectable grade may lead to"


def test_gate_in_a_wide_terminal_is_one_table(table):
    lines = shown(table, columns=160).lines
    assert sum(line.startswith("cluster ") for line in lines) == 1


def test_no_color_sends_no_style_at_all(table):
    assert STYLE.search(shown(table).raw)
    assert STYLE.search(shown(table, colours={"NO_COLOR": "1"}).raw) is None


class Screen(io.StringIO):
    """A terminal without colours that keeps what was written to it."""

    def isatty(self):
        return True


def test_worlds_in_a_narrow_terminal_fold_their_columns_below_the_worlds(monkeypatch):
    screen = Screen()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    for module in ("console", "worlds"):
        monkeypatch.setattr(f"worker.cli.{module}.stdout_console", lambda: PlainConsole(screen, width=60))
    name = "planted, 15m bars, 60 blocks, pull 0.05, -0.4R in the first cell"
    figure = {"mean": 1.25, "lower": 0.5, "upper": 2.0, "target": 0.1, "holds": True}
    row: dict[str, Any] = {
        "group": "engine", "world": name, "held_out": False, "rates": {},
        "differences": {f"{kind} on against off": figure for kind in ("return", "drawdown", "trades")},
        "medians": {"blocks to the first action": 12.0},
    }  # fmt: skip
    told = {"worst": None, "broken": [], "targets": 3, "runs": 10, "seed": 1, "rows": [row, row]}
    worlds._render(told)
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert [line.strip() for line in lines].count("engine") == 1
    heads = [line.split(None, 1)[1].strip() for line in lines if line.startswith("world ")]
    assert len(heads) > 1
    assert re.split(r"\s{2,}", "  ".join(heads)) == [*row["differences"], *row["medians"]]
    assert screen.getvalue().count("+1.25 [+0.50, +2.00] (> 0.1)") == 6
