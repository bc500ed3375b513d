"""`thinktwice paper` as a real process on a file of bars, and what it leaves in its store."""

import asyncio
import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from services.store import open_store
from services.store.tables import ORDER_KINDS
from tests.commands.started import python
from worker.feeds.sample_data.worlds import make_world

ROOT = Path(__file__).resolve().parents[3]
CONFIG = """
[policy_loop]
heartbeat_s = 14400
minimum_interval_s = 7200
[runtime.operations]
log_format = "json"
start_limit = 1000
"""


@dataclass(frozen=True)
class Left:
    """What a run left behind: its head, and orders by what is wrong with them."""

    head: str
    events: int
    bars: int
    orders: int
    lost: int
    extra: int
    doubled: int
    sent_again: int


def written(folder: Path, bars: int, seed: int = 1) -> Path:
    """A file of one-minute bars of a seeded world, and a configuration beside it."""
    series = make_world("reverting", seed=seed, bars=bars, symbols=1, timeframe="1m")
    columns = {name: getattr(series, name)[:, 0] for name in ("open", "high", "low", "close", "volume")}
    times = pd.to_datetime(series.times, utc=True)
    (folder / "config.toml").write_text(CONFIG, "utf-8")
    path = folder / "bars.csv"
    pd.DataFrame({"time": times.strftime("%Y-%m-%dT%H:%M:%SZ"), **columns}).to_csv(path, index=False)
    return path


def words(data: Path, address: str, *more: str, command: str = "paper") -> list[str]:
    """The command."""
    config = str(data.with_name("config.toml"))
    return [command, config, "--data", str(data), "--timeframe", "1m", "--db", address, "--json", *more]


def killing(*jobs: dict[str, Any]) -> list[dict[str, Any]]:
    """What `killed_paper` tells of some jobs, one after the other."""
    command = [python(), "-m", "tests.worker.live.killed_paper", json.dumps(jobs)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("THINKTWICE_")}
    environment["XDG_STATE_HOME"] = str(Path(jobs[0]["words"][1]).parent)  # where starts are noted
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=3_600
    )
    if done.returncode:
        raise AssertionError(done.stderr[-3_000:])
    shown: list[dict[str, Any]] = json.loads(done.stdout)
    return shown


def job(data: Path, address: str, *, kills: int = 0, seed: int = 0, gap_rows: int = 1) -> dict[str, Any]:
    """A paper run that is killed."""
    payload = {"words": words(data, address), "address": address, "kills": kills, "seed": seed}
    return payload | {"gap_rows": gap_rows}


def undisturbed(data: Path) -> dict[str, Any]:
    """A backtest over the same bars: a paper run that waits has its head."""
    address = f"sqlite:///{data.with_name('undisturbed.db')}"
    return job(data, address) | {"words": words(data, address, command="backtest")}


def left(address: str) -> Left:
    """What the newest run of a store left behind."""

    async def look() -> Left:
        async with await open_store(address, create=False) as store:
            run = await store.runs.find("latest")
            rows = [row async for row in store.journal.rows(run.run_id, kinds=ORDER_KINDS)]
            sends = await store.trading.at_venue(f"paper/{run.run_id}")
            bars = [row async for row in store.trading.rows(run.run_id)]
            meant = Counter(json.loads(row.payload)["order_id"] for row in rows)
            return Left(
                run.head_hash,
                run.events,
                len(bars),
                len(meant),
                lost=len(set(meant) - set(sends)),
                extra=len(set(sends) - set(meant)),
                doubled=sum(count - 1 for count in meant.values()),
                sent_again=sum(count - 1 for count in sends.values()),
            )

    return asyncio.run(look())
