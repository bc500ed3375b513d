"""Bars from an exchange into a file, and from the file through the real engine."""

import json

import pytest
from typer.testing import CliRunner

from tests.exchange.server import START_MS, ExchangeServer
from tests.exchange.thread import path_beside
from worker.cli import app

HOUR_MS = 3_600_000


@pytest.mark.parametrize("name", ["bars.csv", "bars.parquet"])
def test_fetched_file_is_traded_as_it_is(name, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THINKTWICE_RUNTIME__FEED__EXCHANGE__REQUEST_INTERVAL_MS", "0")
    first = START_MS - START_MS % HOUR_MS - 400 * HOUR_MS

    def run(*words: str) -> dict[str, object]:
        done = CliRunner().invoke(app, [*words, "--json"])
        assert done.exit_code == 0, done.output
        document: dict[str, object] = json.loads(done.stdout)
        return document

    with path_beside(ExchangeServer()) as server:
        for market in server.symbols:
            server.fill(market, "1h", first, 401)
        words = ("BTC/USDT", "ETH/USDT", "--from", "2023-10-29", "--out", name)
        fetched = run("data", "fetch", "binance", *words, "--rest-url", server.rest_url)
    checked = run("data", "check", name)
    traded = run("backtest", "--data", name)["data"]
    assert isinstance(traded, dict)
    assert fetched["bars"] == checked["bars"] == traded["bars"] == 800
    assert traded["symbols"] == ["BTC/USDT", "ETH/USDT"]
    assert (traded["timeframe"], traded["sha256"]) == ("1h", checked["sha256"])
