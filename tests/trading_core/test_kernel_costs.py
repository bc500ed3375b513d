"""What orders cost and how large they are: fees, slippage, carry, levels and sizes, long and short."""

from typing import Any

import pytest

from tests.each_case import check_each
from tests.trading_core.engine_bench import FLAT, play

NAN = float("nan")
BOTH_SIDES = check_each("direction", [1, -1], ids=["long", "short"])
LIMIT: dict[str, Any] = {"entry_kind": "limit", "entry": 98.0}
STOP: dict[str, Any] = {"entry_kind": "stop", "entry": 102.0, "stop": 97.0}
HALF: dict[str, Any] = {"scale_outs": ((1.0, 0.5),)}  # of 100 units, at 105


@BOTH_SIDES
def test_kernel_scale_out_conserves_fees_and_cash(direction):
    costs = {"fee_bps": 10.0, "fee_per_trade": 1.0, "slippage_bps": 20.0, "lot_size": 1.0}
    done = play([FLAT, FLAT, (100, 106, 99.5, 105), (105, 111, 104, 110)], direction, execution=costs, **HALF)
    fills = [done.details(kind)[0] for kind in ("entry_filled", "scale_out_filled", "exit_filled")]
    (trade,) = done.trades
    assert trade["fees"] == pytest.approx(sum(fill["fee"] for fill in fills))
    assert fills[1]["quantity"] + fills[2]["quantity"] == fills[0]["quantity"] == trade["quantity"]
    bought, sold = (
        fills[0]["price"] * fills[0]["quantity"],
        sum(f["price"] * f["quantity"] for f in fills[1:]),
    )
    assert trade["pnl"] == pytest.approx(direction * (sold - bought) - trade["fees"])
    assert done.engine.portfolio["cash"][0] == pytest.approx(100_000.0 + trade["pnl"])
    assert trade["exit_price"] == pytest.approx(sold / trade["quantity"])


@BOTH_SIDES
@check_each(
    ("execution", "policy", "entry_slip", "exit_slip", "entry_bps", "exit_bps"),
    [
        ({"fee_bps": 10.0}, {}, 0.0, 0.0, 10.0, 10.0),
        ({"fee_bps": 10.0, "slippage_bps": 5.0}, {}, 5.0, 5.0, 10.0, 10.0),
        ({"slippage_bps": 2.0, "spread_bps": 10.0, "slippage_spread_fraction": 0.5}, {}, 7.0, 7.0, 0.0, 0.0),
        ({"fee_bps": 10.0, "maker_fee_bps": 2.0, "slippage_bps": 5.0}, {}, 5.0, 0.0, 10.0, 2.0),
        ({"fee_bps": 10.0, "maker_fee_bps": 2.0, "slippage_bps": 5.0}, LIMIT, 0.0, 0.0, 2.0, 2.0),
        ({"fee_bps": 10.0, "slippage_bps": 5.0}, LIMIT, 0.0, 5.0, 10.0, 10.0),
        ({"fee_bps": 10.0, "maker_fee_bps": 2.0, "slippage_bps": 5.0}, STOP, 5.0, 0.0, 10.0, 2.0),
    ],
)  # fmt: skip
def test_kernel_costs_of_an_entry_and_a_target(
    execution, policy, entry_slip, exit_slip, entry_bps, exit_bps, direction
):
    done = play([FLAT, (100, 103, 97.5, 100), (100, 111, 99, 110)], direction, execution=execution, **policy)
    (entry,), (exit_,) = done.details("entry_filled"), done.details("exit_filled")
    assert entry["price"] == pytest.approx(entry["raw_price"] * (1 + direction * entry_slip * 1e-4))
    assert exit_["price"] == pytest.approx(exit_["raw_price"] * (1 - direction * exit_slip * 1e-4))
    assert entry["fee"] == pytest.approx(entry["price"] * entry["quantity"] * entry_bps * 1e-4)
    assert exit_["fee"] == pytest.approx(exit_["price"] * exit_["quantity"] * exit_bps * 1e-4)
    assert exit_["reason"] == "target"


@pytest.mark.parametrize(("direction", "rate"), [(1, 3e-4), (-1, 2e-4)])
def test_kernel_carry_is_charged_at_every_close_that_holds(direction, rate):
    rows = [FLAT, FLAT, (100, 102, 99, 101), (101, 102, 99, 101)]
    done = play(rows, direction, execution={"funding_bps": 3.0, "borrow_bps": 5.0}, horizon=2)
    (trade,) = done.trades
    held = [float(done.engine.bars.close[t, 0]) for t in (3, 4)]
    assert trade["fees"] == pytest.approx(trade["quantity"] * sum(held) * rate)
    assert done.engine.portfolio["cash"][0] == pytest.approx(100_000.0 + trade["pnl"])
    assert done.engine.portfolio["fees"][0] == pytest.approx(trade["fees"])
    assert done.engine.portfolio["carry"][0] == pytest.approx(trade["fees"]), "nothing else was charged"


