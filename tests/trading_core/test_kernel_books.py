"""What is written down: fees of the portfolio, scaled positions to the last unit, details of events."""

from typing import Any

import numpy as np
import pytest

from tests.each_case import check_each
from tests.trading_core.engine_bench import FLAT, WIDE, play
from trading_core.kernel.events import emit
from trading_core.kernel.records import EVENT, TRADE, Out

BOTH_SIDES = check_each("direction", [1, -1], ids=["long", "short"])
HALF: dict[str, Any] = {"scale_outs": ((1.0, 0.5),)}  # at 105
SCALED, TARGET = (100, 106, 99.5, 105), (105, 111, 104, 110)


@BOTH_SIDES
def test_kernel_portfolio_fees_are_those_of_every_fill(direction):
    costs = {"fee_bps": 10.0, "fee_per_trade": 1.0}
    done = play([FLAT, FLAT, SCALED, TARGET], direction, execution=costs, **HALF)
    fills = [done.details(kind)[0] for kind in ("entry_filled", "scale_out_filled", "exit_filled")]
    expected = [0.001 * fill["quantity"] * fill["price"] + 1.0 for fill in fills]
    assert [fill["fee"] for fill in fills] == pytest.approx(expected)
    assert done.engine.portfolio["fees"][0] == pytest.approx(sum(expected))


@BOTH_SIDES
def test_kernel_scale_out_by_a_resting_order_pays_the_maker_fee_and_no_slippage(direction):
    costs = {"fee_bps": 10.0, "maker_fee_bps": 2.0, "slippage_bps": 5.0}
    done = play([FLAT, FLAT, SCALED], direction, execution=costs, **HALF)
    (fill,) = done.details("scale_out_filled")
    assert fill["price"] == fill["raw_price"]
    assert fill["fee"] == pytest.approx(fill["price"] * fill["quantity"] * 2e-4)
    state = done.engine.state[0]
    assert state["scaled_quantity"] == fill["quantity"] == fill["remaining"]
    assert state["scaled_value"] == pytest.approx(fill["price"] * fill["quantity"])


@BOTH_SIDES
@check_each("quantity", [0.5, 1.0, 2.0, 4.0])
def test_kernel_scale_out_of_few_units_is_a_trade_like_any_other(quantity, direction):
    sizing = {"sizing": "fixed", "fixed_quantity": quantity}
    done = play([FLAT, FLAT, SCALED, TARGET], direction, execution=sizing, **HALF)
    (trade,), (scaled,) = done.trades, done.details("scale_out_filled")
    assert scaled["quantity"] == scaled["remaining"] == quantity / 2
    assert (trade["exit_price"] - 100.0) * direction == pytest.approx(7.5)
    assert trade["pnl"] == pytest.approx(7.5 * quantity)
    assert trade["r"] == pytest.approx(1.5)


@BOTH_SIDES
def test_kernel_position_after_a_scaled_one_starts_afresh(direction):
    """The first is scaled and reaches its target, the second is stopped out whole, the third is running."""
    rows = [FLAT, FLAT, SCALED, TARGET, FLAT, FLAT, (100, 101, 94, 95), FLAT, FLAT, FLAT]
    done = play(rows, direction, setup=[2, 6, 9], envelope=WIDE.model_copy(update={"cooldown_bars": 1}),
                immediate=True, never_ends=True, **HALF)  # fmt: skip
    first, second = done.trades
    assert (first["r"], second["r"]) == (pytest.approx(1.5), pytest.approx(-1.0))
    assert (second["exit_price"] - 100.0) * direction == pytest.approx(-5.0)
    assert second["pnl"] == pytest.approx(-5.0 * second["quantity"])
    state = done.engine.state[0]
    assert (state["direction"], state["scaled_quantity"], state["scaled_value"]) == (direction, 0.0, 0.0)


@BOTH_SIDES
@check_each("horizon", [1, 3])
def test_kernel_time_stop_tells_the_bars_since_the_entry(horizon, direction):
    done = play([FLAT] * 6, direction, setup=[1], horizon=horizon, never_ends=True)
    (stopped,), (trade,) = done.details("time_stop"), done.trades
    assert (stopped["bars"], stopped["price"]) == (horizon, 100.0)
    assert trade["bars_held"] == horizon


