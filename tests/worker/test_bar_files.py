import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet as pa_parquet

from schemas.errors import DataError
from tests.worker.bar_text import BAR, HEADER, bar_csv, days
from worker.feeds.files.files import load_bar_file
from worker.feeds.files.symbol_rows import Selection

GOOD = bar_csv(days(3, 4, 5))
LONG_HEADER = "time,symbol,open,high,low,close,volume"


def frame(n: int = 3, symbol: str | None = None) -> pd.DataFrame:
    times = pd.date_range("2012-01-03", periods=n, freq="1h", tz="UTC")
    columns = {"open": 10.0, "high": 12.0, "low": 9.0, "close": np.linspace(10, 11, n), "volume": 100}
    table = pd.DataFrame({"time": times, **columns})
    return table if symbol is None else table.assign(symbol=symbol)


def write(folder: Path, content: str | bytes, name: str = "bars.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def refusal(path: Path, **options) -> str:
    with pytest.raises(DataError) as caught:
        load_bar_file(path, Selection(**options))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_csv_single_symbol_is_named_after_its_file(tmp_path):
    series = load_bar_file(write(tmp_path, GOOD, "ibm.csv"))
    assert (series.symbols, series.shape, series.timeframe, series.label) == (("IBM",), (3, 1), "1d", "open")
    assert series.close[:, 0].tolist() == [11.0, 11.0, 11.0]
    assert series.times[0] == pd.Timestamp("2012-01-03", tz="UTC").value


def test_csv_single_symbol_takes_the_one_name_asked_for(tmp_path):
    assert load_bar_file(write(tmp_path, GOOD), Selection(symbols=("BTC/USD",))).symbols == ("BTC/USD",)


def test_label_and_timeframe_are_passed_on(tmp_path):
    series = load_bar_file(write(tmp_path, GOOD), Selection(label="close", timeframe="1d"))
    assert (series.label, series.timeframe) == ("close", "1d")


@pytest.mark.parametrize(
    "content",
    [
        bar_csv(days(3, 4, 5), header="Date,O,H,L,C,Vol"),
        bar_csv(days(3, 4, 5), header="\ufeffOpen Time,OPEN,High,low,Close,V"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.replace("\n", "\r\n"),
        GOOD + "\n\n",
        "volume,close,low,high,open,trades,timestamp\n"
        + "".join(f"100,11,9,12,10,7,{time}\n" for time in days(3, 4, 5)),
        GOOD.replace("10,", ' "10" ,').replace(' "10" ', '" 10 "'),
    ],
    ids=["short names", "bom and case", "semicolon", "tab", "crlf", "blank end", "any order", "quoted"],
)
def test_csv_variants_give_the_same_bars(tmp_path, content):
    expected = load_bar_file(write(tmp_path, GOOD))
    assert load_bar_file(write(tmp_path, content)).sha256 == expected.sha256


def test_gzip_and_parquet_give_the_bars_of_the_csv(tmp_path):
    table = frame(50, "IBM")
    table.to_csv(tmp_path / "a.csv", index=False)
    write(tmp_path, gzip.compress((tmp_path / "a.csv").read_bytes()), "b.csv.gz")
    table.to_parquet(tmp_path / "c.parquet")
    table.set_index("time").to_parquet(tmp_path / "d.pq")
    table.set_index(pd.DatetimeIndex(table.pop("time"), name=None)).to_parquet(tmp_path / "e.parquet")
    hashes = {
        load_bar_file(tmp_path / name).sha256
        for name in ("a.csv", "b.csv.gz", "c.parquet", "d.pq", "e.parquet")
    }
    assert len(hashes) == 1


def test_prices_survive_the_csv_round_trip_bit_by_bit(tmp_path):
    rng = np.random.default_rng(1)
    table = frame(500)
    table["close"] = rng.uniform(9.0, 12.0, 500)
    table.to_csv(tmp_path / "a.csv", index=False)
    assert np.array_equal(load_bar_file(tmp_path / "a.csv").close[:, 0], table["close"].to_numpy())


def test_long_format_interleaved_symbols_keep_their_own_bars(tmp_path):
    rows = [f"{time},{symbol},{BAR}" for time in days(3, 4, 5) for symbol in ("MSFT", "AAPL")]
    text = "\n".join(["time,ticker,open,high,low,close,volume", *rows[:-1]]) + "\n"
    series = load_bar_file(write(tmp_path, text))
    assert series.symbols == ("AAPL", "MSFT")
    assert series.present.tolist() == [[True, True], [True, True], [False, True]]


def test_long_format_tickers_that_look_like_missing_values_stay_names(tmp_path):
    rows = [f"{time},{symbol},{BAR}" for time in days(3, 4) for symbol in ("NA", "TRUE", "600000")]
    text = "\n".join([LONG_HEADER, *rows]) + "\n"
    assert load_bar_file(write(tmp_path, text)).symbols == ("600000", "NA", "TRUE")


@pytest.mark.parametrize(
    "pattern", ["{symbol}_{field}", "{field}_{symbol}", "{symbol}.{field}", "{symbol} {field}"]
)
def test_wide_format_is_recognised_and_an_empty_bar_is_missing(tmp_path, pattern):
    fields = ("open", "high", "low", "close", "volume")
    names = [pattern.format(symbol=symbol, field=field) for symbol in ("AAPL", "BRK.B") for field in fields]
    rows = [f"{time},{BAR},{BAR}" for time in days(3, 4)] + [f"{days(5)[0]},,,,,,{BAR}"]
    series = load_bar_file(write(tmp_path, "\n".join([",".join(["date", *names]), *rows])))
    assert series.symbols == ("AAPL", "BRK.B")
    assert series.present.tolist() == [[True, True], [True, True], [False, True]]


def test_wide_format_trades_its_closes_and_not_adjusted_ones(tmp_path):
    header = "date,A_open,A_high,A_low,A_close,A_volume,A_adj_close"
    text = bar_csv(days(3, 4), [f"{BAR},9.5"] * 2, header)
    assert load_bar_file(write(tmp_path, text)).symbols == ("A",)


def test_folder_of_one_file_a_symbol_becomes_one_series(tmp_path):
    write(tmp_path, GOOD, "aapl.csv")
    write(tmp_path, gzip.compress(bar_csv(days(4, 5, 6)).encode()), "msft.csv.gz")
    frame().to_parquet(tmp_path / ".hidden")
    write(tmp_path, "notes", "README.txt")
    series = load_bar_file(tmp_path)
    assert (series.symbols, series.shape, series.bar_count) == (("AAPL", "MSFT"), (4, 2), 6)
    assert load_bar_file(tmp_path, Selection(symbols=("MSFT",))).symbols == ("MSFT",)


def test_parquet_decimals_dictionaries_and_integers_are_read(tmp_path):
    table = pa.table(
        {
            "ts": pa.array([1325548800000, 1325552400000], pa.int64()),
            "symbol": pa.array(["X", "X"]).dictionary_encode(),
            "open": pa.array([10, 10], pa.int32()),
            "high": pa.array([12, 12], pa.decimal128(10, 2)),
            "low": pa.array([9, 9], pa.float32()),
            "close": pa.array(["11", "11"]),
            "volume": pa.array([2**60, 1], pa.uint64()),
        }
    )
    pa_parquet.write_table(table, tmp_path / "x.parquet")
    series = load_bar_file(tmp_path / "x.parquet")
    assert (series.symbols, series.timeframe, series.high[0, 0], series.volume[0, 0]) == (
        ("X",),
        "1h",
        12.0,
        2.0**60,
    )


@pytest.mark.parametrize(
    ("bar", "expected"),
    [
        ("10,12,9,,1", ["line 4", "'close' is empty"]),
        ("10,12,9,NaN,1", ["line 4", "'close' is empty or NaN", "absent row"]),
        ("10,12,9,abc,1", ["line 4", "'close' is 'abc', not a number"]),
        ("10,12,9,True,1", ["line 4", "'True'"]),
        ('10,12,9,"1,5",1', ["line 4", "'1,5'"]),
        ("10,inf,9,11,1", ["line 4", "'high' is infinite"]),
        ("10,9,12,11,1", ["line 4", "high below low"]),
        ("10,12,9,13,1", ["line 4", "outside low..high"]),
        ("8,12,9,11,1", ["line 4", "outside low..high"]),
        ("10,12,0,11,1", ["line 4", "not above zero"]),
        ("10,12,-9,11,1", ["line 4", "not above zero"]),
        ("10,12,9,11,-1", ["line 4", "negative volume"]),
    ],
)
def test_bad_bar_is_refused_by_its_line(tmp_path, bar, expected):
    message = refusal(write(tmp_path, bar_csv(days(3, 4, 5, 6), [BAR, BAR, bar, BAR])))
    assert [part for part in ["bars.csv", *expected] if part not in message] == []


def test_bad_bar_in_long_format_is_refused_by_the_line_of_the_file(tmp_path):
    rows = [f"{time},{symbol},{BAR}" for time in days(3, 4, 5) for symbol in ("A", "B")]
    rows[3] = rows[3].replace(BAR, "10,5,9,11,100")
    text = "\n".join([LONG_HEADER, *rows])
    assert "bars.csv line 5: B" in refusal(write(tmp_path, text))


def test_bad_bar_in_parquet_is_refused_by_its_row(tmp_path):
    table = frame(4)
    table.loc[2, "low"] = 0.0
    table.to_parquet(tmp_path / "x.parquet")
    assert "x.parquet row 3" in refusal(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [((3, 4, 4, 5), "line 4: BARS time 2012-01-04T00:00:00Z repeats that of bars.csv line 3"),
     ((3, 5, 4, 6), "line 4: BARS time 2012-01-04T00:00:00Z comes before that of bars.csv line 3")],
)  # fmt: skip
def test_times_must_increase(tmp_path, numbers, expected):
    other = BAR.replace("11", "10.5")
    assert expected in refusal(write(tmp_path, bar_csv(days(*numbers), [BAR, BAR, other, BAR])))


def test_row_that_repeats_the_one_before_in_every_cell_is_left_out_and_remembered(tmp_path):
    text = bar_csv(days(3, 4, 4, 4, 5))
    plain = load_bar_file(write(tmp_path, GOOD))
    for given in (text, "\n".join([HEADER, *text.split()[:0:-1]])):
        series = load_bar_file(write(tmp_path, given))
        assert series.sha256 == plain.sha256
        assert series.repeated == (("BARS", int(plain.times[1])),) * 2


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "is empty"),
        ("\n\n", "line 1 is blank"),
        (HEADER + "\n", "has a header and no rows"),
        (GOOD.replace("close", "clse"), "no close column among 'time', 'open', 'high', 'low', 'clse'"),
        (GOOD.replace("close", "clse"), "guessed by the order of the numbers, so look it over before you add "
                                        "it: --columns 'close=clse'"),
        (GOOD.replace("time", "when"), "no time column"),
        (GOOD.replace("volume", "c"), "columns 'close' and 'c' both name the close"),
        (GOOD.replace(HEADER, "time,A_open,A_high,A_low,A_vol,count"), "symbol 'A' has no close column"),
        (GOOD + "2012-01-06T00:00:00Z,1,2\n", "Row #5"),
        (GOOD + "2012-01-06T00:00:00Z,1,2,3,4,5,6\n", "Row #5"),
        (GOOD.encode() + b"\xff\xff,1,2,3,4,5\n", "line 5: time '\u00ff\u00ff' is unreadable"),
        (b"\x1f\x8b" + b"0" * 30, "not a complete gzip file"),
        (b"PAR1 and nothing more", "not a readable Parquet file"),
        (bar_csv(days(3)), "--timeframe 1d"),
        (bar_csv(["2012-01-03T00:00:00Z", "2012-01-03T00:07:00Z"]), "420 s"),
        (bar_csv(days(3, 4), [f",{BAR}", f"A,{BAR}"], LONG_HEADER), "line 2: 'symbol' is empty"),
    ],
)  # fmt: skip
def test_unusable_file_is_refused_with_the_reason(tmp_path, content, expected):
    assert expected in refusal(write(tmp_path, content))


