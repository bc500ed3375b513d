"""A backtest from a script or a notebook, in memory, by the same parts as the command."""

import asyncio
import contextvars
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from agents.language_models.cassette import Cassette
from schemas.settings import Settings
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.assembly import given_playbooks
from thinktwice.boundary import trims_errors
from thinktwice.inputs import Playbooks, bars_of, playbooks_of, settings_of, symbols_of, warn_of_mistakes
from thinktwice.parts import (
    CriticParts,
    JudgePart,
    ModelPart,
    StrategistPart,
    asked_models,
    own_model,
    own_parts,
    settings_of_model,
    settings_of_parts,
)
from thinktwice.result import BacktestResult, Inputs
from worker.bootstrap import Overrides
from worker.models import Models
from worker.runs.backtest import run_backtest
from worker.runs.interrupts import Interrupts
from worker.runs.progress import progress_bar, speak_soon
from worker.runs.readiness import ready_engine

if TYPE_CHECKING:
    import pandas as pd

Answer = TypeVar("Answer")
Told = Callable[[int, int | None], None]  # bars done, and bars in all as far as that is known
Cancelled = dict[asyncio.Task[Any], int]
LOOK_S = 0.1  # between two looks at whether the task that waits was cancelled


@trims_errors
def backtest(
    bars: "pd.DataFrame | str | Path | None" = None,
    *,
    playbooks: Playbooks = None,
    settings: Settings | str | Path | None = None,
    reflection: Literal["off", "deterministic", "full"] | None = None,
    strategist: StrategistPart = None,
    judge: JudgePart = None,
    critics: CriticParts = (),
    model: ModelPart = None,
    symbols: Sequence[str] | None = None,
    timeframe: str | None = None,
    resample: str | None = None,
    tz: str | None = None,
    label: Literal["open", "close"] = "open",
    start: str | None = None,
    end: str | None = None,
    progress: Callable[[int, int], None] | bool = True,
    **changes: Any,
) -> BacktestResult:
    """Run a backtest with both reflections.

    Args:
        bars: a DataFrame with an index or a column of times and columns open, high, low, close, volume, in
            any case; with a column `symbol`, or columns like `AAPL_open`, of several symbols. A path of a
            file or folder as `--data` takes it. None: the embedded daily bars.
        playbooks: objects (`Playbook`), or a folder of playbook files, one file, or the name of one of ours;
            None: those of the settings, or the embedded ones.
        settings: `Settings`, or the path of a TOML file; None: the defaults.
        reflection: `off`, `deterministic` or `full`, which asks a model; None: as the settings have it.
        strategist: proposes instead of ours. A function is given ours, to ask or to wrap it. As text it is
            `rules`, `model`, or the name of an entry point; so are the parts below. Its plans may have
            rules of their own (`playbook_id` `own_NAME`); its `reads` are the features that those read.
        judge: decides instead of ours; likewise.
        critics: look at each proposal that breaks no guardrail; may send it back or end it, see `finding`.
        model: answers every prompt of this run, where a part of it asks a model.
        symbols: those that are traded, at least one; None: all. Of bars that name none, their name.
        timeframe: must match the spacing of the bars; None infers it.
        resample: trade longer bars that are made of these, such as `30m` or `1w`; an unfinished last one is
            left out with a warning.
        tz: zone of times that carry none.
        label: whether a time names the open or the close of its bar.
        start: first label kept, UTC.
        end: last label kept, UTC; a date means the whole day.
        progress: called with bars done and bars in all. True tells on stderr how far the run is: a bar in a
            terminal, elsewhere a line after one second and then every five; False tells nothing.
        changes: other settings by `SECTION__NAME`, such as `account__cash=50_000`.

    Raises:
        DataError: the bars cannot be used.
        ConfigError: a setting or a playbook is wrong.
    """
    before = cancelled_so_far()
    answering = own_model(model)
    parts = settings_of_parts(strategist, judge) | settings_of_model(model, answering)
    inputs = inputs_of(
        bars, playbooks, settings, reflection, symbols, timeframe, tz, label, start, end, changes,
        parts | {"data__resample": resample},
    )  # fmt: skip
    told_settings, models = asked_models(inputs.settings, answering)
    inputs = replace(inputs, settings=told_settings)
    own = own_parts(strategist, judge, critics)
    if playbooks is None or isinstance(playbooks, str | Path):  # objects were warned of when they were made
        warn_of_mistakes(inputs.playbooks, told_settings, stacklevel=4)
    if progress is True:
        speak_soon()
    ready_engine()
    with told_progress(progress) as told:
        result = in_own_loop(ran(inputs, own, told, models), before)
    for line in result.contained():
        warnings.warn(line, stacklevel=3)  # past `trims_errors`
    return result


