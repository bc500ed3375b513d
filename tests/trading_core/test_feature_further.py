"""`x.NAME`: further columns of the data, from frames and files to rules."""

import numpy as np
import pandas as pd
import pytest

from schemas.errors import DataError, RuleError
from tests.trading_core.price_paths import columns_of, walk
from trading_core.bars import BarSeries
from trading_core.features import FeatureColumns
from trading_core.live.growing_bars import GrowingBars
from trading_core.rules import RuleColumns, parse
from worker.feeds.files.files import load_bar_file

ROWS = 120
TIMES = pd.date_range("2012-01-02", periods=ROWS, freq="D", tz="UTC")
FUNDING = np.sin(np.arange(ROWS) / 7.0)


def frame(seed: int = 1, **further) -> pd.DataFrame:
    return pd.DataFrame(columns_of(walk(seed, ROWS), seed) | further, index=TIMES)


def two_symbols() -> BarSeries:
    funding = np.where(np.arange(ROWS) % 10 == 3, np.nan, FUNDING)
    funding[50] = np.inf
    return BarSeries.from_frame({"AAA": frame(1, **{"Funding Rate": funding}), "BBB": frame(2).iloc[::2]})


def test_further_column_is_kept_by_symbol_and_unknown_where_it_is_not_a_number():
    bars = two_symbols()
    found = FeatureColumns(bars).scatter("x.funding_rate")
    unknown = (np.arange(ROWS) % 10 == 3) | (np.arange(ROWS) == 50)
    np.testing.assert_array_equal(found[:, 0], np.where(unknown, np.nan, FUNDING))
    assert np.isnan(found[:, 1]).all()
    truths = RuleColumns(bars).boolean("x.funding_rate > 0", 0)
    np.testing.assert_array_equal(truths, np.where(unknown, -1, FUNDING > 0))
    with_other = RuleColumns(bars).boolean("x.funding_rate@AAA > 0", 1)
    np.testing.assert_array_equal(with_other[::2], truths[::2])


def test_further_column_has_a_hash_beside_that_of_the_bars():
    plain, other = BarSeries.from_frame(frame()), BarSeries.from_frame(frame(funding=FUNDING))
    changed = BarSeries.from_frame(frame(funding=FUNDING + 1))
    assert plain.sha256 == other.sha256 == changed.sha256
    assert other.extra_hashes != changed.extra_hashes
    assert BarSeries.from_frame(frame(note=["x"] * ROWS)).extra_hashes == plain.extra_hashes == {}


def test_further_column_is_selected_with_its_bars():
    bars = two_symbols()
    start, end = int(TIMES[20].value), int(TIMES[60].value)
    kept = bars.select(("AAA",), start, end)
    assert list(kept.extra) == ["funding_rate"]
    np.testing.assert_array_equal(kept.extra["funding_rate"], bars.extra["funding_rate"][20:61, :1])


def test_absent_further_column_is_refused_with_those_there_are():
    words = r"'x.fundng': the bars have no column 'fundng' of numbers .* \(they have: x.funding_rate\)"
    for text in ("x.fundng > 0", "x.fundng@BBB > 0", "rank_cs(x.fundng) > 0"):
        with pytest.raises(RuleError, match=words):
            RuleColumns(two_symbols()).boolean(text, 0)
        with pytest.raises(RuleError, match=words):
            RuleColumns(GrowingBars(two_symbols())).boolean(text, 0)
    with pytest.raises(RuleError, match="unknown feature 'x.Funding'"):
        parse("x.Funding > 0")


def test_further_column_of_another_shape_is_refused():
    bars = BarSeries.from_frame(frame())
    with pytest.raises(DataError, match="extra 'funding' has shape"):
        BarSeries(
            bars.times, bars.symbols, "1d", "open", bars.open, bars.high, bars.low, bars.close, bars.volume,
            bars.present, extra={"funding": np.zeros(3)},
        )  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_file_keeps_further_columns_of_numbers_alone(tmp_path, suffix):
    table = frame(Funding=FUNDING, note=["text"] * ROWS, empty=np.nan).rename_axis("time").reset_index()
    table.loc[5, "Funding"] = np.nan
    path = tmp_path / f"bars.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    bars = load_bar_file(path)
    assert list(bars.extra) == ["empty", "funding"]
    expected = np.where(np.arange(ROWS) == 5, np.nan, FUNDING)
    np.testing.assert_allclose(bars.extra["funding"][:, 0], expected, rtol=1e-15)


def test_file_whose_further_column_turns_to_text_is_read_without_it(tmp_path):
    table = frame(mixed=[1.0] * ROWS).rename_axis("time").reset_index()
    table["mixed"] = ["1.5"] + ["many"] * (ROWS - 1)
    table.to_csv(tmp_path / "bars.csv", index=False)
    assert load_bar_file(tmp_path / "bars.csv").extra == {}
