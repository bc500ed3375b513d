"""`thinktwice sweep`: many parameter sets at once, and what such a search is worth."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError, nearest
from schemas.settings import Settings
from services.text.given_files import parse_toml, read_text
from worker.cli import options
from worker.cli.options import FILE, option, run_settings, takes
from worker.cli.outcome import checked_folder
from worker.cli.printing import complain, print_document
from worker.cli.stores import open_for_writing
from worker.pages.figures import shown_cell
from worker.runs.interrupts import Interrupts, run_async
from worker.runs.out_folder import json_text
from worker.runs.progress import progress_bar
from worker.runs.readiness import ready_engine
from worker.runs.run_inputs import load_traded_bars, playbooks

if TYPE_CHECKING:
    from worker.studies.sweep.result import SweepResult
    from worker.studies.sweep.sets import Family

EXECUTION = "execution."


@takes("data", "symbols", "timeframe", "start", "end", *FILE, after="config")
@takes("fee", "slippage", "seed", after="embargo")
def sweep(
    context: typer.Context,
    config: options.Config = None,
    grid: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="TOML: entry or playbook, keywords such as stop_pct, and [grid], lists of values by name.",
        ),
    ] = None,
    random: Annotated[
        int | None, option(metavar="N", min=1, help="Draw N sets of the grid by the seed. [all]")
    ] = None,
    playbook: Annotated[
        str | None, option(metavar="ID", help="Sweep the values that a playbook allows its parameters.")
    ] = None,
    folds: Annotated[int, typer.Option(min=1, help="Stretches of bars looked at out of sample.")] = 5,
    scheme: Annotated[str, typer.Option(help="anchored, rolling or combinatorial.")] = "anchored",
    embargo: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Bars around a stretch whose trades do not count to choose."),
    ] = 0.01,
    i_know: Annotated[
        bool, typer.Option("--i-know", help="Show the best set although the search is overfitted.")
    ] = False,
    level: Annotated[
        str,
        typer.Option(
            help="rule, or agent: each set is a whole run, which asks the models of CONFIG; the grid names "
            "settings and PLAYBOOK.PARAMETER."
        ),
    ] = "rule",
    cluster: Annotated[
        str | None, option(metavar="ADDRESS", help="Dask scheduler, tcp://HOST:PORT, or local. [processes]")
    ] = None,
    processes: Annotated[
        int | None, option(metavar="N", min=1, help="Processes that trade sets. [one a processor]")
    ] = None,
    resume: Annotated[
        Path | None,
        option(metavar="DIR", help="Keep answers there; a sweep that was ended goes on and repeats nothing."),
    ] = None,
    keep: Annotated[
        Path | None, option(metavar="DIR", help="Write the store of each run there, at level agent.")
    ] = None,
    out: Annotated[
        str | None, option(metavar="DIR", help="Write sweep.json, sweep.html and sweep.parquet.")
    ] = None,
    db: Annotated[
        str | None, option("--db", metavar="URL", help="Store in whose ledger the search is entered. [none]")
    ] = None,
    json: options.Json = False,
) -> None:
    """Trade every parameter set of a rule or playbook by itself, and say what the search is worth.

    The first lines are the answer: whether the family beats holding (SPA), whether the best in sample is good
    out of sample (probability of overfitting, walk-forward), and what luck gives so many sets (deflated
    Sharpe). Most searches are worth nothing, and then it says so.

    GRID names settings as they are called, such as execution.fee_bps, keywords of a rule's terms, such as
    stop_pct, and parameters in braces. With --db the search is one row in the ledger of that store, entered
    before it begins; without it nothing is written.
    """
    settings = run_settings(context).settings
    from services.statistics.folds import splits_of
    from worker.studies.sweep.result import enter_sweep
    from worker.studies.sweep.tasks import SweepTasks
    from worker.studies.sweep.worth import Looking

    tasks = SweepTasks(cluster, processes, resume, keep, level)
    family = (_of_runs if level == "agent" else _family)(settings, grid, playbook, random)
    looking = Looking(folds, scheme, embargo, settings.seed)  # type: ignore[arg-type]  # refuses other words
    bars, folder = load_traded_bars(settings, complain), checked_folder(settings)
    splits_of(bars.shape[0], folds, looking.scheme)  # refused before the search is entered

    async def enter() -> int:
        async with await open_for_writing(settings.runtime.db) as store:
            return await enter_sweep(store, bars, family)

    before = run_async(enter()) if db is not None else 0
    ready_engine()
    from worker.studies.sweep.result import sweep_bars

    with Interrupts("set") as interrupts, progress_bar("sweeping", interrupts, "sets") as progress:

        def show(done: int, total: int | None) -> None:
            progress(len(family) * done // max(total or 0, 1), len(family))

        run = replace(tasks, shown=show).run
        found = sweep_bars(bars, family, looking, before=before, run=run)
    document = found.document(i_know=i_know)
    if folder is not None:
        files = {"sweep.json": json_text(document), "sweep.html": found.html()}
        folder.write_files(files, "the sweep was made")
        found.to_parquet(folder.path / "sweep.parquet")
    print_document(document, json, lambda shown: _lines(found, shown))


def _lines(found: "SweepResult", document: Mapping[str, Any]) -> list[str]:
    best = document["best"]
    shown = "" if best is None else ", ".join(f"{name} {shown_cell(value)}" for name, value in best.items())
    held = "not shown: the search is overfitted, --i-know shows it"
    return [*found.lines(), f"best in sample: {shown or held}", "--json and --out hold every set"]


def _family(settings: Settings, file: Path | None, playbook: str | None, draws: int | None) -> "Family":
    from trading_core.research.simulation import SWITCHES
    from worker.studies.sweep.sets import Family, family_of_playbook

    given = {} if file is None else _read(file)
    values = given.pop("grid", None)
    if values is not None and not isinstance(values, Mapping):
        raise ConfigError(f"{str(file)!r}: grid is {values!r}: give a table of lists")
    chosen = {name: getattr(settings.execution, name) for name in SWITCHES}
    terms = chosen | {name.removeprefix(EXECUTION): value for name, value in given.items()}
    grid = None if values is None else {name.removeprefix(EXECUTION): v for name, v in values.items()}
    book = terms.pop("playbook", None) if playbook is None else playbook
    if "entry" in terms and book is not None:
        raise ConfigError("a sweep is of a rule or of a playbook: give entry or playbook")
    if "entry" in terms:
        return Family(terms, grid or {}, draws=draws, seed=settings.seed)
    if book is None:
        raise ConfigError("what is swept? give --playbook ID, or --grid FILE that names entry or playbook")
    books = {known.id: known for known in playbooks(settings)}
    if book not in books:
        raise ConfigError(f"playbook {book!r} is not there.{nearest(str(book), books)}")
    return family_of_playbook(books[book], grid, terms, draws, settings.seed)


def _of_runs(settings: Settings, file: Path | None, playbook: str | None, draws: int | None) -> "Family":
    from worker.studies.sweep.agent_family import AgentFamily

    if file is None:
        raise ConfigError("what is swept? at --level agent give --grid FILE with a table [grid]")
    given = _read(file)
    values = given.pop("grid", None)
    if not isinstance(values, Mapping) or given:
        raise ConfigError(f"{str(file)!r}: at --level agent it holds [grid] alone; the rest stands in CONFIG")
    flat: dict[str, Any] = {}
    for name, found in values.items():  # a dotted name without quotes is a table of TOML
        flat |= (
            {f"{name}.{key}": v for key, v in found.items()} if isinstance(found, Mapping) else {name: found}
        )
    books = playbooks(settings)
    chosen = tuple(book for book in books if playbook in (None, book.id))
    if not chosen:
        raise ConfigError(
            f"playbook {playbook!r} is not there.{nearest(str(playbook), [b.id for b in books])}"
        )
    return AgentFamily.of(settings, chosen, flat, draws)


def _read(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_text(path, ConfigError))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error