STOPS = {
    "stop tightened to where it is": (
        [(100, 101, 99, 100)],
        {},
        {"trail": 95.0},
        ["3 entry 100"],
    ),
    "both, open at the stop": (
        [(95, 111, 94, 100)],
        {"both_hit": "target"},
        {},
        ["3 entry 100", "4 exit stop 95"],
    ),
}


@BOTH_SIDES
@check_each(("last", "execution", "policy", "shown"), STOPS.values(), ids=STOPS)
def test_kernel_stop_is_met_where_it_stands(last, execution, policy, shown, direction):
    assert play([FLAT, FLAT, *last], direction, execution=execution, **policy).story() == shown


@check_each(
    ("rule", "reasons"),
    [("color", {1: "stop", -1: "target"}), ("near", {1: "target", -1: "stop"})],
)
@BOTH_SIDES
def test_kernel_bar_that_takes_no_side_meets_the_low_first_by_color_and_the_high_by_nearness(
    rule, reasons, direction
):
    """It closes where it opened, as far from its high as from its low."""
    shown = play(
        [FLAT, FLAT, (100, 111, 89, 100)], direction, execution={"both_hit": rule}, stop=90.0
    ).story()
    assert shown[-1].split()[:3] == ["4", "exit", reasons[direction]]


@BOTH_SIDES
def test_kernel_stop_trailed_beyond_the_target_is_still_met(direction):
    """The entry bar opens beyond the target and has no exits; its close trails the stop beyond it, too."""
    rows = [FLAT, (112, 113, 111.5, 112.5), (110.5, 110.9, 110.2, 110.5)]
    trail = [np.nan, np.nan, np.nan, 111.0, np.nan]
    done = play(rows, direction, execution={"entry_bar_exits": False}, trail=trail)
    assert done.story() == ["3 entry 112", "3 stop 111 by trail", "4 exit stop 110.5"]


def test_kernel_r_of_a_stop_that_rounds_to_the_fill_counts_from_the_planned_risk():
    """On a grid of whole units: planned from 100.4 to 100, filled at 101, where the stop then is."""
    bar = (100.4, 100.9, 100.1, 100.4)
    done = play(
        [bar, (100.2, 100.9, 100.1, 100.4)], stop=100.0, target=120.0, activation=[2],
        execution={"tick_size": 1.0, "level_base": "fill"},
    )  # fmt: skip
    (entry,), (trade,) = done.details("entry_filled"), done.trades
    assert (entry["price"], entry["stop"]) == (101.0, 101.0)
    assert trade["r"] * trade["quantity"] * 0.4 == pytest.approx(trade["pnl"])
    assert trade["pnl"] < 0.0


def _out(room: int, on: int) -> Out:
    return Out(
        np.zeros(room, dtype=EVENT).view(np.recarray), np.zeros(1, dtype=np.int64),
        np.zeros(1, dtype=TRADE), np.zeros(1, dtype=np.int64), on,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("room", "on", "count", "written"),
    [(3, 1, 2, [7, 8, 0]), (1, 1, 2, [7]), (3, 0, 0, [0, 0, 0])],
    ids=["room", "too little room", "not wanted"],
)
def test_kernel_event_is_written_when_wanted_and_counted_when_it_does_not_fit(room, on, count, written):
    """A count beyond the buffer is the fault that the loop finds."""
    out = _out(room, on)
    for row in (7, 8):
        emit(out, row, 0, (1, 2, 3), (0.5, 1.5, 0.0, 0.0, 0.0, 0.0))
    assert out.count[0] == count
    assert out.events["t"].tolist() == written
    if on and room == 3:
        event = out.events[1]
        assert (event["s"], event["kind"], event["a"], event["b"]) == (0, 1, 2, 3)
        assert event["x"].tolist() == [0.5, 1.5, 0.0, 0.0, 0.0, 0.0]
