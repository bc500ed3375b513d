"""Text cells of every CSV we write calculate nothing in a spreadsheet, and read back as what they were."""

import csv
import io
from pathlib import Path

import pytest

from services.feeds.raw_bar import RawBar
from services.model_calls.quoting import from_spreadsheet_text, spreadsheet_text, visible
from tests.worker.cli.fake_runner import EPISODE
from trading_core.live.growing_bars import Bar
from worker.feeds.csv.rows import CsvRows
from worker.feeds.files.files import load_bar_file
from worker.feeds.history.fetch_partial import write_bars
from worker.runs.out_folder import trades_csv
from worker.studies.trade_file import read_trades

DAY = 86_400 * 10**9
STARTS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "''+1", "\uff1d1"]
PLAIN = ["AAPL", "BTC/USD", "", "'quoted'", "a=b", "x-1"]


@pytest.mark.parametrize("text", STARTS)
def test_spreadsheet_text_starts_with_what_no_spreadsheet_calculates_and_reads_back(text):
    written = spreadsheet_text(text)
    assert written == f"'{text}"
    assert from_spreadsheet_text(written) == text


@pytest.mark.parametrize("text", PLAIN)
def test_spreadsheet_text_that_is_harmless_stays_as_it_is(text):
    assert spreadsheet_text(text) == text == from_spreadsheet_text(text)


def test_trades_csv_neutralises_text_and_keeps_numbers_and_is_read_by_the_gate(tmp_path):
    trades = [EPISODE.model_copy(update={"symbol": name, "pnl": -2.5}) for name in STARTS]
    text = trades_csv(trades)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["symbol"] for row in rows] == [spreadsheet_text(visible(name)) for name in STARTS]
    for row in rows:
        assert (row["pnl"], row["mae_r"], row["playbook_id"]) == ("-2.5", "-0.2", "trend_pullback")
        calculated = [value for value in row.values() if value[:1] in set("=+-@\t\r\n")]
        assert [float(value) for value in calculated] == [-2.5, -0.2], "numbers only"
    path = tmp_path / "trades.csv"
    path.write_text(text, "utf-8")
    read = read_trades(path, None, None, {"": 0.0})
    assert len(read.trades) == len(STARTS)


def written_bars(folder: Path, symbol: str) -> Path:
    bars = {symbol: {day * DAY: Bar(100.0, 101.0, 99.0, 100.0, 1.0) for day in range(3)}}
    write_bars(folder / "bars.csv", bars)
    return folder / "bars.csv"


@pytest.mark.parametrize("symbol", ["=1+1", "@X", "'=1", "AAPL"])
def test_fetched_bars_neutralise_symbols_and_read_back_as_they_were(tmp_path, symbol):
    path = written_bars(tmp_path, symbol)
    cell = path.read_text("utf-8").splitlines()[1].split(",")[1]
    assert cell[0] not in "=+-@"
    assert load_bar_file(path).symbols == (symbol,)
    rows = CsvRows(path, "", None)
    assert {row.symbol for row in rows.read(path.read_bytes()) if isinstance(row, RawBar)} == {symbol}
