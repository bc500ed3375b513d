"""Whole runs of the agent as tasks: each keeps a store of its own and hands back its document and head.

A model is asked by whichever worker makes the run, with the key of the worker's environment: no key is in a
task. What it answered is kept with the answer of its task.
"""

import asyncio
import os
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from schemas.canonical import content_id
from schemas.errors import ConfigError, ThinktwiceError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.policy_loop.snapshot_builder import feature_names
from trading_core.bars import BarSeries
from worker.feeds.selected_bars import describe
from worker.models import NO_OVERRIDES, Overrides, check_models
from worker.runs.backtest import run_backtest
from worker.runs.kept_run import keep_beside
from worker.runs.model_silence import is_silent, model_silence
from worker.runs.progress import Progress
from worker.runs.replay import MEASURED
from worker.runs.run_result import RunResult
from worker.runs.store_run import new_run, record_run
from worker.settings import ResolvedSettings, load_settings
from worker.studies.executors.executor import Executor
from worker.studies.executors.kept_answers import KeptAnswers, run_tasks
from worker.studies.executors.named_features import (
    NamedFeature,
    load_features,
    named_features,
    require_importable,
)
from worker.studies.executors.shared_bars import shared_bars
from worker.studies.executors.task_keys import task_key

MODE = "sweep"
HERE = {"db", "out", "feed", "operations", "console"}  # of `runtime`: nothing that a run elsewhere reads
Done = TypeVar("Done")


class TaskParts(Protocol):
    """Parts of runs that are the caller's own, by name."""

    @property
    def named(self) -> tuple[NamedTuple, ...]:
        """What makes them the same parts again, as plain values."""

    def modules(self) -> Mapping[str, str]:
        """Modules that a worker imports, by what people call what is defined there."""

    def load(self, settings: Settings) -> Overrides:
        """The parts for a run with these settings, made anew.

        Raises:
            ConfigError: a module is not here, or is another.
        """


@dataclass(frozen=True)
class AgentTask:
    """One run.

    Attributes:
        settings: payload of the settings.
        playbooks: payloads of the playbooks.
        bars: key of the shared bars.
        features: what the worker imports for their rules.
        keep: whether the store comes back.
        parts: own parts of the run.
    """

    settings: dict[str, Any]
    playbooks: tuple[dict[str, Any], ...]
    bars: str
    features: tuple[NamedFeature, ...] = ()
    keep: bool = False
    parts: TaskParts | None = None


def run_agent(task: AgentTask) -> dict[str, Any]:
    """What `figures_of` says of the run, and its `store` if that is kept; `error` where it does not count.

    A set that cannot be run costs itself: then only `error` comes back.
    """
    load_features(task.features)
    settings = Settings.model_validate(task.settings)
    own = NO_OVERRIDES if task.parts is None else task.parts.load(settings)
    if own.models is None:
        _require_keys(settings)
    with TemporaryDirectory(prefix="thinktwice-") as folder:
        path = Path(folder) / "run.sqlite"
        try:
            bars = _select_symbols(shared_bars(task.bars), settings.data.symbols)
            done = run_alone(_record(task, settings, bars, own, f"sqlite:///{path}"))
        except ThinktwiceError as error:
            return {"error": str(error)}
        store = {"store": path.read_bytes()} if task.keep else {}
    figures = figures_of(done, settings.account.cash)
    return figures | store | _error_of(figures["document"])


def _error_of(document: dict[str, Any]) -> dict[str, str]:
    """Why a run is not the one that its set names; nothing where it is."""
    if count := document["errors"]:
        return {
            "error": f"{count:,} errors were contained in this run: make it by itself, where they are shown"
        }
    if is_silent(document):
        return {"error": f"{model_silence(document)}; the rules decided alone"}
    return {}


def _require_keys(settings: Settings) -> None:
    try:
        check_models(settings, os.environ)
    except ConfigError as error:
        raise ConfigError(f"the environment of a worker cannot ask its model: {error}") from error


def _select_symbols(bars: BarSeries, symbols: Sequence[str]) -> BarSeries:
    chosen = tuple(sorted(symbols))
    return bars if chosen in ((), bars.symbols) else bars.select(chosen)


