"""Fetching history into a bar file: paging, patience, resuming, examining, reading again."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from schemas.errors import ConfigError, DataError, FeedError
from schemas.settings.live import ExchangeSettings
from services.feeds.raw_bar import RawBar
from tests.exchange import faults
from tests.exchange.server import MINUTE_MS, START_MS, ExchangeServer, candle
from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt.exchange import PublicExchange
from worker.feeds.ccxt.history import Page, Patience
from worker.feeds.files.files import load_bar_file
from worker.feeds.history.fetch import FetchRequest, FetchShell, fetch
from worker.feeds.history.fetch_partial import PartialFile

FIRST_MS = START_MS - 99 * MINUTE_MS
FUTURE_MS = 1_999_999_980_000
START = "2023-11-14T20:35:00"


def exchange(**options) -> ExchangeServer:
    server = ExchangeServer(page=10, now_ms=START_MS + 90_000, **options)
    for market in server.symbols:
        server.fill(market, "1m", FIRST_MS, 102)
    return server


class Desk:
    """One place to fetch to, and what was told and waited meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.waits: list[float] = []
        self.quoted: list[str] = []
        self.progress: list[tuple[int, int]] = []

    async def run(self, server: ExchangeServer, *symbols: str, name: str = "bars.csv", **other):
        settings = ExchangeSettings(
            rest_url=server.rest_url, request_interval_ms=0.0, markets=("spot",), request_timeout_s=2.0
        )
        patience = Patience(
            attempts=3, sleep=self._sleep, tell=lambda error, s: self.quoted.append(str(error))
        )
        exchange, wall = other.pop("exchange", "binance"), other.pop("wall", time.time_ns)
        query = {"timeframe": "1m", "start": START, "end": None, "out": self.folder / name} | other
        request = FetchRequest(exchange, symbols or ("BTC/USDT",), **query)
        shell = FetchShell(settings, patience, lambda done, of: self.progress.append((done, of)), wall)
        return await fetch(request, shell)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def fetched(desk: Desk, server: ExchangeServer, *symbols: str, **other):
    async def run():
        async with server:
            return await desk.run(server, *symbols, **other)

    return asyncio.run(run())


@pytest.mark.parametrize("name", ["bars.csv", "bars.csv.gz", "bars.parquet"])
def test_fetch_writes_what_data_reads_bar_for_bar(desk: Desk, name: str) -> None:
    server = exchange()
    found = fetched(desk, server, "ETH/USDT", "BTC/USDT", name=name)
    series = load_bar_file(desk.folder / name)
    assert found["ok"]
    assert not any("fapi" in path for path, _ in server.requests), "only spot markets were wanted"
    assert found["bars"] == series.bar_count == 200
    assert series.symbols == ("BTC/USDT", "ETH/USDT")
    assert (series.timeframe, series.label) == ("1m", "open")
    assert series.times.tolist() == [(FIRST_MS + k * MINUTE_MS) * 10**6 for k in range(100)]
    columns = (series.open, series.high, series.low, series.close, series.volume)
    for k in range(100):
        assert tuple(float(column[k, 0]) for column in columns) == candle(k)
    assert [path.name for path in desk.folder.iterdir()] == [name]
    assert desk.progress[0] == (0, 200)
    assert desk.progress[-1] == (200, 200)


def test_fetch_takes_no_bar_that_is_running_or_outside_the_range(desk: Desk) -> None:
    found = fetched(desk, exchange(), start="2023-11-14T21:00:30", end="2023-11-14T21:09:59.5")
    assert (found["from"], found["to"]) == ("2023-11-14T21:01:00Z", "2023-11-14T21:09:00Z")
    assert found["bars"] == 9
    desk.folder.joinpath("bars.csv").unlink()
    newest = fetched(desk, exchange(), end="2030-01-01")
    assert newest["to"] == "2023-11-14T22:14:00Z"


def test_fetch_interrupted_goes_on_where_it_stopped_and_gives_the_same_file(desk: Desk) -> None:
    async def interrupted() -> None:
        server = exchange()
        async with server:
            server.fail("klines", *[faults.answer(page(server, k)) for k in range(3)])
            server.faults["klines"].extend([faults.server_error()] * 3)
            with pytest.raises(FeedError, match=r"unavailable .*kept in '.*bars\.csv\.part': run the same"):
                await desk.run(server)

    def page(server: ExchangeServer, k: int) -> list[list[object]]:
        return [[FIRST_MS + n * MINUTE_MS, *map(str, candle(n)), 0] for n in range(10 * k, 10 * k + 10)]

    asyncio.run(interrupted())
    partial = desk.folder / "bars.csv.part"
    partial.write_bytes(partial.read_bytes()[:-40])  # a crash while the third page was written
    server = exchange()
    found = fetched(desk, server)
    assert found["resumed_bars"] == 20
    first_asked = next(query for path, query in server.requests if path.endswith("klines"))
    assert int(first_asked["startTime"]) == FIRST_MS + 20 * MINUTE_MS
    resumed = (desk.folder / "bars.csv").read_bytes()
    assert not partial.exists()
    desk.folder.joinpath("bars.csv").unlink()
    fetched(desk, exchange())
    assert (desk.folder / "bars.csv").read_bytes() == resumed


