"""One rule over many symbols is planned once; its columns are those of each symbol by itself."""

import numpy as np
import pytest

from schemas.errors import RuleError
from tests.trading_core.growing_bars import first_rows
from trading_core.bars import BarSeries
from trading_core.features.graph import Graph
from trading_core.research.simulation import simulate
from trading_core.rules import RuleColumns

ROWS, SYMBOLS = 300, 12
ENTRY = "crosses_above(sma_5, sma_20) and close > lowest_10"
LATER = "close > ema_9 and rsi_7 < 60"


@pytest.fixture(scope="module")
def bars():
    random = np.random.default_rng(7)
    close = 100.0 * np.exp(np.cumsum(random.normal(0.0, 0.01, (ROWS, SYMBOLS)), axis=0))
    present = random.random((ROWS, SYMBOLS)) > 0.1
    opened, high, low = (np.where(present, close * factor, np.nan) for factor in (1.0, 1.002, 0.997))
    volume = np.where(present, 5.0, np.nan)
    times = np.arange(ROWS, dtype=np.int64) * 3_600 * 1_000_000_000
    names = tuple(f"S{k:02d}" for k in range(SYMBOLS))
    return BarSeries(times, names, "1h", "open", opened, high, low, opened.copy(), volume, present)


def _alone(bars, text, s):
    one = bars.select((bars.symbols[s],), None, None)
    kept = np.isin(bars.times, one.times)
    found = np.full(ROWS, -1, dtype=np.int8)
    found[kept] = RuleColumns(one).boolean(text, 0)
    return found


def _planned(monkeypatch):
    made, original = [], Graph.program

    def program(*given):
        made.append(given)
        return original(*given)

    monkeypatch.setattr(Graph, "program", program)
    return made


def test_rule_over_many_symbols_is_planned_once(bars, monkeypatch):
    made, columns = _planned(monkeypatch), RuleColumns(bars)
    columns.load([ENTRY])
    assert len(made) == 1
    for s in range(SYMBOLS):
        assert columns.boolean(ENTRY, s).tobytes() == _alone(bars, ENTRY, s).tobytes()


def test_rule_of_further_columns_is_planned_for_each_symbol(bars, monkeypatch):
    further = {"x": np.where(bars.present, bars.close - 99.0, np.nan)}
    wider = BarSeries(
        bars.times, bars.symbols, "1h", "open", bars.open, bars.high, bars.low, bars.close, bars.volume,
        bars.present, extra=further,
    )  # fmt: skip
    made, columns = _planned(monkeypatch), RuleColumns(wider)
    columns.load(["x.x > 0"])
    assert len(made) == SYMBOLS
    for s in range(SYMBOLS):
        known = np.where(bars.present[:, s], further["x"][:, s] > 0, -1)
        assert columns.boolean("x.x > 0", s).tolist() == known.tolist()


def test_symbols_planned_together_go_on_apart_and_follow_their_series(bars):
    columns = RuleColumns(first_rows(bars, 200))
    columns.load([ENTRY])
    columns.boolean(LATER, 3)
    columns.extend(first_rows(bars, 250))
    columns.boolean(LATER, 5)
    columns.extend(bars)
    for s in range(SYMBOLS):
        assert columns.boolean(ENTRY, s).tobytes() == _alone(bars, ENTRY, s).tobytes()
        assert columns.boolean(LATER, s).tobytes() == _alone(bars, LATER, s).tobytes()


def test_symbol_that_has_columns_already_is_planned_by_itself(bars):
    columns = RuleColumns(bars)
    columns.boolean(LATER, 4)
    columns.load([ENTRY, LATER])
    for s in range(SYMBOLS):
        for text in (ENTRY, LATER):
            assert columns.boolean(text, s).tobytes() == _alone(bars, text, s).tobytes()


@pytest.mark.parametrize("terms", [{}, {"stop": "close - 2 * atr_5", "exit": "bars_held > 6"}])
@pytest.mark.parametrize("as_truths", [False, True])
def test_simulation_of_many_symbols_trades_what_each_trades_alone(terms, as_truths, bars):
    columns = RuleColumns(bars)
    truths = np.column_stack([columns.boolean(ENTRY, s) == 1 for s in range(SYMBOLS)])
    together = simulate(bars, truths if as_truths else ENTRY, **terms).trades
    for name in bars.symbols:
        alone = simulate(bars.select((name,), None, None), ENTRY, **terms).trades
        own = together[together["symbol"] == name].reset_index(drop=True)
        assert len(own) > 0
        assert own.equals(alone)


def test_simulation_of_a_number_as_entry_says_so(bars):
    with pytest.raises(RuleError, match="is a number, but a boolean is needed here"):
        simulate(bars, "close - 1")


def test_tables_of_a_simulation_are_made_when_they_are_read(bars, monkeypatch):
    import pandas as pd

    made, original = [], pd.DataFrame

    def frame(*given):
        made.append(given)
        return original(*given)

    monkeypatch.setattr(pd, "DataFrame", frame)
    found = simulate(bars, ENTRY)
    assert made == []
    assert found.trades is found.trades
    assert len(made) == 1
    assert found.equity.to_numpy().tobytes() == found.values.tobytes()