@pytest.mark.parametrize(("direction", "expected"), [(1, 102 * 0.95), (-1, 98 * 1.05)])
def test_kernel_levels_from_the_fill_keep_their_distance(direction, expected):
    rows = [FLAT, (102, 103, 101, 102)]
    (moved,) = play(rows, direction, execution={"level_base": "fill"}).details("entry_filled")
    (kept,) = play(rows, direction).details("entry_filled")
    assert moved["stop"] == pytest.approx(expected)
    assert moved["target"] == pytest.approx((100 + direction * 2) * (100 + direction * 10) / 100)
    assert kept["stop"] == pytest.approx(100 - direction * 5)


@BOTH_SIDES
@check_each(
    ("execution", "policy", "quantity"),
    [
        ({}, {}, 100.0),
        ({}, LIMIT, 500 / 3),
        ({}, {"risk_fraction": 0.01}, 200.0),
        ({"lot_size": 30.0}, {}, 90.0),
        ({"sizing": "volatility"}, {"volatility": 5.0}, 50.0),
        ({"sizing": "fixed", "fixed_quantity": 7.0}, {}, 7.0),
        ({"sizing": "fixed", "fixed_quantity": 7_000.0}, {}, 400.0),
    ],
)
def test_kernel_size_is_fixed_when_the_order_is_accepted(execution, policy, quantity, direction):
    done = play([FLAT, (98, 99, 97, 98)], direction, execution=execution, **policy)
    assert done.details("order_accepted")[0]["quantity"] == pytest.approx(quantity)
    assert done.details("entry_filled")[0]["quantity"] == done.details("order_accepted")[0]["quantity"]


@pytest.mark.parametrize("volatility", [NAN, 0.0, -1.0, None])
def test_kernel_size_by_an_unknown_volatility_is_refused(volatility):
    shown = play([FLAT, FLAT], execution={"sizing": "volatility"}, volatility=volatility).story()
    assert shown == ["2 refused level_unknown"]


@BOTH_SIDES
@check_each("level_base", ["fill", "signal_close"])
def test_kernel_r_counts_from_the_base_of_the_levels_however_near(level_base, direction):
    """The stop is half a unit away; the entry opens a fifth of a unit further."""
    rows = [FLAT, (100.2, 100.3, 100.1, 100.2), (100.2, 100.3, 95, 96)]
    done = play(rows, direction, execution={"level_base": level_base}, stop=99.5, target=105.0)
    (trade,) = done.trades
    (entry,) = done.details("entry_filled")
    risk = abs(entry["price"] - entry["stop"]) if level_base == "fill" else 0.5
    assert trade["r"] * risk * trade["quantity"] == pytest.approx(trade["pnl"])
    assert trade["pnl"] < 0.0


@BOTH_SIDES
def test_kernel_slippage_makes_every_fill_of_a_scaled_position_worse(direction):
    rows = [FLAT, FLAT, (100, 106, 99.5, 105), (105, 111, 104, 110)]
    done = play(rows, direction, execution={"slippage_bps": 20.0}, **HALF)
    for kind, side in (("entry_filled", 1), ("scale_out_filled", -1), ("exit_filled", -1)):
        (fill,) = done.details(kind)
        assert fill["price"] == pytest.approx(fill["raw_price"] * (1 + side * direction * 0.002)), kind


@BOTH_SIDES
def test_kernel_fill_at_the_close_is_in_the_books_of_its_own_bar(direction):
    done = play([FLAT, FLAT], direction, execution={"fill": "close", "fee_bps": 10.0})
    assert done.engine.gross[1:3] == pytest.approx([0.0, 10_000.0])
    assert done.engine.equity[1:3] == pytest.approx([100_000.0, 99_990.0])


@BOTH_SIDES
def test_kernel_levels_from_the_fill_of_a_refined_limit_count_from_its_new_price(direction):
    refinement = [NAN, NAN, NAN, 98.0, NAN]
    policy = {**LIMIT, "entry": 99.0, "refines_entry": True, "refinement": refinement}
    rows = [FLAT, (100, 101, 99.5, 100), (100, 101, 98, 99)]
    (entry,) = play(rows, direction, execution={"level_base": "fill"}, **policy).details("entry_filled")
    assert entry["price"] == 100 - direction * 2
    assert (entry["stop"], entry["target"]) == (
        pytest.approx(100 - direction * 5),
        pytest.approx(100 + direction * 10),
    )
