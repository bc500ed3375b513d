"""From where a limit counts, when it counts anew, and for accounts of any size."""

from typing import Any

import numpy as np
import pytest

from schemas.settings import CorrelationBucket, ExecutionSettings
from tests.trading_core.engine_bench import FLAT, WIDE, engine_on, story
from tests.trading_core.envelope_scenarios import Rows, engine_of, order, rest_of
from tests.trading_core.market import panel
from trading_core.trigger_engine import TriggerEngine

LOSS, WIN = (100.0, 101.0, 94.0, 100.0), (100.0, 106.0, 99.0, 100.0)


def _shown(engine: TriggerEngine, *words: str) -> list[str]:
    """The lines of the story that have one of the words."""
    return [line for line in story(engine, rest_of(engine)) if any(word in line for word in words)]


def _bars(*closes: float) -> Rows:
    """Bars that open where the last one closed."""
    opens = (closes[0], *closes[:-1])
    return [(o, max(o, c), min(o, c), c) for o, c in zip(opens, closes, strict=True)]


@pytest.mark.parametrize("cash", [1e-6, 0.5, 1e9])
@pytest.mark.parametrize(
    ("limits", "close", "limit"),
    [
        ({"max_daily_loss": 0.0005}, 90.0, "daily_loss"),
        ({"max_drawdown": 0.0005}, 90.0, "drawdown"),
        ({"max_gross_exposure": 0.009}, 130.0, "gross_exposure"),
        ({"max_net_exposure": 0.009}, 130.0, "net_exposure"),
    ],
)
def test_kernel_limit_holds_in_an_account_of_any_size(limits, close, limit, cash):
    engine = engine_of({"X": _bars(*[100.0] * 4, *[close] * 3)}, cash=cash, **limits)
    order(engine, "X", [2])
    assert _shown(engine, "breach") == [f"4 breach {limit}"]


@pytest.mark.parametrize(("most", "shown"), [(0.0012, ["5 breach drawdown"]), (0.0014, [])])
def test_kernel_drawdown_counts_from_the_highest_equity(most, shown):
    """Ten units rise by 30 and fall by 13: still a gain since the start."""
    engine = engine_of({"X": _bars(*[100.0] * 4, 130.0, 117.0, 117.0)}, max_drawdown=most)
    order(engine, "X", [2])
    assert _shown(engine, "breach") == shown


def test_kernel_losses_in_a_row_count_anew_after_their_breach():
    """Each symbol loses two rows after its order: the second loss and the fourth break the limit."""
    orders = {"U": 2, "V": 4, "W": 8, "X": 10}
    markets: dict[str, Rows] = {name: [FLAT] * 16 for name in orders}
    for name, row in orders.items():
        markets[name][row + 2] = LOSS
    engine = engine_of(markets, max_consecutive_losses=2, loss_pause_bars=1)
    for name, row in orders.items():
        order(engine, name, [row], stop=95.0)
    assert _shown(engine, "breach") == ["6 breach consecutive_losses", "12 breach consecutive_losses"]


@pytest.mark.parametrize(
    ("second", "shown"), [(LOSS, ["7 X breach symbol_losses"]), (WIN, ["13 X breach symbol_losses"])]
)
def test_kernel_losses_of_a_symbol_count_one_by_one_until_it_wins(second, shown):
    """Three rows a trade: a loss at row 4, the second trade at row 7, losses at rows 10 and 13."""
    rows: Rows = [FLAT] * 16
    rows[4], rows[7], rows[10], rows[13] = LOSS, second, LOSS, LOSS
    engine = engine_of({"X": rows}, max_symbol_losses=2, loss_pause_bars=90)
    order(engine, "X", [2, 5, 8, 11], stop=95.0, target=105.0, never_ends=True)
    assert _shown(engine, "breach") == shown


RECOVERY: dict[str, Any] = {"max_drawdown": 0.001, "drawdown_release_bars": 2, "recovery_bars": 2}
FALLEN = _bars(*[100.0] * 4, *[80.0] * 11)  # a drawdown at row 4, whose release is row 6


def test_kernel_risk_stays_halved_below_the_high_of_the_bars_after_the_release():
    """Y makes a high at row 8, the last of the bars that count, and passes it at row 11 only."""
    path = _bars(*[100.0] * 8, 130.0, 115.0, 115.0, 140.0, 140.0, 140.0, 140.0)
    engine = engine_of({"X": FALLEN, "Y": path, **{name: [FLAT] * 15 for name in "UVW"}}, **RECOVERY)
    for name, row in {"X": 2, "Y": 7, "U": 8, "V": 10, "W": 12}.items():
        order(engine, name, [row])
    assert _shown(engine, "breach", "released", "clamped", "W") == [
        "4 breach drawdown", "6 released drawdown", *(f"{row} {name} clamped recovery_half_risk"
        for row, name in ((7, "Y"), (8, "U"), (10, "V"))), "13 W entry 100",
    ]  # fmt: skip


