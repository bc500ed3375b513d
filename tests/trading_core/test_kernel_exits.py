"""Exits of every kind on bars made by hand, long and short, with the exact rows and prices.

A case tells what has to happen, see `Play.story`; the position is entered at the open of row 3.
"""

from typing import Any

import pytest

from schemas.vocabulary import ExitReason
from tests.each_case import check_each
from tests.trading_core.engine_bench import FLAT, NO_COSTS, WIDE, engine_on, install, play, run_all
from tests.trading_core.market import panel
from trading_core.kernel.records import EXIT

NAN = float("nan")
BOTH_SIDES = check_each("direction", [1, -1], ids=["long", "short"])
HALF: dict[str, Any] = {"scale_outs": ((1.0, 0.5),)}  # of 100 units, at 105
LADDER: dict[str, Any] = {"scale_outs": ((1.0, 0.5), (1.5, 0.25))}  # at 105 and 107.5
THROUGH, LEVEL, TARGET_FIRST = {"limit_fill": "through"}, {"gap": "level"}, {"both_hit": "target"}
NO_ENTRY_BAR = {"entry_bar_exits": False}


EXITS = {
    "stop": ([(100, 101, 95, 96)], {}, {}, ["4 exit stop 95"]),
    "stop missed": ([(100, 101, 95.1, 96)], {}, {}, []),
    "stop over a gap": ([(93, 94, 92, 93)], {}, {}, ["4 exit stop 93"]),
    "stop over a gap by level": ([(93, 94, 92, 93)], LEVEL, {}, ["4 exit stop 95"]),
    "target": ([(100, 110, 99, 109)], {}, {}, ["4 exit target 110"]),
    "target only touched": ([(100, 110, 99, 109)], THROUGH, {}, []),
    "target traded through": ([(100, 110.1, 99, 109)], THROUGH, {}, ["4 exit target 110"]),
    "target over a gap": ([(112, 113, 111, 112)], {}, {}, ["4 exit target 112"]),
    "target over a gap by level": ([(112, 113, 111, 112)], LEVEL, {}, ["4 exit target 110"]),
    "both": ([(100, 111, 94, 100.5)], {}, {}, ["4 exit stop 95"]),
    "both, target first": ([(100, 111, 94, 100.5)], TARGET_FIRST, {}, ["4 exit target 110"]),
    "both, stop nearer": ([(100, 111, 94, 100.5)], {"both_hit": "near"}, {}, ["4 exit stop 95"]),
    "both, target nearer": ([(105, 111, 94, 105.5)], {"both_hit": "near"}, {}, ["4 exit target 110"]),
    "both, with the position": ([(100, 111, 94, 100.5)], {"both_hit": "color"}, {}, ["4 exit stop 95"]),
    "both, against it": ([(100, 111, 94, 99.5)], {"both_hit": "color"}, {}, ["4 exit target 110"]),
    "both, open beyond the stop": ([(94, 111, 93, 100)], TARGET_FIRST, {}, ["4 exit stop 94"]),
    "both, open beyond the target": ([(111, 112, 94, 100)], {}, {}, ["4 exit target 111"]),
    "invalidation": (
        [FLAT, (101, 102, 99, 100)],
        {},
        {"invalidation": [4]},
        ["4 invalidated", "5 exit invalidation 101"],
    ),
    "invalidation on the entry bar": (
        [(101, 102, 99, 100)],
        {},
        {"invalidation": [3]},
        ["3 invalidated", "4 exit invalidation 101"],
    ),
    "invalidation and stop in one bar": (
        [(100, 101, 94, 95), FLAT],
        {},
        {"invalidation": [4]},
        ["4 exit stop 95"],
    ),
    "invalidation twice": (
        [FLAT, (101, 102, 99, 100)],
        {},
        {"invalidation": [3, 4]},
        ["3 invalidated", "4 exit invalidation 100"],
    ),
    "exit rule": (
        [FLAT, (101, 102, 99, 100)],
        {},
        {"exit_rule": [4]},
        ["4 exit rule", "5 exit exit_rule 101"],
    ),
    "exit rule on the entry bar": (
        [(101, 102, 99, 100)],
        {},
        {"exit_rule": [3]},
        ["3 exit rule", "4 exit exit_rule 101"],
    ),
    "exit rule before the entry": ([FLAT], {}, {"exit_rule": [1, 2]}, []),
    "exit rule and stop in one bar": ([(100, 101, 94, 95), FLAT], {}, {"exit_rule": [4]}, ["4 exit stop 95"]),
    "exit rule, then a gap over the stop": (
        [FLAT, (90, 91, 89, 90)],
        {},
        {"exit_rule": [4]},
        ["4 exit rule", "5 exit exit_rule 90"],
    ),
    "exit rule and invalidation in one bar": (
        [FLAT, (101, 102, 99, 100)],
        {},
        {"exit_rule": [4], "invalidation": [4]},
        ["4 invalidated", "5 exit invalidation 101"],
    ),
    "exit rule twice": (
        [FLAT, (101, 102, 99, 100)],
        {},
        {"exit_rule": [3, 4]},
        ["3 exit rule", "4 exit exit_rule 100"],
    ),
    "exit rule and time stop": (
        [FLAT, (101, 102, 99, 100)],
        {},
        {"exit_rule": [4], "horizon": 2},
        ["4 exit rule", "5 exit exit_rule 101"],
    ),
    "exit after bars held": (
        [FLAT, FLAT, (101, 102, 99, 100)],
        {},
        {"exit_rule": "bars_held >= 2"},
        ["5 exit rule", "6 exit exit_rule 101"],
    ),
    "exit at an open profit": (
        [(100, 104, 99.5, 104), (104, 105, 103, 104.9), (105, 106, 104, 105)],
        {},
        {"exit_rule": "open_r >= 0.9"},
        ["5 exit rule", "6 exit exit_rule 105"],
    ),
    "exit after profit given back": (
        [(100, 106, 99.5, 105), (105, 105.5, 101, 102), FLAT],
        {},
        {"exit_rule": "mfe_r >= 1 and open_r < mfe_r / 2"},
        ["5 exit rule", "6 exit exit_rule 100"],
    ),
    "exit after a bad excursion": (
        [(100, 101, 96, 100), FLAT],
        {},
        {"exit_rule": "mae_r <= -0.8"},
        ["4 exit rule", "5 exit exit_rule 100"],
    ),
    "exit by the entry price": (
        [(100, 102, 99, 101), FLAT, (101, 102, 100, 101)],
        {},
        {"exit_rule": "bars_held >= 2 and abs(close - entry_price) < 0.5"},
        ["5 exit rule", "6 exit exit_rule 101"],
    ),
    "exit whose column is unknown": ([FLAT], {}, {"exit_rule": "close > sma_50 or mfe_r > 9"}, []),
    "exit although a column is unknown": (
        [FLAT],
        {},
        {"exit_rule": "close > sma_50 or bars_held == 0"},
        ["3 exit rule", "4 exit exit_rule 100"],
    ),
    "trailing stop by what the position has": (
        [(100, 105, 99.5, 104), (104, 104.5, 102, 103)],
        {},
        {"trail": "entry_price + (close - entry_price) / 2"},
        ["4 stop 102 by trail", "5 exit stop 102"],
    ),
    "time stop at the open": ([FLAT, (101, 112, 94, 100.5)], {}, {"horizon": 2}, ["5 exit time_stop 101"]),
    "time stop after stops": (
        [FLAT, (101, 102, 99, 100.5)],
        {"time_exit": "after_stops"},
        {"horizon": 2},
        ["5 exit time_stop 101"],
    ),
    "time stop after a stop": (
        [FLAT, (101, 102, 94, 100.5)],
        {"time_exit": "after_stops"},
        {"horizon": 2},
        ["5 exit stop 95"],
    ),
    "time stop after a gap": (
        [FLAT, (94, 102, 93, 100.5)],
        {"time_exit": "after_stops"},
        {"horizon": 2},
        ["5 exit stop 94"],
    ),
    "time stop at the close": (
        [FLAT, (101, 102, 99, 100.5)],
        {"time_exit": "close"},
        {"horizon": 2},
        ["5 exit time_stop 100.5"],
    ),
    "time stop at the close after a target": (
        [FLAT, (101, 111, 99, 100.5)],
        {"time_exit": "close"},
        {"horizon": 2},
        ["5 exit target 110"],
    ),
    "time stop of one bar": (
        [(102, 103, 101, 102)],
        {},
        {"setup": [0], "horizon": 1},
        ["4 exit time_stop 102"],
    ),
    "time stop of one bar at the close": (
        [(102, 103, 101, 102.5)],
        {"time_exit": "close"},
        {"setup": [0], "horizon": 1},
        ["4 exit time_stop 102.5"],
    ),
    "trailing stop": (
        [(100, 101, 99, 100), (100, 101, 99, 100), (100, 101, 99, 99.5)],
        {},
        {"trail": [NAN, NAN, NAN, 97.0, 96.0, 99.0, NAN]},
        ["3 stop 97 by trail", "5 stop 99 by trail", "6 exit stop 99"],
    ),
    "trailing stop beyond the close": ([FLAT], {}, {"trail": [NAN, NAN, NAN, 100.0, 100.5]}, []),
    "trailing stop on the grid": (
        [FLAT],
        {"tick_size": 0.5},
        {"trail": [NAN, NAN, NAN, 97.3, NAN]},
        ["3 stop 97.5 by trail"],
    ),
    "break-even": (
        [(100, 105, 99.5, 104), (104, 104.5, 99.9, 101)],
        {},
        {"break_even_r": 1.0},
        ["4 stop 100 by break_even", "5 exit stop 100"],
    ),
    "break-even not reached": (
        [(100, 104.9, 99.5, 104), (104, 104.5, 99.9, 101)],
        {},
        {"break_even_r": 1.0},
        [],
    ),
    "break-even while the close is worse": ([(100, 105, 97, 98), FLAT], {}, {"break_even_r": 1.0}, []),
    "break-even and trailing stop": (
        [(100, 105, 99.5, 104)],
        {},
        {"break_even_r": 1.0, "trail": [NAN, NAN, NAN, NAN, 102.0]},
        ["4 stop 100 by break_even", "4 stop 102 by trail"],
    ),
    "scale-out, then target": (
        [(100, 106, 99.5, 105), (105, 111, 104, 110)],
        {},
        HALF,
        ["4 scaled 105 x50", "5 exit target 110"],
    ),
    "scale-out and target in one bar": (
        [(100, 111, 99.5, 110)],
        {},
        HALF,
        ["4 scaled 105 x50", "4 exit target 110"],
    ),
    "scale-out, then stop": (
        [(100, 106, 99.5, 105), (105, 106, 94, 95)],
        {},
        HALF,
        ["4 scaled 105 x50", "5 exit stop 95"],
    ),
    "scale-out and stop in one bar": ([(100, 106, 94, 100)], {}, HALF, ["4 exit stop 95"]),
    "scale-out before a stop in one bar": (
        [(100, 106, 94, 100)],
        TARGET_FIRST,
        HALF,
        ["4 scaled 105 x50", "4 exit stop 95"],
    ),
    "all three, target first": (
        [(100, 111, 94, 100)],
        TARGET_FIRST,
        HALF,
        ["4 scaled 105 x50", "4 exit target 110"],
    ),
    "all three, near the target": (
        [(105, 111, 94, 100)],
        {"both_hit": "near"},
        HALF,
        ["4 scaled 105 x50", "4 exit target 110"],
    ),
    "scale-out at the open, then stop and target": (
        [(106, 111, 94, 100)],
        {},
        HALF,
        ["4 scaled 106 x50", "4 exit stop 95"],
    ),
    "scale-out at the open, then target first": (
        [(106, 111, 94, 100)],
        TARGET_FIRST,
        HALF,
        ["4 scaled 106 x50", "4 exit target 110"],
    ),
    "scale-out and target over a gap": (
        [(112, 113, 111, 112)],
        {},
        HALF,
        ["4 scaled 112 x50", "4 exit target 112"],
    ),
    "scale-out and target over a gap by level": (
        [(112, 113, 111, 112)],
        LEVEL,
        HALF,
        ["4 scaled 105 x50", "4 exit target 110"],
    ),
    "scale-out only touched": ([(100, 105, 99.5, 104)], THROUGH, HALF, []),
    "scale-out beyond the target": (
        [(100, 111, 99.5, 110)],
        {},
        {"scale_outs": ((3.0, 0.5),)},
        ["4 exit target 110"],
    ),
    "scale-out at the target": (
        [(100, 111, 99.5, 110)],
        {},
        {"scale_outs": ((2.0, 0.5),)},
        ["4 exit target 110"],
    ),
    "scale-out just before the target": (
        [(100, 111, 99.5, 110)],
        {},
        {"scale_outs": ((1.9, 0.5),)},
        ["4 scaled 109.5 x50", "4 exit target 110"],
    ),
    "scale-out in lots": ([(100, 106, 99.5, 105)], {"lot_size": 30.0}, HALF, ["4 scaled 105 x30"]),
    "scale-out of less than a lot": (
        [(100, 106, 99.5, 105), (105, 111, 99, 100)],
        {"lot_size": 30.0},
        {"scale_outs": ((1.0, 0.3),)},
        ["5 exit target 110"],
    ),
    "scale-out, then break-even": (
        [(100, 106, 99.5, 105), (105, 106, 99, 100)],
        {},
        {**HALF, "break_even_r": 1.0},
        ["4 scaled 105 x50", "4 stop 100 by break_even", "5 exit stop 100"],
    ),
    "scale-outs one after another": (
        [(100, 105, 99.5, 104), (104, 108, 103, 107), (107, 111, 106, 110)],
        {},
        LADDER,
        ["4 scaled 105 x50", "5 scaled 107.5 x25", "6 exit target 110"],
    ),
    "scale-outs in one bar": (
        [(100, 108, 99.5, 107)],
        {},
        LADDER,
        ["4 scaled 105 x50", "4 scaled 107.5 x25"],
    ),
    "scale-outs and target over a gap": (
        [(112, 113, 111, 112)],
        {},
        LADDER,
        ["4 scaled 112 x50", "4 scaled 112 x25", "4 exit target 112"],
    ),
    "scale-outs, then stop": (
        [(100, 105, 99.5, 104), (104, 105, 94, 95)],
        {},
        LADDER,
        ["4 scaled 105 x50", "5 exit stop 95"],
    ),
    "scale-outs and stop in one bar": ([(100, 108, 94, 100)], {}, LADDER, ["4 exit stop 95"]),
    "scale-outs of which one lies beyond the target": (
        [(100, 111, 99.5, 110)],
        {},
        {"scale_outs": ((1.0, 0.5), (3.0, 0.25))},
        ["4 scaled 105 x50", "4 exit target 110"],
    ),
    "scale-outs, then an exit rule": (
        [(100, 105, 99.5, 104), (104, 105, 103, 104)],
        {},
        {**LADDER, "exit_rule": [4]},
        ["4 scaled 105 x50", "4 exit rule", "5 exit exit_rule 104"],
    ),
    "moving target": (
        [(100, 104, 99.5, 103), (103, 107.5, 102, 107), FLAT],
        {},
        {"target": [NAN, NAN, 110.0, 109.0, 107.0, 105.0, 105.0], "target_moves": True},
        ["5 exit target 107"],
    ),
    "moving target that goes away": (
        [(100, 104, 99.5, 103), (103, 111, 102, 110), FLAT],
        {},
        {"target": [NAN, NAN, 110.0, 110.0, 115.0, 115.0, 115.0], "target_moves": True},
        [],
    ),
    "moving target that is unknown stays": (
        [(100, 104, 99.5, 103), (103, 111, 102, 110)],
        {},
        {"target": [NAN, NAN, 110.0, NAN, NAN, NAN], "target_moves": True},
        ["5 exit target 110"],
    ),
    "moving target behind the close": (
        [(100, 104, 99.5, 103), (102.5, 103, 102, 102)],
        {},
        {"target": [NAN, NAN, 110.0, 110.0, 102.0, NAN], "target_moves": True},
        ["5 exit target 102.5"],
    ),
    "moving target read on the entry bar": (
        [(100, 106, 99.5, 103)],
        {},
        {"target": [NAN, NAN, 110.0, 105.0, NAN], "target_moves": True},
        ["4 exit target 105"],
    ),
    "moving target comes before a scale-out": (
        [(100, 104, 99.5, 103), (103, 106, 102, 103)],
        {},
        {**HALF, "target": [NAN, NAN, 110.0, 110.0, 104.5, NAN], "target_moves": True},
        ["5 exit target 104.5"],
    ),
    "moving target that passes a scale-out and comes back": (
        [(100, 104, 99.5, 103), (103, 104, 102, 103), (103, 106, 102, 105)],
        {},
        {**HALF, "target": [NAN, NAN, 110.0, 110.0, 104.5, 110.0, 110.0], "target_moves": True},
        ["6 scaled 105 x50"],
    ),
    "scale-out on the bar of the time stop": (
        [FLAT, (101, 106, 99.5, 102)],
        {"time_exit": "after_stops"},
        {**HALF, "horizon": 2},
        ["5 scaled 105 x50", "5 exit time_stop 102"],
    ),
    "time stop before a scale-out": (
        [FLAT, (101, 106, 99.5, 102)],
        {},
        {**HALF, "horizon": 2},
        ["5 exit time_stop 101"],
    ),
    "scale-out before a time stop at the close": (
        [FLAT, (101, 106, 99.5, 102)],
        {"time_exit": "close"},
        {**HALF, "horizon": 2},
        ["5 scaled 105 x50", "5 exit time_stop 102"],
    ),
}


