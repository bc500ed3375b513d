"""`thinktwice trials`: what was tried in a store, by the bars that it was tried on, and what that costs next.

Bars that begin with the same row are one range, however far a run has come on them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from schemas.canonical import ns_to_datetime
from schemas.trials import TrialLedger
from services.model_calls.quoting import count_noun
from worker.cli.console import print_json, print_table
from worker.cli.options import DbOption, JsonOption, listed_runs
from worker.cli.runs import few
from worker.pages.tables import made_table

if TYPE_CHECKING:
    from services.store.trials import Trial

COUNTS = ("configurations", "hypotheses", "candidates", "promotions")


async def trials(db: DbOption = None, json: JsonOption = False) -> None:
    """List what was tried in a store on which bars, and what the next run on them starts with."""
    async with listed_runs(db) as (store, _):
        found = [] if store is None else await store.trials.all()
    ranges = [_range(tried, found) for tried in _by_bars(found)]
    if json:
        print_json({"ranges": ranges})
        return
    if ranges:
        _render(ranges)


def _by_bars(found: "Sequence[Trial]") -> "list[list[Trial]]":
    ranges: dict[str, list[Trial]] = {}
    for trial in found:
        ranges.setdefault(trial.on.data, []).append(trial)
    return list(ranges.values())


def _range(runs: "Sequence[Trial]", every: "Sequence[Trial]") -> dict[str, Any]:
    """One range of bars; `next` is for a configuration that was not tried on them."""
    from services.store.trials import TriedOn, by_key, count_before, sum_trials

    on = runs[0].on
    last = max(label for run in runs if (label := run.on.last_label) is not None)
    new = TriedOn("", "", on.data, on.timeframe, on.symbols, on.first_label, last)
    tried, coming = sum_trials(by_key(runs).values()), count_before(every, new)
    return {
        "timeframe": on.timeframe,
        "symbols": list(on.symbols),
        "start": ns_to_datetime(on.first_label).isoformat(),
        "end": ns_to_datetime(last).isoformat(),
        "runs": [run.run_id for run in runs],
        **{name: getattr(tried, name) for name in COUNTS},
        "next": {name: getattr(coming, name) for name in COUNTS},
    }


def _render(ranges: Sequence[dict[str, Any]]) -> None:
    from rich.table import Column

    heads = (
        Column("bars", overflow="fold"),
        *(Column(name, no_wrap=True) for name in ("runs", *COUNTS)),
        Column("the next run starts with", overflow="fold"),
    )
    print_table(made_table(heads, map(_cells, ranges), pad_edge=False))


def _cells(stretch: dict[str, Any]) -> list[str]:
    coming = stretch["next"]
    return [
        f"{stretch['timeframe']} {few(stretch['symbols'])} {stretch['start'][:10]} to {stretch['end'][:10]}",
        f"{len(stretch['runs']):,}",
        *(f"{stretch[name]:,}" for name in COUNTS),
        f"{count_noun(coming['configurations'], 'configuration')}, {TrialLedger(**coming).sums}",
    ]
