"""Seven starts of one run: only processes that died without saying why put the seventh into safe mode."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schemas.settings.live import OperationsSettings
from tests.commands.started import python
from tests.exchange.faults import rate_limited, server_error
from tests.exchange.server import MINUTE_MS, ExchangeServer
from tests.exchange.thread import path_beside
from tests.worker.live.real_paper import written

ROOT = Path(__file__).parents[3]
LIMIT = OperationsSettings().start_limit
SLOWLY = ["--speed", str(60 * 50)]  # 50 one-minute bars a second
CONFIG = """
[policy_loop]
heartbeat_s = 14400
minimum_interval_s = 7200
[runtime.operations]
log_format = "json"
start_limit = 1
"""
EXCHANGE = """
[runtime.operations]
log_format = "json"
[runtime.feed]
history_bars = 60
[runtime.feed.exchange]
rest_url = "{rest}"
backoff_max_s = 0.05
request_interval_ms = 0.0
"""


def started(*jobs: dict[str, Any]) -> list[dict[str, Any]]:
    """What `started_again` tells of some jobs."""
    command = [python(), "-m", "tests.worker.operations.started_again", json.dumps(jobs)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("THINKTWICE_R")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    shown: list[dict[str, Any]] = json.loads(done.stdout)
    return shown


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """One run for each trouble, each in a store of its own."""
    jobs: dict[str, dict[str, Any]] = {}
    for trouble in ("store", "lease", "kill"):
        folder = tmp_path_factory.mktemp(trouble)
        data = written(folder, 300, seed=5)
        (folder / "config.toml").write_text(CONFIG, "utf-8")
        address = f"sqlite:///{folder}/store.db"
        words = ["paper", str(folder / "config.toml"), "--data", str(data), "--timeframe", "1m", "--json"]
        job = {"trouble": trouble, "times": 2, "address": address, "slowly": SLOWLY}
        jobs[trouble] = job | {"words": [*words, "--db", address]}
    return dict(zip(jobs, started(*jobs.values()), strict=True))


@pytest.mark.parametrize(
    ("trouble", "quoted"), [("store", "no such table: paper_bars"), ("lease", "another worker took over")]
)
def test_start_after_more_than_the_limit_that_said_why_trades(
    troubled: dict[str, dict[str, Any]], trouble: str, quoted: str
) -> None:
    *wrong, last = troubled[trouble]["starts"]
    assert [finding["code"] for finding in wrong] == [2, 2], wrong
    assert all(quoted in item["said"] for item in wrong), wrong
    assert (last["code"], last["safe_mode"]) == (0, []), last
    assert troubled[trouble]["document"]["performance"]["trades"] > 0


def test_start_after_more_than_the_limit_that_were_killed_is_in_safe_mode(
    troubled: dict[str, dict[str, Any]],
) -> None:
    *wrong, last = troubled["kill"]["starts"]
    assert [finding["code"] for finding in wrong] == [-9, -9]
    assert last["safe_mode"] == ["crash_loop"]


@pytest.fixture
def exchange() -> Iterator[ExchangeServer]:
    """An exchange whose last six hours are those of this machine."""
    server = ExchangeServer(now_ms=int(time.time() * 1_000))
    first = server.now_ms - server.now_ms % MINUTE_MS - 360 * MINUTE_MS
    server.fill("BTCUSDT", "1m", first, 400)
    with path_beside(server) as running:
        yield running


def test_seventh_start_on_an_exchange_that_refused_six_trades(
    tmp_path: Path, exchange: ExchangeServer
) -> None:
    for number in range(LIMIT + 1):
        exchange.fail("/api/v3/klines", *[server_error(503) if number % 2 else rate_limited("0")] * 6)
    (tmp_path / "config.toml").write_text(EXCHANGE.format(rest=exchange.rest_url), "utf-8")
    address = f"sqlite:///{tmp_path}/store.db"
    words = ["paper", str(tmp_path / "config.toml"), "--feed", "ccxt:binance", "--symbols", "BTC/USDT"]
    words += ["--timeframe", "1m", "--db", address]
    job = {"trouble": "feed", "times": LIMIT + 1, "address": address, "words": words, "enough": 60}
    [found] = started(job)
    *wrong, last = found["starts"]
    assert [finding["code"] for finding in wrong] == [1] * (LIMIT + 1), wrong
    shown = [item["said"].replace(exchange.rest_url, "") for item in wrong]  # a port may hold the digits
    assert {("429" in text, "503" in text) for text in shown} == {(True, False), (False, True)}
    assert (last["code"], last["safe_mode"]) == (0, []), last
