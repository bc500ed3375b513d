import sys

import pytest

from schemas.errors import ConfigError, DataError
from schemas.settings import DataSettings, RuntimeSettings, Settings
from tests.trading_core.market import random_series
from tests.worker.feeds.growing import HEADER, line
from worker.feeds.csv.tail import CsvTailFeed
from worker.feeds.opening import open_feed, speed_of
from worker.feeds.replay import ReplayFeed


def settings(data=None, symbols=(), timeframe=None, **runtime):
    return Settings(
        data=DataSettings(symbols=symbols, timeframe=timeframe), runtime=RuntimeSettings(data=data, **runtime)
    )


def csv_file(folder, text, name="bars.csv"):
    path = folder / name
    path.write_text(text)
    return str(path)


def wide(*symbols):
    columns = [
        f"{symbol}_{field}" for symbol in symbols for field in ("open", "high", "low", "close", "volume")
    ]
    return f"time,{','.join(columns)}\n"


def test_replay_without_a_file_has_the_embedded_bars():
    feed = open_feed("replay", settings(symbols=("AAPL",), start="2012-01-01", end="2012-02-01"))
    assert isinstance(feed, ReplayFeed)
    assert (feed.name, feed.symbols, feed.timeframe, feed.lock_step) == ("replay", ("AAPL",), "1d", True)


def test_replay_of_bars_that_are_loaded_loads_nothing():
    series = random_series(1, bars=5, symbols=2)
    assert open_feed("replay", settings(data="nowhere.csv"), series=series).symbols == series.symbols


def test_csv_takes_symbols_and_spacing_from_the_file(tmp_path):
    text = HEADER + "".join(line(number, symbol) for number in range(3) for symbol in "BA") + "broken\n"
    feed = open_feed("csv", settings(csv_file(tmp_path, text)))
    assert isinstance(feed, CsvTailFeed)
    assert (feed.name, feed.symbols, feed.timeframe, feed.label) == ("csv", ("A", "B"), "1m", "open")


def test_csv_of_one_symbol_is_named_by_its_file_or_by_the_operator(tmp_path):
    path = csv_file(tmp_path, "time,open,high,low,close,volume\n", "eurusd.csv")
    assert open_feed("csv", settings(path, timeframe="1h")).symbols == ("EURUSD",)
    assert open_feed("csv", settings(path, ("X",), "1h")).symbols == ("X",)


def test_csv_of_columns_by_symbol_has_the_symbols_of_its_header(tmp_path):
    path = csv_file(tmp_path, wide("B", "A"))
    assert open_feed("csv", settings(path, timeframe="1d")).symbols == ("A", "B")
    assert open_feed("csv", settings(path, ("B",), "1d")).symbols == ("B",)


@pytest.mark.parametrize(
    ("text", "symbols", "timeframe", "message"),
    [
        ("", (), None, "has no header yet"),
        ("time,symbol\n", (), None, "no open, high, low, close column"),
        (HEADER, (), "1m", "name its symbols with --symbols"),
        (HEADER, ("A",), None, "give --timeframe, for example 1m"),
        (
            HEADER + line(0) + line(1),
            (),
            "1h",
            "--timeframe 1h does not match bars.csv, whose usual spacing is 1m",
        ),
        (HEADER, ("A",), "7m", "--timeframe '7m' is not one of"),
        ("time,open,high,low,close,volume\n", ("A", "B"), "1m", "has no symbol column"),
        (wide("AAPL"), ("AAPLE",), "1m", "Did you mean 'AAPL'"),
        ("x" * 70_000, (), None, "longer than 65536 bytes"),
    ],
)
def test_csv_that_cannot_be_followed_is_refused_with_the_next_step(
    tmp_path, text, symbols, timeframe, message
):
    with pytest.raises(DataError, match=message):
        open_feed("csv", settings(csv_file(tmp_path, text), symbols, timeframe))


@pytest.mark.parametrize("name", ["bars.csv.gz", "bars.parquet", "."])
def test_files_that_do_not_grow_are_refused(tmp_path, name):
    with pytest.raises(DataError, match="one plain CSV file that grows"):
        open_feed("csv", settings(str(tmp_path / name)))


def test_csv_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        open_feed("csv", settings(str(tmp_path / "bars.csv")))


@pytest.mark.parametrize(
    ("text", "made", "message"),
    [
        ("ccxtt:kraken", {}, "'ccxtt:kraken' is not one of replay, csv, ccxt:NAME"),
        ("replai", {}, "Did you mean 'replay'"),
        ("replay:x", {}, "is not one of"),
        ("", {}, "is not one of"),
        ("csv", {}, "name it with --data FILE"),
        ("csv", {"data": "a.csv", "start": "2012-01-01"}, "leave them out with --feed csv"),
        ("csv", {"data": "a.csv", "columns": "open=2"}, "--columns is for recorded bars"),
        ("ccxt", {}, "write it like ccxt:kraken"),
        ("ccxt:kraken", {"data": "a.csv"}, "--data is not used"),
        ("ccxt:kraken", {"symbols": ("BTC/USDT",)}, "needs --symbols and --timeframe"),
    ],
)
def test_feed_that_cannot_be_opened_is_refused_with_the_next_step(text, made, message):
    with pytest.raises(ConfigError, match=message):
        open_feed(text, settings(**made))


def test_exchange_without_its_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ccxt.async_support", None)
    with pytest.raises(
        ConfigError, match=r"needs ccxt, which is not installed: run pip install 'thinktwice\[live\]'"
    ):
        open_feed("ccxt:kraken", settings(symbols=("BTC/USDT",), timeframe="1m"))


def test_exchange_is_opened_with_the_symbols_and_the_timeframe_that_are_asked_for(monkeypatch):
    questions: list[object] = []
    monkeypatch.setattr("worker.feeds.ccxt.feed.CcxtFeed", lambda *words: questions.extend(words))
    made = settings(symbols=("BTC/USDT",), timeframe="1m")
    open_feed("ccxt:kraken", made)
    assert questions == ["kraken", ("BTC/USDT",), "1m", made.runtime.feed]


def test_exchange_has_no_bars_labelled_by_their_close():
    made = Settings(data=DataSettings(symbols=("BTC/USDT",), timeframe="1m", label="close"))
    with pytest.raises(ConfigError, match="an exchange labels its bars by their open"):
        open_feed("ccxt:kraken", made)


def test_speed_is_for_replays():
    with pytest.raises(ConfigError, match="--speed 60 is for --feed replay"):
        open_feed("csv", settings(data="a.csv"), speed=60.0)


@pytest.mark.parametrize(("text", "speed"), [("max", None), (" MAX ", None), ("60", 60.0), ("0.5", 0.5)])
def test_speed_is_a_number_or_max(text, speed):
    assert speed_of(text) == speed


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "fast", ""])
def test_speed_that_is_none_is_refused(text):
    with pytest.raises(ConfigError, match="neither max nor a number above zero"):
        speed_of(text)
