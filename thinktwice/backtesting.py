"""A backtest from a script or a notebook, in memory, by the same parts as the command."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from schemas.settings import Settings
from services.playbooks.assembly import given_playbooks
from thinktwice.boundary import trims_errors
from thinktwice.inputs import (
    Inputs,
    Playbooks,
    bars_of,
    playbooks_of,
    settings_of,
    symbols_of,
    warn_of_mistakes,
)
from thinktwice.loops import cancelled_so_far, in_own_loop
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
from thinktwice.result import BacktestResult, run_in_memory
from worker.runs.interrupts import Interrupts
from worker.runs.progress import progress_bar, speak_soon
from worker.runs.readiness import ready_engine

if TYPE_CHECKING:
    import pandas as pd

Shown = Callable[[int, int | None], None]  # bars done, and bars in all as far as that is known


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
            `rules`, `model`, `MODULE:NAME`, or the name of an entry point; so are the parts below. Its plans
            may have rules of their own (`playbook_id` `own_NAME`); its `reads` are the features of those.
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
    with told_progress(progress) as shown:
        result = in_own_loop(run_in_memory(inputs, own, shown, models), before)
    for line in result.contained():
        warnings.warn(line, stacklevel=3)  # past `trims_errors`
    return result


@contextmanager
def told_progress(
    progress: Callable[[int, int], None] | bool,
) -> Iterator[Shown | None]:
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
    shown = settings_of(base, given, changes)
    books = tuple(given_playbooks(shown, playbooks_of(playbooks)))
    of_frame = not (bars is None or isinstance(bars, str | Path))
    found = bars_of(bars if of_frame else shown.runtime.data, shown)
    return Inputs(shown, found, books, of_frame, playbooks is not None)
