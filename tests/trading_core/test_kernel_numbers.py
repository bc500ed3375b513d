"""The small arithmetic of the kernel: grids, fees, sizes, and what no envelope limits."""

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from schemas.settings import EnvelopeSettings, ExecutionSettings
from tests.each_case import check_each
from tests.trading_core.engine_bench import play
from tests.trading_core.market import random_series
from trading_core.kernel.execution import fee_of, on_tick, slip, whole_lots
from trading_core.kernel.fresh import fresh_state, parameter_record
from trading_core.kernel.limits import breach_of, follow_recovery, fullest_bucket
from trading_core.kernel.records import BREACHES, CLAMPS
from trading_core.kernel.sizing import wanted_quantity
from trading_core.research.simulation import simulate

ENTRY = "close > prev(close, 1) and close > open"


def _parameters(envelope: EnvelopeSettings | None = None, **execution: Any) -> Any:
    record = parameter_record(ExecutionSettings(**execution), envelope, heartbeat=0, emit_events=True)
    return record.view(np.recarray)[0]


@pytest.mark.parametrize(
    ("price", "tick", "expected"),
    [
        (100.12, 0.05, 100.1),
        (100.13, 0.05, 100.15),
        (100.125, 0.25, 100.25),
        (0.3, 0.1, 0.3),
        (99.9, 0.0, 99.9),
    ],
)
def test_kernel_tick_rounds_to_the_nearest(price, tick, expected):
    assert on_tick(price, tick) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("tick", "per_unit"), [(0.01, 100.0), (0.1, 10.0), (0.05, 20.0), (0.001, 1_000.0)])
def test_kernel_price_on_the_grid_is_the_float_that_a_bar_has(tick, per_unit):
    """5,455 ticks of 0.01 are 54.55; their product is 54.550000000000004."""
    prices = [steps / per_unit for steps in range(5_400, 5_500)]
    assert [on_tick(price, tick) for price in prices] == prices
    assert [slip(price, side, 0.0, tick) for price in prices for side in (1, -1)] == [
        price for price in prices for _ in (1, -1)
    ]


@pytest.mark.parametrize("unknown", [np.nan, np.inf])
def test_kernel_tick_of_an_unknown_price_stays_unknown(unknown):
    assert not np.isfinite(on_tick(unknown, 0.01))
    assert not np.isfinite(slip(unknown, 1, 0.001, 0.01))


@pytest.mark.parametrize(("side", "expected"), [(1, 100.25), (-1, 99.75)])
def test_kernel_slippage_rounds_against_the_order(side, expected):
    assert slip(100.0, side, 0.001, 0.25) == pytest.approx(expected)
    assert slip(100.0, side, 0.0, 0.25) == 100.0, "a price on the grid stays"
    assert slip(100.0, side, 0.001, 0.0) == pytest.approx(100.0 + side * 0.1)


@pytest.mark.parametrize(
    ("quantity", "lot", "expected"), [(2.99, 1.0, 2.0), (0.3, 0.1, 0.3), (0.05, 0.1, 0.0), (2.99, 0.0, 2.99)]
)
def test_kernel_lots_round_down(quantity, lot, expected):
    assert whole_lots(quantity, lot) == pytest.approx(expected, abs=1e-12)


GRIDS = (0.1, 0.001, 1e-8, 1e-9, 0.25, 0.3, 0.15, 2.5, 3.0, 1_000.0)


@pytest.mark.parametrize("grid", GRIDS)
def test_kernel_whole_steps_of_a_grid_are_the_decimal_number_to_the_last_digit(grid):
    """In decimals, as the setting is written: three lots of 0.1 are 0.3, not 0.30000000000000004."""
    step = Decimal(repr(grid))
    counts = [*range(1, 2_000), 30_000_000, 123_456_789]
    exact = [float(count * step) for count in counts]
    assert [whole_lots(count * grid, grid) for count in counts] == exact
    assert [whole_lots(quantity, grid) for quantity in exact] == exact
    assert [whole_lots((count + 0.5) * grid, grid) for count in counts] == exact
    assert [on_tick(count * grid, grid) for count in counts] == exact
    assert [slip(quantity, side, 0.0, grid) for quantity in exact for side in (1, -1)] == [
        quantity for quantity in exact for _ in (1, -1)
    ]
    fees = _parameters(fee_bps=0.0, fee_per_trade=0.0, fee_rounding=grid)
    fees.fee = 1.0
    assert [fee_of(count * grid, False, fees) for count in counts] == exact


def test_kernel_lot_that_is_no_decimal_number_still_gives_multiples_of_it():
    assert [whole_lots(count / 3 + 0.1, 1 / 3) for count in range(100)] == [
        count * (1 / 3) for count in range(100)
    ]


