"""`thinktwice sweep`: many parameter sets at once, and what such a search is worth."""

import json as json_format
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError, nearest
from schemas.settings import Settings
from services.text.given_files import parse_toml, read_text
from worker.cli.options import (
    FILE,
    ConfigArgument,
    JsonOption,
    open_for_writing,
    option,
    run_settings,
    takes,
)
from worker.cli.outcome import checked_folder
from worker.cli.printing import complain, print_document
from worker.runs.interrupts import Interrupts, run_async
from worker.runs.out_folder import json_text
from worker.runs.progress import progress_bar
from worker.runs.readiness import ready_engine
from worker.runs.run_inputs import load_traded_bars, playbooks

if TYPE_CHECKING:
    from trading_core.bars import BarSeries
    from worker.studies.sweep.result import SweepResult
    from worker.studies.sweep.sets import Family
    from worker.studies.sweep.worth import Looking

EXECUTION = "execution."


@takes("data", "symbols", "timeframe", "start", "end", *FILE, after="config")
@takes("fee", "slippage", "seed", after="embargo")
def sweep(
    context: typer.Context,
    config: ConfigArgument = None,
    grid: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="TOML or JSON: entry or playbook, terms, and [grid] with a list of values for each name.",
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
    out: Annotated[
        str | None, option(metavar="DIR", help="Write sweep.json, sweep.html and sweep.parquet.")
    ] = None,
    db: Annotated[
        str | None, option("--db", metavar="URL", help="Store in whose ledger the search is entered. [none]")
    ] = None,
    json: JsonOption = False,
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
    from worker.studies.sweep.result import enter_sweep
    from worker.studies.sweep.worth import Looking

    family = _family(settings, grid, playbook, random)
    looking = Looking(folds, scheme, embargo, settings.seed)  # type: ignore[arg-type]  # refuses other words
    bars, folder = load_traded_bars(settings, complain), checked_folder(settings)
    looking.splits(bars.shape[0])

    async def enter() -> int:
        async with await open_for_writing(settings.runtime.db) as store:
            return await enter_sweep(store, bars, family)

    before = run_async(enter()) if db is not None else 0
    found = _run(bars, family, looking, before)
    document = found.document(i_know=i_know)
    if folder is not None:
        files = {"sweep.json": json_text(document), "sweep.html": found.html()}
        folder.write_files(files, "the sweep was made")
        found.to_parquet(folder.path / "sweep.parquet")
    print_document(document, json, lambda shown: _lines(found, shown))


def _run(bars: "BarSeries", family: "Family", looking: "Looking", before: int) -> "SweepResult":
    ready_engine()
    from worker.studies.sweep.result import SetRows, run_serially, sweep_bars

    with Interrupts() as interrupts, progress_bar("sweeping", interrupts, "sets") as progress:

        def watch(series: "BarSeries", chunks: Sequence[Sequence[Mapping[str, Any]]]) -> "SetRows":
            done = 0
            for rows in run_serially(series, chunks):
                done += len(rows)
                progress(done, len(family))
                yield rows

        found = sweep_bars(bars, family, looking, before=before, run=watch)
    return found


def _lines(found: "SweepResult", document: Mapping[str, Any]) -> list[str]:
    best = document["best"]
    shown = "" if best is None else ", ".join(f"{name} {_short(value)}" for name, value in best.items())
    held = "not shown: the search is overfitted, --i-know shows it"
    return [*found.lines(), f"best in sample: {shown or held}", "--json and --out hold every set"]


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _family(settings: Settings, file: Path | None, playbook: str | None, draws: int | None) -> "Family":
    """The sets that a file and a configuration name.

    Raises:
        ConfigError: the file cannot be read, or names neither a rule nor a playbook.
    """
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


def _read(path: Path) -> dict[str, Any]:
    text = read_text(path, ConfigError)
    try:
        found = json_format.loads(text) if path.suffix == ".json" else parse_toml(text)
    except ValueError as error:
        raise ConfigError(f"{str(path)!r} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{str(path)!r} holds a {type(found).__name__}: give a table")
    return found