@contextmanager
def told_progress(
    progress: Callable[[int, int], None] | bool,
) -> Iterator[Told | None]:
    """What is called with bars done and bars in all; None where nobody wants to hear it."""
    if progress is True:
        with progress_bar("backtest", Interrupts()) as draw:
            yield draw
    elif progress is False:
        yield None
    else:
        given = progress

        def pass_on(done: int, total: int | None) -> None:
            if total is not None:
                given(done, total)

        yield pass_on


def inputs_of(
    bars: Any, playbooks: Playbooks, base: Any, reflection: str | None, symbols: Sequence[str] | None,
    timeframe: str | None, tz: str | None, label: str, start: str | None, end: str | None,
    changes: Mapping[str, Any], parts: Mapping[str, Any] = MappingProxyType({}),
) -> Inputs:  # fmt: skip
    """What a run starts from, of the arguments of `backtest`; `parts` are settings that its parts stand for.

    Raises:
        DataError: the bars cannot be used.
        ConfigError: a setting or a playbook is wrong.
    """
    given = {
        **parts,
        "reflection__mode": reflection,
        "data__symbols": symbols_of(symbols),
        "data__timeframe": timeframe,
        "data__label": None if label == "open" else label,
        "runtime__tz": tz,
        "runtime__start": start,
        "runtime__end": end,
    }
    if isinstance(bars, str | Path):
        given["runtime__data"] = str(bars)
    told = settings_of(base, given, changes)
    books = tuple(given_playbooks(told, playbooks_of(playbooks)))
    of_frame = not (bars is None or isinstance(bars, str | Path))
    found = bars_of(bars if of_frame else told.runtime.data, told)
    return Inputs(told, found, books, of_frame, playbooks is not None)


async def ran(
    inputs: Inputs,
    own: Overrides,
    progress: Told | None = None,
    models: Models | None = None,
    cassette: Cassette | None = None,
) -> BacktestResult:
    """The result of a run over these inputs, its journal in memory; a cassette answers for the models."""
    sink = MemorySink()
    writer = JournalWriter(sink, inputs.settings.runtime.flush_rows)
    done = await run_backtest(
        inputs.settings, inputs.bars, writer, definitions=inputs.playbooks,
        progress=cancellable(progress), models=models, cassette=cassette, own=own,
    )  # fmt: skip
    return BacktestResult(inputs, own, done, sink.rows)


def cancellable(
    progress: Callable[[int, int | None], None] | None = None,
) -> Callable[[int, int | None], None]:
    """What is called between bars: passes on how far the work is, and ends it where its task is cancelled."""
    running = asyncio.current_task()

    def pass_on(done: int, total: int | None) -> None:
        # The engine yields to nobody between bars, so whoever wants to end the run is heard here.
        if running is not None and running.cancelling():
            raise asyncio.CancelledError
        if progress is not None:
            progress(done, total)

    return pass_on


def cancelled_so_far() -> Cancelled:
    """How often each task of the running event loop was cancelled; nothing where none runs."""
    try:
        return {task: task.cancelling() for task in asyncio.all_tasks()}
    except RuntimeError:
        return {}


def in_own_loop(work: Coroutine[Any, Any, Answer], before: Cancelled | None = None) -> Answer:
    """What comes of work; in a thread of its own where an event loop runs already, as in a notebook.

    Ctrl-C ends the work, and is raised once it has ended.

    Args:
        work: what is done.
        before: `cancelled_so_far` when the call began that asks for it; None: it begins now.
    """
    before = cancelled_so_far() if before is None else before
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    beside = _BesideALoop(work)
    thread = threading.Thread(target=contextvars.copy_context().run, args=(beside.run,), name="thinktwice")
    thread.start()
    try:
        _await_end(thread, before)
    except BaseException:
        beside.cancel()
        thread.join()
        raise
    if beside.failed is not None:
        raise beside.failed
    return cast("Answer", beside.ended)


def _await_end(thread: threading.Thread, before: Cancelled) -> None:
    """Wait until a thread ends, and hear what would only be told to a task that yields.

    The loop stands still meanwhile: a task that is cancelled now was cancelled by a signal, as the first of
    `asyncio.run` is by Ctrl-C, whichever task waits here.

    Raises:
        CancelledError: a task of the loop was cancelled.
    """
    while thread.is_alive():
        thread.join(LOOK_S)
        if thread.is_alive() and any(task.cancelling() > count for task, count in before.items()):
            raise asyncio.CancelledError


class _BesideALoop:
    """Work in a thread with a loop of its own; `ended` is what came of it, `failed` what it raised."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self._work = work
        self._task: asyncio.Task[Any] | None = None
        self._cancelled = False
        self.ended: Any = None
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            self.ended = asyncio.run(self._watch())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
            self.failed = error

    def cancel(self) -> None:
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()  # marks it; it looks at the mark after every bar
            self._task.get_loop().call_soon_threadsafe(lambda: None)

    async def _watch(self) -> Any:
        self._task = asyncio.current_task()
        if self._cancelled:
            self._work.close()
            raise asyncio.CancelledError
        return await self._work
