"""What counts on the bar that fills an entry: entry kind x exit kind x what the bar shows, long and short.

Each row of the table is derived from the price path: what surely happened after the fill has happened, and
where the path is open the worse reading counts. A walk over many paths of each bar holds the table to that.
"""

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.each_case import check_each
from tests.trading_core.engine_bench import FLAT, play
from tests.trading_core.market import Row

STEP = 0.5  # every price of the table lies on this grid
HALF: dict[str, Any] = {"scale_outs": ((1.0, 0.5),)}  # of 100 units, 5 beyond the entry


class Entry(NamedTuple):
    """An order that rests when the bar begins; `scale` is where a scale-out stands once it has filled."""

    kind: str
    level: float
    stop: float
    filled: float
    scale: float
    target: float = 110.0

    @property
    def policy(self) -> dict[str, Any]:
        """Arguments of `play`."""
        level = {} if self.kind == "market" else {"entry": self.level}
        return {"entry_kind": self.kind, "stop": self.stop, "target": self.target, **level}


ENTRIES = {
    "limit inside": Entry("limit", 98.0, 93.0, 98.0, 103.0),
    "limit at a better open": Entry("limit", 98.0, 93.0, 97.0, 102.0),
    "stop inside": Entry("stop", 102.0, 97.0, 102.0, 107.0),
    "stop over a gap": Entry("stop", 102.0, 97.0, 103.0, 108.0),
    "market": Entry("market", 100.0, 95.0, 100.0, 105.0),
}
EXECUTIONS: dict[str, dict[str, Any]] = {
    "stop first": {},
    "target first": {"both_hit": "target"},
    "through": {"limit_fill": "through"},
}
# Of each entry: what the bar shows, the bar, and what follows the entry, without a scale-out and with one:
# under every setting, or by setting; one that is left out is as "stop first".
Reading = str | dict[str, str]
TABLE: dict[str, list[tuple[str, Row, Reading, Reading]]] = {
    "limit inside": [
        ("neither level", (100, 101, 97, 99), "", ""),
        ("the high beyond all, maybe before the fill", (100, 112, 97, 102), "", ""),
        (
            "a close at the scale-out",
            (100, 108, 97, 103),
            "",
            {"stop first": "scaled 103", "through": ""},
        ),
        ("a close between, the high maybe before", (100, 112, 97, 105), "", "scaled 103"),
        (
            "a close at the target",
            (100, 110, 97, 110),
            {"stop first": "target 110", "through": ""},
            {"stop first": "scaled 103, target 110", "through": "scaled 103"},
        ),
        (
            "a close at the target, traded through maybe before",
            (100, 112, 97, 110),
            {"stop first": "target 110", "through": ""},
            {"stop first": "scaled 103, target 110", "through": "scaled 103"},
        ),
        (
            "a close beyond the target",
            (100, 112, 97, 111.5),
            "target 110",
            "scaled 103, target 110",
        ),
        (
            "an open and a close beyond the target",
            (112, 113, 97, 111.5),
            "target 110",
            "scaled 103, target 110",
        ),
        ("an open beyond the target", (112, 113, 97, 102), "", ""),
        ("the stop", (100, 101, 93, 96), "stop 93", "stop 93"),
        ("a close beyond the stop", (100, 101, 90, 91), "stop 93", "stop 93"),
        ("the stop, the high maybe before", (100, 112, 92, 100), "stop 93", "stop 93"),
        (
            "the stop and a close between",
            (100, 112, 92, 105),
            "stop 93",
            {"stop first": "stop 93", "target first": "scaled 103, stop 93"},
        ),
        (
            "the stop and a close beyond the target",
            (100, 112, 92, 111.5),
            {"stop first": "stop 93", "target first": "target 110"},
            {"stop first": "stop 93", "target first": "scaled 103, target 110"},
        ),
    ],
    "limit at a better open": [
        ("neither level", (97, 101, 96, 99), "", ""),
        ("the scale-out", (97, 103, 96, 99), "", "scaled 102"),
        ("all that is favourable", (97, 112, 96, 99), "target 110", "scaled 102, target 110"),
        (
            "the target touched",
            (97, 110, 96, 99),
            {"stop first": "target 110", "through": ""},
            {"stop first": "scaled 102, target 110", "through": "scaled 102"},
        ),
        ("the stop", (97, 99, 93, 96), "stop 93", "stop 93"),
        (
            "all levels and a close beyond the target",
            (97, 112, 92, 111.5),
            {"stop first": "stop 93", "target first": "target 110"},
            {"stop first": "stop 93", "target first": "scaled 102, target 110"},
        ),
        ("an open beyond the stop", (92, 94, 91, 93.5), "stop 92", "stop 92"),
    ],
    "stop inside": [
        ("neither level", (100, 103, 99, 101), "", ""),
        ("the scale-out on the way", (100, 108, 99, 105), "", "scaled 107"),
        (
            "the target on the way",
            (100, 112, 99, 105),
            "target 110",
            "scaled 107, target 110",
        ),
        (
            "the target touched",
            (100, 110, 99, 105),
            {"stop first": "target 110", "through": ""},
            {"stop first": "scaled 107, target 110", "through": "scaled 107"},
        ),
        (
            "a close beyond the target",
            (100, 112, 99, 111.5),
            "target 110",
            "scaled 107, target 110",
        ),
        ("the stop, maybe before the fill", (100, 103, 96, 101), "stop 97", "stop 97"),
        ("a close beyond the stop", (100, 103, 95, 96), "stop 97", "stop 97"),
        (
            "scale-out and stop",
            (100, 108, 96, 105),
            "stop 97",
            {"stop first": "stop 97", "target first": "scaled 107, stop 97"},
        ),
        (
            "all levels",
            (100, 112, 96, 105),
            {"stop first": "stop 97", "target first": "target 110"},
            {"stop first": "stop 97", "target first": "scaled 107, target 110"},
        ),
        (
            "all levels and a close beyond the target",
            (100, 112, 96, 111.5),
            {"stop first": "stop 97", "target first": "target 110"},
            {"stop first": "stop 97", "target first": "scaled 107, target 110"},
        ),
    ],
    "stop over a gap": [
        ("neither level", (103, 104, 102, 103), "", ""),
        ("the scale-out", (103, 109, 102, 103), "", "scaled 108"),
        ("all that is favourable", (103, 112, 102, 103), "target 110", "scaled 108, target 110"),
        ("the stop", (103, 104, 97, 99), "stop 97", "stop 97"),
        (
            "all levels",
            (103, 112, 96, 105),
            {"stop first": "stop 97", "target first": "target 110"},
            {"stop first": "stop 97", "target first": "scaled 108, target 110"},
        ),
        ("an open beyond the target", (112, 113, 111, 112), "target 112", "target 112"),
    ],
    "market": [
        ("neither level", (100, 101, 99, 100), "", ""),
        ("the scale-out", (100, 106, 99, 100), "", "scaled 105"),
        ("all that is favourable", (100, 112, 99, 100), "target 110", "scaled 105, target 110"),
        (
            "the target touched",
            (100, 110, 99, 100),
            {"stop first": "target 110", "through": ""},
            {"stop first": "scaled 105, target 110", "through": "scaled 105"},
        ),
        ("the stop", (100, 101, 95, 97), "stop 95", "stop 95"),
        (
            "scale-out and stop",
            (100, 106, 94, 100),
            "stop 95",
            {"stop first": "stop 95", "target first": "scaled 105, stop 95"},
        ),
        (
            "all levels and a close beyond the target",
            (100, 112, 94, 111.5),
            {"stop first": "stop 95", "target first": "target 110"},
            {"stop first": "stop 95", "target first": "scaled 105, target 110"},
        ),
    ],
}