def figures_of(done: RunResult, cash: float) -> dict[str, Any]:
    """A run without the run: `document` has no times of this machine; arrays are by bar, or by trade.

    `held` is what a trade held at its entry price, in quote currency, negative for a short.
    """
    times, equity = done.equity
    trades = done.trades
    document = _without_times(done.document("", ""))
    held = [trade.quantity * trade.entry_price * (-1, 1)[trade.direction == "long"] for trade in trades]
    return {
        "document": document,
        "head": document["journal"]["head_hash"],
        "cash": cash,
        "times": np.array(times, dtype=np.int64),
        "equity": np.array(equity, dtype=np.float64),
        "entry_labels": np.array([trade.entry_label for trade in trades], dtype=np.int64),
        "exit_labels": np.array([trade.exit_label for trade in trades], dtype=np.int64),
        "r": np.array([trade.r for trade in trades], dtype=np.float64),
        "held": np.array(held, dtype=np.float64),
    }


def _without_times(document: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_times(value) if isinstance(value, dict) else value
        for name, value in document.items()
        if name not in MEASURED
    }


def run_alone(work: Coroutine[Any, Any, Done]) -> Done:
    """What comes of the work of a task; in a thread where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _record(
    task: AgentTask, settings: Settings, bars: BarSeries, own: Overrides, url: str
) -> RunResult:
    from services.store import open_store

    books = tuple(PlaybookDefinition.model_validate(book) for book in task.playbooks)
    read = {feature.name: feature.source_hash for feature in task.features}
    data = describe(bars, settings) | keep_beside(books, own.names, read)
    async with await open_store(url, create=True) as store:
        run = new_run(settings, MODE, MODE, data)
        done = await record_run(
            partial(run_backtest, own=own), settings, bars, store, run, definitions=books, fresh_ledger=False
        )
    return cast(RunResult, done.outcome)


def agent_settings(base: Settings, changes: Mapping[str, Any]) -> Settings:
    """Settings of one set: `account__cash` or `account.cash` by value.

    Raises:
        ConfigError: a name that is no setting, a value that does not fit, or a cassette to record.
    """
    flags = {key: (key, value) for key, value, _ in ResolvedSettings(base, {}).rows()}
    flags |= {name.replace("__", "."): (name, value) for name, value in changes.items()}
    settings = load_settings(flags=flags, environment={}, word="parameter").settings
    if settings.runtime.llm == "record":
        raise ConfigError(
            "runtime.llm 'record': the runs of a sweep would write one cassette together: say live, and "
            "--resume keeps what was answered; or record one backtest"
        )
    return settings


def agent_answers(
    executor: Executor,
    bars: BarSeries,
    sets: Sequence[tuple[Settings, Sequence[PlaybookDefinition]]],
    *,
    kept: KeptAnswers | None,
    keep: bool,
    shown: Progress,
    parts: TaskParts | None = None,
) -> list[dict[str, Any]]:
    """The answer of each set, see `run_agent`; sets that come to the same run are one task.

    Args:
        executor: where the runs go.
        bars: of every run.
        sets: settings and playbooks.
        kept: where answers are kept and found.
        keep: whether the store of each run comes back.
        shown: called with runs ended, and runs in all.
        parts: own parts of every run.
    """
    require_importable(executor, {} if parts is None else parts.modules())
    bars_key = executor.share(bars)
    keys, tasks = [], dict[str, AgentTask]()
    for settings, books in sets:
        payloads = tuple(book.payload() for book in books)
        features = named_features(feature_names(books, bars.timeframe))
        require_importable(executor, {f"feature {own.name!r}": own.module for own in features})
        content = {
            "settings": settings.config_hash,
            "playbooks": content_id(payloads),
            "bars": bars_key,
            "features": [feature.source_hash for feature in features],
            "keep": keep,
            "parts": [] if parts is None else [list(part) for part in parts.named],
            "replies": _hash_replies(settings),
        }
        keys.append(task_key("run", run_agent, content))
        payload = settings.payload()
        payload["runtime"] = {name: value for name, value in payload["runtime"].items() if name not in HERE}
        tasks[keys[-1]] = AgentTask(payload, payloads, bars_key, features, keep, parts)
    answers = run_tasks(executor, run_agent, tasks, kept, shown)
    return [answers[key] for key in keys]


def _hash_replies(settings: Settings) -> str | None:
    """Of the cassette that answers; what is read of it is said by whoever reads it."""
    path = settings.runtime.cassette
    return None if path is None or not Path(path).is_file() else sha256(Path(path).read_bytes()).hexdigest()
