"""Exports of programs by their layouts, with bars made here: read to the same bars, or refused truly."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

import thinktwice as tt
from schemas.errors import DataError
from services.text.given_files import MAX_BYTES
from thinktwice.inputs import bars_of
from trading_core.bars import BarSeries
from worker.feeds.files.files import load_bar_file
from worker.feeds.files.symbol_rows import Selection

BARS = 40
DAILY = pd.date_range("2024-01-01", periods=BARS, freq="D")
HOURLY = pd.date_range("2024-01-01", periods=BARS, freq="h")
ORDER = ["open", "high", "low", "close", "volume"]


def made(times: pd.DatetimeIndex, seed: int = 7) -> pd.DataFrame:
    """A random walk of two decimals by time."""
    steps = np.random.default_rng(seed).uniform(-5.0, 5.0, (times.size, 2))
    close = (11_900 + steps[:, 0].cumsum()).round(2)
    opens = (close + steps[:, 1]).round(2)
    high, low = np.maximum(opens, close) + 1.25, np.minimum(opens, close) - 1.25
    columns = {"open": opens, "high": high.round(2), "low": low.round(2), "close": close, "volume": 1_250.0}
    return pd.DataFrame(columns, index=times).rename_axis("time")


def lines(
    frame: pd.DataFrame,
    header: str | None,
    form: str,
    columns: list[str] = ORDER,
    separator: str = ",",
    more: str = "",
    show: Callable[[float], str] = str,
) -> str:
    """The text of a table, its times in a form, with further cells behind each row."""
    times = pd.DatetimeIndex(frame.index).strftime(form)
    cells = frame[columns].values.tolist()
    rows = [separator.join([time, *map(show, row)]) + more for time, row in zip(times, cells, strict=True)]
    return "\n".join(([] if header is None else [header]) + rows) + "\n"


def comma(value: float) -> str:
    """12.005,78"""
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def epochs(
    frame: pd.DataFrame, unit: Literal["s", "ms", "us"], more: str = "", columns: list[str] = ORDER
) -> str:
    labels = pd.DatetimeIndex(frame.index).as_unit(unit).asi8
    rows = [[str(label), *map(str, row)] for label, row in zip(labels, frame[columns].values, strict=True)]
    return "\n".join(",".join(row) + more for row in rows) + "\n"


def two_rows(frames: dict[str, pd.DataFrame], by_ticker: bool = False, index: str = "Date") -> pd.DataFrame:
    """What a download of several symbols is: columns of two levels."""
    joined = pd.concat({name: frame[ORDER] for name, frame in frames.items()}, axis=1)
    joined.columns = pd.MultiIndex.from_tuples(
        [(name, field.title()) for name in frames for field in ORDER], names=["Ticker", "Price"]
    )
    return (joined if by_ticker else joined.swaplevel(axis=1)).rename_axis(index)


def zipped(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return data.getvalue()


def rows_of(frame: pd.DataFrame, kind: type = int) -> list[list[float]]:
    labels = pd.DatetimeIndex(frame.index).as_unit("ms").asi8
    return [[kind(label), *row] for label, row in zip(labels, frame[ORDER].values.tolist(), strict=True)]


def load(
    folder: Path, data: str | bytes, name: str = "x.csv", most: int = MAX_BYTES, **options: Any
) -> tuple[BarSeries, list[str]]:
    path, notes = folder / name, list[str]()
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return load_bar_file(path, Selection(tell=notes.append, **options), most), notes


def expected(frame: pd.DataFrame, symbol: str = "X") -> BarSeries:
    return BarSeries.from_frame({symbol: frame.tz_localize("UTC")})


DAYS, HOURS = made(DAILY), made(HOURLY)
MT5 = "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>"
STOOQ = "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>,<OPENINT>"
INVESTING = ["close", "open", "high", "low"]
DAY_NOTE, NAMES_NOTE = "dates without a zone are read as days of UTC", "the file names no columns"
NEWEST = "rows are sorted by time: the file has the newest first"
JSON_ROWS = [
    {
        "t": f"{time:%Y-%m-%dT%H:%M:%SZ}",
        "o": bar.open,
        "h": bar.high,
        "l": bar.low,
        "c": bar.close,
        "v": 1_250,
    }
    for time, bar in HOURS.iterrows()
]
UTC: dict[str, Any] = {"tz": "UTC"}
MT5_TEXT = lines(HOURS, MT5, "%Y.%m.%d\t%H:%M:%S", separator="\t", more="\t0\t4")
DAYS_TEXT = lines(DAYS, "Date,Open,High,Low,Close,Volume", "%Y-%m-%d")
CRYPTO = "unix,date,symbol,open,high,low,close,Volume BTC,Volume USDT"
COINBASE = [[row[0] // 1000, row[3], row[2], row[1], *row[4:]] for row in rows_of(HOURS)[::-1]]
UNFINISHED = [[1704070800000 + 3_600_000 * BARS, 11_900, 11_901, 11_899, 11_900, 3, 9, 9, 0]]
OKX = UNFINISHED + [[*row, 9, 9, 1] for row in rows_of(HOURS)[::-1]]
HTX = [dict(zip(("id", *ORDER), [row[0] // 1_000, *row[1:]], strict=True)) for row in rows_of(HOURS)[::-1]]
DAYS_OF_SHEET = DAYS_TEXT
for number, day in enumerate(DAILY, 45_292):
    DAYS_OF_SHEET = DAYS_OF_SHEET.replace(f"{day:%Y-%m-%d}", str(number))
OANDA = [
    {
        "complete": number < BARS,
        "volume": 1_250,
        "time": row["t"],
        "mid": {name: row[name] for name in "ohlc"},
    }
    for number, row in enumerate([*JSON_ROWS, JSON_ROWS[-1] | {"t": "2024-01-02T16:00:00Z"}])
]
COINAPI = "time_period_start;time_period_end;price_open;price_high;price_low;price_close;volume_traded"
# name: bytes or text, the bars, what is told, and what the operator says of the file
READ: dict[str, tuple[str | bytes, pd.DataFrame, list[str], dict[str, Any]]] = {
    "yf_single.csv": (lines(DAYS, "Date,Open,High,Low,Close,Volume", "%Y-%m-%d"), DAYS, [DAY_NOTE], {}),
    "binance.csv": (epochs(HOURS, "ms", ",1704070799999,9.5,100,6.1,5.2,0"), HOURS, [NAMES_NOTE], {}),
    "binance_us.csv": (epochs(HOURS, "us", ",1704070799999999,9.5,100,6.1,5.2,0"), HOURS, [NAMES_NOTE], {}),
    "binance.zip": (zipped({"a.csv": epochs(HOURS, "ms", ",1,9.5,100,6.1,5.2,0")}), HOURS, [NAMES_NOTE], {}),
    "kraken.csv": (epochs(HOURS, "s", ",123"), HOURS, [NAMES_NOTE], {}),
    "freqtrade.json": (json.dumps(rows_of(HOURS, float)), HOURS, [NAMES_NOTE], {}),
    "ccxt.json": (json.dumps(rows_of(HOURS)), HOURS, [NAMES_NOTE], {}),
    "alpaca.json": (json.dumps({"bars": {"X": JSON_ROWS}, "next_page_token": None}), HOURS, [], {}),
    "mt4.csv": (lines(HOURS, None, "%Y.%m.%d,%H:%M"), HOURS, [NAMES_NOTE], UTC),
    "mt5.csv": (MT5_TEXT, HOURS, ["'<VOL>', '<SPREAD>' not read"], UTC),
    "mt5_utf16.csv": (
        MT5_TEXT.encode("utf-16"), HOURS, ["'<VOL>', '<SPREAD>' not read"], UTC,
    ),
    "stooq.txt": (lines(DAYS, STOOQ, "X,D,%Y%m%d,000000", more=",0"), DAYS, [DAY_NOTE, "'<PER>'"], {}),
    "dukascopy.csv": (
        lines(HOURS, "Gmt time,Open,High,Low,Close,Volume", "%d.%m.%Y %H:%M:%S.000"), HOURS, ["%d.%m.%Y"], {},
    ),
    "newest_first.csv": (
        lines(DAYS[::-1], "Date,Open,High,Low,Close,Volume", "%Y-%m-%d"), DAYS, [DAY_NOTE, NEWEST], {},
    ),
    "nasdaq_com.csv": (
        lines(DAYS[::-1], "Date,Close/Last,Open,High,Low,Volume", "%m/%d/%Y", [*INVESTING, "volume"],
              show=lambda value: "1250" if value == 1_250.0 else f"${value:.2f}"),
        DAYS, [DAY_NOTE, NEWEST, "times are read as %m/%d/%Y"], {},
    ),
    "investing_de.csv": (
        "\ufeff" + lines(DAYS[::-1], '"Datum","Zuletzt","Eröffn.","Hoch","Tief","Vol.","+/- %"', '"%d.%m.%Y"',
                         INVESTING, more=',"1,25K","0,10%"', show=lambda value: f'"{comma(value)}"'),
        DAYS, [DAY_NOTE, NEWEST, "'+/- %' not read", "times are read as %d.%m.%Y"], {},
    ),
    "german.csv": (
        lines(DAYS, "Datum;offen;hoch;tief;schluss;Volumen", "%d.%m.%Y", separator=";", show=comma),
        DAYS, [DAY_NOTE, "times are read as %d.%m.%Y"], {},
    ),
    "windows.csv": (
        lines(DAYS, "Datum;Eröffnung;Hoch;Tief;Schluss;Stücke", "%d.%m.%Y", separator=";").encode("cp1252"),
        DAYS, ["Windows-1252", DAY_NOTE], {},
    ),
    "decimal_comma.csv": (
        lines(DAYS, "date;open;high;low;close;volume", "%Y-%m-%d", separator=";",
              show=lambda value: f"{value:.2f}".replace(".", ",")), DAYS, [DAY_NOTE], {},
    ),
    "us_dates.csv": (
        lines(DAYS, "Date,Open,High,Low,Close,Volume", "%m/%d/%Y"), DAYS, ["times are read as %m/%d/%Y"], {},
    ),
    "de_dates.csv": (
        lines(DAYS, "date,open,high,low,close,volume", "%d.%m.%Y"), DAYS, ["times are read as %d.%m.%Y"], {},
    ),
    "ib.csv": (lines(HOURS, "date,open,high,low,close,volume", "%Y%m%d  %H:%M:%S"), HOURS, [], UTC),
    "ib_zone.csv": (
        lines(HOURS, "date,open,high,low,close,volume", "%Y%m%d %H:%M:%S Etc/UTC"), HOURS, [], {},
    ),
    "polygon.csv": ("t,o,h,l,c,v\n" + epochs(HOURS, "ms"), HOURS, [], {}),
    "weekly.csv": (
        lines(made(DAILY[::7]), "Date,Open,High,Low,Close,Volume", "%Y-%m-%d 00:00:00+00:00"),
        made(DAILY[::7]), [], {},
    ),
    "pandas_index.csv": (lines(DAYS, ",Open,High,Low,Close,Volume", "%Y-%m-%d"), DAYS, [DAY_NOTE], {}),
    "float_seconds.csv": (
        "\n".join(["time,open,high,low,close,volume",
                   *(row.replace(",", ".0,", 1) for row in epochs(HOURS, "s").splitlines())]),
        HOURS, [], {},
    ),
    "finnhub.json": (
        json.dumps(
            {"s": "ok", "t": [row[0] // 1_000 for row in rows_of(HOURS)]}
            | {name[0]: HOURS[name].tolist() for name in ORDER}
        ),
        HOURS, [], {},
    ),
    # of five more programs, looked up
    "ninjatrader.txt": (lines(HOURS, None, "%Y%m%d %H%M%S", separator=";"), HOURS, [NAMES_NOTE], UTC),
    "sierra.txt": (
        lines(HOURS, "Date, Time, Open, High, Low, Last, Volume, NumberOfTrades", "%Y/%-m/%-d, %H:%M:%S.0",
              separator=", ", more=", 3"),
        HOURS, ["x.numberoftrades"], UTC,
    ),
    "tradestation.txt": (
        lines(HOURS, '"Date","Time","Open","High","Low","Close","Vol","OI"', "%m/%d/%Y,%H%M", more=",0"),
        HOURS, ["x.oi"], UTC | {"date_format": "%m/%d/%Y %H%M"},
    ),
    "databento.csv": (
        lines(HOURS, "ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume,symbol",
              "%Y-%m-%dT%H:%M:%S.000000000Z,34,1,5", more=",X"),
        HOURS, ["x.rtype, x.publisher_id, x.instrument_id"], {},
    ),
    "firstrate.txt": (lines(HOURS, None, "%Y-%m-%d %H:%M:%S"), HOURS, [NAMES_NOTE], UTC),
    "coinbase.json": (
        json.dumps(COINBASE), HOURS, ["read as time, low, high, open, close, volume", NEWEST], {},
    ),
    "alphavantage.json": (
        json.dumps({"Meta Data": {"2. Symbol": "X"}, "Time Series (Daily)": {
            f"{time:%Y-%m-%d}": {f"{k}. {name}": str(bar[name]) for k, name in enumerate(ORDER, 1)}
            for time, bar in DAYS[::-1].iterrows()}}),
        DAYS, [DAY_NOTE, NEWEST], {},
    ),
    "cryptodatadownload.csv": (
        "https://www.CryptoDataDownload.com\n"
        + lines(DAYS[::-1], CRYPTO, "1,%Y-%m-%d,X", more=",7"),
        DAYS, ["lines above the header", DAY_NOTE, NEWEST, "x.volume_usdt"], {},
    ),
    "nse.csv": (
        lines(DAYS, "SYMBOL,SERIES,DATE,OPEN,HIGH,LOW,CLOSE,TOTTRDQTY", "X,EQ,%d-%b-%Y").upper(),
        DAYS, ["'SERIES' not read", DAY_NOTE], {},
    ),
    "polygon_flat.csv.gz": (
        gzip.compress(lines(HOURS, "window_start,open,high,low,close,volume,ticker,transactions",
                            "%Y-%m-%dT%H:%M:%SZ", more=",X,9").encode()),
        HOURS, ["x.transactions"], {},
    ),
    "kabu.csv": (
        ("1333 東証1部 マルハニチロ\n"
         + lines(DAYS, "日付,始値,高値,安値,終値,出来高", "%Y-%m-%d")).encode("shift_jis"),
        DAYS, ["read as Shift_JIS", "lines above the header", DAY_NOTE], {},
    ),
    "tongdaxin.txt": (
        ("000001 平安银行 日线\n"
         + lines(DAYS, "   日期\t  开盘\t  最高\t  最低\t  收盘\t  成交量", "%Y/%m/%d", separator="\t")
         + "#数据来源:通达信").encode("gbk"),
        DAYS, ["read as GB18030", "the line below the rows is passed over", DAY_NOTE], {},
    ),
    "russian.csv": (
        lines(DAYS, "Дата;Открытие;Макс.;Мин.;Закрытие;Объём", "%d.%m.%Y", separator=";").encode("cp1251"),
        DAYS, ["read as Windows-1251"], {},
    ),
    "barchart.csv": (
        lines(DAYS[::-1], "Time,Open,High,Low,Last,Volume", "%m/%d/%Y") + '"Downloaded from Barchart.com"',
        DAYS, ["the line below the rows is passed over", NEWEST], {},
    ),
    "ariva.csv": (
        lines(DAYS, "Datum;Erster;Hoch;Tief;Schlusskurs;Stuecke;Volumen", "%Y-%m-%d", separator=";",
              show=comma, more=";1.000.000"),
        DAYS, ["'Volumen' not read"], {},
    ),
    "tushare.csv": (
        lines(DAYS[::-1], "ts_code,trade_date,open,high,low,close,vol", "X,%Y%m%d"), DAYS, [NEWEST], {},
    ),
    "fxcm.csv": (
        lines(HOURS, "DateTime,BidOpen,BidHigh,BidLow,BidClose,TickQty,AskOpen", "%m/%d/%Y %H:%M:%S.000",
              more=",9"),
        HOURS, ["x.askopen"], UTC | {"date_format": "%m/%d/%Y %H:%M:%S.%f"},
    ),
    "bloomberg.csv": (
        lines(DAYS, "Dates,PX_OPEN,PX_HIGH,PX_LOW,PX_LAST,PX_VOLUME", "%m/%d/%Y"), DAYS, [DAY_NOTE], {},
    ),
    "utf16_without_mark.csv": (
        lines(DAYS, "Date,Open,High,Low,Close,Volume", "%Y-%m-%d").encode("utf-16-le"), DAYS, [DAY_NOTE], {},
    ),
    "joined.csv": (
        DAYS_TEXT.replace("2024-01-20", DAYS_TEXT[: DAYS_TEXT.index("2024")] + "2024-01-20"),
        DAYS, ["1 row with the header once more left out"], {},
    ),
    "blank_above.csv": ("\n;;;;;\n" + DAYS_TEXT, DAYS, ["lines above the header"], {}),
    "split.json": (DAYS.tz_localize("UTC").to_json(orient="split", date_format="iso"), DAYS, [], {}),
    "columns_of_names.json": (
        json.dumps({"candles": {"columns": ["begin", *ORDER], "data": rows_of(HOURS)}}), HOURS, [], {},
    ),
    "names_and_objects.json": (
        json.dumps({"columns": ["t", "o", "h", "l", "c", "v"], "bars": JSON_ROWS}), HOURS, [], {},
    ),
    "coinapi.csv": (
        lines(HOURS, COINAPI, "%Y-%m-%dT%H:%M:%S.0000000Z;x", separator=";"),
        HOURS, ["'time_period_end' not read"], {},
    ),
    "coinapi.json": (
        json.dumps([dict(zip(COINAPI.split(";"), [row[0], 1, *row[1:]], strict=True))
                    for row in rows_of(HOURS)]), HOURS, [], {},
    ),
    "htx.json": (json.dumps({"ch": "market.x.kline", "ts": 1, "data": HTX}), HOURS, [NEWEST], {}),
    "deribit.json": (
        json.dumps({"result": {"volume": [1_250.0] * BARS, "ticks": [row[0] for row in rows_of(HOURS)],
                               "cost": [1.0] * BARS, **{name: HOURS[name].tolist() for name in ORDER}}}),
        HOURS, ["x.cost"], {},
    ),
    "okx.json": (
        json.dumps({"code": "0", "data": [list(map(str, row)) for row in OKX]}),
        HOURS, ["the newest row is marked confirm = 0: its bar is not finished"], {},
    ),
    "okx.csv": (
        "ts,o,h,l,c,vol,volCcy,volCcyQuote,confirm\n" + "\n".join(",".join(map(str, row)) for row in OKX),
        HOURS, ["the newest row is marked confirm = 0: its bar is not finished"], {},
    ),
    "zerodha.json": (
        json.dumps({"status": "success", "data": {"candles": rows_of(HOURS)}}), HOURS, [NAMES_NOTE], {},
    ),
    "yahoo.json": (
        json.dumps({"chart": {"result": [{
            "meta": {"currency": "USD"}, "timestamp": [row[0] // 1000 for row in rows_of(HOURS)],
            "indicators": {"quote": [{name: HOURS[name].tolist() for name in ORDER}]}}]}}),
        HOURS, [], {},
    ),
    "blanks.txt": (lines(DAYS, "Date  Open High Low Close Volume", "%Y-%m-%d", separator="  "), DAYS, [], {}),
    "blanks_and_clock.txt": (
        lines(HOURS, "time open high low close volume", "%Y-%m-%d %H:%M", separator=" "), HOURS, [], UTC,
    ),
    "comma_behind_rows.csv": (
        lines(DAYS, "Date,Open,High,Low,Close,Volume", "%Y-%m-%d", more=","), DAYS, [DAY_NOTE], {},
    ),
    "index_without_a_name.csv": (
        "Date,Open,High,Low,Close,Volume\n"
        + "".join(f"{row},{line}\n" for row, line in enumerate(DAYS_TEXT.splitlines()[1:], 1)), DAYS, [], {},
    ),
    "zone_in_words.csv": (
        lines(HOURS, "ts,open,high,low,close,volume", "%Y-%m-%d %H:%M:%S UTC"), HOURS, [], {},
    ),
    "offset_and_zone.csv": (
        lines(HOURS, "ts,open,high,low,close,volume", "%Y-%m-%d %H:%M:%S +0000 UTC"), HOURS, [], {},
    ),
    "two_digits_of_the_year.csv": (
        lines(DAYS, "Date, Open, High, Low, Close, Volume", "%m/%d/%y"),
        DAYS, ["times are read as %m/%d/%y"], {},
    ),
    "short_month.csv": (
        lines(DAYS, "Date,Open,High,Low,Close,Volume", "%d-%b-%y"), DAYS, ["times are read as %d-%b-%y"], {},
    ),
    "half_days.csv": (
        lines(HOURS, "Time,Open,High,Low,Close,Volume", "%Y-%m-%d %I:%M:%S %p"), HOURS, [], UTC,
    ),
    "signs_between.csv": (
        lines(DAYS, "日付,始値,高値,安値,終値,出来高", "%Y年%m月%d日"), DAYS, [DAY_NOTE], {},
    ),
    "powers_of_ten.csv": (
        "time,open,high,low,close,volume\n"
        + "".join(f"{float(row.split(',')[0]):.9e},{row.partition(',')[2]}\n"
                  for row in epochs(HOURS, "s").splitlines()),
        HOURS, [], {},
    ),
    "long_preamble.csv": ("\n".join(["Terms of use, all of them", ""] * 8) + "\n" + DAYS_TEXT, DAYS, [], {}),
    "serials.csv": (DAYS_OF_SHEET, DAYS, ["read as days of a spreadsheet", DAY_NOTE], {}),
    "symbol_first.csv": (lines(DAYS, None, "X,D,%Y-%m-%d"), DAYS, ["read as symbol, time, open"], {}),
    "oanda.json": (json.dumps({"instrument": "X", "candles": OANDA}), HOURS, ["is marked complete = 0"], {}),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_export_of_a_program_is_read_to_its_bars_and_its_choices_are_told(tmp_path, name):
    data, frame, shown, options = READ[name]
    found, notes = load(tmp_path, data, name, symbols=["X"], **options)
    assert found.sha256 == expected(frame).sha256
    assert [part for part in shown if not any(part in note for note in notes)] == []
    assert found.notes == tuple(notes) == tuple(dict.fromkeys(notes))


@pytest.mark.parametrize(
    "name", ["mt4.csv", "mt5.csv", "ib.csv", "ninjatrader.txt", "sierra.txt", "firstrate.txt"]
)
def test_times_within_a_day_without_a_zone_are_refused_with_the_option(tmp_path, name):
    with pytest.raises(DataError, match=r"has no time zone: name the zone of the file with --tz ZONE"):
        load(tmp_path, READ[name][0], name)


@pytest.mark.parametrize("by_ticker", [False, True])
@pytest.mark.parametrize("symbols", [["AAPL"], ["AAPL", "BTC-USD", "OPEN"]])
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_download_of_several_symbols_has_a_header_of_two_rows(tmp_path, by_ticker, symbols, kind):
    frames = {symbol: made(DAILY, seed) for seed, symbol in enumerate(symbols)}
    table = two_rows(frames, by_ticker)
    if kind == "parquet":
        table.to_parquet(tmp_path / "x.parquet")
        data: str | bytes = (tmp_path / "x.parquet").read_bytes()
    else:
        data = table.to_csv(date_format="%Y-%m-%d")
    found, notes = load(tmp_path, data, f"x.{kind}")
    wanted = BarSeries.from_frame({symbol: frame.tz_localize("UTC") for symbol, frame in frames.items()})
    assert (found.symbols, found.sha256, notes) == (tuple(symbols), wanted.sha256, [DAY_NOTE])


@pytest.mark.parametrize("levels", [(None, None), ("Attributes", "Symbols"), ("Field", "Asset")])
@pytest.mark.parametrize("by_ticker", [False, True])
@pytest.mark.parametrize("symbols", [["AAPL"], ["AAPL", "MSFT"]])
def test_header_of_two_rows_is_read_whatever_its_levels_are_called(tmp_path, levels, by_ticker, symbols):
    frames = {symbol: made(DAILY, seed) for seed, symbol in enumerate(symbols)}
    table = two_rows(frames, by_ticker)
    table.columns.names = levels[::-1] if by_ticker else levels
    found, _ = load(tmp_path, table.to_csv(date_format="%Y-%m-%d"))
    wanted = BarSeries.from_frame({symbol: frame.tz_localize("UTC") for symbol, frame in frames.items()})
    assert (found.symbols, found.sha256) == (tuple(symbols), wanted.sha256)


def test_download_of_hours_keeps_the_zone_that_its_times_carry(tmp_path):
    table = two_rows({"BTC-USD": HOURS.tz_localize("UTC")}, index="Datetime")
    found, notes = load(tmp_path, table.to_csv())
    assert (found.symbols, found.sha256, notes) == (("BTC-USD",), expected(HOURS, "BTC-USD").sha256, [])


@pytest.mark.parametrize("rows", [JSON_ROWS, rows_of(HOURS)], ids=["objects", "lists"])
def test_json_of_one_row_a_line_is_read_as_a_document_of_rows_is(tmp_path, rows):
    text = "\n".join(map(json.dumps, rows)) + "\n"
    assert load(tmp_path, text, "x.jsonl")[0].sha256 == expected(HOURS).sha256
    with pytest.raises(DataError, match="x.jsonl is no JSON document"):
        load(tmp_path, text[:-9], "x.jsonl")


def archived(name: str) -> bytes:
    """Bars in a form that is not read."""
    text, data = READ["yf_single.csv"][0], io.BytesIO()
    assert isinstance(text, str)
    if name.endswith(".bz2"):
        return bz2.compress(text.encode())
    if name.endswith(".xz"):
        return lzma.compress(text.encode())
    if name.endswith(".npz"):
        np.savez(data, *(DAYS[column].to_numpy() for column in ORDER))
    elif name.endswith(".npy"):
        np.save(data, DAYS.to_numpy())
    elif name.endswith(".tar.gz"):
        with tarfile.open(fileobj=data, mode="w:gz") as archive:
            member = tarfile.TarInfo("x.csv")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    elif name.endswith(".orc"):
        DAYS.reset_index().to_orc(data, index=False)
    else:
        return b"SQLite format 3\0" + bytes(2_000)
    return data.getvalue()


@pytest.mark.parametrize("name", ["x.orc", "x.csv.bz2", "x.csv.xz", "x.db", "x.npz", "x.npy", "x.tar.gz"])
def test_file_of_another_kind_is_refused_in_one_short_line(tmp_path, name):
    with pytest.raises(
        DataError,
        match=rf"^{name} is not one of the kinds read .*: export it as CSV, or read it with "
        "pandas and write it with to_parquet$",
    ) as reply:
        load(tmp_path, archived(name), name)
    assert len(str(reply.value)) < 160


def test_feather_file_is_read_and_bounded(tmp_path):
    HOURS.tz_localize("UTC").reset_index().rename(columns={"time": "date"}).to_feather(tmp_path / "x.feather")
    assert load_bar_file(tmp_path / "x.feather").sha256 == expected(HOURS).sha256
    with pytest.raises(DataError, match=r"runtime\.max_bytes"):
        load_bar_file(tmp_path / "x.feather", most=6 * 8 * BARS - 1)
    (tmp_path / "y.feather").write_bytes((tmp_path / "x.feather").read_bytes()[:-40])
    with pytest.raises(DataError, match="not a readable Feather file"):
        load_bar_file(tmp_path / "y.feather")


def test_last_row_without_prices_is_an_unfinished_bar_wherever_it_stands(tmp_path):
    text = lines(DAYS, "Date,Open,High,Low,Close,Volume", "%Y-%m-%d")
    header, *rows = text.splitlines()
    for body in ([*rows, "2024-03-01,,,,,"], ["2024-03-01,,,,,0", *rows[::-1]]):
        found, notes = load(tmp_path, "\n".join([header, *body]))
        assert found.sha256 == expected(DAYS).sha256
        assert "the newest row has no prices: its bar is not finished, and is left out" in notes
    with pytest.raises(DataError, match="line 3: 'Open' is empty"):
        load(tmp_path, "\n".join([header, rows[0], "2024-01-02,,,,,", *rows[2:]]))


def test_last_row_of_one_symbol_in_a_download_of_several_is_a_missing_bar(tmp_path):
    table = two_rows({"A": DAYS, "B": DAYS})
    table.iloc[-1] = np.nan
    found, notes = load(tmp_path, table.to_csv(date_format="%Y-%m-%d"))
    assert (found.bar_count, found.shape) == (2 * BARS - 2, (BARS - 1, 2))
    assert notes[-1].startswith("the newest row has no prices")


def test_adjusted_closes_are_used_for_all_four_prices_only_where_it_is_asked_for(tmp_path):
    table = DAYS.assign(adjusted=DAYS["close"] * np.where(np.arange(BARS) < 20, 0.25, 1.0))
    text = lines(table, "Date,Open,High,Low,Close,Volume,Adj Close", "%Y-%m-%d", [*ORDER, "adjusted"])
    plain, notes = load(tmp_path, text)
    assert plain.sha256 == expected(DAYS).sha256
    assert any(
        note.startswith("prices are not adjusted") and "data.adjusted = true" in note for note in notes
    )
    found, notes = load(tmp_path, text, adjusted=True)
    assert np.allclose(found.high[:20, 0] * 4.0, DAYS["high"][:20])
    assert np.array_equal(found.high[20:, 0], DAYS["high"][20:])
    assert "all four prices are adjusted by adjusted close / close; data.adjusted = false does not" in notes
    with pytest.raises(DataError, match=r"no column of adjusted closes: leave out data\.adjusted"):
        load(tmp_path, lines(DAYS, "Date,Open,High,Low,Close,Volume", "%Y-%m-%d"), adjusted=True)


def test_adjusted_closes_of_a_download_of_several_symbols_are_used_where_it_is_asked_for(tmp_path):
    frames = {"A": made(DAILY), "B": made(DAILY, 8)}
    for frame in frames.values():
        frame["Adj Close"] = frame["close"] * np.where(np.arange(BARS) < 20, 0.25, 1.0)
    joined = pd.concat({name: frame.rename(columns=str.title) for name, frame in frames.items()}, axis=1)
    joined.columns.names = ["Ticker", "Price"]
    text = joined.swaplevel(axis=1).rename_axis("Date").to_csv(date_format="%Y-%m-%d")
    plain, notes = load(tmp_path, text)
    assert (plain.symbols, len([note for note in notes if "data.adjusted = true" in note])) == (("A", "B"), 1)
    assert np.array_equal(plain.close[:, 1], frames["B"]["close"])
    found, notes = load(tmp_path, text, adjusted=True)
    assert np.allclose(found.low[:20] * 4.0, plain.low[:20])
    assert np.array_equal(found.low[20:], plain.low[20:])
    assert len([note for note in notes if "data.adjusted = false" in note]) == 1
    with pytest.raises(DataError, match="no column of adjusted closes"):
        load(tmp_path, text.replace("Adj Close", "Other", 1), adjusted=True)


@pytest.mark.parametrize(
    ("times", "cells", "refusal", "remedy", "price"),
    [
        (["03/04/2024", "03/05/2024"], "10,12,9,11,5", "'03/04/2024' can be read in two ways",
         {"date_format": "%m/%d/%Y"}, 11.0),
        (["1/2/2024 9:30 PM", "1/2/2024 10:30 PM"], "10,12,9,11,5", "--date-format '%m/%d/%Y %I:%M %p'",
         {"date_format": "%m/%d/%Y %I:%M %p", "tz": "UTC"}, 11.0),
        (["04012024", "05012024"], "10,12,9,11,5", "'04012024' is unreadable",
         {"date_format": "%d%m%Y"}, 11.0),
        (["2024-01-01", "2024-01-02"], '"1,234","1,236","1,233","1,235",5', "--decimal , or --decimal .",
         {"decimal": ","}, 1.235),
        (["2024-01-01", "2024-01-02"], '"1,234","1,236","1,233","1,235",5', "--decimal , or --decimal .",
         {"decimal": "."}, 1_235.0),
        (["2024-01-01", "2024-01-02"], '"1.234,5","1,236.5","1.233,5","1.235,5",5', "both , and . mark",
         {"decimal": ","}, None),
    ],
)  # fmt: skip
def test_file_that_can_be_read_in_two_ways_is_refused_with_the_option_that_decides(
    tmp_path, times, cells, refusal, remedy, price
):
    text = "\n".join(["Date,Open,High,Low,Close,Volume", *(f"{time},{cells}" for time in times)])
    with pytest.raises(DataError) as caught:
        load(tmp_path, text)
    assert refusal in str(caught.value)
    if price is None:
        with pytest.raises(DataError):
            load(tmp_path, text, **remedy)
    else:
        assert load(tmp_path, text, **remedy)[0].close[0, 0] == price


@pytest.mark.parametrize("price", ["99'16", "99 16", "99'16.5", "1 2345"])
@pytest.mark.parametrize("decimal", [None, ",", "."])
def test_price_with_a_mark_before_no_group_of_three_digits_is_refused_with_its_row(tmp_path, price, decimal):
    rows = [f"2024-01-0{day};{price};{price};{price};{price};1 250" for day in (1, 2)]
    with pytest.raises(DataError, match="line 2: 'open' is .*, not a number"):
        load(tmp_path, "\n".join(["date;open;high;low;close;volume", *rows]), decimal=decimal)


@pytest.mark.parametrize(
    "price", ["1'234'567.50", "1 234 567.50", "1\u202f234\u202f567.50", "$ 1’234’567.50", "1 234 567.50 €"]
)
def test_blank_or_apostrophe_before_groups_of_three_digits_is_a_mark_of_thousands(tmp_path, price):
    rows = [f"2024-01-0{day};{price};{price};{price};{price};1 250 K" for day in (1, 2)]
    found, _ = load(tmp_path, "\n".join(["date;open;high;low;close;volume", *rows]))
    assert (found.close[0, 0], found.volume[0, 0]) == (1_234_567.5, 1_250_000.0)


@pytest.mark.parametrize("mark", ["'", "’"])
def test_prices_that_all_end_in_32nds_are_not_read_as_thousands(tmp_path, mark):
    """128'165 is 128 and 16.5 / 32; an index has other digits behind its mark, sooner or later."""
    cells = ["128'165", "129'000", "127'312", "128'057"]
    rows = [f"2024-01-0{day},{','.join(cells)},1'250".replace("'", mark) for day in (1, 2, 3)]
    text = "\n".join(["date,open,high,low,close,volume", *rows])
    with pytest.raises(
        DataError, match="thousands, which --decimal . says, or 32nds: write those as decimals"
    ):
        load(tmp_path, text)
    assert load(tmp_path, text, decimal=".")[0].low[0, 0] == 127_312.0
    found, _ = load(tmp_path, text.replace(f"127{mark}312", f"127{mark}313"))
    assert (found.low[0, 0], found.volume[0, 0]) == (127_313.0, 1_250.0)