@BOTH_SIDES
@check_each(("rows", "execution", "policy", "story"), EXITS.values(), ids=EXITS)
def test_kernel_exit_fills_where_its_kind_says(rows, execution, policy, story, direction):
    """Entered at the open of row 3, at 100; the given rows follow."""
    shown = play([FLAT, FLAT, *rows], direction, execution=execution, **policy).story()
    assert shown == ["3 entry 100", *story]


@pytest.mark.parametrize(("direction", "reason"), [(1, "target"), (-1, "stop")])
def test_kernel_open_high_low_close_meets_the_high_first(direction, reason):
    shown = play(
        [FLAT, FLAT, (100, 111, 89, 100)], direction, execution={"both_hit": "ohlc"}, stop=90.0
    ).story()
    assert shown[-1].split()[:3] == ["4", "exit", reason]


@BOTH_SIDES
@check_each(
    ("last", "average", "pnl"), [((105, 111, 104, 110), 107.5, 750.0), ((105, 106, 94, 95), 100.0, 0.0)]
)
def test_kernel_scale_out_is_one_trade_with_the_averaged_exit(last, average, pnl, direction):
    done = play([FLAT, FLAT, (100, 106, 99.5, 105), last], direction, **HALF)
    (trade,) = done.trades
    assert (trade["exit_price"] - 100.0) * direction == pytest.approx(average - 100.0)
    assert (trade["quantity"], trade["pnl"], trade["r"]) == (
        100.0,
        pytest.approx(pnl),
        pytest.approx(pnl / 500),
    )
    assert (trade["policy"], trade["signal_t"], trade["entry_t"], trade["bars_held"]) == (0, 2, 3, 2)
    assert done.details("scale_out_filled")[0]["remaining"] == 50.0
    assert done.engine.portfolio["cash"][0] == pytest.approx(100_000.0 + pnl)
    assert trade["mfe_r"] == pytest.approx(2.0 if average > 100 else 1.2)


