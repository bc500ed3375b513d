"""A backtest from a script or a notebook, in memory, by the same parts as the command."""

import asyncio
import contextvars
import threading
import warnings
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from schemas.errors import ConfigError
from schemas.settings import Settings
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.ports import Judge, Strategist
from thinktwice.inputs import Playbooks, bars_of, playbooks_of, settings
from thinktwice.result import BacktestResult, Inputs
from worker.bootstrap import OwnParts, given_playbooks
from worker.runs.backtest import run_backtest

if TYPE_CHECKING:
    import pandas as pd

Answer = TypeVar("Answer")
Part = TypeVar("Part")
OF_A_JUDGE = "validate_boundary", "validate_amendment", "replan"


def backtest(
    bars: "pd.DataFrame | str | Path | None" = None,
    *,
    playbooks: Playbooks = None,
    settings: Settings | str | Path | None = None,
    reflection: Literal["off", "deterministic", "full"] | None = None,
    strategist: Strategist | Callable[[Strategist], Strategist] | None = None,
    judge: Judge | Callable[[Judge], Judge] | None = None,
    symbols: Sequence[str] = (),
    timeframe: str | None = None,
    tz: str | None = None,
    label: Literal["open", "close"] = "open",
    start: str | None = None,
    end: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **changes: Any,
) -> BacktestResult:
    """Run a backtest with both reflections.

    Args:
        bars: a DataFrame with an index or a column of times and columns open, high, low, close, volume, in
            any case; with a column `symbol`, or columns like `AAPL_open`, of several symbols. A path of a
            file or folder as `--data` takes it. None: the embedded daily bars.
        playbooks: objects (`Playbook`), or a folder of playbook files; None: those of the settings, or the
            embedded ones.
        settings: `Settings`, or the path of a TOML file; None: the defaults.
        reflection: `off`, `deterministic` or `full`, which asks a model; None: as the settings have it.
        strategist: proposes instead of ours. A function is given ours, to ask or to wrap it.
        judge: decides instead of ours; likewise.
        symbols: those that are traded; of bars that name none, their name.
        timeframe: must match the spacing of the bars; None infers it.
        tz: zone of times that carry none.
        label: whether a time names the open or the close of its bar.
        start: first label kept, UTC.
        end: last label kept, UTC; a date means the whole day.
        progress: called with bars done and bars in all.
        changes: other settings by `SECTION__NAME`, such as `account__cash=50_000`.

    Raises:
        DataError: the bars cannot be used.
        ConfigError: a setting or a playbook is wrong.
    """
    inputs = _inputs(
        bars, playbooks, settings, reflection, symbols, timeframe, tz, label, start, end, changes
    )
    own = OwnParts(_around(strategist, "answer"), _around(judge, *OF_A_JUDGE))
    return in_own_loop(ran(inputs, own, progress))


def _inputs(
    bars: Any, playbooks: Playbooks, base: Any, reflection: str | None, symbols: Sequence[str],
    timeframe: str | None, tz: str | None, label: str, start: str | None, end: str | None,
    changes: dict[str, Any],
) -> Inputs:  # fmt: skip
    given = {
        "reflection__mode": reflection,
        "data__symbols": [symbols] if isinstance(symbols, str) else list(symbols) or None,
        "data__timeframe": timeframe,
        "data__label": None if label == "open" else label,
        "runtime__tz": tz,
        "runtime__start": start,
        "runtime__end": end,
    }
    told = settings(base, **{name: value for name, value in given.items() if value is not None}, **changes)
    books = tuple(given_playbooks(told, playbooks_of(playbooks)))
    return Inputs(told, bars_of(told.runtime.data if bars is None else bars, told), books)


async def ran(
    inputs: Inputs, own: OwnParts, progress: Callable[[int, int], None] | None = None
) -> BacktestResult:
    """The result of a run over these inputs, its journal in memory."""
    sink = MemorySink()
    writer = JournalWriter(sink, inputs.settings.runtime.flush_rows)
    done = await run_backtest(
        inputs.settings, inputs.bars, writer, definitions=inputs.playbooks, progress=progress, own=own
    )
    result = BacktestResult(inputs, own, done, sink.rows)
    if failures := [event.payload for event in result.index.of_kind("error")]:
        first = failures[0]
        told = f"{first['where']}: {first['type']}: {first['message']}"
        warnings.warn(f"{len(failures)} error(s) were contained in this run, first {told}", stacklevel=2)
    return result


def in_own_loop(work: Coroutine[Any, Any, Answer]) -> Answer:
    """What comes of work; in a thread of its own where an event loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    ended: list[Answer] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            ended.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
            failed.append(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="thinktwice")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return ended[0]


def _around(given: Any, *methods: str) -> Callable[[Part], Part]:
    """How a part of the caller's stands around ours: as it is, made by a function of ours, or not at all."""
    if given is None:
        return lambda ours: ours
    if not isinstance(given, type) and any(hasattr(given, method) for method in methods):
        _demand(given, methods, repr(given))
        return lambda ours: given

    def made(ours: Part) -> Part:
        found: Part = given(ours)
        _demand(found, methods, f"{given!r} gave {found!r}, which")
        return found

    if not callable(given):
        raise ConfigError(f"{given!r} has no method {methods[0]!r} and is no function of ours either")
    return made


def _demand(part: object, methods: Sequence[str], told: str) -> None:
    missing = next((method for method in methods if not hasattr(part, method)), None)
    if missing is not None:
        raise ConfigError(f"{told} has no method {missing!r}: write it, or hand the call on to ours")
