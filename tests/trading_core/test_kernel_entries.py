"""Entry orders of every kind on bars made by hand, long and short, with the exact rows and prices.

A case tells what has to happen, see `Play.story`; row 3 is the first bar that the order meets.
"""

from typing import Any

import numpy as np
import pytest

from schemas.errors import InvariantViolation
from schemas.settings import EnvelopeSettings
from tests.each_case import check_each
from tests.trading_core.engine_bench import FLAT, WIDE, engine_on, install, play, run_all, story
from tests.trading_core.market import random_series, series
from trading_core.kernel.records import FLAG_NO_TRADE

NAN = float("nan")
BOTH_SIDES = check_each("direction", [1, -1], ids=["long", "short"])
LIMIT: dict[str, Any] = {"entry_kind": "limit", "entry": 98.0}
STOP: dict[str, Any] = {"entry_kind": "stop", "entry": 102.0, "stop": 97.0}
HALF: dict[str, Any] = {"scale_outs": ((1.0, 0.5),)}  # of 100 units, at 105
THROUGH, LEVEL, TARGET_FIRST = {"limit_fill": "through"}, {"gap": "level"}, {"both_hit": "target"}
NO_ENTRY_BAR = {"entry_bar_exits": False}
UNFILLED = ["5 refused unfilled", "5 expired"]
QUIET = (100.0, 100.8, 99.2, 100.0)