@BOTH_SIDES
def test_kernel_scale_out_price_is_the_best_of_a_bar_that_then_stops(direction):
    """On the bar of an exit only the open and the prices of fills count: the high of 106 does not."""
    done = play([FLAT, FLAT, (100, 106, 94, 100)], direction, execution=TARGET_FIRST, **HALF)
    (trade,) = done.trades
    assert (trade["mfe_r"], trade["mae_r"]) == (pytest.approx(1.0), pytest.approx(-1.0))


@BOTH_SIDES
@check_each(
    ("last", "kind", "other", "level"),
    [
        ((100, 101, 94, 96), "stop_breach", "target_breach", 95.0),
        ((100, 111, 99, 109), "target_breach", "stop_breach", 110.0),
    ],
)
def test_kernel_breach_inside_the_bar_tells_which_level_was_met(last, kind, other, level, direction):
    done = play([FLAT, FLAT, last], direction)
    (met,) = done.details(kind)
    assert (met["level"] - 100.0) * direction == pytest.approx(level - 100.0)
    assert done.details(other) == []


@BOTH_SIDES
def test_kernel_entry_bar_counts_among_the_extremes_when_its_exits_do_not(direction):
    rows = [FLAT, (100, 104, 97, 100), (100, 101, 94, 95)]
    (trade,) = play(rows, direction, execution=NO_ENTRY_BAR).trades
    assert (trade["mfe_r"], trade["mae_r"]) == (pytest.approx(0.8), pytest.approx(-1.0))


