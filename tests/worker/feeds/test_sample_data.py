import gzip
import hashlib

import numpy as np
import pytest

from schemas.errors import DataError
from tools.build_sample_data import notice
from worker.feeds import sample_data
from worker.feeds.files.files import load_bar_file
from worker.feeds.sample_data import CONTENT_SHA256, DATA_FILE, NOTICE_FILE, load_embedded_bars
from worker.feeds.sample_data.worlds import make_world

DAY_NS = 86_400 * 10**9


def test_embedded_bars_have_the_recorded_counts_and_range():
    series = load_embedded_bars()
    assert series.symbols == ("AAPL", "FB", "GOOG", "IBM", "MSFT")
    assert series.present.sum(axis=0).tolist() == [3270, 196, 2148, 3270, 3270]
    assert (series.timeframe, series.label, series.bar_count) == ("1d", "open", 12154)
    assert not (series.times % DAY_NS).any()
    assert [str(np.datetime64(int(series.times[k]), "ns"))[:10] for k in (0, -1)] == [
        "2000-03-01",
        "2013-03-01",
    ]


def test_embedded_bars_are_good_bars():
    series = load_embedded_bars()
    here = series.present
    low, high = series.low[here], series.high[here]
    for name in ("open", "close"):
        assert ((low <= getattr(series, name)[here]) & (getattr(series, name)[here] <= high)).all()
    assert (low > 0).all()
    assert (series.volume[here] > 0).all()


@pytest.mark.parametrize(
    ("symbol", "before", "split_day"),
    [
        ("AAPL", "2000-06-20", "2000-06-21"),
        ("AAPL", "2005-02-25", "2005-02-28"),
        ("MSFT", "2003-02-14", "2003-02-18"),
    ],
)
def test_split_days_show_no_jump_after_the_adjustment(symbol, before, split_day):
    close = load_embedded_bars([symbol], start=before, end=split_day).close[:, 0]
    assert close.size == 2
    assert abs(close[1] / close[0] - 1.0) < 0.10


def test_no_session_moves_as_far_as_a_split_would():
    # The largest real moves: AAPL -52 % (2000-09-29), AAPL -21 % and MSFT -16 % (2000), GOOG +20 % (2008).
    series = load_embedded_bars()
    for s, symbol in enumerate(series.symbols):
        close = series.close[series.present[:, s], s]
        jumps = np.flatnonzero(np.abs(np.diff(np.log(close))) > 0.4)
        assert jumps.size == (1 if symbol == "AAPL" else 0)


def test_stored_content_hash_stands_in_the_loader_and_the_notice():
    content = gzip.decompress(DATA_FILE.read_bytes())
    assert hashlib.sha256(content).hexdigest() == CONTENT_SHA256
    assert NOTICE_FILE.read_text("utf-8") == notice(CONTENT_SHA256)


def test_embedded_file_is_readable_as_an_operators_file():
    assert load_bar_file(DATA_FILE).sha256 == load_embedded_bars().sha256


def test_symbols_and_range_select_embedded_bars():
    series = load_embedded_bars(["IBM", "AAPL"], start="2012-01-01", end="2012-01-31")
    assert (series.symbols, series.shape) == (("AAPL", "IBM"), (20, 2))
    with pytest.raises(DataError, match="unknown symbol 'APPL'.*Did you mean 'AAPL'"):
        load_embedded_bars(["APPL"])


@pytest.mark.parametrize("content", [gzip.compress(b"time,open\n", mtime=0), b"\x1f\x8bbroken", None])
def test_damaged_embedded_file_is_refused(tmp_path, monkeypatch, content):
    path = tmp_path / "daily_bars.csv.gz"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(sample_data, "DATA_FILE", path)
    with pytest.raises(DataError, match="reinstall thinktwice"):
        load_embedded_bars()


@pytest.mark.parametrize(
    ("symbols", "first", "last"), [(3, "W00", "W02"), (100, "W00", "W99"), (300, "W000", "W299")]
)
def test_symbols_of_a_world_ascend_however_many_there_are(symbols, first, last):
    names = make_world("reverting", seed=1, bars=20, symbols=symbols).symbols
    assert (names[0], names[-1], len(names)) == (first, last, symbols)
    assert list(names) == sorted(names)