@check_each("lot", GRIDS[:-2])
@check_each("share", [0.1, 1 / 3, 0.5, 0.9])
@check_each("direction", [1, -1], ids=["long", "short"])
def test_kernel_quantities_of_a_scaled_trade_are_whole_lots_to_the_last_digit(lot, share, direction):
    """Sized by risk: 500 over a stop that is 9.7 away, in lots; then a share, and what is left."""
    rows = [(100, 101, 99, 100), (100, 101, 99, 100), (100, 110, 99, 109), (109, 121, 108, 120)]
    policy: dict[str, Any] = {"stop": 90.3, "target": 120.0, "scale_outs": ((1.0, share),)}
    done = play(rows, direction, execution={"lot_size": lot}, **policy)
    (entry,), scaled, (exit_,) = map(done.details, ("entry_filled", "scale_out_filled", "exit_filled"))
    quantities = [row["quantity"] for row in (entry, *scaled, exit_)]
    step = Decimal(repr(lot))
    assert [Decimal(repr(quantity)) % step for quantity in quantities] == [0] * len(quantities)
    assert sum(map(Decimal, map(repr, quantities[1:]))) == Decimal(repr(quantities[0]))
    assert [row["remaining"] for row in scaled] == quantities[-1:] * len(scaled)
    assert done.trades["quantity"].tolist() == quantities[:1]
    assert scaled or share * quantities[0] < lot


SCALED = [(100, 101, 99, 100), (100, 101, 99, 100), (100, 110, 99, 109), (109, 121, 108, 120)]


@check_each("unit", [0.01, 0.1, 0.05, 0.001, 0.3])
@check_each("fee_bps", [1.3, 7.0, 9.1])
@check_each("direction", [1, -1], ids=["long", "short"])
def test_kernel_fees_of_a_trade_and_of_a_run_are_whole_units_to_the_last_digit(unit, fee_bps, direction):
    """Of entry, scale-out and exit together: three fees of 0.1 are 0.3, not 0.30000000000000004."""
    execution = {"lot_size": 0.1, "tick_size": 0.01, "fee_rounding": unit, "fee_bps": fee_bps}
    for stop in (90.3, 91.7, 93.1, 94.9):
        policy: dict[str, Any] = {"stop": stop, "target": 120.0, "scale_outs": ((1.0, 1 / 3),)}
        done = play(SCALED, direction, execution=execution, **policy)
        names = "entry_filled", "scale_out_filled", "exit_filled"
        paid = [Decimal(repr(row["fee"])) for name in names for row in done.details(name)]
        assert len(paid) == 3
        total = sum(paid)
        assert total % Decimal(repr(unit)) == 0
        assert [Decimal(repr(fee)) for fee in done.trades["fees"].tolist()] == [total]
        assert Decimal(repr(float(done.engine.portfolio["fees"][0]))) == total


def test_kernel_fees_that_hold_carry_are_not_rounded_with_it():
    execution = {"lot_size": 0.1, "tick_size": 0.01, "fee_rounding": 0.5, "fee_bps": 7.0, "funding_bps": 0.13}
    done = play(SCALED, execution=execution, stop=90.3, target=120.0)
    free = play(SCALED, execution=execution | {"funding_bps": 0.0}, stop=90.3, target=120.0)
    carry = float(done.trades["fees"][0] - free.trades["fees"][0])
    assert 0.0 < carry < 0.25
    assert carry == pytest.approx(float(done.engine.portfolio["carry"][0]))


@pytest.mark.parametrize(
    ("settings", "maker", "expected"),
    [
        ({"fee_bps": 10.0}, False, 1.0),
        ({"fee_bps": 10.0}, True, 1.0),
        ({"fee_bps": 10.0, "maker_fee_bps": 2.0}, True, 0.2),
        ({"fee_bps": 10.0, "maker_fee_bps": -1.0}, True, -0.1),
        ({"fee_bps": 0.0, "fee_per_trade": 1.5}, False, 1.5),
        ({"fee_bps": 10.0, "fee_per_trade": 0.26, "fee_rounding": 0.05}, False, 1.25),
        ({"fee_bps": 10.0, "fee_rounding": 0.4}, False, 1.2),
    ],
)
def test_kernel_fee_is_rate_and_fixed_part_rounded_half_up(settings, maker, expected):
    assert fee_of(1_000.0, maker, _parameters(**settings)) == pytest.approx(expected, abs=1e-12)


RISK = 1 << CLAMPS.index("risk_cap")
HALF = 1 << CLAMPS.index("recovery_half_risk")