class Case(NamedTuple):
    """One cell of the table."""

    entry: Entry
    bar: Row
    scales: bool
    execution: str
    wanted: list[str]


def cells() -> Iterator[Any]:
    """Every cell as a parameter."""
    for name, rows in TABLE.items():
        for (shown, bar, *readings), (execution, scales) in product(rows, product(EXECUTIONS, (False, True))):
            reading = readings[scales]
            if not isinstance(reading, str):
                reading = reading.get(execution, reading["stop first"])
            title = f"{name}: {shown}; {execution}{', scale-out' if scales else ''}"
            wanted = reading.split(", ") if reading else []
            yield pytest.param(Case(ENTRIES[name], bar, scales, execution, wanted), id=title)


CELLS = list(cells())


def story(case: Case, direction: int, execution: dict[str, Any]) -> list[str]:
    """What the kernel does after the entry on the bar of row 3; scaled quantities are half of 100."""
    policy = {**case.entry.policy, **(HALF if case.scales else {})}
    shown = play([FLAT, case.bar], direction, execution=execution, **policy).story()
    lines = [line.removeprefix("3 ").removeprefix("exit ") for line in shown]
    assert lines[0].startswith("entry ")
    return [line.removesuffix(" x50") for line in lines[1:]]


@check_each("direction", [1, -1], ids=["long", "short"])
@check_each("case", CELLS)
def test_kernel_entry_bar_counts_what_is_proven_and_else_the_worse_reading(case, direction):
    assert story(case, direction, EXECUTIONS[case.execution]) == case.wanted


