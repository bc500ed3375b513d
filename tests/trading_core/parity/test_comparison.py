"""What the parity tests rest on: the comparison sees every difference, and the walk asks every question."""

import numpy as np
import pytest

from benchmarks.comparison import compare
from benchmarks.crossing import BRACKET, COMMON, TRADE_COLUMNS, averages, find_crossings, simulate_trades
from benchmarks.engine import Scan, check_same_trades
from benchmarks.peer_runs import trade_table
from benchmarks.semantics import settings_table
from benchmarks.walks import walk, walks
from schemas.errors import InvariantViolation

TRADES = [(0, 3, 9, 100.0, 102.0, 0.1, 1.9), (1, 3, 5, 50.0, 49.0, 0.05, -1.05)]


def changed(column, value):
    rows = [list(row) for row in TRADES]
    rows[0][TRADE_COLUMNS.index(column)] = value
    return trade_table(rows)


def test_comparison_of_a_list_with_itself_is_whole():
    found = compare(trade_table(TRADES), trade_table(TRADES), relative=0.0)
    assert (found.ours, found.theirs, found.equal, found.share) == (2, 2, 2, 1.0)
    assert found.differing.empty


def test_comparison_of_empty_lists_is_whole():
    empty = trade_table(np.empty((0, len(TRADE_COLUMNS))))
    assert compare(empty, empty).share == 1.0


@pytest.mark.parametrize(
    ("column", "value", "differing"),
    [
        ("symbol", 2, 2),
        ("entry_bar", 4, 2),
        ("exit_bar", 10, 1),
        ("entry_price", 100.001, 1),
        ("exit_price", 101.999, 1),
    ],
)
def test_comparison_finds_one_changed_value(column, value, differing):
    found = compare(trade_table(TRADES), changed(column, value))
    assert (found.equal, len(found.differing)) == (1, differing)


def test_comparison_finds_a_missing_trade():
    found = compare(trade_table(TRADES), trade_table(TRADES[:1]))
    assert (found.ours, found.theirs, found.equal, found.share) == (2, 1, 1, 0.5)


@pytest.mark.parametrize("tick", [0.0, 0.01])
def test_walk_has_gaps_and_wide_bars_and_few_equal_opens(tick):
    bars = walk(1, 20_000, tick=tick)
    o, h, low, c = (values[:, 0] for values in (bars.open, bars.high, bars.low, bars.close))
    gaps = np.abs(o[1:] / c[:-1] - 1.0)
    assert (gaps > BRACKET["stop_pct"]).sum() > 20
    assert ((h / o > 1.0 + BRACKET["target_pct"]) & (low / o < 1.0 - BRACKET["stop_pct"])).sum() > 10
    assert (gaps > 0.0).mean() > 0.8


def test_walk_of_a_symbol_is_the_same_alone_and_beside_others():
    together = walks(5, 500, 3)
    assert together.close[:, 2].tolist() == walk(7, 500).close[:, 0].tolist()


def test_crossings_are_the_entries_of_the_rule():
    bars = walk(2, 5_000)
    signals = np.flatnonzero(find_crossings(*averages(bars))[:, 0])
    entries = simulate_trades(bars, COMMON)["entry_bar"].to_numpy()
    assert set(entries - 1) <= set(signals.tolist())
    assert entries[0] - 1 == signals[0]


def test_hand_written_scan_makes_the_trades_of_simulate():
    bars = walk(3, 20_000, tick=0.01)
    trades = Scan(bars).run()
    check_same_trades(bars, trades)
    with pytest.raises(InvariantViolation, match="must follow the kernel"):
        check_same_trades(bars, trades[:-1])


def test_fill_settings_table_has_a_line_per_setting_and_each_changes_something():
    lines = [line.split("|")[1:-1] for line in settings_table().splitlines()[2:]]
    assert lines[0][0].strip().startswith("defaults")
    for setting, _, moved, profits, _ in lines[1:]:
        assert int(moved.replace(",", "")) + int(profits.replace(",", "")) > 0, setting