ENTRIES = {
    "limit touched": ([(100, 101, 98, 100)], {}, LIMIT, ["3 entry 98"]),
    "limit only touched": ([(100, 101, 98, 100), FLAT, FLAT], THROUGH, LIMIT, UNFILLED),
    "limit traded through": ([(100, 101, 97.9, 100)], THROUGH, LIMIT, ["3 entry 98"]),
    "limit at the open": ([(98, 99, 97.9, 98.5)], THROUGH, LIMIT, ["3 entry 98"]),
    "limit at a better open": ([(97, 99, 96, 98)], {}, LIMIT, ["3 entry 97"]),
    "limit at a better open by level": ([(97, 99, 96, 98)], LEVEL, LIMIT, ["3 entry 98"]),
    "limit later": ([QUIET, (99, 99.5, 97, 98)], {}, LIMIT, ["4 entry 98"]),
    "limit unfilled": ([FLAT, FLAT, FLAT, (97, 98, 96, 97)], {}, LIMIT, UNFILLED),
    "limit on its last bar": ([FLAT, FLAT, (97, 98, 96, 97)], {}, LIMIT, ["5 entry 97"]),
    "limit invalidated": (
        [FLAT, (97, 98, 96, 97)],
        {},
        {**LIMIT, "invalidation": [3]},
        ["3 invalidated", "3 refused invalidated"],
    ),
    "limit at the close": ([QUIET], {}, {**LIMIT, "entry": 100.0}, ["3 entry 100"]),
    "limit beyond the close": ([FLAT], {}, {**LIMIT, "entry": 100.5}, ["2 refused wrong_side"]),
    "limit unknown": ([FLAT], {}, {**LIMIT, "entry": NAN}, ["2 refused level_unknown"]),
    "limit on the grid": (
        [(100, 101, 97, 100)],
        {"tick_size": 0.5},
        {**LIMIT, "entry": 98.1},
        ["3 entry 98"],
    ),
    "limit filled at the close setting": ([(100, 101, 97, 100)], {"fill": "close"}, LIMIT, ["3 entry 98"]),
    "stop touched": ([(100, 102, 99, 101)], {}, STOP, ["3 entry 102"]),
    "stop touched is traded through": ([(100, 102, 99, 101)], THROUGH, STOP, ["3 entry 102"]),
    "stop over a gap": ([(103, 104, 102.5, 103)], {}, STOP, ["3 entry 103"]),
    "stop over a gap by level": ([(103, 104, 102.5, 103)], LEVEL, STOP, ["3 entry 102"]),
    "stop at the open": ([(102, 103, 101, 102)], {}, STOP, ["3 entry 102"]),
    "stop unfilled": ([(100, 101.9, 99, 100), FLAT, FLAT], {}, STOP, UNFILLED),
    "stop at the close": ([FLAT], {}, {**STOP, "entry": 100.0}, ["3 entry 100"]),
    "stop passed by the close": ([FLAT], {}, {**STOP, "entry": 99.5}, ["2 refused wrong_side"]),
    "stop just beyond the close": ([FLAT], {}, {**STOP, "entry": 100.5}, ["3 entry 100.5"]),
    "market": ([(101, 102, 99, 100)], {}, {}, ["3 entry 101"]),
    "market at the close": ([(101, 102, 99, 100)], {"fill": "close"}, {}, ["2 entry 100"]),
    "market beyond its stop": ([(94, 96, 93, 95)], {}, {}, ["3 entry 94", "3 exit stop 94"]),
    "market beyond its stop by level": ([(94, 96, 93, 95)], LEVEL, {}, ["3 entry 94", "3 exit stop 94"]),
    "market beyond its target": ([(112, 113, 111, 112)], {}, {}, ["3 entry 112", "3 exit target 112"]),
    "market beyond its stop, exits later": (
        [(94, 96, 93, 95), (96, 97, 95.5, 96)],
        NO_ENTRY_BAR,
        {},
        ["3 entry 94"],
    ),
    "better limit": (
        [(100, 101, 97.5, 99)],
        {},
        {"refines_entry": True, "refinement": 98.0},
        ["2 refined entry 98", "3 entry 98"],
    ),
    "better limit at the close is no better": (
        [(101, 102, 99, 100)],
        {},
        {"refines_entry": True, "refinement": 100.0},
        ["3 entry 101"],
    ),
    "better limit too near the stop": (
        [(100, 101, 97.5, 99)],
        {},
        {"refines_entry": True, "refinement": 97.0},
        ["3 entry 100"],
    ),
    "better limit unknown": (
        [(100, 101, 97.5, 99)],
        {"tick_size": 0.1},
        {"refines_entry": True, "refinement": NAN},
        ["3 entry 100"],
    ),
    "limit worse than the one declared": (
        [(100, 101, 98.5, 99), (100, 101, 97.9, 99)],
        {},
        {**LIMIT, "refines_entry": True, "refinement": 99.0},
        ["4 entry 98"],
    ),
    "limit better than the one declared": (
        [(100, 101, 97.5, 99)],
        {},
        {**LIMIT, "refines_entry": True, "refinement": 97.5},
        ["2 refined entry 97.5", "3 entry 97.5"],
    ),
    "better limit while it rests": (
        [(100, 101, 99.5, 100), (100, 101, 97.9, 99)],
        {},
        {**LIMIT, "entry": 99.0, "refines_entry": True, "refinement": [NAN, NAN, NAN, 98.0, 99.5]},
        ["3 refined entry 98", "4 entry 98"],
    ),
    "worse limit while it rests": (
        [(100, 101, 99.5, 100), (100, 101, 98.9, 99)],
        {},
        {**LIMIT, "entry": 99.0, "refines_entry": True, "refinement": [NAN, NAN, NAN, 99.2, NAN]},
        ["4 entry 99"],
    ),
    "tighter stop": (
        [FLAT, FLAT, QUIET, (100, 101, 96.9, 98)],
        {},
        {"activation": [4], "refinement": [NAN, NAN, 96.0, 97.0, 98.0, 99.0, 99.0]},
        ["2 refined stop 96", "3 refined stop 97", "5 entry 100", "6 exit stop 97"],
    ),
    "tighter stop than a near one": (
        [FLAT, (100, 100.1, 99.9, 100)],
        {},
        {"activation": [3], "stop": 99.5, "refinement": 99.7},
        ["2 refined stop 99.7", "4 entry 100"],
    ),
    "tighter stop at half the distance": (
        [FLAT, QUIET],
        {},
        {"activation": [3], "refinement": 97.5},
        ["2 refined stop 97.5", "4 entry 100"],
    ),
}


