"""Yahoo and Stooq, against a server on loopback that answers as they do."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from schemas.settings.live import ExchangeSettings
from services.feeds.raw_bar import RawBar
from worker.feeds.files.files import load_bar_file
from worker.feeds.history.public_source import FORMATS, PublicSource

JANUARY = [datetime(2024, 1, day, tzinfo=UTC) for day in range(2, 31)]
DAYS = [day for day in JANUARY if day.weekday() < 5]
OPENING_S = 52_200  # 14:30 UTC, as Yahoo labels sessions in New York
LOW_HIGHS = json.dumps(
    {
        "chart": {
            "result": [
                {
                    "meta": {"gmtoffset": -18_000},
                    "timestamp": [int(DAYS[0].timestamp()) + OPENING_S],
                    "indicators": {
                        "quote": [{"open": [5], "high": [4], "low": [6], "close": [5], "volume": [1]}]
                    },
                }
            ]
        }
    }
)
YAHOO = ("data", "fetch", "yahoo", "AAPL", "--from", "2024-01-01", "--to", "2024-01-30", "--out", "bars.csv")


def prices(day: datetime) -> tuple[float, float, float, float, float]:
    return 10.0 + day.day, 12.0 + day.day, 9.0 + day.day, 11.0 + day.day, 100.0


class Site(BaseHTTPRequestHandler):
    """What both answer; `status` and `body` stand for what goes wrong."""

    status, body = 200, ""
    requested: list[str] = []

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        type(self).requested.append(self.path)
        text = self.body or (self.yahoo(query) if parts.path.startswith("/v8/") else self.stooq(query))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def yahoo(self, query: dict[str, str]) -> str:
        first, last = int(query["period1"]), int(query["period2"])
        days = [day for day in DAYS if first <= day.timestamp() + OPENING_S <= last]
        columns = dict(
            zip(
                ("open", "high", "low", "close", "volume"),
                zip(*map(prices, days), strict=True),
                strict=bool(days),
            )
        )
        stamps = [int(day.timestamp()) + OPENING_S for day in days]
        quotes = {name: [*map(int, values), None] for name, values in columns.items()}  # as it writes them
        result = {
            "meta": {"symbol": "AAPL", "gmtoffset": -18_000},
            "timestamp": [*stamps, stamps[-1] + 86_400] if stamps else [],
            "indicators": {"quote": [quotes if stamps else {}]},
        }
        return json.dumps({"chart": {"result": [result], "error": None}})

    def stooq(self, query: dict[str, str]) -> str:
        days = [day for day in DAYS if query["d1"] <= day.strftime("%Y%m%d") <= query["d2"]]
        rows = [",".join([f"{day:%Y-%m-%d}", *map(str, prices(day))]) for day in days]
        return "\n".join(["Date,Open,High,Low,Close,Volume", *rows]) if rows else "No data"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def served(**wrong: object) -> Iterator[tuple[str, list[str]]]:
    site: type[Site] = type("Site", (Site,), {"requested": [], **wrong})
    server = ThreadingHTTPServer(("127.0.0.1", 0), site)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", site.requested
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("source", ["yahoo", "stooq"])
def test_daily_bars_of_a_source_are_fetched_into_a_file_and_weekends_are_no_gaps(shell, source) -> None:
    words = [word.replace("yahoo", source) for word in YAHOO]
    with served() as (url, request):
        done = shell.run(*words, "--json", "--rest-url", url)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["ok"], document["timeframe"], document["bars"]) == (True, "1d", len(DAYS))
    assert document["symbols"]["AAPL"]["missing_bars"] == 0
    bars = load_bar_file("bars.csv")
    assert bars.times.tolist() == [int(day.timestamp()) * 10**9 for day in DAYS]
    assert bars.close[:, 0].tolist() == [prices(day)[3] for day in DAYS]
    assert len(request) < 6


@pytest.mark.parametrize(
    ("source", "wrong", "quoted"),
    [
        ("yahoo", {"status": 404, "body": '{"chart": {"error": {"description": "delisted"}}}'},
         "yahoo has no 'AAPL': {'description': 'delisted'}"),
        ("yahoo", {"body": LOW_HIGHS},
         "yahoo: no bar of AAPL can be used: at 2024-01-02T00:00:00Z high is below low; choose"),
        ("yahoo", {"body": "<html>"}, "yahoo: bars of AAPL: malformed"),
        ("yahoo", {"status": 429, "body": "slowly"}, "yahoo: bars of AAPL: the answer is 429"),
        ("yahoo", {"status": 503, "body": "later"}, "yahoo: bars of AAPL: the answer is 503"),
        ("stooq", {"body": "Exceeded the daily hits limit"},
         "'Exceeded the daily hits limit': download the file of AAPL there and name it with --data"),
        ("stooq", {"body": "No data"}, "stooq has no bars of AAPL"),
    ],
)  # fmt: skip
def test_answer_without_bars_is_told_in_one_line(shell, monkeypatch, source, wrong, quoted) -> None:
    monkeypatch.setenv("THINKTWICE_RUNTIME__FEED__EXCHANGE__BACKOFF_MAX_S", "0.001")
    words = [word.replace("yahoo", source) for word in YAHOO]
    with served(**wrong) as (url, _):
        done = shell.run(*words, "--rest-url", url)
    assert done.exit_code in (1, 2)
    assert quoted in done.stderr.splitlines()[-1]
    assert not Path("bars.csv").exists()


@pytest.mark.parametrize(
    ("meta", "day"), [({"exchangeTimezoneName": "Europe/London"}, 9), ({}, 8)], ids=["zone", "offset alone"]
)
def test_session_that_begins_at_midnight_of_its_zone_is_labelled_by_that_day_in_summer_too(meta, day) -> None:
    opening = int(datetime(2024, 7, 8, 23, tzinfo=UTC).timestamp())
    quote = {name: [1] for name in ("open", "high", "low", "close", "volume")}
    result = {"meta": {"gmtoffset": 0, **meta}, "timestamp": [opening], "indicators": {"quote": [quote]}}
    rows = FORMATS["yahoo"].read("EURUSD=X", json.dumps({"chart": {"result": [result]}}))
    assert rows == [(int(datetime(2024, 7, day, tzinfo=UTC).timestamp()), [1.0] * 5)]


def test_other_timeframe_than_a_day_is_refused_before_anything_is_asked(shell) -> None:
    with served() as (url, questions):
        text = shell.complaint(*YAHOO, "--timeframe", "1h", "--rest-url", url)
    assert "yahoo has no bars of '1h' here: it offers 1d" in text
    assert questions == []


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("stooq", "Date,Open,High,Low,Close\n2024-01-02,5,6,4,5"),
        (
            "yahoo",
            LOW_HIGHS.replace('"high": [4], "low": [6]', '"high": [6], "low": [4]').replace(
                "[1]}", "[null]}"
            ),
        ),
        (
            "yahoo",
            LOW_HIGHS.replace('"high": [4], "low": [6]', '"high": [6], "low": [4]').replace(
                ', "volume": [1]', ""
            ),
        ),
    ],
)
def test_row_without_a_volume_is_kept_and_its_volume_is_unknown(source, text):
    [(_, values)] = FORMATS[source].read("AAPL", text)
    assert values == [5.0, 6.0, 4.0, 5.0, None]
    with served(body=text) as (url, request):
        made = PublicSource(source, ExchangeSettings(rest_url=url))
        [bar] = asyncio.run(_bars_of(made))
    assert (bar.bar.close, bar.bar.volume, len(request)) == (5.0, None, 1)


async def _bars_of(source: PublicSource) -> list[RawBar]:
    found = await source.bars("AAPL", "1d", int(DAYS[0].timestamp()) * 10**9, 10)
    await source.close()
    return found


def test_unknown_volume_of_a_fetched_row_is_an_empty_cell(shell):
    rows = "".join(f"\n{day:%Y-%m-%d},5,6,4,5" for day in DAYS)
    with served(body=f"Date,Open,High,Low,Close{rows}") as (url, _):
        done = shell.run(*(word.replace("yahoo", "stooq") for word in YAHOO), "--rest-url", url)
    assert done.exit_code == 0, done.output
    assert Path("bars.csv").read_text().splitlines()[1].endswith(",AAPL,5.0,6.0,4.0,5.0,")