def test_missing_file_is_refused(tmp_path):
    assert "no such file" in refusal(tmp_path / "nowhere.csv")


def test_text_in_a_parquet_file_is_refused(tmp_path):
    assert "not a readable Parquet file" in refusal(write(tmp_path, GOOD, "bars.parquet"))


def test_parquet_of_the_wrong_types_is_refused(tmp_path):
    frame().assign(close=pd.Series([[1], [2], [3]], dtype=object)).to_parquet(tmp_path / "a.parquet")
    frame().assign(close=True).to_parquet(tmp_path / "b.parquet")
    frame().assign(symbol=1.5).to_parquet(tmp_path / "c.parquet")
    frame(0).to_parquet(tmp_path / "d.parquet")
    assert "column 'close' holds list" in refusal(tmp_path / "a.parquet")
    assert "column 'close' holds bool" in refusal(tmp_path / "b.parquet")
    assert "column 'symbol' holds double" in refusal(tmp_path / "c.parquet")
    assert "columns and no rows" in refusal(tmp_path / "d.parquet")


def test_folder_without_bar_files_is_refused(tmp_path):
    assert "holds no file ending in .csv" in refusal(tmp_path)


def test_folder_with_one_symbol_twice_is_refused(tmp_path):
    write(tmp_path, GOOD, "aapl.csv")
    write(tmp_path, gzip.compress(GOOD.encode()), "AAPL.csv.gz")
    assert "symbol 'AAPL' stands in both AAPL.csv.gz and aapl.csv" in refusal(tmp_path)