@BOTH_SIDES
@check_each(("rows", "execution", "policy", "story"), ENTRIES.values(), ids=ENTRIES)
def test_kernel_entry_fills_where_its_kind_says(rows, execution, policy, story, direction):
    assert play([FLAT, *rows], direction, execution=execution, **policy).story() == story


ENTRY_BAR = {
    "limit, target may lie before the fill": (
        [(100, 111, 97, 100), (100, 111, 99.5, 100)],
        {},
        LIMIT,
        ["3 entry 98", "4 exit target 110"],
    ),
    "limit, stop": ([(100, 101, 95, 100)], {}, LIMIT, ["3 entry 98", "3 exit stop 95"]),
    "limit, stop, target first": (
        [(100, 111, 95, 100)],
        TARGET_FIRST,
        LIMIT,
        ["3 entry 98", "3 exit stop 95"],
    ),
    "limit, stop, exits later": ([(100, 101, 95, 100)], NO_ENTRY_BAR, LIMIT, ["3 entry 98"]),
    "limit at the open, target": ([(97, 111, 96, 100)], {}, LIMIT, ["3 entry 97", "3 exit target 110"]),
    "limit at the open beyond its stop": ([(94, 96, 93, 95)], {}, LIMIT, ["3 entry 94", "3 exit stop 94"]),
    "stop, target": ([(100, 111, 99, 105)], {}, STOP, ["3 entry 102", "3 exit target 110"]),
    "stop, target only touched": ([(100, 110, 99, 105)], THROUGH, STOP, ["3 entry 102"]),
    "stop, stop": ([(100, 103, 97, 101)], {}, STOP, ["3 entry 102", "3 exit stop 97"]),
    "stop, both": ([(100, 111, 96, 105)], {}, STOP, ["3 entry 102", "3 exit stop 97"]),
    "stop, both, target first": (
        [(100, 111, 96, 105)],
        TARGET_FIRST,
        STOP,
        ["3 entry 102", "3 exit target 110"],
    ),
    "stop, both, the path is unknown": (
        [(100, 111, 96, 99)],
        {"both_hit": "near"},
        STOP,
        ["3 entry 102", "3 exit stop 97"],
    ),
    "stop, scale-out": ([(100, 108, 99, 105)], {}, {**STOP, **HALF}, ["3 entry 102", "3 scaled 107 x50"]),
    "market, stop": ([(100, 101, 94, 95)], {}, {}, ["3 entry 100", "3 exit stop 95"]),
    "market, target": ([(100, 111, 99, 105)], {}, {}, ["3 entry 100", "3 exit target 110"]),
    "market, stop, exits later": (
        [(100, 101, 94, 95), (96, 97, 95, 96)],
        NO_ENTRY_BAR,
        {},
        ["3 entry 100", "4 exit stop 95"],
    ),
    "at the close, its bar is past": ([(100, 101, 99, 100)], {"fill": "close"}, {}, ["2 entry 100"]),
    "at the close, next bar": (
        [(94, 101, 93, 100)],
        {"fill": "close"},
        {},
        ["2 entry 100", "3 exit stop 94"],
    ),
}


@BOTH_SIDES
@check_each(("rows", "execution", "policy", "story"), ENTRY_BAR.values(), ids=ENTRY_BAR)
def test_kernel_entry_bar_exits_only_where_the_path_allows(rows, execution, policy, story, direction):
    assert play([FLAT, *rows], direction, execution=execution, **policy).story() == story


@BOTH_SIDES
def test_kernel_setup_at_the_close_that_ends_its_resting_order_orders_again(direction):
    at_once: dict[str, Any] = {**STOP, "activation": None, "immediate": True, "window": 0}
    rows = [FLAT, (100, 102, 99, 101)]
    taken_back = ["2 refused unfilled", "2 expired"]
    assert play(rows, direction, **at_once, setup=[1, 2]).story() == [*taken_back, "3 entry 102"]
    assert play(rows, direction, **at_once, setup=[1]).story() == taken_back
    again = play([FLAT] * 3, direction, **at_once, setup=[1, 2], horizon=1).details("policy_expired")
    assert len(again) == 1, "the horizon ends what waits at that close too"


