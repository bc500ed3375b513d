"""Rebuilds the embedded daily bars and their NOTICE from the bokeh-sampledata package.

Run by `make data`. The same source gives the same content, so a rebuild changes nothing; a source that is not
the recorded one is refused. The loader's own hash is compared last, so data and code cannot drift apart.
"""

import csv
import gzip
import hashlib
import importlib.resources
import io
import sys

from schemas.errors import DataError
from worker.feeds.sample_data import CONTENT_SHA256, DATA_FILE, NOTICE_FILE

SOURCE_FILE = "stocks.csv.gz"
SOURCE_SHA256 = "5abadf99b2d394f920120a27de6f0df129859d71d4cfb0bf661bcc99446ab1fd"
SOURCE_CONTENT_SHA256 = "e73fe05d106b7da1abe8f947264c514afd02cef5c9db4864b9437c84d6bd6069"
PRICES = ("Open", "High", "Low", "Close")
HEADER = ("time", "symbol", "open", "high", "low", "close", "volume")

NOTICE = """\
Embedded daily bars: daily_bars.csv.gz
======================================

Content     Daily open, high, low, close and volume of AAPL, IBM and MSFT (3270 sessions each,
            2000-03-01 to 2013-03-01), GOOG (2148, from 2004-08-19) and FB (196, from 2012-05-18);
            12154 bars. A time is the session date at 00:00 UTC and labels the open of its bar.

Source      Quandl WIKI Prices, an end-of-day database, as packaged in bokeh-sampledata 2026.1
            ({source_file}, extracted from an archived copy of the database).
Licence     Public domain: the publisher's notice declared the WIKI data public domain and allowed
            copying and redistribution. The values come as the source supplied them, without any
            warranty.

Original    sha256 of {source_file}: {source_sha256}
            sha256 uncompressed:    {source_content_sha256}
This file   sha256 uncompressed:    {content_sha256}

Change      Open, high, low and close of each row are multiplied by adjusted close / close of that
            row in float64 and written with six decimals. Both steps keep the order of numbers, so
            low <= open, close <= high holds as in the source. Volume is unchanged (raw shares). The
            columns were renamed, the adjusted close is left out because the scaled close equals it
            to six decimals, rows are ordered by symbol and time.

Splits      The raw prices jump on these days, the adjusted ones do not: AAPL 2000-06-21 and
            2005-02-28 (2 for 1), MSFT 2003-02-18 (2 for 1). Volume is raw, so it jumps there.

Limits      The source adjusts for splits and dividends up to its own end in 2018, so an old price
            level carries later dividends and splits: levels are not what was traded, and only
            scale-free quantities (returns, ratios, ranks, R multiples) mean something. GOOG is the
            pre-2014 history that the source files under GOOGL. Five surviving large companies are
            no sample of a market: what is measured here shows that the program works, never that a
            strategy earns.

Rebuild     make data
"""


def main() -> int:
    """Write data and NOTICE; exit 1 when the loader still expects other content."""
    content = adjusted_csv(source_rows())
    digest = hashlib.sha256(content).hexdigest()
    DATA_FILE.write_bytes(gzip.compress(content, compresslevel=9, mtime=0))
    NOTICE_FILE.write_text(notice(digest), "utf-8")
    print(f"{DATA_FILE.name}: {len(content.splitlines()) - 1} bars, content sha256 {digest}")
    if digest != CONTENT_SHA256:
        print(f"set CONTENT_SHA256 in {DATA_FILE.parent.name}/__init__.py to {digest}", file=sys.stderr)
        return 1
    return 0


def source_rows() -> list[dict[str, str]]:
    """The rows of the packaged file, after its hash was found as recorded.

    Raises:
        DataError: the package holds another file.
    """
    packed = importlib.resources.files("bokeh_sampledata").joinpath("_data", SOURCE_FILE).read_bytes()
    found = hashlib.sha256(packed).hexdigest()
    if found != SOURCE_SHA256:
        raise DataError(f"{SOURCE_FILE} has sha256 {found}, not {SOURCE_SHA256}: use bokeh-sampledata 2026.1")
    return list(csv.DictReader(io.StringIO(gzip.decompress(packed).decode("utf-8"))))


def adjusted_csv(rows: list[dict[str, str]]) -> bytes:
    """CSV text of the rows with prices scaled to the adjusted close, ordered by symbol and time."""
    lines = [",".join(HEADER)]
    for row in sorted(rows, key=lambda row: (row["Ticker"], row["Date"])):
        factor = float(row["Adj Close"]) / float(row["Close"])
        prices = [f"{float(row[name]) * factor:.6f}" for name in PRICES]
        lines.append(",".join([f"{row['Date']}T00:00:00Z", row["Ticker"], *prices, row["Volume"]]))
    return ("\n".join(lines) + "\n").encode("utf-8")


def notice(content_sha256: str) -> str:
    """The NOTICE that goes with content of this hash."""
    return NOTICE.format(
        source_file=SOURCE_FILE,
        source_sha256=SOURCE_SHA256,
        source_content_sha256=SOURCE_CONTENT_SHA256,
        content_sha256=content_sha256,
    )


if __name__ == "__main__":
    sys.exit(main())
