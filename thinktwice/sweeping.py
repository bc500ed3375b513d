"""`sweep`: many parameter sets of a rule or a playbook at once, and what such a search is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from schemas.errors import ConfigError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.playbooks.assembly import given_playbooks
from services.statistics.folds import splits_of
from thinktwice.boundary import trims_errors
from thinktwice.inputs import bars_of, path_of, settings_of, symbols_of
from thinktwice.loops import cancelled_so_far, in_own_loop
from thinktwice.named_parts import NamedParts, named_parts
from thinktwice.parts import asked_models, own_model, settings_of_model, settings_of_parts
from thinktwice.stores import store_address
from worker.runs.readiness import ready_once
from worker.studies.sweep.agent_family import AgentFamily
from worker.studies.sweep.result import SweepResult, enter_sweep, sweep_bars
from worker.studies.sweep.sets import Family, family_of_playbook
from worker.studies.sweep.tasks import SweepTasks
from worker.studies.sweep.worth import Looking

if TYPE_CHECKING:
    import pandas as pd

OF_RUNS = ("settings", "reflection", "strategist", "judge", "critics", "model")


@trims_errors
def sweep(
    bars: "pd.DataFrame | str | Path | None" = None,
    rule: str | PlaybookDefinition | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    level: Literal["rule", "agent"] = "rule",
    random: int | None = None,
    seed: int | None = None,
    folds: int = 5,
    scheme: Literal["anchored", "rolling", "combinatorial"] = "anchored",
    embargo: float = 0.01,
    symbols: Sequence[str] | None = None,
    tz: str | None = None,
    start: str | None = None,
    end: str | None = None,
    db: str | None = None,
    executor: Any = None,
    processes: int | None = None,
    resume: str | Path | None = None,
    keep: str | Path | None = None,
    **terms: Any,
) -> SweepResult:
    """Trade every parameter set of a rule as `simulate` would, and say what the search is worth.

    Print the result first: its lines are the verdict. The best set of a search is the luckiest one too.

    Args:
        bars: as `backtest` takes them.
        rule: an entry rule with parameters in braces; or a playbook, traded by its rules alone, in every
            regime, over the values that it allows its parameters. None: `crosses_above(sma_{f}, sma_{s})`, or
            at level `agent` the playbooks of the settings.
        grid: lists of values, by the name of a parameter in braces or of a keyword of `simulate`, `symbols`
            and `entry` among them; every combination is a set.
        level: `agent` makes each set a whole run: grid and terms are settings, `execution__fee_bps`, and
            parameters of playbooks, `mean_reversion__depth`; terms are also `settings`, `reflection`,
            `strategist`, `judge`, `critics` and `model` of `backtest`. Each run imports such parts by name: a
            class or function of a module, or `MODULE:NAME`. Every run asks its models and has its own budget.
        random: how many sets are drawn from the grid, without repeats; None: all.
        seed: of the draw and of the resampling; None: that of `settings`.
        folds: stretches of bars that are looked at out of sample.
        scheme: `anchored` or `rolling` walk-forward over the second half of the bars, or `combinatorial`.
        embargo: share of the bars around such a stretch whose trades do not count to choose.
        symbols: see `simulate`.
        tz: see `simulate`.
        start: see `simulate`.
        end: see `simulate`.
        db: URL of the store in whose ledger the search is entered before it begins; None writes nothing.
        executor: where the sets are traded: `serial`, `processes`, `local` or the address of a Dask
            scheduler, or a Dask Client; None: processes where there is more than one task.
        processes: how many; None: one a processor.
        resume: folder of answers; a sweep that was ended goes on from there and repeats nothing.
        keep: folder that takes the store of each run, at level `agent`.
        terms: keywords of `simulate` that every set has; rules among them may name parameters in braces.

    Raises:
        DataError: the bars cannot be used.
        ConfigError: the grid names what is no parameter, or has too many sets for one search.
    """
    before = cancelled_so_far()
    kept, stores = path_of("resume", resume), path_of("keep", keep)
    own = {name: terms.pop(name) for name in OF_RUNS if name in terms} if level == "agent" else {}
    base, mode = own.pop("settings", None), own.pop("reflection", None)
    parts = named_parts(**own)
    tasks = SweepTasks(executor, processes, kept, stores, level, parts=parts)
    given: dict[str, Any] = {"runtime__tz": tz, "runtime__start": start, "runtime__end": end}
    given |= {"data__symbols": symbols_of(symbols), "seed": seed}
    data = {name: terms.pop(name) for name in [*terms] if name.startswith("data__")}
    address = None if db is None else store_address(db)
    values = {name: _plain(found) for name, found in (grid or {}).items()}
    if level == "agent":
        model, answering = own.get("model"), own_model(own.get("model"))
        given |= settings_of_parts(own.get("strategist"), own.get("judge")) | settings_of_model(
            model, answering
        )
        shown, _ = asked_models(
            settings_of(base, given | {"reflection__mode": mode}, terms | data), answering
        )
        family: Family = _of_runs(shown, rule, values, random, parts)
    else:
        shown = settings_of(None, given, data)
        family = _family(rule, None if grid is None else values, terms, random, shown.seed)
    series = bars_of(bars, shown)
    looking = Looking(folds, scheme, embargo, shown.seed)
    splits_of(series.shape[0], folds, looking.scheme)  # refused before the search is entered
    ready_once()
    tried = 0 if address is None else in_own_loop(_enter(address, series, family), before)
    return sweep_bars(series, family, looking, before=tried, run=tasks.run)


def _plain(values: Any) -> Any:
    """Values of an array, and those of numpy in a list, as Python has them."""
    if isinstance(values, list | tuple):
        return [_plain(value) for value in values]
    return values.tolist() if hasattr(values, "tolist") else values


async def _enter(address: str, series: Any, family: Family) -> int:
    from services.store import open_store

    async with await open_store(address, create=True) as store:
        return await enter_sweep(store, series, family)


def _of_runs(
    shown: Settings, rule: Any, grid: Mapping[str, Sequence[Any]], draws: int | None, parts: NamedParts
) -> AgentFamily:
    if rule is not None and not isinstance(rule, PlaybookDefinition):
        raise ConfigError(
            f"rule {rule!r}: at level 'agent' give a playbook, or None for those of the settings"
        )
    books = (rule,) if rule is not None else tuple(given_playbooks(shown, None))
    family = AgentFamily.of(shown, books, grid, draws)
    return replace(family, terms={**family.terms, "parts": [list(part) for part in parts.named]})


def _family(
    rule: Any, grid: Mapping[str, Sequence[Any]] | None, terms: dict[str, Any], draws: int | None, seed: int
) -> Family:
    if isinstance(rule, PlaybookDefinition):
        return family_of_playbook(rule, grid, terms, draws, seed)
    rule = "crosses_above(sma_{f}, sma_{s})" if rule is None else rule
    if not isinstance(rule, str):
        raise ConfigError(f"rule is a {type(rule).__name__}: give the text of a rule, or a playbook")
    return Family({"entry": rule, **terms}, grid or {}, draws=draws, seed=seed)