@BOTH_SIDES
@check_each("repeats", [True, False])
def test_kernel_plan_that_repeats_reads_the_close_of_the_bar_that_ended_its_position(direction, repeats):
    done = play(
        [FLAT] * 6, direction, setup=[1, 3], activation=None, immediate=True, window=0, exit_rule=[2, 4],
        repeats=repeats, horizon=4, envelope=EnvelopeSettings(cooldown_bars=0),
    )  # fmt: skip
    first, second = (
        [f"{row} entry 100", f"{row} exit rule", f"{row + 1} exit exit_rule 100"] for row in (2, 4)
    )
    assert done.story() == first + second * repeats
    assert [trade["policy"] for trade in done.trades] == [0] * (1 + repeats)
    assert len(done.details("policy_expired")) == repeats, "its horizon ends it as any plan's"
    assert done.engine.state["policy"][0] == -1


@BOTH_SIDES
def test_kernel_excursions_of_a_limit_entry_leave_out_what_may_precede_it(direction):
    rows = [FLAT, (100, 109, 97, 99), (99, 99.5, 94, 95)]
    trade = play(rows, direction, **LIMIT).trades[0]
    assert (trade["mae_r"], trade["mfe_r"]) == (pytest.approx(-1.0), pytest.approx(1 / 3))
    bought = play(rows, direction, **{**STOP, "stop": 96.0}).trades[0]
    assert (bought["entry_price"] - 100.0) * direction == pytest.approx(2.0)
    assert (bought["mae_r"], bought["mfe_r"]) == (pytest.approx(-1.0), pytest.approx(7 / 6))


@pytest.mark.parametrize("row", [2, 3])
def test_kernel_no_trade_window_refuses_and_takes_back(row):
    flags = np.zeros((6, 1), dtype=np.uint8)
    flags[row] = FLAG_NO_TRADE
    shown = play([FLAT, FLAT, FLAT, (97, 98, 96, 97)], flags=flags, **LIMIT).story()
    assert shown == [f"{row} refused no_trade_window"]


def test_kernel_resting_order_waits_for_a_bar_of_its_symbol():
    bars = random_series(1, 12, 2, scale=1e-6)
    bars.present[3:8, 0] = False
    engine = engine_on(bars)
    install(engine, setup=[1], activation=[2], entry_kind="limit", entry=99.0, stop=90.0, target=120.0)
    run_all(engine, 8)
    assert (engine.state["order"][0], engine.portfolio["orders"][0]) == (1, 1)
    steps = run_all(engine)
    rows = [e.bar_label for step in steps for e in step.events if e.kind == "thesis_expired"]
    assert rows == [int(bars.times[10])], "the window counts bars of the symbol: rows 2, 8, 9, 10"


@BOTH_SIDES
@check_each("entry_kind", ["market", "limit"])
def test_kernel_exits_only_reduce_and_end_flat(direction, entry_kind):
    done = play(
        [FLAT, (98, 99, 97, 98), FLAT, (100, 111, 94, 100)], direction, entry_kind=entry_kind, entry=98.0
    )
    state = done.engine.state[0]
    assert (state["quantity"], state["direction"], state["order"]) == (0.0, 0, 0)
    assert (state["position_policy"], state["exit_reason"]) == (-1, -1)
    assert done.engine.portfolio["positions"][0] == done.engine.portfolio["orders"][0] == 0


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        ({"scale_outs": ((1.0, 1.0),)}, "share"),
        ({"scale_outs": ((1.0, 0.0),)}, "share"),
        ({"scale_outs": ((1.0, 0.5), (2.0, 0.5))}, "share"),
        ({"scale_outs": ((1.0, 0.1),) * 5}, "share"),
        ({"target": None, "target_pct": 0.1, "target_moves": True}, "moves a target"),
        ({"entry_kind": "limit"}, "enters by limit"),
        ({"setup": None}, "no setup"),
    ],
)
def test_kernel_policy_whose_orders_cannot_be_is_refused(policy, named):
    engine = engine_on(series([FLAT] * 4))
    with pytest.raises(InvariantViolation, match=named):
        install(engine, **policy)