def test_fetch_partial_file_of_another_request_is_refused(desk: Desk) -> None:
    partial = desk.folder / "bars.csv.part"
    partial.write_text(json.dumps({"thinktwice_fetch": 1, "exchange": "kraken"}) + "\n", "utf-8")
    with pytest.raises(ConfigError, match=r"another request fetched \(exchange kraken\)"):
        fetched(desk, exchange())


def test_fetch_rate_limited_waits_as_asked_and_says_so(desk: Desk) -> None:
    server = exchange()
    server.fail("klines", faults.rate_limited("7"), faults.html(), faults.truncated())
    server.fail("klines", faults.rate_limited(None))
    with pytest.raises(FeedError):
        fetched(desk, server)
    assert desk.waits == [7.0, 2.0]
    assert "rate limited" in desk.quoted[0]
    assert "malformed" in desk.quoted[1]


@pytest.mark.parametrize(
    "fault", [faults.server_error(), faults.html(), faults.truncated(), faults.half(), faults.reset()]
)
def test_fetch_one_broken_answer_costs_nothing_but_time(desk: Desk, fault) -> None:
    server = exchange()
    server.fail("klines", fault)
    assert fetched(desk, server)["bars"] == 100


def test_fetch_empty_answer_is_not_believed_at_once(desk: Desk) -> None:
    server = exchange()
    server.fail("klines", faults.answer({"rows": []}))
    found = fetched(desk, server)
    assert found["bars"] == 100
    assert found["symbols"]["BTC/USDT"]["gaps"] == []


def test_fetch_lists_gaps_and_keeps_them(desk: Desk) -> None:
    server = exchange()
    for k in (5, 6, 7, 50):
        del server.history["BTCUSDT", "1m"][FIRST_MS + k * MINUTE_MS]
    found = fetched(desk, server)
    one = found["symbols"]["BTC/USDT"]
    assert found["ok"]
    assert one["missing_bars"] == 4
    assert one["gaps"] == [
        {"from": "2023-11-14T20:40:00Z", "to": "2023-11-14T20:42:00Z", "bars": 3},
        {"from": "2023-11-14T21:25:00Z", "to": "2023-11-14T21:25:00Z", "bars": 1},
    ]
    assert load_bar_file(desk.folder / "bars.csv").bar_count == 96


def test_fetch_drops_what_cannot_be_a_bar_and_ends_with_a_finding(desk: Desk) -> None:
    server = exchange()
    rows = server.history["BTCUSDT", "1m"]
    rows[FIRST_MS + 3 * MINUTE_MS] = (100.0, 90.0, 95.0, 100.0, 1.0)
    rows[FIRST_MS + 4 * MINUTE_MS + 30_000] = candle(1)
    found = fetched(desk, server)
    one = found["symbols"]["BTC/USDT"]
    assert not found["ok"]
    assert one["invalid"] == [{"time": "2023-11-14T20:38:00Z", "reason": "high is below low"}]
    assert one["off_grid"] == ["2023-11-14T20:39:30Z"]
    assert load_bar_file(desk.folder / "bars.csv").bar_count == 99


def test_fetch_repeated_and_conflicting_rows_are_counted(desk: Desk) -> None:
    server = exchange()
    first = [[FIRST_MS + k * MINUTE_MS, *map(str, candle(k)), 0] for k in range(10)]
    other = [FIRST_MS, *map(str, candle(3)), 0]
    server.fail("klines", faults.answer([*first[:4], first[1], other, *first[4:]]))
    found = fetched(desk, server)
    one = found["symbols"]["BTC/USDT"]
    assert (one["duplicates"], one["conflicts"]) == (1, ["2023-11-14T20:35:00Z"])
    assert not found["ok"]


def test_fetch_bars_that_differ_when_read_again_are_a_finding(desk: Desk) -> None:
    server = exchange()
    wrong = [[FIRST_MS + k * MINUTE_MS, *map(str, candle(k, 100.0 + (k == 2))), 0] for k in range(10)]
    server.fail("klines", faults.answer(wrong))
    found = fetched(desk, server)
    assert found["changed_when_read_again"] == {"BTC/USDT": ["2023-11-14T20:37:00Z"]}
    assert not found["ok"]


