"""Whether the best of a store's runs on the same bars is more than the luck of many: nothing is decided."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from schemas.canonical import content_hash, ns_to_datetime
from schemas.errors import DataError, OperatorError
from services.journal.index import JournalIndex
from services.model_calls.quoting import count_noun
from services.statistics.blocks import Floats
from services.statistics.selection import (
    deflated_sharpe,
    overfitting_probability,
    sharpe_ratios,
    superior_ability,
)
from trading_core.accounting import bar_returns, bars_per_year
from worker.review.pictured import picture_of_rows
from worker.review.rebuilt import traded_bars
from worker.runs.stored_settings import stored_settings
from worker.runs.stored_trial import describe_trial

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from services.store.trials import TriedOn
    from worker.pages.run_picture import RunPicture

SEED = 0  # of the resampling: the same store gives the same answer
ARM = "ablation"  # an arm of a study measures a tier, and is no configuration that anyone would choose
LIMITS = ("configurations that no store has seen are not counted: what was tried elsewhere counts too",)
UNREAD = "its figures are not stored whole: it has not finished, was changed, or is of another version"


@dataclass(frozen=True)
class _Measured:
    """A run with its returns (T,), and what it tried, by its configuration without the seed."""

    run_id: str
    picture: "RunPicture"
    on: "TriedOn"
    returns: Floats


async def selected_runs(
    store: "Store", watched: Callable[[Iterable[Any]], Iterator[Any]] = iter
) -> dict[str, Any]:
    """What the best configuration is worth, for all bars that finished runs of a store traded, as plain data.

    Args:
        store: open.
        watched: passes the runs on, to show progress.

    Raises:
        ConfigError: arch is not installed.
        StoreError: a run or the ledger of trials is not what was written.
    """
    ledger = {trial.run_id: trial.on for trial in await store.trials.all()}
    groups, left = dict[str, list[_Measured]](), []
    for record in watched([record for record in await store.runs.all() if record.mode != ARM]):
        found = await _measure(store, record, ledger.get(record.run_id))
        if isinstance(found, str):
            left.append({"run": record.run_id, "reason": found})
            continue
        ledger[record.run_id] = found.on
        groups.setdefault(found.picture.bars.sha256, []).append(found)
    tried = list(ledger.values())
    return {"ranges": [_selection(runs, tried) for runs in groups.values()], "left_out": left}


async def _measure(store: "Store", record: "RunRecord", on: "TriedOn | None") -> "_Measured | str":
    """A run with its returns, or why they cannot be had; `on` as the ledger has it."""
    try:
        bars, settings = await traded_bars(store, record), stored_settings(record)
    except OperatorError as error:
        return str(error)
    if bars is None:
        return UNREAD
    index = await JournalIndex.read(store.journal.rows(record.run_id), lazily=True)
    picture = picture_of_rows(record, bars, index)
    returns = bar_returns(picture.curve, picture.times)
    if returns is None or not np.isfinite(returns).all():
        return "it has too few bars, or lost everything"
    begun = [version.definition for version in picture.versions if version.action_id is None]
    on = on or describe_trial(settings, begun, bars)
    values = {name: value for name, value in settings.hashed_values().items() if name != "seed"}
    return _Measured(record.run_id, picture, replace(on, config_hash=content_hash(values)), returns)


def _selection(runs: Sequence[_Measured], tried_on: "Sequence[TriedOn]") -> dict[str, Any]:
    distinct: dict[Any, _Measured] = {}
    for run in runs:
        distinct.setdefault(run.on.key, run)
    chosen = list(distinct.values())
    beside = len({on.key for on in tried_on if on.overlaps(chosen[0].on)} - distinct.keys())
    names = [run.run_id for run in chosen]
    returns = np.column_stack([run.returns for run in chosen])
    ratios, bars = sharpe_ratios(returns), chosen[0].picture.bars
    best, tried = int(np.argmax(ratios)), len(chosen) + beside
    repeated, limits = len(runs) - len(chosen), list(LIMITS)
    if repeated:
        limits.append(f"{count_noun(repeated, 'run')} of the same configuration or of another seed alone")
    if beside:
        limits.append(f"{count_noun(beside, 'configuration')} of other or unread bars: counted, not compared")
    spa, pbo = superior_ability(returns, np.zeros(len(returns)), seed=SEED), None
    try:
        pbo = overfitting_probability(returns).pbo
    except DataError as error:
        limits.append(f"no probability of overfitting: {error}")
    yearly = float(np.sqrt(bars_per_year(chosen[0].picture.times)))
    return {
        "timeframe": bars.timeframe,
        "symbols": list(bars.symbols),
        "start": ns_to_datetime(int(bars.times[0])).isoformat(),
        "end": ns_to_datetime(int(bars.times[-1])).isoformat(),
        "bars": len(returns),
        "configurations": len(chosen),
        "tried": tried,
        "best": names[best],
        "sharpe": float(ratios[best]) * yearly,
        "deflated_sharpe": deflated_sharpe(returns[:, best], ratios, tried),
        "pbo": pbo,
        "superior_p": spa.p,
        "superior": [names[column] for column in spa.better],
        "limits": limits,
    }