def test_kernel_tightened_stop_is_the_given_level_and_one_off_the_tick_is_refused():
    engine = play([FLAT, FLAT], execution={"tick_size": 0.5}).engine
    with pytest.raises(InvariantViolation, match="97.3 does not lie on the grid of 0.5"):
        engine.tighten_stop(0, 97.3)
    assert engine.tighten_stop(0, 97.5).detail["stop"] == 97.5
    with pytest.raises(InvariantViolation, match="not tighter"):
        engine.tighten_stop(0, NAN)


@pytest.mark.parametrize(
    ("direction", "level", "shown"),
    [
        (1, {"stop": 0.5}, ["3 entry 100"]),
        (1, {"stop": 0.0}, ["2 refused wrong_side"]),
        (-1, {"target": 199.5}, ["3 entry 100"]),
        (-1, {"target": 200.0}, ["2 refused wrong_side"]),
    ],
)
def test_kernel_level_at_zero_is_no_level(direction, level, shown):
    """Levels of the short are mirrored: 200 stands for a price of zero."""
    assert play([FLAT, FLAT], direction, **level).story() == shown


@pytest.mark.parametrize("role", ["setup", "activation", "invalidation"])
def test_kernel_first_column_of_the_table_is_a_column(role):
    engine = engine_on(series([FLAT] * 7))
    rows: dict[str, Any] = {"setup": [1], "activation": [2], "invalidation": [4]}
    column = np.zeros(7, dtype=np.int8)
    column[rows[role]] = 1
    assert engine.columns.truth((f"policy {role}", 0), column) == 0
    install(engine, **rows)
    assert [line.split(maxsplit=1)[0] for line in story(engine, run_all(engine))] == ["3", "4", "5"]


@BOTH_SIDES
def test_kernel_refined_limit_is_risked_from_its_new_price(direction):
    better = {**LIMIT, "entry": 99.0, "refines_entry": True, "refinement": [NAN, NAN, NAN, 98.0, NAN, NAN]}
    rows = [FLAT, (100, 101, 99.5, 100), (100, 101, 97.9, 99), (99, 100, 94, 95)]
    done = play(rows, direction, **better)
    (trade,) = done.trades
    assert trade["r"] == pytest.approx(-1.0)
    assert trade["quantity"] == pytest.approx(500 / 4), "the size is that of the first price"


def test_kernel_first_price_column_of_the_table_is_a_column():
    engine = engine_on(series([FLAT] * 7))
    level = np.array([NAN, NAN, NAN, 97.0, 98.0, NAN, NAN])
    assert engine.columns.number(("policy trail", 0), level) == 0
    install(engine, setup=[1], activation=[2], trail=level)
    assert story(engine, run_all(engine)) == [
        "3 X entry 100", "3 X stop 97 by trail", "4 X stop 98 by trail",
    ]  # fmt: skip


def test_kernel_first_price_column_may_refine_an_entry():
    engine = engine_on(series([FLAT] * 7))
    assert engine.columns.number(("policy refinement", 0), np.full(7, 99.5)) == 0
    install(engine, setup=[1], activation=[2], refines_entry=True, refinement=99.5)
    assert story(engine, run_all(engine)) == ["2 X refined entry 99.5", "3 X entry 99.5"]


@pytest.mark.parametrize(("reentry", "row"), [(True, 5), (False, 6)])
def test_kernel_reentry_on_the_bar_of_an_exit_is_a_setting(reentry, row):
    """The exit is on row 4; without a cooldown the setup of that very bar may order, or the next one's."""
    envelope = WIDE.model_copy(update={"cooldown_bars": 0})
    rows = [FLAT, FLAT, (100, 101, 94, 100), FLAT, FLAT]
    done = play(
        rows,
        execution={"reentry": reentry},
        envelope=envelope,
        setup=range(2, 7),
        immediate=True,
        never_ends=True,
    )
    assert done.story() == ["3 entry 100", "4 exit stop 95", f"{row} entry 100"]