@check_each("both_hit", ["ohlc", "near", "color"])
@check_each("case", [cell for cell in CELLS if "inside: " in cell.id and "; stop first" in cell.id])
def test_kernel_fill_inside_a_bar_leaves_no_path_to_assume_and_counts_the_stop(case, both_hit):
    assert story(case, 1, {"both_hit": both_hit}) == case.wanted


def paths(entry: Entry, bar: Row) -> Iterator[np.ndarray]:
    """Walks on the grid from open to close that reach high and low, with up to three turns at any level."""
    o, h, low, c = bar
    near = {entry.level, entry.stop, entry.target, entry.scale}
    turns = sorted({h, low} | {at + by for at in near for by in (-STEP, 0.0, STEP) if low <= at + by <= h})
    for count in range(4):
        for between in product(turns, repeat=count):
            corners = (o, *between, c)
            if max(corners) == h and min(corners) == low:
                parts = [np.arange(a, b, STEP if b > a else -STEP) for a, b in pairwise(corners)]
                yield np.concatenate([*parts, [c]])


def walked(case: Case, path: np.ndarray) -> tuple[float, list[str]]:
    """What a long order does along one path, price by price: its worth at the close, and the exits."""
    entry, beyond = case.entry, (STEP if case.execution == "through" else 0.0)
    lines: list[str] = []
    held, money, waiting = 0.0, 0.0, [("scaled", entry.scale)] * case.scales + [("target", entry.target)]
    resting = True
    for k, price in enumerate(path.tolist()):
        if resting:
            move = {
                "market": 0.0,
                "limit": entry.level - price - beyond * (k > 0 or price == entry.level),
                "stop": price - entry.level,
            }
            if move[entry.kind] < 0.0:
                continue
            resting, held, money = False, 1.0, -(price if k == 0 else entry.level)
        if held and price <= entry.stop:
            money += held * (price if k == 0 else entry.stop)
            lines.append(f"stop {price if k == 0 else entry.stop:g}")
            return money, lines
        gapped = k == 0 and price > entry.scale
        while waiting and price - waiting[0][1] >= (0.0 if gapped else beyond):
            what, level = waiting.pop(0)
            at = price if k == 0 else level
            share = 0.5 * held if what == "scaled" else held
            held, money = held - share, money + share * at
            lines.append(f"{what} {at:g}")
            if not held:
                return money, lines
    return money + held * float(path[-1]), lines


@check_each("case", [cell for cell in CELLS if "; target first" not in cell.id])
def test_table_of_entry_bars_is_the_worst_of_the_paths_that_each_bar_allows(case):
    if case.entry.filled not in (case.entry.level, case.bar[0]):  # filled elsewhere: no scale-out is reached
        case = case._replace(scales=False)
    found = [walked(case, path) for path in paths(case.entry, case.bar)]
    worst = min(worth for worth, _ in found)
    assert case.wanted in [lines for worth, lines in found if worth == pytest.approx(worst)]