@pytest.mark.parametrize(("close", "halved"), [(130.0, True), (130.5, False)])
def test_kernel_risk_stays_halved_at_the_high_and_not_above_it(close, halved):
    path = _bars(*[100.0] * 8, 130.0, 115.0, 115.0, *[close] * 4)
    engine = engine_of({"X": FALLEN, "Y": path, "W": [FLAT] * 15}, **RECOVERY)
    for name, row in {"X": 2, "Y": 7, "W": 12}.items():
        order(engine, name, [row])
    assert _shown(engine, "W clamped") == (["12 W clamped recovery_half_risk"] if halved else [])


@pytest.mark.parametrize(("close", "halved"), [(100.5, True), (102.0, False)])
def test_kernel_risk_stays_halved_below_the_equity_of_the_release(close, halved):
    """Y pays a fee of one for each of its units before the first close that follows."""
    costs = ExecutionSettings(fee_bps=100.0, slippage_bps=0.0, fill="close")
    markets: dict[str, Rows] = {
        "X": FALLEN,
        "Y": _bars(*[100.0] * 9, *[close] * 6),
        "W": [FLAT] * 15,
    }
    envelope = WIDE.model_copy(update=RECOVERY)
    engine = engine_on(panel(markets), envelope=envelope, execution=costs)
    for name, row in {"X": 2, "Y": 7, "W": 10}.items():
        order(engine, name, [row])
    assert _shown(engine, "W clamped") == (["10 W clamped recovery_half_risk"] if halved else [])


@pytest.mark.parametrize(
    ("exit_", "shown"), [(99.95, ["5 X breach symbol_losses"]), (100.0, []), (100.05, [])]
)
def test_kernel_trade_that_ends_even_or_a_little_better_is_no_loss(exit_, shown):
    """Ten units leave by their time stop."""
    engine = engine_of({"X": [*[FLAT] * 5, (exit_, 101.0, 99.0, 100.0), FLAT]}, max_symbol_losses=1)
    order(engine, "X", [2], horizon=2)
    engine.state["policy_expires_own"] = 90
    assert _shown(engine, "breach") == shown


@pytest.mark.parametrize("tight", [0, 1, 2])
def test_kernel_every_bucket_of_a_symbol_limits_it(tight):
    caps = [0.5, 0.5, 0.5]
    caps[tight] = 0.009
    buckets = tuple(
        CorrelationBucket(name=f"bucket {k}", symbols=("X", "Y"), max_exposure=cap)
        for k, cap in enumerate(caps)
    )
    engine = engine_of({"X": [FLAT] * 5, "Y": [FLAT] * 5}, correlation_buckets=buckets)
    order(engine, "X", [2])
    order(engine, "Y", [2])
    assert story(engine, rest_of(engine)) == [
        "2 X clamped bucket_exposure", "2 Y refused no_capacity", "3 X entry 100",
    ]  # fmt: skip


@pytest.mark.parametrize(("most", "refused"), [(0, []), (64, ["S64"]), (63, ["S63", "S64"])])
def test_kernel_throttle_counts_as_many_orders_as_may_be_set(most, refused):
    """65 symbols order at one close: one more than the ring of accepted orders holds."""
    names = [f"S{k:02d}" for k in range(65)]
    engine = engine_of(dict.fromkeys(names, [FLAT] * 4), max_entries_per_hour=most)
    for name in names:
        order(engine, name, [2], risk_fraction=0.0001)
    assert _shown(engine, "refused") == [f"2 {name} refused throttled" for name in refused]


def test_kernel_throttle_goes_on_after_as_many_orders_as_may_be_set():
    """One order an hour, four rows: X at row 2, Y at row 6, then nothing before row 10."""
    engine = engine_of({name: [FLAT] * 12 for name in "XYZ"}, "15m", max_entries_per_hour=1)
    for name, rows in {"X": [2], "Y": [5, 6], "Z": [7, 9, 10]}.items():
        order(engine, name, rows)
    assert _shown(engine, "entry", "refused") == [
        "3 X entry 100", "5 Y refused throttled", "7 Y entry 100", "7 Z refused throttled",
        "9 Z refused throttled", "11 Z entry 100",
    ]  # fmt: skip


def _in_blocks(markets: dict[str, Rows], rows: int, **limits: Any) -> TriggerEngine:
    """An engine whose blocks of entries are that many rows long."""
    engine = engine_of(markets, **limits)
    engine._block_edges = engine.bars.close_times[rows::rows].copy()
    return engine