def test_row_below_a_header_that_stands_again_is_refused_by_its_own_line(tmp_path):
    header, *rows = DAYS_TEXT.splitlines()
    text = "\n".join([header, *rows[:5], header, *rows[5:8], "2024-01-09,1,2,x,1,1", *rows[9:]])
    with pytest.raises(DataError, match=r"x\.csv line 11: 'Low' is 'x'"):
        load(tmp_path, text)
    with pytest.raises(DataError, match=r"x\.csv line 3: 'Low' is 'x'"):
        load(tmp_path, "\n".join([header, rows[0], "2024-01-02,1,2,x,1,1", header, *rows[2:]]))


def test_date_format_that_times_do_not_have_names_the_row(tmp_path):
    text = lines(DAYS, "Date,Open,High,Low,Close,Volume", "%d.%m.%Y")
    with pytest.raises(
        DataError, match=r"line 14: time '13.01.2024' is not of the form --date-format '%m.%d.%Y'"
    ):
        load(tmp_path, text, date_format="%m.%d.%Y")
    with pytest.raises(DataError, match=r"--date-format '%Q': .* write it like '%d.%m.%Y %H:%M'"):
        load(tmp_path, text, date_format="%Q")


@pytest.mark.parametrize(
    ("data", "name", "refusal"),
    [
        ("AAPL,D,20240102,10,9,12,11,5\n" * 2, "x.csv", "write a first line such as time,open"),
        ("2024-01-02,9,8,12,11,5\n" * 2, "x.csv", "no known order of open, high, low and close is possible"),
        ("1641024000,1234,47,49,46,48\n" * 2, "x.csv", "no known order of open, high, low and close"),
        ("EUR/USD,20240102 09:30:00.123,1.1,1.2\n" * 2, "x.csv", "make bars of ticks first, in pandas by"),
        ("Id;Strategy;Side;Amount;Price;Date/Time\n1;a;b;1;2;1/2/24", "x.csv", "if it is a table of bars"),
        ("<!DOCTYPE html>\n<body>a, b, c, d, e, f</body>\n", "x.csv", "is a page of HTML or XML: open it"),
        (DAYS[:2].to_html(), "x.html", "a table on it is read by pandas.read_html"),
        ("date,open,high,low,close\n" * 3, "x.csv", "x.csv line 2: time 'date' is unreadable"),
        ("[" * 100_000, "x.json", "nests deeper than any table"),
        ('{"a": {"b": [1, 2]}}', "x.json", "holds no rows of bars: read it by pandas"),
        ('[[1,2,3,4,5]', "x.json", "is no JSON document"),
        (zipped({"a.csv": "x", "b.csv": "y"}), "x.zip", "holds 2 files, where one is read"),
        (zipped({"[Content_Types].xml": "x", "b.xml": "y"}), "x.xlsx", "is a workbook: save its sheet"),
        (zipped({"a.csv": "x" * 5_000}), "x.zip", "runtime.max_bytes"),
        (zipped({"a.zip": "PK\x03\x04"}), "x.zip", "has a header and no rows"),
        pytest.param(zipped({"a.csv": "x"})[:-30], "x.zip", "not a readable zip file", id="half a zip"),
    ],
)  # fmt: skip
def test_file_that_holds_no_bars_is_refused_in_one_line(tmp_path, data, name, refusal):
    with pytest.raises(DataError) as caught:
        load(tmp_path, data, name, most=200_000 if name == "x.json" else 4_000)
    assert refusal in str(caught.value)
    assert "\n" not in str(caught.value)