@pytest.mark.parametrize(
    ("settings", "fraction", "half", "requested", "wanted", "clamps"),
    [
        ({"sizing": "risk"}, 0.004, 0, 80.0, 80.0, 0),
        ({"sizing": "risk"}, 0.01, 0, 200.0, 100.0, RISK),
        ({"sizing": "risk"}, 0.004, 1, 80.0, 40.0, HALF),
        ({"sizing": "risk"}, 0.01, 1, 200.0, 50.0, RISK | HALF),
        ({"sizing": "volatility", "volatility_multiple": 2.0}, 0.004, 0, 50.0, 50.0, 0),
        ({"sizing": "volatility", "volatility_multiple": 1.0}, 0.01, 0, 250.0, 100.0, RISK),
        ({"sizing": "volatility", "volatility_multiple": 0.5}, 0.004, 0, 200.0, 100.0, RISK),
        ({"sizing": "volatility", "volatility_multiple": 0.5}, 0.004, 1, 200.0, 50.0, RISK | HALF),
        ({"sizing": "fixed", "fixed_quantity": 30.0}, 0.01, 0, 30.0, 30.0, 0),
        ({"sizing": "fixed", "fixed_quantity": 30.0}, 0.01, 1, 30.0, 15.0, HALF),
        ({"sizing": "fixed", "fixed_quantity": 900.0}, 0.01, 0, 900.0, 100.0, RISK),
        ({"sizing": "fixed", "fixed_quantity": 900.0}, 0.01, 1, 900.0, 50.0, RISK | HALF),
    ],
)
def test_kernel_size_three_ways_holds_the_risk_cap(settings, fraction, half, requested, wanted, clamps):
    """Equity 100,000, cap 0.5 %, planned risk 5 and volatility 4 a unit; recovery halves what would be."""
    p = _parameters(EnvelopeSettings(risk_fraction=0.005), **settings)
    assert wanted_quantity(100_000.0, 5.0, 4.0, fraction, half, p) == (
        pytest.approx(requested),
        pytest.approx(wanted),
        clamps,
    )


@pytest.mark.parametrize("cash", [1.0, 50.0])
@pytest.mark.parametrize("direction", ["long", "short"])
def test_kernel_without_envelope_equity_limits_nothing(cash, direction):
    bars = random_series(3, 300, 2)
    rich = simulate(bars, ENTRY, direction=direction, stop_pct=0.01, target_pct=0.01)
    poor = simulate(bars, ENTRY, direction=direction, stop_pct=0.01, target_pct=0.01, cash=cash)
    assert poor.equity.min() < 0.0, "the account has to be overdrawn for this to say anything"
    pd.testing.assert_frame_equal(poor.trades, rich.trades)


@pytest.mark.parametrize("direction", ["long", "short"])
def test_kernel_tick_size_rounds_every_level_and_fill(direction):
    bars = random_series(3, 400)
    trades = simulate(bars, ENTRY, direction=direction, tick_size=0.05, slippage_bps=3.0).trades
    assert len(trades) > 20
    for price in ("entry_price", "exit_price"):
        assert (trades[price] / 0.05).to_numpy() == pytest.approx(np.round(trades[price] / 0.05), abs=1e-6)
    assert np.isfinite(trades["r"]).all()


def test_kernel_fullest_bucket_is_measured_by_its_cap_and_counts_members_only():
    """X and Y are in the first bucket, Y and Z in the second; shorts count as much as longs."""
    state = fresh_state(3, 100.0)[0].view(np.recarray)
    p = _parameters()
    p.buckets = 2
    p.bucket_caps[:2] = (0.5, 0.25)
    state.buckets = (1, 3, 2)
    assert fullest_bucket(state, p) == 0.0
    state.quantity, state.last_close = (4.0, 1.0, 2.0), (10.0, 20.0, 30.0)
    assert fullest_bucket(state, p) == 0.0, "nothing is held yet"
    state.direction = (1, -1, 0)
    assert fullest_bucket(state, p) == 120.0
    state.direction = (1, -1, 1)
    assert fullest_bucket(state, p) == 320.0


@pytest.mark.parametrize("above", [None, "gross", "net", "bucket"])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_kernel_exposure_halt_ends_at_the_caps_and_not_above_one(above, side):
    """Equity 200; gross may be 400, net 100 either way, and the bucket of the one symbol 50."""
    state, portfolio = (part.view(np.recarray) for part in fresh_state(1, 200.0))
    p = _parameters(EnvelopeSettings())
    p.max_gross, p.max_net, p.buckets, p.bucket_caps[0] = 2.0, 0.5, 1, 0.25
    state.direction, state.buckets, state.quantity, state.last_close = 1, 1, 1.0, 50.0
    portfolio["exposure_halt"], portfolio["gross"], portfolio["net"] = 1, 400.0, side * 100.0
    if above == "bucket":
        state.last_close = 50.5
    elif above is not None:
        portfolio[above] *= 1.01
    assert not follow_recovery(state, portfolio[0], 5, p)
    assert portfolio["exposure_halt"][0] == (0 if above is None else 1)


@pytest.mark.parametrize("above", [None, "gross", "net", "bucket"])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_kernel_exposure_breaks_above_its_drift_and_not_at_it(above, side):
    """Equity 200; gross may drift to 500, net to 125 either way, and the bucket to 62.5."""
    state, portfolio = (part.view(np.recarray) for part in fresh_state(1, 200.0))
    p = _parameters(EnvelopeSettings())
    p.gross_breach, p.net_breach, p.bucket_breach = 2.5, 0.625, 1.25
    p.buckets, p.bucket_caps[0] = 1, 0.25
    state.direction, state.buckets, state.quantity, state.last_close = 1, 1, 1.0, 62.5
    portfolio["gross"], portfolio["net"] = 500.0, side * 125.0
    if above == "bucket":
        state.last_close = 63.0
    elif above is not None:
        portfolio[above] *= 1.01
    found = breach_of(state, portfolio[0], 5, p)
    assert (BREACHES[found] if found >= 0 else None) == (None if above is None else f"{above}_exposure")
