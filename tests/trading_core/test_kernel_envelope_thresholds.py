"""Where exactly a limit of the envelope breaks or holds, and what lies just beyond it."""

from typing import Any

import pytest

from schemas.settings import CorrelationBucket, ExecutionSettings
from tests.trading_core.engine_bench import engine_on, story
from tests.trading_core.envelope_scenarios import (
    HIGH,
    RISE,
    Rows,
    drifts,
    engine_of,
    flat,
    limits_of,
    order,
    rest_of,
)
from tests.trading_core.market import panel
from trading_core.trigger_engine import TriggerEngine


def test_kernel_risk_is_halved_until_a_new_high_of_the_bars_after_the_release():
    """Release at row 6; equity has to pass its high of rows 7 and 8, which it does when X rises at row 11."""
    closes = [100.0] * 4 + [80.0] * 5 + [80.0, 80.0, 90.0, 90.0, 90.0, 90.0]
    rows: Rows = [(c, c + 1, c - 1, c) for c in closes]
    limits: dict[str, Any] = {"max_drawdown": 0.001, "drawdown_release_bars": 2, "recovery_bars": 2}
    engine = engine_of({"X": rows, "Y": flat(15)}, **limits)
    order(engine, "X", [2])
    order(engine, "Y", [8, 12], horizon=1, never_ends=True)
    events = [*rest_of(engine, 9)]
    order(engine, "X", [9], name="second", stop=40.0)
    shown = story(engine, [*events, *rest_of(engine)])
    assert [line for line in shown if "clamped" in line or "Y entry" in line] == [
        "8 Y clamped recovery_half_risk", "9 Y entry 100", "9 X clamped recovery_half_risk", "13 Y entry 100",
    ]  # fmt: skip
    assert engine.portfolio["recovery_from"][0] == -1


def test_kernel_account_that_is_lost_orders_nothing_and_ends_there():
    engine = engine_on(
        panel({"X": [*flat(4), *[(300.0, 301.0, 299.0, 300.0)] * 6]}), envelope=limits_of(),
        execution=ExecutionSettings(fee_bps=0.0, slippage_bps=0.0, sizing="fixed", fixed_quantity=900.0),
        cash=1_000.0,
    )  # fmt: skip
    engine.parameters["max_risk"] = 100.0
    order(
        engine, "X", [2, 6, 7, 8], direction=-1, stop=120.0, target=50.0, never_ends=True, risk_fraction=1.0
    )
    shown = story(engine, rest_of(engine))
    assert engine.equity[4] < 0.0
    assert shown == [
        "2 X clamped gross_exposure",
        "3 X entry 100",
        "4 X exit stop 300",
        "4 breach account_gone",
    ]


def test_kernel_bucket_is_deaf_to_symbols_outside_it():
    bucket = CorrelationBucket(name="other", symbols=("Y",), max_exposure=0.009)
    assert story(*drifts(correlation_buckets=(bucket,))) == [
        "3 X entry 100", "4 Y clamped bucket_exposure", "5 Y entry 100",
    ]  # fmt: skip


def _breaches(engine: TriggerEngine) -> list[str]:
    return [line for line in story(engine, rest_of(engine)) if "breach" in line]


@pytest.mark.parametrize("limit", ["drawdown", "daily_loss"])
@pytest.mark.parametrize(("close", "broken"), [(90.234375, True), (90.25, False)])
def test_kernel_loss_breaks_its_limit_when_it_is_exactly_as_large(limit, close, broken):
    """Ten units lose a 1024th of the account, or a little less; every number here is exact."""
    after = (close, close, close, close)
    engine = engine_of(
        {"X": [*flat(4), (100.0, 100.0, 89.0, close), after]}, "4h", **{f"max_{limit}": 2.0**-10}
    )
    order(engine, "X", [2])
    assert _breaches(engine) == ([f"4 breach {limit}"] if broken else [])