def test_wide_row_without_any_bar_is_refused(tmp_path):
    text = bar_csv(days(3, 4, 5), [BAR, ",,,,", BAR], "time,A_open,A_high,A_low,A_close,A_volume")
    assert "line 3: no symbol has a bar here" in refusal(write(tmp_path, text))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"symbols": ["APL", "IBM"]}, "unknown symbol 'APL': the data has BARS."),
        ({"timeframe": "1h"}, "--timeframe 1h does not match the bars, whose usual spacing is 1d"),
        (
            {"timeframe": "1hour"},
            "--timeframe '1hour' is not one of 1m, 5m, 10m, 15m, 30m, 1h, 2h, 4h, 1d, 1w, 1M or other "
            "minutes and hours that divide a day or a session. Did you mean '1h'?",
        ),
        ({"start": "2012-02-01", "end": "2012-01-01"}, "--from 2012-02-01 lies after --to 2012-01-01"),
        ({"start": "2013-01-01"}, "no bars left"),
        ({"start": "yesterday"}, "--from 'yesterday' is no time"),
        ({"tz": "America/New_Yrk"}, "Did you mean 'America/New_York'?"),
    ],
)
def test_unusable_request_is_refused_with_the_next_step(tmp_path, options, expected):
    assert expected in refusal(write(tmp_path, GOOD), **options)


