"""The bars a run uses when none are given: five stocks, daily, 2000 to 2013, public domain, adjusted.

Source, licence, hashes and limits stand in the NOTICE beside the data; `make data` rebuilds both.
"""

import csv
import gzip
import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from schemas.errors import DataError
from trading_core.bars import COLUMNS, BarSeries
from trading_core.resampling import resample
from worker.feeds.time_range import Moment, range_ns

DATA_FILE = Path(__file__).with_name("daily_bars.csv.gz")
NOTICE_FILE = Path(__file__).with_name("NOTICE")
CONTENT_SHA256 = "62219a52bc6dc44188551d14bb5b9d230f6cf9fb0ec384bd8045d9474ccf0745"


def load_embedded_bars(
    symbols: Sequence[str] | None = None,
    start: Moment | None = None,
    end: Moment | None = None,
    zone: str = "UTC",
    longer: str | None = None,
    tell: Callable[[str], None] = lambda note: None,
) -> BarSeries:
    """Embedded bars of AAPL, FB, GOOG, IBM and MSFT, selected as in `Selection`.

    A label is the session date at 00:00 UTC, the open of its bar.

    Raises:
        DataError: an unknown symbol, an unusable range, or an installed file that is not the published one.
    """
    _check_content()
    bars = replace(_all_bars(DATA_FILE), zone=zone) if zone != "UTC" else _all_bars(DATA_FILE)
    if longer is not None:
        bars = resample(bars, longer, tell)
    return bars.select(tuple(symbols or ()) or None, *range_ns(start, end))


@cache
def _all_bars(path: Path) -> BarSeries:
    """Every bar of the published file: parsed once, however often a process selects some of them.

    Its form is known, so the libraries that read files of others, half a second of imports, are not loaded.
    """
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    labels = np.array([row[0].removesuffix("Z") for row in rows], dtype="datetime64[ns]").astype(np.int64)
    times, t = np.unique(labels, return_inverse=True)
    symbols, s = np.unique([row[1] for row in rows], return_inverse=True)
    shape = (times.size, symbols.size)
    tables, present = np.full((len(COLUMNS), *shape), np.nan), np.zeros(shape, dtype=np.bool_)
    tables[:, t, s] = np.array([row[2:] for row in rows], dtype=np.float64).T
    present[t, s] = True
    opened, high, low, close, volume = tables
    names = tuple(symbols.tolist())
    return BarSeries(times, names, "1d", "open", opened, high, low, close, volume, present)


def _check_content() -> None:
    try:
        found = hashlib.sha256(gzip.decompress(DATA_FILE.read_bytes())).hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"the embedded bars cannot be read ({error}): reinstall thinktwice") from error
    if found != CONTENT_SHA256:
        raise DataError(f"the embedded bars have sha256 {found}, not {CONTENT_SHA256}: reinstall thinktwice")
