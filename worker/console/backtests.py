"""Backtests that are started from the console: each is a process of its own, as its command would be."""

import asyncio
import json
import os
import signal
import sys
from collections import OrderedDict, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from schemas.errors import ConfigError

AT_ONCE, KEPT, LINES = 2, 50, 20
LONGEST_LINE = 4_000
Word = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[^,\x00]+$")]
Moment = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?Z?)?$")]


class BacktestForm(BaseModel):
    """The common settings of a backtest.

    Attributes:
        data: name of a bar file in the folder of the console; none: the embedded daily bars.
        symbols: none for all of the bars.
        start, end: first and last label, ISO 8601 in UTC.
        resample: longer bars made of these.
        playbooks: name of ours; none for the default set.
        cash: in quote currency.
        fee, slippage: a side, in basis points.
        reflection: how plans are reflected on.
        seed: of every draw.
    """

    model_config = ConfigDict(extra="forbid")

    data: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    symbols: tuple[Word, ...] = Field(default=(), max_length=500)
    start: Moment | None = None
    end: Moment | None = None
    resample: Annotated[str, StringConstraints(pattern=r"^\d{1,4}[mhdwM]$")] | None = None
    playbooks: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")] | None = None
    cash: float | None = Field(default=None, gt=0, le=1e15, allow_inf_nan=False)
    fee: float | None = Field(default=None, ge=0, le=1_000, allow_inf_nan=False)
    slippage: float | None = Field(default=None, ge=0, le=1_000, allow_inf_nan=False)
    reflection: Literal["off", "deterministic", "full"] | None = None
    seed: int | None = Field(default=None, ge=0, le=2**31)

    def words(self, folder: Path | None) -> list[str]:
        """The options of the command.

        Raises:
            ConfigError: the file is none of the folder.
        """
        given: dict[str, Any] = {
            "--data": None if self.data is None else bar_file(folder, self.data),
            "--symbols": ",".join(self.symbols) or None,
            "--from": self.start,
            "--to": self.end,
        }
        for name in ("resample", "playbooks", "cash", "fee", "slippage", "reflection", "seed"):
            given[f"--{name}"] = getattr(self, name)
        return [f"{option}={value}" for option, value in given.items() if value is not None]


def bar_files(folder: Path | None) -> list[str]:
    """Names of the files of the folder of the console, sorted; what leads out of it is left out."""
    if folder is None or not folder.is_dir():
        return []
    root = folder.resolve()
    inside = [path for path in folder.rglob("*") if path.is_file() and path.resolve().is_relative_to(root)]
    return sorted(path.relative_to(folder).as_posix() for path in inside)


def bar_file(folder: Path | None, name: str) -> Path:
    """The file of a name in the folder of the console.

    Raises:
        ConfigError: there is none, or it lies elsewhere.
    """
    if folder is None:
        raise ConfigError("runtime.console.folder is not set: there are the embedded bars alone")
    if name not in bar_files(folder):
        raise ConfigError(f"no file {name!r} in runtime.console.folder")
    return (folder / name).resolve()


@dataclass
class StartedBacktest:
    """One process and how far it is."""

    number: int
    by: str
    form: BacktestForm
    process: asyncio.subprocess.Process
    state: Literal["running", "finished", "failed", "cancelled"] = "running"
    progress: deque[str] = field(default_factory=lambda: deque(maxlen=LINES))
    run_id: str | None = None
    exit_code: int | None = None

    def document(self) -> dict[str, Any]:
        """As the API gives it."""
        return {
            "id": self.number,
            "by": self.by,
            "state": self.state,
            "progress": list(self.progress),
            "run_id": self.run_id,
            "exit_code": self.exit_code,
            "settings": self.form.model_dump(exclude_none=True),
        }


class Backtests:
    """Starts backtests into one store, two at a time, and ends them with the console.

    Args:
        address: of the store.
        folder: whose bar files may be named.
    """

    def __init__(self, address: str, folder: Path | None) -> None:
        self._address, self.folder = address, folder
        self._started: OrderedDict[int, StartedBacktest] = OrderedDict()
        self._watching: set[asyncio.Task[None]] = set()

    def all(self) -> list[StartedBacktest]:
        """The last ones, newest first."""
        return [*reversed(self._started.values())]

    def find(self, number: int) -> StartedBacktest | None:
        """The one of a number."""
        return self._started.get(number)

    async def start(self, form: BacktestForm, by: str) -> StartedBacktest:
        """Start one.

        Raises:
            ConfigError: two run already, or its bars are not there.
        """
        words = await asyncio.to_thread(form.words, self.folder)
        if sum(started.state == "running" for started in self._started.values()) >= AT_ONCE:
            raise ConfigError(f"{AT_ONCE} backtests run already: wait for one, or cancel it")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "thinktwice", "backtest", "--json", *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(self._environment()),
            start_new_session=True,  # a Ctrl-C of the console is not theirs: they are told by it
        )
        started = StartedBacktest(max(self._started, default=0) + 1, by, form, process)
        self._started[started.number] = started
        while len(self._started) > KEPT:
            self._started.popitem(last=False)
        task = asyncio.create_task(self._watch(started))
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)
        return started

    def _environment(self) -> Mapping[str, str]:
        """That of the console; no list of processes shows the password in the address of a store."""
        return os.environ | {"THINKTWICE_RUNTIME__DB": self._address}

    async def _watch(self, started: StartedBacktest) -> None:
        document, _ = await asyncio.gather(_whole(started.process.stdout), self._tail(started))
        started.exit_code = await started.process.wait()
        with suppress(ValueError, KeyError, TypeError):
            started.run_id = json.loads(document)["run_id"]
        if started.state == "running":
            started.state = "finished" if started.exit_code == 0 else "failed"

    async def _tail(self, started: StartedBacktest) -> None:
        stream = started.process.stderr
        assert stream is not None  # noqa: S101 - it was asked for as a pipe
        async for line in stream:
            started.progress.append(line.decode("utf-8", "replace").rstrip()[:LONGEST_LINE])

    def cancel(self, started: StartedBacktest) -> None:
        """End it as Ctrl-C does: what is done stays stored."""
        if started.state == "running":
            started.state = "cancelled"
            with suppress(ProcessLookupError):
                started.process.send_signal(signal.SIGINT)

    async def close(self) -> None:
        """End all that run, and wait for them."""
        for started in self._started.values():
            self.cancel(started)
        await asyncio.gather(*self._watching)


async def _whole(stream: asyncio.StreamReader | None) -> bytes:
    return b"" if stream is None else await stream.read()
