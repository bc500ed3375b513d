"""Tables in a terminal that is narrower than they are, and terminals that want no colours."""

import csv
import re

import pytest

from tests.worker.cli.terminals import in_terminal
from tests.worker.cli.test_gate import HEADER, cell

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
