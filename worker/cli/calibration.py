"""`thinktwice calibration`: how often what was stated with some confidence came true."""

from collections.abc import Iterator
from typing import Any

from schemas.errors import ConfigError
from worker.cli import options
from worker.cli.options import LATEST
from worker.cli.printing import print_document
from worker.cli.stores import open_for_run
from worker.pages.figures import DASH, number, percent
from worker.pages.text_parts import Part, rows_table

COLUMNS = {
    "source": "name",
    "labels": "n",
    "stated": lambda source: percent(source["mean_forecast"]),
    "came true": lambda source: percent(source["base_rate"]),
    "Brier": lambda source: number(source["brier"], 4),
    "uncertainty": lambda source: number(source["uncertainty"], 4),
    "resolution": lambda source: number(source["resolution"], 4),
    "reliability": lambda source: number(source["reliability"], 4),
    "within bin": lambda source: number(source["within_bin"], 4),
    "ECE": lambda source: number(source["ece"], 3),
    "by chance (95 %)": lambda source: (
        DASH
        if source["ece"] is None
        else f"{source['ece_by_chance']:.3f} ({source['ece_by_chance_p95']:.3f})"
    ),
}
BIN_COLUMNS = {
    "stated between": lambda cell: f"{cell['lower']:.2f} to {cell['upper']:.2f}",
    "labels": "n",
    "stated": lambda cell: percent(cell["mean_forecast"]),
    "came true": lambda cell: percent(cell["base_rate"]),
}


async def calibration(
    run: options.RunArgument = LATEST, db: options.Db = None, json: options.Json = False
) -> None:
    """Hold stated confidence against what came true: Brier score with its parts, calibration error, bins.

    Sources: the conviction of frozen policies against R > 0 of their episodes, and the confidence of model
    critics against the verdict of the rule critics. The calibration error is given from 200 labels on, with
    what a calibrated forecaster shows by chance.
    """
    from services.journal.index import JournalIndex
    from services.journal.stated_confidence import KINDS, stated_confidence
    from services.statistics.calibration import calibrate
    from worker.studies.calibration_document import meaning, source_of

    async with open_for_run(db, run, read_only=True) as (store, record):
        index = await JournalIndex.read(store.journal.rows(record.run_id, kinds=KINDS))
    found = {source.name: calibrate(source.forecasts, source.outcomes) for source in stated_confidence(index)}
    run_id = record.run_id
    if not any(found.values()):
        raise ConfigError(
            f"run {run_id} has no episode and no text that a model criticised: "
            f"`thinktwice journal {run_id} --kind policy_skip` says why nothing was traded"
        )
    document = {"run_id": run_id, "sources": [source_of(name, source) for name, source in found.items()]}
    meanings = {name: meaning(source) for name, source in found.items()}
    print_document(document, json, lambda shown: _describe(shown, meanings))


def _describe(document: dict[str, Any], meanings: dict[str, str]) -> Iterator[Part]:
    yield f"run {document['run_id']}: how often what was stated came true"
    yield rows_table(document["sources"], COLUMNS)
    for source in document["sources"]:
        yield ""
        yield f"{source['name']}: {meanings[source['name']]}"
        yield rows_table(source["bins"], BIN_COLUMNS)
