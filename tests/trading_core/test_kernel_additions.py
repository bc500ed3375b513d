"""The one added entry of a position: when it is ordered and filled, what bounds it, and how its trade counts.

Entered at the open of row 3 with 100 units at 100, stop 95, target 110; the given rows follow.
"""

from typing import Any

import numpy as np
import pytest

from tests.each_case import check_each
from tests.trading_core.engine_bench import FLAT, WIDE, play, run_all
from trading_core.kernel.records import FLAG_NO_TRADE

BOTH_SIDES = check_each("direction", [1, -1], ids=["long", "short"])
ADD: dict[str, Any] = {"add_at_r": 1.0, "add_share": 0.5}
AHEAD, ON = (100, 105, 99.5, 105), (105, 106, 104, 105)
ADDITIONS = {
    "at the open after": ([AHEAD, ON], {}, {}, ["5 added 105 x50"]),
    "not reached": ([(100, 105, 99.5, 104.9), ON], {}, {"add_at_r": 1.001}, []),
    "once": ([AHEAD, (105, 108, 104, 107), (107, 109, 106, 108)], {}, {}, ["5 added 105 x50"]),
    "at the close of the entry bar": ([], {}, {"add_at_r": 0.001}, []),
    "also where orders fill at the close": ([AHEAD, ON], {"fill": "close"}, {}, ["5 added 105 x50"]),
    "before an exit rule": ([AHEAD, ON], {}, {"exit_rule": [4]}, ["4 exit rule", "5 exit exit_rule 105"]),
    "before the time stop": ([AHEAD, ON], {}, {"horizon": 2}, ["5 exit time_stop 105"]),
    "before an invalidation": (
        [AHEAD, ON],
        {},
        {"invalidation": [4]},
        ["4 invalidated", "5 exit invalidation 105"],
    ),
    "then the stop": ([AHEAD, (105, 106, 94, 95)], {}, {}, ["5 added 105 x50", "5 exit stop 95"]),
    "over a gap over the stop": ([AHEAD, (93, 94, 92, 93)], {}, {}, ["5 added 93 x50", "5 exit stop 93"]),
    "then the target": ([AHEAD, (105, 111, 104, 110)], {}, {}, ["5 added 105 x50", "5 exit target 110"]),
    "over a gap over the target": (
        [AHEAD, (112, 113, 111, 112)],
        {},
        {},
        ["5 added 112 x50", "5 exit target 112"],
    ),
    "with break-even": (
        [AHEAD, (105, 109, 104, 108), (108, 109, 101, 102)],
        {},
        {"break_even_r": 1.0},
        ["4 stop 100 by break_even", "5 added 105 x50", "5 stop 101.6666667 by break_even",
         "6 exit stop 101.6666667"],
    ),
    "with scale-outs of all that was bought": (
        [AHEAD, ON, (105, 108, 104, 107)],
        {},
        {"scale_outs": ((1.0, 0.5), (1.5, 0.2))},
        ["4 scaled 105 x50", "5 added 105 x50", "6 scaled 107.5 x30"],
    ),
    "in lots": ([AHEAD, ON], {"lot_size": 30.0}, {}, ["5 added 105 x30"]),
    "of less than a lot": ([AHEAD, ON], {"lot_size": 90.0}, {}, ["4 refused no_capacity"]),
}  # fmt: skip


@BOTH_SIDES
@check_each(("rows", "execution", "policy", "story"), ADDITIONS.values(), ids=ADDITIONS)
def test_kernel_addition_fills_once_at_the_open_after_its_close(rows, execution, policy, story, direction):
    # Filled at the close of its signal bar, the position is a bar older and the same price.
    entry = "2 entry 100" if execution.get("fill") == "close" else "3 entry 100"
    shown = play([FLAT, FLAT, *rows], direction, execution=execution, **{**ADD, **policy}).story()
    assert shown == [entry, *story]


