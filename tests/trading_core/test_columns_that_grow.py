"""Columns of bars that come one by one: the bank keeps the last rows, and every reader has the same bits."""

import numpy as np
import pytest

from tests.trading_core.growing_bars import first_rows, gappy
from trading_core.bars import BarSeries
from trading_core.features import FeatureColumns, bank
from trading_core.features.bank import ColumnBank
from trading_core.live.growing_bars import Bar, GrowingBars
from trading_core.market import Market
from trading_core.regime import RegimeTracker, regime_columns
from trading_core.rules import RuleColumns, fire_rate

ROWS, KEPT = 240, 40
NAMES = ("sma_20", "atr_14", "volume_rank", "close_1h", "highest_20", "realized_vol_20")
CROSSING = ("close@BBB", "rank_cs(roc_5)", "sma_20")
TEXTS = ("crosses_above(sma_5, sma_20)", "close > highest_20 or prev(close < lowest_20, 3)")


@pytest.fixture
def few_kept(monkeypatch):
    monkeypatch.setattr(bank, "KEPT_ROWS", KEPT)
    monkeypatch.setattr(bank, "_STEP", 8)


def _followed(bars: BarSeries, names, *, late=(), start=1) -> FeatureColumns:
    """Columns that saw the bars one by one; `late` names are asked for when rows are gone already."""
    columns = FeatureColumns(first_rows(bars, start), grows=True)
    columns.load(names)
    for rows in range(start + 1, bars.shape[0] + 1):
        columns.extend(first_rows(bars, rows))
        if rows == 150:
            columns.load(late)
    assert bars.shape[0] - columns.bank.first < 2 * KEPT
    return columns


def _last_rows_are_those_of(whole: FeatureColumns, columns: FeatureColumns, names) -> None:
    first, rows = columns.bank.first, columns.length
    for name in names:
        for s in range(len(columns.bars.symbols)):
            kept = columns.bank.column(columns.place(name, s), rows)[first:]
            assert kept.tobytes() == whole.column(name, s)[first:].tobytes(), name


@pytest.mark.parametrize("start", [1, 100])
def test_growing_columns_keep_the_last_rows_with_the_bits_of_a_whole_history(few_kept, start):
    bars = gappy(3, ROWS, 0.2)
    columns = _followed(bars, NAMES[:3], late=NAMES[3:], start=start)
    _last_rows_are_those_of(FeatureColumns(bars), columns, NAMES)


def test_growing_columns_made_of_other_symbols_keep_their_bits(few_kept):
    bars = gappy(4, ROWS, 0.5)
    columns = _followed(bars, CROSSING[:1], late=CROSSING[1:])
    _last_rows_are_those_of(FeatureColumns(bars), columns, CROSSING)


def test_growing_columns_give_readers_of_older_rows_every_row(few_kept):
    bars = gappy(5, ROWS, 0.2)
    columns, whole = _followed(bars, NAMES), FeatureColumns(bars)
    rules, rules_of_all = RuleColumns(bars, columns), RuleColumns(bars)
    for s in range(2):
        assert columns.own("sma_20", s).tobytes() == whole.own("sma_20", s).tobytes()
        for text in TEXTS:
            assert rules.boolean(text, s).tobytes() == rules_of_all.boolean(text, s).tobytes()
            for start in (0, 100, ROWS - 3):
                read = rules.window(text, s, start, ROWS)
                assert read.tobytes() == rules_of_all.window(text, s, start, ROWS).tobytes()


def test_growing_columns_made_again_in_their_order_stand_in_the_same_places(few_kept):
    bars = gappy(6, ROWS, 0.1)
    columns = _followed(bars, NAMES[:2], late=(*CROSSING, *NAMES[2:]))
    again = FeatureColumns(bars, grows=True)
    again.make_again(columns.made)
    for name in (*NAMES, *CROSSING):
        assert again.place(name, 1) == columns.place(name, 1)
    _last_rows_are_those_of(FeatureColumns(bars), again, (*NAMES, *CROSSING))


def test_closes_at_which_a_rule_was_true_are_counted_on_before_their_rows_go(few_kept, monkeypatch):
    bars = gappy(7, ROWS, 0.0)
    market, whole = Market.of(GrowingBars(first_rows(bars, 1))), RuleColumns(bars)
    market.columns.load(TEXTS)
    for row in range(1, ROWS):
        _append(market, bars, row)
        if row == KEPT:
            assert [market.columns.counts(text, 0, row) for text in TEXTS]
    monkeypatch.setattr(FeatureColumns, "whole", lambda columns, s: pytest.fail("computed anew"))
    counted = [fire_rate(text, market.columns, 0, ROWS) for text in TEXTS]
    monkeypatch.undo()
    assert [rate.fires for rate in counted] == [np.sum(whole.boolean(text, 0) == 1) for text in TEXTS]
    assert all(rate.fires for rate in counted)


def test_regime_of_a_long_history_goes_on_with_the_same_bits(few_kept):
    bars = gappy(9, 500, 0.2)
    features = FeatureColumns(first_rows(bars, 400), grows=True)
    tracker, whole = RegimeTracker(features.bars, features=features), regime_columns(bars)
    for rows in range(401, 501):
        tracker.extend(first_rows(bars, rows))
    for name in ("trend", "volatility", "structure", "fingerprint", "flags", "reason"):
        assert getattr(tracker.columns, name).tobytes() == getattr(whole, name).tobytes(), name


def test_rows_that_are_gone_take_no_memory():
    held = ColumnBank(1, grows=True)
    place = held.new(truth=False)
    for rows in range(2, 3_000):
        held.make_room(rows)
        held.column(place, rows)[-1] = 1.0
    column = held.column(place, 2_999)
    assert held.first == 2_560
    assert not column[: held.first - 512].any(), "the system has taken these pages back: they read as zero"
    assert column[held.first :].all()


def test_bars_that_are_all_there_have_room_for_their_rows_alone():
    held = ColumnBank(100_000)
    assert held.numbers.shape[1] < 100_200
    assert held.truths.shape[1] < 100_200


def _append(market: Market, bars: BarSeries, row: int) -> None:
    assert isinstance(market.bars, GrowingBars)
    there = {
        symbol: Bar(
            *(float(getattr(bars, name)[row, s]) for name in ("open", "high", "low", "close", "volume"))
        )
        for s, symbol in enumerate(bars.symbols)
        if bars.present[row, s]
    }
    if there:
        market.bars.append(int(bars.times[row]), there)
        market.tracker.extend()