@BOTH_SIDES
def test_kernel_trade_record_tells_everything_about_the_trade(direction):
    """The second symbol trades, under the second policy, from row 3 to row 5."""
    rows = [FLAT, FLAT, FLAT, (101, 102, 98, 101), (101, 104, 99, 103), (103, 111, 101, 110), FLAT]
    if direction < 0:
        rows = [(200 - o, 200 - low, 200 - h, 200 - c) for o, h, low, c in rows]
    bars = panel({"W": [FLAT] * 7, "X": rows})
    engine = engine_on(bars, envelope=WIDE, execution=NO_COSTS.model_copy(update={"fee_bps": 10.0}))
    levels = {"stop": 100.0 - 5.0 * direction, "target": 100.0 + 10.0 * direction}
    install(engine, s=0, setup=[], name="idle")
    install(engine, s=1, direction=direction, setup=[1], activation=[2], **levels)
    (trade,) = [trade for step in run_all(engine) for trade in step.trades]
    entry, fees = 100.0 + direction, 100.0 * (200.0 + 11.0 * direction) * 1e-3
    expected = {
        "s": 1, "policy": 1, "direction": direction, "signal_t": 2, "entry_t": 3, "exit_t": 5, "bars_held": 2,
        "entry_price": entry, "exit_price": 100.0 + 10.0 * direction, "quantity": 100.0, "fees": fees,
        "pnl": 900.0 - fees, "r": (900.0 - fees) / 500.0, "mae_r": -0.6, "mfe_r": 1.8,
        "reason": EXIT[ExitReason.TARGET],
    }  # fmt: skip
    assert set(trade.dtype.names) == set(expected)
    assert {name: trade[name] for name in expected} == pytest.approx(expected)
