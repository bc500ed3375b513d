"""`thinktwice worker` as a process: it logs, is asked, tells, and says so when its store is away."""

import asyncio
import json
import os
import signal
import sqlite3
import time
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from schemas.settings import Settings
from services.store import open_store
from tests.commands.started import thinktwice
from tests.services.store.stores import new_run
from tests.worker.operations.asking import get, parsed, sent
from tests.worker.operations.receiver import receiving
from tests.worker.slow_worker.prepared import DAY, START, resolved, trade

ROOT = Path(__file__).parents[3]
TOKEN = "c3b5a1f09e7d48260f1e8d7c6b3a5942"
TRADES = [resolved(n, START + (n + 1) * DAY // 24) for n in range(24)]


class Process:
    """A worker process, its log records as they come."""

    def __init__(self, process):
        self.process = process
        self.records = []

    @classmethod
    @asynccontextmanager
    async def started(cls, folder, *words, command="worker", **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("THINKTWICE_")}
        given = [command, "--db", f"sqlite:///{folder}/store.db", *words]
        process = await asyncio.create_subprocess_exec(
            thinktwice(),
            *given,
            cwd=ROOT,
            env=clean | environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            yield cls(process)
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    async def until(self, event):
        while not self.records or self.records[-1]["event"] != event:
            line = await asyncio.wait_for(self.process.stderr.readline(), 60)
            assert line, (event, self.records)
            self.records.append(json.loads(line))
        return self.records[-1]

    async def ended(self):
        printed, logged = await asyncio.wait_for(self.process.communicate(), 60)
        self.records += [json.loads(line) for line in logged.splitlines() if line.startswith(b"{")]
        return self.process.returncode, printed.decode()


async def ask(port, path, **fields):
    return parsed(await sent(port, get(path, **fields)))


async def stored(folder):
    settings = Settings()
    data = {"timeframe": "1h", "symbols": ["AAPL"], "bars": 24}
    run = new_run(config=settings.payload(), config_hash=settings.config_hash, data=data)
    async with await open_store(f"sqlite:///{folder}/store.db", create=True) as store:
        await trade(store, (await store.runs.create(run)).run_id, TRADES)


@pytest.fixture
def folder(tmp_path):
    asyncio.run(stored(tmp_path))
    return tmp_path


def has_reported(folder):
    """Wait for the first report, which is computed in a process of its own."""
    until = time.monotonic() + 60
    with closing(sqlite3.connect(folder / "store.db")) as store:
        while not store.execute("SELECT count(*) FROM slow_reports").fetchone()[0]:
            assert time.monotonic() < until
            time.sleep(0.05)


def test_worker_process_logs_is_asked_and_tells_when_its_store_is_away(folder):
    async def play():
        words = ("--period", "0.1", "--log-format", "json")
        environment = {
            "THINKTWICE_RUNTIME__OPERATIONS__PORT": "0",
            "THINKTWICE_OPERATIONS_TOKEN": TOKEN,
        }
        async with (
            receiving() as there,
            Process.started(folder, *words, **environment, THINKTWICE_WEBHOOK_URL=there.url) as worker,
        ):
            opened = await worker.until("endpoint_open")
            port, key = opened["port"], {"Authorization": f"Bearer {TOKEN}"}
            await worker.until("lease_taken")
            seen = [await ask(port, path, **key) for path in ("/health", "/ready", "/metrics")]
            assert (await ask(port, "/metrics")).status == 401
            with closing(sqlite3.connect(folder / "store.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                await worker.until("store_away")
                await asyncio.wait_for(there.arrived.wait(), 30)
                seen.append(await ask(port, "/ready", **key))
                seen.append(await ask(port, "/status", **key))
                other.execute("ROLLBACK")
            await worker.until("store_back")
            seen.append(await ask(port, "/ready", **key))
            await asyncio.to_thread(has_reported, folder)
            worker.process.send_signal(signal.SIGTERM)
            return worker, await worker.ended(), seen, there.got

    worker, (code, printed), seen, got = asyncio.run(play())
    assert code == 0, worker.records
    assert [reply.status for reply in seen] == [200, 200, 200, 503, 200, 200]
    assert 'role="slow_loop"' in seen[2].body
    assert "thinktwice_slow_loop_next_slot_timestamp_seconds" in seen[2].body
    assert seen[3].body.startswith("store is away")
    assert json.loads(seen[4].body)["store_away_since"] > 0
    assert [json.loads(body)["kind"] for _, _, body in got] == ["store_away", "recovered"]
    assert "reported: " in printed
    assert "endpoint_open" not in printed
    events = [record["event"] for record in worker.records]
    assert "report_written" not in events  # stdout has shown it
    assert events[-1] == "stopped"
    by_event = {record["event"]: record for record in worker.records}
    assert by_event["store_away"]["level"] == "warning"
    assert by_event["notifying"]["webhook"].endswith("/***")
    assert {record["run_id"] for record in worker.records if record["logger"].startswith("thinktwice.w")} == {
        "r0001"
    }


@pytest.mark.parametrize(
    ("environment", "quoted"),
    [
        (
            {"THINKTWICE_RUNTIME__OPERATIONS__HOST": "0.0.0.0", "THINKTWICE_RUNTIME__OPERATIONS__PORT": "0"},
            "'0.0.0.0' is reached by others: set THINKTWICE_OPERATIONS_TOKEN",
        ),
        (
            {"THINKTWICE_OPERATIONS_TOKEN": "c4nary", "THINKTWICE_RUNTIME__OPERATIONS__PORT": "0"},
            "THINKTWICE_OPERATIONS_TOKEN is too weak",
        ),
        ({"THINKTWICE_WEBHOOK_URL": "ftp://c4nary.example.com/c4nary"}, "WEBHOOK_URL is no address"),
        ({"THINKTWICE_RUNTIME__OPERATIONS__LOG_FILE": "/absent/x.log"}, "cannot be written"),
    ],
)
def test_worker_whose_operation_is_not_safe_does_not_start(shell, monkeypatch, environment, quoted):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    shown = shell.complaint("worker", "--once")
    assert quoted in shown
    assert "c4nary" not in shown


def test_worker_once_logs_into_a_file_and_shows_results_on_stdout_only(folder, shell, monkeypatch):
    monkeypatch.setenv("THINKTWICE_RUNTIME__OPERATIONS__LOG_FILE", str(folder / "worker.log"))
    monkeypatch.setenv("THINKTWICE_RUNTIME__OPERATIONS__LOG_FORMAT", "json")
    done = shell.run("worker", "--once", "--at", "2024-01-02", "--db", f"sqlite:///{folder}/store.db")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "slot 2024-01-02" in done.stdout
    events = [json.loads(line)["event"] for line in (folder / "worker.log").read_text().splitlines()]
    assert events == ["slot_claimed", "report_written", "report_delivered"]