def test_gzip_of_a_json_file_is_read_as_the_file(tmp_path):
    data = gzip.compress(json.dumps(rows_of(HOURS)).encode())
    assert load(tmp_path, data, "x.json.gz")[0].sha256 == expected(HOURS).sha256


def test_column_names_of_ours_come_before_those_of_other_programs(tmp_path):
    header = "date,last,first,open,high,low,close,volume,hour"
    rows = [f"2024-01-0{day}T00:00:00Z,1,2,10,12,9,11,5,{day}" for day in (1, 2)]
    found, _ = load(tmp_path, "\n".join([header, *rows]))
    assert (found.close[0, 0], sorted(found.extra)) == (11.0, ["first", "hour", "last"])


def test_close_time_whose_name_differs_by_case_from_the_open_time_is_no_label(tmp_path):
    frame = made(HOURLY)
    times = [pd.Timestamp(label).value // 1_000_000 for label in frame.index.to_numpy()]
    rows = [
        {"T": time + 3_599_999, "c": str(row.close), "h": str(row.high),
         "l": str(row.low), "o": str(row.open), "t": time, "v": str(row.volume)}
        for time, row in zip(times, frame.itertuples(), strict=True)
    ]  # fmt: skip
    bars, _ = load(tmp_path, json.dumps(rows), "X.json")
    assert bars.sha256 == expected(frame).sha256
    shouted = [{"Close" if name == "c" else name: value for name, value in row.items()} for row in rows]
    both = [{**row, "close": row["Close"], "Close": "1.0"} for row in shouted]
    bars, _ = load(tmp_path, json.dumps(both), "X.json")
    assert bars.sha256 == expected(frame).sha256


@pytest.mark.parametrize("title", ["sep=;", "Kurse des Jahres"])
def test_encoding_is_told_by_the_whole_head_of_a_file_with_a_line_above_it(tmp_path, title):
    frame = made(DAILY)
    text = lines(frame, "Datum;Eröffnung;Hoch;Tief;Schluss;Stücke", "%d.%m.%Y", separator=";")
    bars, notes = load(tmp_path, f"{title}\n{text}".encode("cp1252"))
    assert bars.sha256 == expected(frame).sha256
    assert any("Windows-1252" in note for note in notes)


@pytest.mark.parametrize("before", ["Adj. ", "Adj ", "Adjusted "])
def test_prices_that_are_adjusted_alone_are_those_of_the_file_and_of_no_symbol(tmp_path, before):
    header = ",".join(["Date", *(f"{before}{name}" for name in ("Open", "High", "Low", "Close", "Volume"))])
    bars, _ = load(tmp_path, lines(made(DAILY), header, "%Y-%m-%d"))
    assert (bars.symbols, bars.sha256) == (("X",), expected(made(DAILY)).sha256)


def rows_with(frame: pd.DataFrame, columns: list[str], *more: Any) -> list[list[Any]]:
    labels = pd.DatetimeIndex(frame.index).as_unit("s").asi8.tolist()
    return [[label, *row, *more] for label, row in zip(labels, frame[columns].values.tolist(), strict=True)]


def bid_ask(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Bars with two prices for each, as brokers have them; times of the row in two zones."""
    return [
        {"at": f"{time:%Y-%m-%dT%H:%M:%SZ}", "local": f"{time:%d.%m.%Y %H:%M}", "traded": bar.volume}
        | {f"{name}Price": {"bid": bar[name], "ask": bar[name] + 0.5, "last": None} for name in ORDER[:4]}
        for time, bar in frame.iterrows()
    ]


WALK = made(HOURLY)
WALK["open"] = WALK["close"].shift(fill_value=11_900.0) + 0.01
WALK["high"] = WALK[["open", "close"]].max(axis=1) + 1.25
WALK["low"] = WALK[["open", "close"]].min(axis=1) - 1.25
WALK = WALK.round(2)
CLOSE_FIRST = ["close", "open", "high", "low", "volume"]
UNKNOWN = [f"p{k}" for k in range(1, 6)]
# name: bytes or text, the option that the refusal gives
GUESSED: dict[str, tuple[str | bytes, str]] = {
    "korean.csv": (
        lines(WALK, "일자,종가,시가,고가,저가,거래량", "%Y-%m-%dT%H:%M:%SZ", CLOSE_FIRST),
        "time=일자,open=시가,high=고가,low=저가,close=종가,volume=거래량",
    ),
    "newest_first.csv": (
        lines(WALK[::-1], "일자,종가,시가,고가,저가,거래량", "%Y-%m-%dT%H:%M:%SZ", CLOSE_FIRST),
        "time=일자,open=시가,high=고가,low=저가,close=종가,volume=거래량",
    ),
    "dutch.csv": (
        lines(WALK, "Datum;Openen;Hoogste;Laagste;Slot;Aantal", "%Y-%m-%dT%H:%M:%SZ", separator=";",
              show=lambda value: f"{value:.2f}".replace(".", ",")),
        "time=Datum,open=Openen,high=Hoogste,low=Laagste,close=Slot,volume=Aantal",
    ),
    "two_claim_one_role.csv": (
        lines(WALK, "close,time,open,high,low,c,volume", "7,%Y-%m-%dT%H:%M:%SZ"), "close=c",
    ),
    "symbol_with_digits.csv": (
        lines(WALK, None, "600519.SH,%Y-%m-%dT%H:%M:%SZ"),
        "time=2,symbol=1,open=3,high=4,low=5,close=6,volume=7",
    ),
    "quote_in_a_name.csv": (
        lines(WALK, "time,l'ouvert,high,low,close,volume", "%Y-%m-%dT%H:%M:%SZ"), "open=2",
    ),
    "gate.json": (
        json.dumps([[row[0], 8e7, *row[1:], "true"]
                    for row in rows_with(WALK, ["close", "high", "low", "open", "volume"])]),
        "time=1,open=6,high=4,low=5,close=3,volume=7",
    ),
    "time_at_the_end.json": (
        json.dumps([[*row[1:], row[0] + 7 * k % 50, "HOUR_1", row[0]]
                    for k, row in enumerate(rows_with(WALK, ["low", "high", "open", "close", "volume"]))]),
        "time=8,open=3,high=2,low=1,close=4,volume=5",
    ),
    "bid_and_ask.json": (
        json.dumps({"prices": bid_ask(WALK), "type": "X"}),
        "time=at,open=openPrice.bid,high=highPrice.bid,low=lowPrice.bid,close=closePrice.bid,volume=traded",
    ),
    "columns.json": (
        json.dumps({"o": {"moment": [row[0] for row in rows_with(WALK, [])]}
                    | {name: WALK[column].tolist() for name, column in zip(UNKNOWN, ORDER, strict=True)}}),
        "time=moment,open=p1,high=p2,low=p3,close=p4,volume=p5",
    ),
}  # fmt: skip


def test_rows_of_a_document_without_known_names_are_said_by_the_names_that_lead_there(tmp_path):
    data = json.dumps({"type": [1, 2], "result": {"list": bid_ask(WALK)}})
    with pytest.raises(
        DataError, match="^x.json, of which rows at 'result.list' are read: no time column .*--columns"
    ):
        load(tmp_path, data, "x.json")
    deep = "[" * 200 + data + "]" * 200
    with pytest.raises(DataError, match="^x.json holds no rows of bars"):
        load(tmp_path, deep, "x.json")


@pytest.mark.parametrize("name", GUESSED)
def test_columns_without_a_known_name_are_refused_with_a_guess_that_reads_the_file(tmp_path, name):
    data, option = GUESSED[name]
    with pytest.raises(DataError, match=r"guessed by the order of the numbers, so look it over") as reply:
        load(tmp_path, data, name)
    assert str(reply.value).endswith(f": --columns '{option}'")
    found, _ = load(tmp_path, data, name, columns=option)
    assert found.sha256 == expected(WALK, found.symbols[0]).sha256


@pytest.mark.parametrize("kind", ["parquet", "feather", "frame"])
def test_columns_of_a_table_in_memory_are_guessed_and_named_likewise(tmp_path, kind):
    frame = WALK.set_axis(UNKNOWN, axis=1).tz_localize("UTC").reset_index(names="moment")
    option = "time=moment,open=p1,high=p2,low=p3,close=p4,volume=p5"
    if kind == "frame":
        with pytest.raises(DataError, match=f'runtime__columns="{option}"$'):
            bars_of(frame, tt.settings())
        found = bars_of(frame, tt.settings(runtime__columns=option))
    else:
        getattr(frame, f"to_{kind}")(tmp_path / "x.data")
        with pytest.raises(DataError, match=f"--columns '{option}'$"):
            load_bar_file(tmp_path / "x.data")
        found = load_bar_file(tmp_path / "x.data", Selection(columns=option))
    assert found.sha256 == expected(WALK, found.symbols[0]).sha256


@pytest.mark.parametrize(
    ("columns", "quoted"),
    [
        ("opn=Open", "--columns 'opn=Open' is not ROLE=NAME with a role of time, clock, symbol, open"),
        ("open=Opn", "has no column 'Opn', which --columns names as the open: it has 'Date', 'Open', 'High', "
                     "'Low', 'Close', 'Volume'.* Did you mean 'Open'"),
        ("open=9", "has no column '9', which --columns names as the open"),
    ],
)  # fmt: skip
def test_option_that_names_no_role_or_no_column_is_refused(tmp_path, columns, quoted):
    with pytest.raises(DataError, match=quoted):
        load(tmp_path, DAYS_TEXT, columns=columns)


def test_option_names_a_clock_and_columns_whose_names_say_something_else(tmp_path):
    text = lines(HOURS, "Day,At,High,Open,Low,Close,Volume,Lot", "%Y-%m-%d,%H:%M", more=",3")
    option = "time=Day,clock=At,open=High,high=Open,volume=Lot"
    found, notes = load(tmp_path, text, columns=option, tz="UTC")
    assert found.sha256 == expected(HOURS.assign(volume=3.0)).sha256
    assert "of further columns: rules read x.other_volume" in notes


@pytest.mark.parametrize("text", ["2 janv. 2024", "2 février 2024"])
def test_month_in_another_language_is_refused_without_a_form_that_cannot_help(tmp_path, text):
    with pytest.raises(DataError, match="names of months and days are read in English alone$"):
        load(tmp_path, f"Date;Open;High;Low;Close\n{text};10;12;9;11\n3 mars 2024;10;12;9;11\n")


def test_sheet_of_another_office_is_refused_as_the_workbook_it_is(tmp_path):
    with pytest.raises(DataError, match="x.ods is a workbook: save its sheet as CSV"):
        load(tmp_path, zipped({"mimetype": "application/x", "content.xml": "<x/>"}), "x.ods")


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S EST", "%d.%m.%Y %H:%M MEZ"])
def test_word_behind_all_times_is_refused_with_the_form_that_reads_past_it(tmp_path, form):
    text = lines(
        made(pd.date_range("2024-01-20", periods=BARS, freq="h")), "time,open,high,low,close", form, ORDER[:4]
    )
    with pytest.raises(
        DataError, match=f"say which zone '{form[-3:]}' is by --tz, and --date-format '{form}'$"
    ):
        load(tmp_path, text)
    found, _ = load(tmp_path, text, tz="America/New_York", date_format=form)
    assert found.times[0] == pd.Timestamp("2024-01-20 05:00").value


@pytest.mark.parametrize(
    ("offset", "is_said"), [(-1, True), (-1_000, True), (0, False), (1, False), (-60_000, False)]
)
def test_labels_in_the_last_second_of_their_bars_are_said_to_be_ends(tmp_path, offset, is_said):
    frame = HOURS.set_axis(HOURS.index + pd.Timedelta(offset, "ms"))
    _, notes = load(tmp_path, "time,open,high,low,close,volume\n" + epochs(frame, "ms"))
    assert (
        "times lie at the end of their bars: --label close, or --columns time=NAME of their begin" in notes
    ) == is_said


def five_minutes(days: int) -> pd.DataFrame:
    """The first hour of each of some days."""
    first = pd.date_range("2024-01-15", periods=days, freq="D")
    return made(pd.DatetimeIndex([day + pd.Timedelta(minutes=5 * k) for day in first for k in range(12)]))


@pytest.mark.parametrize("form", ["%y/%m/%d %H:%M", "%y.%m.%d,%H:%M", "%d/%m/%y %H:%M", "%d.%m.%y,%H:%M"])
@pytest.mark.parametrize("days", [3, 40])
def test_year_of_two_digits_is_read_where_the_times_of_its_order_lie_most_closely(tmp_path, form, days):
    frame = five_minutes(days)
    found, notes = load(tmp_path, lines(frame, None, form), tz="UTC")
    assert found.sha256 == expected(frame).sha256
    assert f"times are read as {form.replace(',', ' ')}" in notes


@pytest.mark.parametrize("mark", ["/", "."])
def test_year_of_two_digits_within_one_day_is_refused_with_each_order(tmp_path, mark):
    forms = [f"{order} %H:%M".replace("/", mark) for order in ("%d/%m/%y", "%y/%m/%d")]
    text = lines(five_minutes(1), "time,open,high,low,close,volume", forms[1])
    options = " or ".join(f"--date-format '{form}'" for form in forms)
    with pytest.raises(DataError, match=f"can be read in two ways: say which with {options}$"):
        load(tmp_path, text, tz="UTC")


def test_day_and_year_of_two_digits_are_told_apart_in_blocks_by_symbol(tmp_path):
    frame = made(pd.date_range("2021-01-01", periods=700, freq="D"))
    rows = [lines(frame, None, f"{name},%d/%m/%y") for name in ("A", "B")]
    found, _ = load(tmp_path, "symbol,date,open,high,low,close,volume\n" + "".join(rows))
    assert found.select(("B",), None, None).sha256 == expected(frame, "B").sha256


def three_places(rows: list[str], separator: str = ",") -> str:
    """Days with the cells of some rows."""
    days = pd.date_range("2024-01-01", periods=len(rows), freq="D").strftime("%Y-%m-%d")
    cells = [separator.join([day, *row.split()]) for day, row in zip(days, rows, strict=True)]
    return "\n".join([separator.join(["time", *ORDER]), *cells]) + "\n"


POINTS = ["12.013 12.016 11.870 11.990 416", "11.990 12.020 11.980 12.000 2.516"]


@pytest.mark.parametrize(
    ("rows", "separator"),
    [
        ([row.rpartition(" ")[0] + " 5" for row in POINTS], ";"),  # whole points of an index
        (POINTS, ","),
        (["9 12 8 10 416", "10 13 9 11 2.516"], ","),
    ],
)
def test_points_that_are_likely_to_mark_thousands_are_asked_about(tmp_path, rows, separator):
    text = three_places(rows, separator)
    with pytest.raises(
        DataError, match=r"the mark of decimals cannot be told .* --decimal , or --decimal \."
    ):
        load(tmp_path, text)
    found = {mark: load(tmp_path, text, decimal=mark)[0] for mark in (",", ".")}
    assert found[","].high[0, 0] == float(rows[0].split()[1].replace(".", ""))
    assert found["."].high[0, 0] == float(rows[0].split()[1])
    assert found[","].volume[1, 0] == float(rows[1].split()[4].replace(".", ""))


@pytest.mark.parametrize(
    ("rows", "is_told"),
    [
        (["1.085 1.086 1.084 1.085 5", "110.270 110.271 110.269 110.270 6"], True),
        (["9 12 8 10 788.000", "10 13 9 11 416.000"], True),
        (["1.085 1.086 1.08 1.085 416", "1.085 1.086 1.084 1.085 2.516"], False),
        (["0.985 0.986 0.984 0.985 5", "1.085 1.086 1.084 1.085 6"], False),
    ],
)
def test_points_before_three_digits_are_read_as_decimals_with_a_note_where_they_may_be_thousands(
    tmp_path, rows, is_told
):
    found, notes = load(tmp_path, three_places(rows))
    assert found.close[:, 0].tolist() == [float(row.split()[3]) for row in rows]
    assert any("--decimal , if it marks thousands" in note for note in notes) == is_told


def test_thousands_in_few_cells_of_a_volume_are_read_and_a_slip_is_refused(tmp_path):
    days = pd.date_range("2024-01-01", periods=5, freq="D").strftime("%Y-%m-%d")
    volumes = ["178", "999", '"1,015,758"', "5", "7"]
    text = "\n".join(
        [
            "time,open,high,low,close,volume",
            *(f"{d},10.5,12,9,11,{v}" for d, v in zip(days, volumes, strict=True)),
        ]
    )
    found, _ = load(tmp_path, text)
    assert found.volume[:, 0].tolist() == [178.0, 999.0, 1_015_758.0, 5.0, 7.0]
    with pytest.raises(DataError, match="line 4: 'volume' is '1,01', not a number"):
        load(tmp_path, text.replace("1,015,758", "1,01"))


def test_price_in_two_fields_is_not_offered_as_one(tmp_path):
    def parts(price: float) -> dict[str, Any]:
        return {"currency": "eur", "units": str(int(price)), "nano": round(price % 1 * 1e9)}

    rows = [
        {"at": f"{time:%Y-%m-%dT%H:%M:%SZ}", **{name: parts(bar[name]) for name in ORDER[:4]}}
        for time, bar in WALK.iterrows()
    ]
    with pytest.raises(
        DataError, match="'open.units' and 'open.nano', which no option joins: write one$"
    ) as reply:
        load(tmp_path, json.dumps({"candles": rows}), "x.json")
    assert "--columns" not in str(reply.value)


@pytest.mark.parametrize(("name", "is_end"), [("closeTime", True), ("end_at", True), ("moment", False)])
def test_guessed_time_that_is_called_an_end_suggests_its_label(tmp_path, name, is_end):
    frame = WALK.set_axis(UNKNOWN, axis=1)
    text = lines(frame, f"{name},p1,p2,p3,p4,p5", "%Y-%m-%dT%H:%M:%SZ", UNKNOWN)
    with pytest.raises(DataError, match="--columns") as reply:
        load(tmp_path, text)
    option = f"--columns 'time={name},open=p1,high=p2,low=p3,close=p4,volume=p5'"
    assert str(reply.value).endswith(option + (" --label close" if is_end else ""))


def test_rows_within_a_list_of_one_object_are_read_by_the_line_that_the_refusal_gives(tmp_path):
    rows = [
        {"begins_at": f"{time:%Y-%m-%dT%H:%M:%SZ}", "volume": bar.volume}
        | {f"{name}_price": bar[name] for name in ORDER[:4]}
        for time, bar in WALK.iterrows()
    ]
    blocks = [{"symbol": name, "bounds": "24_7", "historicals": rows} for name in ("A", "B")]
    option = "time=begins_at,open=open_price,high=high_price,low=low_price,close=close_price"
    for count in (1, 2):
        data = json.dumps({"results": blocks[:count]})
        with pytest.raises(DataError, match=f"--columns '{option}'$"):
            load(tmp_path, data, "x.json")
        found, _ = load(tmp_path, data, "x.json", columns=option)
        assert found.symbols == ("A", "B")[:count]
        assert found.select(("A",), None, None).sha256 == expected(WALK, "A").sha256
    unknown = json.loads(data.replace("_price", "_x"))
    unknown["results"][1]["historicals"] += [1]
    with pytest.raises(DataError, match="rows at 'results.0.historicals' are read") as reply:
        load(tmp_path, json.dumps(unknown), "x.json")
    option = str(reply.value).partition("--columns '")[2].rstrip("'")
    assert load(tmp_path, json.dumps(unknown), "x.json", columns=option)[0].shape == (BARS, 1)


@pytest.mark.parametrize(
    ("cell", "word"), [("110,27 EUR", "EUR"), ("110.27 USD", "USD"), ("1,5 Mio", "Mio"), ("3.5%", "%")]
)
def test_number_with_a_word_behind_it_is_refused_with_what_mends_it(tmp_path, cell, word):
    text = f"Date;Open;High;Low;Close;Volume\n2024-01-02;10;12;9;11;5\n2024-01-03;10;12;9;11;{cell}\n"
    for decimal in (None, ",", "."):
        with pytest.raises(DataError, match=f"line 3: 'Volume' is '{cell}': write a number in full, without"):
            load(tmp_path, text, decimal=decimal)
    with pytest.raises(DataError, match="write a number in full") as reply:
        load(
            tmp_path,
            text.replace(";10;12;9;11;", f";110,270 {word};112,270 {word};9,270 {word};11,270 {word};"),
        )
    assert "--decimal" not in str(reply.value)


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_rows_that_are_wholly_in_quotes_are_read(tmp_path, separator, begin):
    text = lines(
        DAYS, "Date,Open,High,Low,Close,Volume".replace(",", separator), "%Y-%m-%d", separator=separator
    )
    whole = "\r\n".join(f'"{line}"' for line in text.splitlines()) + "\r\n"
    assert load(tmp_path, begin + whole)[0].sha256 == expected(DAYS).sha256
    cells = text.replace(separator, f'"{separator}"').replace("\n", '"\n"').rstrip('"')
    assert load(tmp_path, begin + '"' + cells)[0].sha256 == expected(DAYS).sha256


def test_decimal_commas_without_quotes_are_refused_with_what_makes_them_cells(tmp_path):
    text = "Date,Open,High,Low,Close,Volume\n2024-01-02,110,27,112,31,109,12,111,40,5\n"
    with pytest.raises(
        DataError, match="has 10 cells in a row for 6 names, as by decimal commas without quotes"
    ):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("times", "quoted"),
    [
        (["2024W01", "2024W02"], "or give the form of the times by --date-format 'FORM'$"),
        (["25/01/2024", "26/01/2024", "2024-W05"], "or as the others, which are read as %d/%m/%Y$"),
    ],
)
def test_unreadable_time_is_refused_without_a_form_that_cannot_read_it(tmp_path, times, quoted):
    text = "\n".join(["Date,Open,High,Low,Close", *(f"{time},10,12,9,11" for time in times)])
    with pytest.raises(DataError, match=quoted):
        load(tmp_path, text)


TICKS_1970, FILETIMES_1970 = 621_355_968 * 10**9, 116_444_736 * 10**9  # of 100 ns, at 1970-01-01


@pytest.mark.parametrize("first", [TICKS_1970, FILETIMES_1970])
@pytest.mark.parametrize("freq", ["5min", "h", "4h", "D"])
def test_numbers_of_another_kind_are_no_times_of_another_decade(tmp_path, first, freq):
    frame = made(pd.date_range("2024-01-15", periods=BARS, freq=freq))
    hundreds = first + pd.DatetimeIndex(frame.index).as_unit("ns").asi8 // 100
    rows = [",".join(map(str, [t, *bar])) for t, bar in zip(hundreds, frame.values.tolist(), strict=True)]
    with pytest.raises(
        DataError, match="are numbers of a kind that is not known, as ns since 1970 they begin at 19"
    ):
        load(tmp_path, "\n".join(["time,open,high,low,close,volume", *rows]))
    nanoseconds = pd.DatetimeIndex(frame.index).as_unit("ns").asi8
    rows = [",".join(map(str, [t, *bar])) for t, bar in zip(nanoseconds, frame.values.tolist(), strict=True)]
    text = "\n".join(["time,open,high,low,close,volume", *rows])
    assert load(tmp_path, text)[0].sha256 == expected(frame).sha256


@pytest.mark.parametrize("freq", ["min", "5min", "h", "D"])
def test_dates_without_separators_and_with_a_short_year_are_no_seconds(tmp_path, freq):
    frame = made(pd.date_range("2024-01-15", periods=BARS, freq=freq))
    text = lines(frame, "time,open,high,low,close,volume", "%y%m%d%H%M")
    with pytest.raises(DataError, match="give the form of the times by --date-format '%y%m%d%H%M'$"):
        load(tmp_path, text)
    found, _ = load(tmp_path, text, date_format="%y%m%d%H%M", tz="UTC")
    assert found.sha256 == expected(frame).sha256
    pd.read_csv(io.StringIO(text)).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match="2401150000 reads as a date without separators"):
        load_bar_file(tmp_path / "x.parquet")
