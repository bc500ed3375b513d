"""Stores with one run each over four years of three embedded symbols, and clients of a server on them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from schemas.settings import LlmSettings, Settings
from services.store import NewRun, open_store
from tests.made_once import read_made
from tests.worker.shared_runs import fewer_bars
from worker.runs.backtest import run_backtest
from worker.runs.store_run import record_run

START, EARLIER, END = "2002-06-03", "2005-06-30", "2006-12-29"
CLOCK = "2004-06-30"


def store_run(path: Path, end: str = END, model: str = "none") -> Path:
    """A store with the run, which is traded once for all files."""
    path.touch(0o600)
    named = f"evidence-{end}-{model.replace('/', '-')}"
    path.write_bytes(read_made(named, lambda: _stored(end, model)))
    return path


def _stored(end: str, model: str) -> bytes:
    settings, bars = Settings(llm=LlmSettings(model=model)), fewer_bars(START, end)
    data: dict[str, Any] = {"source": "embedded", "path": None, "sha256": bars.sha256}
    data |= {"symbols": list(bars.symbols), "timeframe": bars.timeframe, "label": bars.label}
    new = NewRun("embedded", 0, "backtest", settings.config_hash, settings.payload(), data, {})

    async def scenario(path: Path) -> None:
        async with await open_store(f"sqlite:///{path}", create=True) as store:
            await record_run(_run, settings, bars, store, new)

    with TemporaryDirectory() as folder:
        asyncio.run(scenario(Path(folder) / "thinktwice.db"))
        return (Path(folder) / "thinktwice.db").read_bytes()


async def _run(*given: Any, **_: Any) -> Any:
    return await run_backtest(*given)


@asynccontextmanager
async def server_of(path: Path, run: str | None = None, at: int | None = None) -> AsyncIterator[Any]:
    """The server as the command makes it, over a connection that only reads."""
    from worker.mcp_server.server import build_server  # needs the extra, which runs in a store do not
    from worker.review.evidence import store_tools
    from worker.review.rule_trial import trial_noting
    from worker.review.run_views import open_views

    address = f"sqlite:///{path}"
    async with await open_store(address, create=False, read_only=True) as store:
        yield build_server(store_tools(await open_views(store, run, at), trial_noting(address)))


@asynccontextmanager
async def client_of(
    path: Path, run: str | None = None, at: int | None = None, mode: Any = "auto"
) -> AsyncIterator[Any]:
    """The SDK's own client, connected in memory."""
    from mcp import Client

    async with server_of(path, run, at) as server, Client(server, mode=mode) as client:
        yield client