def test_fetch_answers_that_lead_nowhere_end_it(desk: Desk) -> None:
    server = exchange()
    old = [[FIRST_MS - 10 * MINUTE_MS, *map(str, candle(1)), 0]]
    server.fail("klines", *[faults.answer(old)] * 40)
    with pytest.raises(DataError, match="binance has no bars of BTC/USDT from 2023-11-14T20:35:00Z"):
        fetched(desk, server)
    assert list(desk.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"name": "bars.xlsx"}, r"must end in one of \.csv, \.csv\.gz, \.parquet, \.pq"),
        ({"name": "nowhere/bars.csv"}, r"there is no folder"),
        ({"timeframe": "9m"}, r"no bars of '9m'"),
        ({"start": "2024-01-01"}, r"no bar of this range is over yet; the newest .* 2023-11-14T22:14:00Z"),
        ({"exchange": "binanc"}, r"Did you mean 'binance'\?"),
    ],
)
def test_fetch_of_what_cannot_be_says_why_and_leaves_nothing(desk: Desk, other, words) -> None:
    with pytest.raises(ConfigError, match=words):
        fetched(desk, exchange(), **other)
    assert list(desk.folder.iterdir()) == []


def test_fetch_refuses_a_file_that_is_there_unless_told_to_replace_it(desk: Desk) -> None:
    (desk.folder / "bars.csv").write_text("mine", "utf-8")
    with pytest.raises(ConfigError, match="is there already: name another file, or add --replace"):
        fetched(desk, exchange())
    assert (desk.folder / "bars.csv").read_text("utf-8") == "mine"
    assert fetched(desk, exchange(), replace=True)["bars"] == 100


def test_fetch_of_a_range_that_ends_before_it_begins_is_refused(desk: Desk) -> None:
    with pytest.raises(DataError, match="--from .* lies after --to .*: swap them"):
        fetched(desk, exchange(), end="2023-11-13")


def test_fetch_bar_that_closed_just_now_is_left_to_settle(desk: Desk) -> None:
    server = exchange()
    server.now_ms = START_MS + 60_500
    assert fetched(desk, server)["to"] == "2023-11-14T22:13:00Z"
    assert fetched(desk, exchange(), replace=True)["to"] == "2023-11-14T22:14:00Z"


def test_fetch_running_candle_given_last_is_left_out_where_the_exchange_tells_no_time(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our clock may be ahead of it: by ours the candle that still runs is over."""
    monkeypatch.setattr(PublicExchange, "has_clock", property(lambda self: False))
    server = exchange()
    ahead_ns = (server.now_ms + 40_000) * 10**6
    found = fetched(desk, server, wall=lambda: ahead_ns)
    assert (found["to"], found["ok"]) == ("2023-11-14T22:14:00Z", True)


def test_partial_file_cuts_a_torn_line_away_before_it_goes_on(tmp_path: Path) -> None:
    target, request = tmp_path / "bars.csv", {"exchange": "binance"}
    first = [RawBar("A", 60, Bar(*candle(1)))]
    with PartialFile(target, request) as partial:
        partial.add("A", Page(120, first, []))
    with partial.path.open("ab") as file:
        file.write(b'{"symbol":"A","next":180,"bars":[' + b"[120,1.0,1.0,1.0,1.0,1.0]," * 500)
    with PartialFile(target, request) as partial:
        assert (partial.bars, partial.next_label) == ({"A": first}, {"A": 120})
        partial.add("A", Page(180, [], [RawBar("A", 10**30, Bar(*candle(1)))]))
    with PartialFile(target, request) as partial:
        assert (partial.bars, partial.next_label) == ({"A": first}, {"A": 180})
        assert partial.future == {"A": [10**30]}, "a label of the future stays one when its time has come"
    assert len(partial.path.read_bytes().splitlines()) == 3


def test_fetch_with_one_candle_of_the_future_is_complete_and_says_so(desk: Desk) -> None:
    found = fetched(desk, exchange(strays=(FUTURE_MS,)))
    assert (found["bars"], found["ok"]) == (100, False)
    assert set(found["symbols"]["BTC/USDT"]["future"]) == {"2033-05-18T03:33:00Z"}


@pytest.mark.parametrize("stray", [FIRST_MS + 90 * MINUTE_MS, FIRST_MS + 50 * MINUTE_MS + 1_000])
def test_fetch_with_a_stray_candle_in_every_answer_is_complete(desk: Desk, stray: int) -> None:
    found = fetched(desk, exchange(strays=(stray,)))
    assert (found["bars"], found["symbols"]["BTC/USDT"]["missing_bars"]) == (100, 0)


def test_fetch_of_fewer_bars_than_asked_for_says_how_many(desk: Desk) -> None:
    found = fetched(desk, exchange(), start="2023-11-14T20:05:00")
    symbol = found["symbols"]["BTC/USDT"]
    assert (symbol["bars"], symbol["asked_bars"], symbol["missing_bars"]) == (100, 130, 30)
    assert symbol["gaps"] == [{"from": "2023-11-14T20:05:00Z", "to": "2023-11-14T20:34:00Z", "bars": 30}]
    assert found["ok"], "an exchange that keeps no older bars has done nothing wrong"