def test_range_is_inclusive_and_a_date_includes_its_day(tmp_path):
    path = tmp_path / "a.csv"
    frame(72).to_csv(path, index=False)
    series = load_bar_file(path, Selection(start="2012-01-04", end="2012-01-04"))
    assert series.shape == (24, 1)
    assert load_bar_file(path, Selection(start="2012-01-04T01:00", end="2012-01-04T02:00")).shape == (2, 1)


def test_bars_that_overlap_in_one_file_of_several_symbols_name_both_lines(tmp_path):
    rows = [f"2024-01-02T{hour:02}:00:00Z,{name},{BAR}" for hour in range(9, 13) for name in "AB"]
    rows.append(f"2024-01-02T12:30:00Z,A,{BAR}")
    message = refusal(write(tmp_path, "\n".join([LONG_HEADER, *rows]) + "\n"))
    assert message.startswith(
        "bars.csv line 8 and bars.csv line 10: A: the bars of 2024-01-02T12:00:00Z and "
    )


def test_bars_of_a_broker_in_its_own_zone_over_march_are_read(tmp_path):
    stamps = pd.date_range("2024-03-25", "2024-04-06", freq="h", tz="EET")
    stamps = stamps[stamps.hour % 4 == 0]
    rows = [f"{stamp.strftime('%Y-%m-%d %H:%M')},{BAR}" for stamp in stamps]
    text = "\n".join([HEADER, *rows]) + "\n"
    series = load_bar_file(write(tmp_path, text), Selection(tz="EET"))
    assert (series.timeframe, series.bar_count) == ("4h", len(stamps))
    assert int(np.diff(series.times).min()) == 3 * 3_600 * 10**9, "else this says nothing"
