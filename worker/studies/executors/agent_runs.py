"""Whole runs of the agent as tasks: each keeps a store of its own and hands back its document and head.

Runs are by rules alone: what a model answers is no function of settings and bars.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

import numpy as np

from schemas.canonical import content_id
from schemas.errors import ConfigError, ThinktwiceError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.policy_loop.snapshot_builder import feature_names
from trading_core.bars import BarSeries
from worker.feeds.selected_bars import describe
from worker.runs.backtest import run_backtest
from worker.runs.kept_run import keep_beside
from worker.runs.progress import Progress
from worker.runs.replay import MEASURED
from worker.runs.run_result import RunResult
from worker.runs.store_run import new_run, record_run
from worker.settings import ResolvedSettings, load_settings
from worker.studies.executors.executor import Executor
from worker.studies.executors.kept_answers import KeptAnswers, run_tasks
from worker.studies.executors.named_features import NamedFeature, load_features, named_features
from worker.studies.executors.shared_bars import shared_bars
from worker.studies.executors.task_keys import task_key

MODE = "sweep"
Done = TypeVar("Done")


@dataclass(frozen=True)
class AgentTask:
    """One run.

    Attributes:
        settings: payload of the settings.
        playbooks: payloads of the playbooks.
        bars: key of the shared bars.
        features: what the worker imports for their rules.
        keep: whether the store comes back.
    """

    settings: dict[str, Any]
    playbooks: tuple[dict[str, Any], ...]
    bars: str
    features: tuple[NamedFeature, ...] = ()
    keep: bool = False


def run_agent(task: AgentTask) -> dict[str, Any]:
    """What `figures_of` says of the run, and its `store` if that is kept.

    A set that cannot be run costs itself: then only `error` comes back.
    """
    load_features(task.features)
    settings = Settings.model_validate(task.settings)
    books = tuple(PlaybookDefinition.model_validate(book) for book in task.playbooks)
    with TemporaryDirectory(prefix="thinktwice-") as folder:
        path = Path(folder) / "run.sqlite"
        try:
            bars = _select_symbols(shared_bars(task.bars), settings.data.symbols)
            done = run_alone(_record(settings, books, bars, task.features, f"sqlite:///{path}"))
        except ThinktwiceError as error:
            return {"error": str(error)}
        store = {"store": path.read_bytes()} if task.keep else {}
    return figures_of(done, settings.account.cash) | store


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
    settings: Settings,
    books: Sequence[PlaybookDefinition],
    bars: BarSeries,
    features: Sequence[NamedFeature],
    url: str,
) -> RunResult:
    from services.store import open_store

    own = {feature.name: feature.source_hash for feature in features}
    data = describe(bars, settings) | keep_beside(books, (), own)
    async with await open_store(url, create=True) as store:
        run = new_run(settings, MODE, MODE, data)
        done = await record_run(
            run_backtest, settings, bars, store, run, definitions=books, fresh_ledger=False
        )
    return cast(RunResult, done.outcome)


def agent_settings(base: Settings, changes: Mapping[str, Any]) -> Settings:
    """Settings of one set: `account__cash` or `account.cash` by value.

    Raises:
        ConfigError: a name that is no setting, a value that does not fit, or a model that would be asked.
    """
    flags = {key: (key, value) for key, value, _ in ResolvedSettings(base, {}).rows()}
    flags |= {name.replace("__", "."): (name, value) for name, value in changes.items()}
    settings = load_settings(flags=flags, environment={}, word="parameter").settings
    if settings.uses_models:
        raise ConfigError(
            "a sweep of whole runs asks no model, whose answers no set could repeat: use --reflection "
            "deterministic and the strategist 'rules'"
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
) -> list[dict[str, Any]]:
    """The answer of each set, see `run_agent`; sets that come to the same run are one task.

    Args:
        executor: where the runs go.
        bars: of every run.
        sets: settings and playbooks.
        kept: where answers are kept and found.
        keep: whether the store of each run comes back.
        shown: called with runs ended, and runs in all.
    """
    bars_key = executor.share(bars)
    keys, tasks = [], dict[str, AgentTask]()
    for settings, books in sets:
        payloads = tuple(book.payload() for book in books)
        features = named_features(feature_names(books, bars.timeframe))
        content = {
            "settings": settings.config_hash,
            "playbooks": content_id(payloads),
            "bars": bars_key,
            "features": [feature.source_hash for feature in features],
            "keep": keep,
        }
        keys.append(task_key("run", run_agent, content))
        tasks[keys[-1]] = AgentTask(settings.payload(), payloads, bars_key, features, keep)
    answers = run_tasks(executor, run_agent, tasks, kept, shown)
    return [answers[key] for key in keys]
