"""`thinktwice ablate`: is each tier worth having, on the same bars with it, without it, and with a coin."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.settings import Settings
from services.model_calls.quoting import count_noun
from worker.cli import wiring
from worker.cli.console import complain, print_document, stdout_console
from worker.cli.options import JsonOption, open_for_writing, option
from worker.cli.run_options import FILE, ConfigArgument, run_name, run_settings, takes
from worker.cli.wiring import features_of, load_bars, tell_of_doubts
from worker.pages.ablation_pages import (
    ARM_HEAD,
    PAPER_HEAD,
    arm_row,
    how_told,
    paper_row,
    rates_told,
    tier_lines,
)
from worker.pages.tables import made_table
from worker.runs.interrupts import Interrupts, run_async
from worker.runs.progress import progress_bar
from worker.runs.readiness import ready_engine
from worker.runs.store_run import Progress

if TYPE_CHECKING:
    from rich.table import Table

    from trading_core.bars import BarSeries
    from worker.cli.out_folder import OutFolder
    from worker.studies.ablation.worth import Watched


MOST_SEEDS = 1_000


SeedsOption = Annotated[
    int, typer.Option(min=0, max=MOST_SEEDS, help="Runs of the random veto, each with its own seed.")
]
KeepAllOption = Annotated[
    bool, typer.Option("--keep-all", help="Store the run of every seed; else only that of seed 0.")
]
OutOption = Annotated[
    str | None, option(metavar="DIR", help="Write ablation.json, ablation.md and ablation.html.")
]


@takes("data", "symbols", "timeframe", "start", "end", *FILE, after="config")
@takes("model", "llm", "cassette", "db", after="keep_all")
def ablate(
    context: typer.Context,
    config: ConfigArgument = None,
    seeds: SeedsOption = 20,
    keep_all: KeepAllOption = False,
    out: OutOption = None,
    json: JsonOption = False,
) -> None:
    """Measure what each tier is worth: the same bars with it and without it, one arm after the other.

    Arms: no reflection; the fast reflection alone (slow loop off); both by rules; both with a model, where
    one is configured; and no reflection but a coin that vetoes plans as often as the fast reflection did,
    without looking at them, once for each seed.

    Each answer is helped, hurt or unknown, from the difference of returns after costs in each calendar
    month (week on intraday bars). It is unknown whenever the interval holds 0, and that is the usual answer:
    a few years rarely tell. A tier that earned more than nothing but no more than the coin is called no
    better than chance at the same rate: it traded less, and that was all.

    Every arm is a stored run with mode `ablation` that `thinktwice verify` plays again. The shadow ledger
    says what refused plans would have made; it belongs to no account.
    """
    settings = run_settings(context).settings
    document = _measure(settings, run_name(config, settings), seeds, keep_all)
    print_document(document, json, render)
    wrong = [arm["arm"] for arm in document["arms"] if arm["run"] is not None and arm["run"]["errors"]]
    if wrong:
        complain(f"errors in {', '.join(wrong)}: see `thinktwice journal RUN --kind error` of its run")
        raise typer.Exit(1)


def _measure(settings: Settings, name: str, seeds: int, keep_all: bool) -> dict[str, Any]:
    """Check everything, run every arm, write what was asked for.

    Raises:
        ConfigError: something is wrong; nothing has been made then.
    """
    from worker.cli.out_folder import OutFolder
    from worker.studies.ablation.arms import Arm, has_model, settings_of

    bars = load_bars(settings)
    tell_of_doubts(bars, settings)
    definitions = wiring.traded_playbooks(settings)
    wiring.demand_known_symbols(settings, bars)
    wiring.demand_models(settings_of(Arm.FULL if has_model(settings) else Arm.DETERMINISTIC, settings))
    folder = None if settings.runtime.out is None else OutFolder(Path(settings.runtime.out))
    if folder is not None:
        folder.check()

    async def measure() -> dict[str, Any]:
        async with await open_for_writing(settings.runtime.db) as store:
            ready_engine()
            from worker.studies.ablation.worth import measured_worth

            with _watching(bars) as watched:
                return await measured_worth(
                    settings, bars, definitions, store, watched, name=name, seeds=seeds, keep_all=keep_all
                )

    document = run_async(measure())
    if folder is not None:
        _write(folder, document)
    return document


@contextmanager
def _watching(bars: "BarSeries") -> Iterator["Watched"]:
    with Interrupts() as interrupts:

        @contextmanager
        def watch(title: str) -> Iterator[Progress]:
            with progress_bar(title, interrupts, first=features_of(bars.symbols)) as progress:
                yield progress

        yield watch


def _write(folder: "OutFolder", document: dict[str, Any]) -> None:
    from worker.cli.out_folder import json_text
    from worker.pages.ablation_pages import ablation_html, ablation_markdown

    files = {
        "ablation.json": json_text(document),
        "ablation.md": ablation_markdown(document),
        "ablation.html": ablation_html(document),
    }
    folder.write_files(files, "the runs are stored")


def render(document: dict[str, Any]) -> None:
    """Print arms, answers and the shadow ledger."""
    console = stdout_console()
    data = document["data"]
    head = f"{', '.join(data['symbols'])}   {data['timeframe']}   {count_noun(data['bars'], 'bar')}"
    console.print(head, soft_wrap=True)
    console.print()
    console.print(_table(ARM_HEAD, [arm_row(arm) for arm in document["arms"]], 2))
    for tier in document["tiers"]:
        console.print()
        console.print(f"{tier['tier']}: {tier['answer'] or tier['reason']}", style="bold", soft_wrap=True)
        for line in tier_lines(tier):
            console.print(f"  {line}", soft_wrap=True)
    if document["shadow_ledger"]:
        console.print()
        title = "Shadow ledger: what refused plans would have made, on paper and after costs"
        console.print(title, style="bold")
        console.print(_table(PAPER_HEAD, [paper_row(row) for row in document["shadow_ledger"]], 1))
    console.print()
    console.print(how_told(document), soft_wrap=True)
    if document["random_veto"]["seeds"]:
        console.print(rates_told(document), soft_wrap=True)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> "Table":
    from rich.table import Column

    heads: list[str | Column] = [
        *head[:names],
        *(Column(name, justify="right", no_wrap=True) for name in head[names:]),
    ]
    return made_table(heads, rows, pad_edge=False, padding=(0, 2, 0, 0))