@pytest.mark.parametrize(
    ("most", "shown"),
    [
        (0, []),
        (1, ["2 Y refused throttled", "3 Z refused throttled"]),
        (2, ["3 Z refused throttled"]),
        (3, []),
    ],
)
def test_kernel_throttle_counts_the_orders_of_a_block(most, shown):
    """Blocks of five rows: X and Y order at row 2, Z at row 3 and at row 5, the first of the next block."""
    engine = _in_blocks({name: [FLAT] * 12 for name in "XYZ"}, 5, max_entries_per_block=most)
    for name, rows in {"X": [2], "Y": [2], "Z": [3, 5]}.items():
        order(engine, name, rows)
    assert _shown(engine, "refused") == shown


def test_kernel_order_that_rests_when_a_block_begins_counts_in_it():
    """X waits at 80 from row 3 on and is filled at row 6, in the block in which Y would have been second."""
    rows: Rows = [*[FLAT] * 6, (100.0, 101.0, 79.0, 100.0), *[FLAT] * 7]
    engine = _in_blocks({"X": rows, "Y": [FLAT] * 14}, 5, max_entries_per_block=1)
    order(engine, "X", [3], entry_kind="limit", entry=80.0, window=9)
    order(engine, "Y", [5, 8, 10])
    assert _shown(engine, "entry", "refused") == [
        "5 Y refused throttled", "6 X entry 80", "8 Y refused throttled", "11 Y entry 100",
    ]  # fmt: skip


def test_kernel_block_without_a_bar_is_passed_over():
    """Two edges before the close of row 4, one at row 7; W is the first order of the block of row 4."""
    engine = _in_blocks({name: [FLAT] * 12 for name in "VWXYZ"}, 5, max_entries_per_block=1)
    closes = engine.bars.close_times
    engine._block_edges = np.array([closes[4] - 2, closes[4] - 1, closes[7]], dtype=np.int64)
    for name, rows in {"V": [2], "W": [4], "X": [5], "Y": [6], "Z": [7, 8]}.items():
        order(engine, name, rows)
    assert _shown(engine, "entry", "refused") == [
        "3 V entry 100", "5 W entry 100", "5 X refused throttled", "6 Y refused throttled", "8 Z entry 100",
    ]  # fmt: skip


def test_kernel_order_of_the_last_bar_of_a_block_counts_in_both():
    """X orders at row 4 and is filled at row 5, the first of the next block."""
    engine = _in_blocks({name: [FLAT] * 14 for name in "XYZ"}, 5, max_entries_per_block=1)
    for name, rows in {"X": [4], "Y": [4, 5, 9], "Z": [10, 11]}.items():
        order(engine, name, rows)
    assert _shown(engine, "entry", "refused") == [
        "4 Y refused throttled", "5 X entry 100", "5 Y refused throttled", "9 Y refused throttled",
        "11 Z entry 100",
    ]  # fmt: skip


@pytest.mark.parametrize("limits", [{"max_entries_per_block": 1}, {}], ids=["limited", "unlimited"])
def test_kernel_without_edges_has_one_block_for_all_bars(limits):
    engine = engine_of({"X": [FLAT] * 30, "Y": [FLAT] * 30}, **limits)
    order(engine, "X", [2])
    order(engine, "Y", [3, 25])
    refused = ["3 Y refused throttled", "25 Y refused throttled"]
    assert _shown(engine, "refused") == (refused if limits else [])


@pytest.mark.parametrize(("cap", "shown"), [(0.01, []), (0.0099, ["2 X clamped symbol_exposure"])])
def test_kernel_order_that_takes_all_the_room_there_is_is_not_clamped(cap, shown):
    """Ten units at 100 are a hundredth of the account; every number here is exact."""
    engine = engine_of({"X": [FLAT] * 4}, max_symbol_exposure=cap)
    order(engine, "X", [2])
    assert _shown(engine, "clamped", "refused") == shown


@pytest.mark.parametrize(("later_ns", "row"), [(0, 6), (1, 5)])
def test_kernel_bar_that_closes_at_midnight_ends_its_day_and_a_nanosecond_later_begins_one(later_ns, row):
    """Row 5 of bars of four hours closes at midnight."""
    engine = engine_of({"X": _bars(*[100.0] * 4, *[90.0] * 5)}, "4h", max_daily_loss=0.0005)
    engine.bars.times[5:] += later_ns
    order(engine, "X", [2])
    assert _shown(engine, "breach", "released") == ["4 breach daily_loss", f"{row} released daily_loss"]
