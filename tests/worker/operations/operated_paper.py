"""Paper runs that are operated, in this process: their log in a file, their news sent to a receiver."""

import asyncio
import json
import socket

from schemas.settings import Settings
from tests.worker.operations.asking import get, parsed, sent
from worker.cli.paper import trade
from worker.operations.logs import configure_logging
from worker.operations.monitoring import prepare
from worker.secrets.redaction import Redactor


def settings_of(folder, *, runtime=None, operations=None, **sections):
    """Settings of a run in a folder, its log as JSON."""
    logged = {"log_file": str(folder / "log"), "log_format": "json"}
    own = {"db": f"sqlite:///{folder}/store.db", "operations": logged | (operations or {})}
    return Settings.model_validate(sections | {"runtime": own | (runtime or {})})


def prepared_for(settings, there):
    """What operates it; `there` is told."""
    return prepare(settings.runtime.operations, Redactor(), {"THINKTWICE_WEBHOOK_URL": there.url})


async def operated(settings, there, feed="replay", *, new=False):
    """Trade as `thinktwice paper` does."""
    with configure_logging(settings):
        return await trade(settings, prepared_for(settings, there), feed, "max", "test", new=new)


def logged(folder, event):
    """Records of an event."""
    records = [json.loads(line) for line in (folder / "log").read_text("utf-8").splitlines()]
    return [record for record in records if record["event"] == event]


def news(there):
    """What was sent."""
    return [json.loads(body) for _, _, body in there.got]


def free_port():
    """A port that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


async def ask(port, path):
    """What an endpoint answers."""
    return parsed(await sent(port, get(path)))


async def until_ready(port: int, status: int) -> tuple[str, str]:
    """What `/ready` and `/metrics` say once it is so."""
    async with asyncio.timeout(60):
        while True:
            try:
                answer = await ask(port, "/ready")
            except OSError:
                answer = None
            if answer is not None and answer.status == status:
                return answer.body, (await ask(port, "/metrics")).body
            await asyncio.sleep(0.02)