@BOTH_SIDES
@check_each(
    ("limits", "story"),
    [
        ({"max_symbol_exposure": 0.13}, ["4 clamped symbol_exposure", "5 added"]),
        ({"max_gross_exposure": 0.13}, ["4 clamped gross_exposure", "5 added"]),
        ({"risk_fraction": 0.008}, ["4 clamped risk_cap", "5 added"]),
        ({"max_entries_per_hour": 1}, ["5 added"]),
        ({"max_entries_per_block": 1}, ["4 refused throttled"]),
    ],
    ids=str,
)
def test_kernel_addition_is_bounded_by_the_envelope(limits, story, direction):
    envelope = WIDE.model_copy(update=limits)
    done = play([FLAT, FLAT, AHEAD, ON], direction, envelope=envelope, **ADD)
    assert [line.partition(" 105")[0] for line in done.story()[1:]] == story


def test_kernel_addition_without_room_is_refused():
    """The long has grown to 10,500 of 100,500, and a tenth is all that it may be."""
    envelope = WIDE.model_copy(update={"max_symbol_exposure": 0.1})
    done = play([FLAT, FLAT, AHEAD, ON, ON], envelope=envelope, **ADD)
    assert done.story()[1:] == ["4 refused no_capacity"]


@BOTH_SIDES
def test_kernel_addition_keeps_what_the_stop_may_lose_below_the_risk_cap(direction):
    envelope = WIDE.model_copy(update={"risk_fraction": 0.008})
    done = play([FLAT, FLAT, AHEAD, ON], direction, envelope=envelope, **ADD)
    (added,) = done.details("add_filled")
    assert 100.0 * 5.0 + added["quantity"] * 10.0 == pytest.approx(0.008 * 100_500.0)


@BOTH_SIDES
def test_kernel_addition_in_a_no_trade_window_is_refused_and_not_asked_again(direction):
    flags = np.zeros((7, 1), dtype=np.uint8)
    flags[4] = FLAG_NO_TRADE
    done = play([FLAT, FLAT, AHEAD, (105, 107, 104, 106), ON], direction, flags=flags, **ADD)
    assert done.story()[1:] == ["4 refused no_trade_window"]


@BOTH_SIDES
@check_each(
    ("last", "pnl", "mfe", "mae"),
    [((105, 111, 104, 110), 1250.0, 25 / 15, -8 / 15), ((105, 106, 94, 95), -1000.0, 10 / 15, -20 / 15)],
    ids=["target", "stop"],
)
def test_kernel_addition_makes_one_trade_in_units_of_the_first_risk(last, pnl, mfe, mae, direction):
    done = play([FLAT, FLAT, AHEAD, last], direction, **ADD)
    (trade,) = done.trades
    average = (100 * 100.0 + 50 * (100.0 + 5.0 * direction)) / 150
    assert trade["entry_price"] == pytest.approx(average)
    assert (trade["quantity"], trade["bars_held"]) == (150.0, 2)
    assert (trade["pnl"], trade["r"]) == (pytest.approx(pnl), pytest.approx(pnl / 500.0))
    assert (trade["mfe_r"], trade["mae_r"]) == (pytest.approx(mfe), pytest.approx(mae))
    assert done.engine.portfolio["cash"][0] == pytest.approx(100_000.0 + pnl)


@BOTH_SIDES
def test_kernel_addition_pays_slippage_and_fee_as_an_entry_does(direction):
    costs = {"fee_bps": 10.0, "slippage_bps": 20.0}
    done = play([FLAT, FLAT, (100, 106, 99.5, 106), (106, 107, 105, 106)], direction, execution=costs, **ADD)
    (added,) = done.details("add_filled")
    raw = 100.0 + 6.0 * direction
    assert added["raw_price"] == raw
    assert added["price"] == pytest.approx(raw * (1.0 + direction * 0.002))
    assert added["fee"] == pytest.approx(added["quantity"] * added["price"] * 0.001)


@BOTH_SIDES
def test_kernel_addition_waits_while_the_kill_switch_is_on_and_goes_with_its_position(direction):
    done = play([FLAT, FLAT], direction, **ADD)
    assert done.engine.state["adding"][0] == 0.0
    rows = [FLAT, FLAT, AHEAD, ON, ON]
    switched = play(rows, direction, until=5, **ADD)
    switched.engine.set_kill_switch(True)
    switched.steps.extend(run_all(switched.engine))
    assert [line.split()[1] for line in switched.story()[1:]] == ["breach", "exit"]
    assert switched.engine.state["adding"][0] == 0.0