@pytest.mark.parametrize(
    "limits",
    [
        {"max_gross_exposure": 0.009},
        {"max_net_exposure": 0.009},
        {"correlation_buckets": (CorrelationBucket(name="one", symbols=("X",), max_exposure=0.009),)},
    ],
    ids=["gross", "net", "bucket"],
)
@pytest.mark.parametrize(("close", "broken"), [(110.05, 0), (110.2, 1)])
def test_kernel_exposure_may_drift_a_tenth_above_its_cap(limits, close, broken):
    """Nine units at 100 are the cap of 900; the account, and with it the cap, grows with the price."""
    rows: Rows = [*flat(4), (100.0, close, 100.0, close), (close, close, close, close)]
    engine = engine_of({"X": rows}, max_exposure_drift=0.1, **limits)
    order(engine, "X", [2])
    assert len(_breaches(engine)) == broken


def test_kernel_exposure_breaks_again_after_its_halt_has_ended():
    markets: dict[str, Rows] = {"X": [*flat(4), RISE, *[HIGH] * 6], "Y": [*flat(8), RISE, *[HIGH] * 2]}
    engine = engine_of(markets, max_gross_exposure=0.009)
    order(engine, "X", [2])
    order(engine, "Y", [6])
    assert _breaches(engine) == ["4 breach gross_exposure", "8 breach gross_exposure"]


def test_kernel_winning_trade_ends_the_losses_in_a_row():
    """W loses, X wins, then Y and Z lose: only the last one is the second in a row."""
    loss, win = (100.0, 101.0, 94.0, 100.0), (100.0, 106.0, 99.0, 100.0)
    fills = {"W": loss, "X": win, "Y": loss, "Z": loss}
    markets: dict[str, Rows] = {
        name: [*flat(3 + k), row, *flat(5 - k)] for k, (name, row) in enumerate(fills.items())
    }
    engine = engine_of(markets, max_consecutive_losses=2)
    for k, name in enumerate(fills):
        order(engine, name, [1 + k], stop=95.0, target=105.0)
    assert _breaches(engine) == ["6 breach consecutive_losses"]


def test_kernel_clamp_of_caps_that_leave_the_same_names_the_first():
    bucket = CorrelationBucket(name="one", symbols=("X",), max_exposure=0.009)
    engine = engine_of(
        {"X": flat(5)}, max_gross_exposure=0.009, max_net_exposure=0.009, max_symbol_exposure=0.009,
        correlation_buckets=(bucket,),
    )  # fmt: skip
    order(engine, "X", [2])
    assert story(engine, rest_of(engine)) == ["2 X clamped gross_exposure", "3 X entry 100"]


@pytest.mark.parametrize(
    ("most", "shown"),
    [
        (0, ["4 Y entry 100"]),
        (1, ["3 Y refused throttled", "5 Y refused throttled", "7 Y entry 100"]),
        (2, ["4 Y entry 100"]),
    ],
)
def test_kernel_throttle_counts_the_orders_of_the_last_hour(most, shown):
    """X is ordered at row 2, an hour before row 6; zero is no limit."""
    engine = engine_of({"X": flat(9), "Y": flat(9)}, "15m", max_entries_per_hour=most)
    order(engine, "X", [2])
    order(engine, "Y", [3, 5, 6])
    assert [line for line in story(engine, rest_of(engine)) if " Y " in line] == shown


@pytest.mark.parametrize(
    ("cap", "shown"),
    [
        (0.0002, ["2 X clamped symbol_exposure", "3 X entry 100"]),
        (0.0001, ["2 X clamped symbol_exposure", "3 X entry 100"]),
        (0.00005, ["2 X refused no_capacity"]),
    ],
)
def test_kernel_room_for_less_than_a_hundredth_is_no_room(cap, shown):
    """Ten units are wanted, 1,000 in money; there is room for 20, 10 or 5 in money."""
    engine = engine_of({"X": flat(5)}, max_symbol_exposure=cap)
    order(engine, "X", [2])
    assert story(engine, rest_of(engine)) == shown
