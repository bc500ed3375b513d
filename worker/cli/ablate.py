"""`thinktwice ablate`: is each tier worth having, on the same bars with it, without it, and with a coin."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.settings import Settings
from worker.cli import options
from worker.cli.options import FILE, MODELS, option, run_name, run_settings, takes
from worker.cli.outcome import checked_folder
from worker.cli.printing import complain, print_document
from worker.cli.stores import open_for_writing
from worker.runs.interrupts import Interrupts, run_async
from worker.runs.out_folder import json_text
from worker.runs.progress import Progress, progress_bar
from worker.runs.readiness import ready_engine
from worker.runs.run_inputs import describe_features, prepare_run, require_models

if TYPE_CHECKING:
    from trading_core.bars import BarSeries
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
@takes(*MODELS, "db", after="keep_all")
def ablate(
    context: typer.Context,
    config: options.Config = None,
    seeds: SeedsOption = 20,
    keep_all: KeepAllOption = False,
    out: OutOption = None,
    json: options.Json = False,
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
    from worker.pages.ablation_pages import ablation_markdown

    print_document(document, json, lambda found: ablation_markdown(found).splitlines())
    wrong = [arm["arm"] for arm in document["arms"] if arm["run"] is not None and arm["run"]["errors"]]
    if wrong:
        complain(f"errors in {', '.join(wrong)}: see `thinktwice journal RUN --kind error` of its run")
        raise typer.Exit(1)


def _measure(settings: Settings, name: str, seeds: int, keep_all: bool) -> dict[str, Any]:
    from worker.studies.ablation.arms import Arm, has_model, settings_of

    bars, definitions = prepare_run(settings, complain)
    require_models(settings_of(Arm.FULL if has_model(settings) else Arm.DETERMINISTIC, settings))
    folder = checked_folder(settings)

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
        from worker.pages.ablation_pages import ablation_html, ablation_markdown

        files = {
            "ablation.json": json_text(document),
            "ablation.md": ablation_markdown(document),
            "ablation.html": ablation_html(document),
        }
        folder.write_files(files, "the runs are stored")
    return document


@contextmanager
def _watching(bars: "BarSeries") -> Iterator["Watched"]:
    with Interrupts() as interrupts:

        @contextmanager
        def watch(title: str) -> Iterator[Progress]:
            with progress_bar(title, interrupts, first=describe_features(bars.symbols)) as progress:
                yield progress

        yield watch
