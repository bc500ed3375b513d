"""`thinktwice calibration`: how often what was stated with some confidence came true."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError
from worker.cli.console import print_json, print_table, stdout_console
from worker.cli.options import LATEST, DbOption, JsonOption, RunArgument, open_for_run
from worker.pages.figures import DASH, number, percent
from worker.pages.tables import made_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from services.statistics.calibration import Calibration, CalibrationBin

    Found = Mapping[str, Calibration | None]

FIGURES = ("brier", "uncertainty", "resolution", "reliability", "within_bin")
ERRORS = ("ece", "ece_by_chance", "ece_by_chance_p95")
LONGEST_BAR = 60
BESIDE_BAR = 34  # columns of a terminal that the figures of a bin take


async def calibration(run: RunArgument = LATEST, db: DbOption = None, json: JsonOption = False) -> None:
    """Hold stated confidence against what came true: Brier score with its parts, calibration error, bins.

    Sources: the conviction of frozen policies against R > 0 of their episodes, and the confidence of model
    critics against the verdict of the rule critics. The calibration error is given from 200 labels on, with
    what a calibrated forecaster shows by chance.
    """
    from services.journal.index import JournalIndex
    from services.journal.stated_confidence import KINDS, stated_confidence
    from services.statistics.calibration import calibrate

    async with open_for_run(db, run, read_only=True) as (store, record):
        index = await JournalIndex.read(store.journal.rows(record.run_id, kinds=KINDS))
    found = {source.name: calibrate(source.forecasts, source.outcomes) for source in stated_confidence(index)}
    run_id = record.run_id
    if not any(found.values()):
        raise ConfigError(
            f"run {run_id} has no episode and no text that a model criticised: "
            f"`thinktwice journal {run_id} --kind policy_skip` says why nothing was traded"
        )
    if json:
        sources = [source_of(name, measured) for name, measured in found.items()]
        print_json({"run_id": run_id, "sources": sources})
    else:
        _print(run_id, found)


def source_of(name: str, found: "Calibration | None") -> dict[str, Any]:
    """The JSON of one source; every figure of a source without labels is null."""
    if found is None:
        nothing = dict.fromkeys(("mean_forecast", "base_rate", *FIGURES, *ERRORS))
        return {"name": name, "n": 0, **nothing, "bins": []}
    errors = (
        (None, None, None)
        if found.error is None
        else (found.error.ece, found.error.by_chance, found.error.by_chance_p95)
    )
    return {
        "name": name,
        "n": found.n,
        "mean_forecast": found.mean_forecast,
        "base_rate": found.base_rate,
        **{figure: getattr(found, figure) for figure in FIGURES},
        **dict(zip(ERRORS, errors, strict=True)),
        "bins": [asdict(interval) for interval in found.bins],
    }


def _print(run_id: str, found: "Found") -> None:
    from rich.table import Column

    console = stdout_console()
    console.print(f"run {run_id}: how often what was stated came true")
    figures = (*(name.replace("_", " ") for name in FIGURES), "ECE", "by chance (95 %)")
    heads = [
        Column(name, justify="right", no_wrap=True) for name in ("labels", "stated", "came true", *figures)
    ]
    rows = ((name, *_cells(measured)) for name, measured in found.items())
    print_table(made_table(("", *heads), rows, pad_edge=False))
    for name, measured in found.items():
        console.print()
        console.print(f"{name}: {meaning(measured)}")
        if measured is not None:
            print_table(_picture(measured, min(LONGEST_BAR, console.width - BESIDE_BAR)))


def _cells(one: "Calibration | None") -> tuple[str, ...]:
    if one is None:
        return ("0", *[DASH] * (len(FIGURES) + 4))
    error = one.error
    chance = DASH if error is None else f"{error.by_chance:.3f} ({error.by_chance_p95:.3f})"
    return (
        number(one.n),
        percent(one.mean_forecast),
        percent(one.base_rate),
        *(number(getattr(one, name), 4) for name in FIGURES),
        DASH if error is None else number(error.ece, 3),
        chance,
    )


def meaning(found: "Calibration | None") -> str:
    """What the figures say, with the figures."""
    if found is None:
        return "no label yet."
    return " ".join((_skill(found), _leaning(found), _error(found)))


def _skill(found: "Calibration") -> str:
    from services.statistics.calibration import BEYOND_CHANCE

    if found.uncertainty == 0.0:
        return f"Nothing can be told apart: all {found.n:,} came out alike."
    against = (
        f"Brier {found.brier:.4f} against {found.uncertainty:.4f} of whoever says "
        f"{percent(found.base_rate)} every time"
    )
    if found.brier >= found.uncertainty:
        return f"No skill: {against}."
    if found.association < BEYOND_CHANCE:
        return f"No skill beyond chance: {against}."
    return f"Some skill: {against}."


def _leaning(found: "Calibration") -> str:
    from services.statistics.calibration import BEYOND_CHANCE

    said = f"{percent(found.mean_forecast)} stated on average, {percent(found.base_rate)} came true"
    if abs(found.excess) < BEYOND_CHANCE:
        return f"Neither over- nor underconfident beyond chance: {said}."
    return f"{'Overconfident' if found.excess > 0 else 'Underconfident'}: {said}."


def _error(found: "Calibration") -> str:
    from services.statistics.calibration import MINIMUM_FOR_ECE

    error = found.error
    if error is None:
        return f"No calibration error below {MINIMUM_FOR_ECE} labels: chance alone would make it large."
    beyond = "beyond" if error.ece > error.by_chance_p95 else "within"
    return (
        f"Calibration error {error.ece:.3f}, {beyond} chance: a calibrated forecaster shows "
        f"{error.by_chance:.3f} on average, below {error.by_chance_p95:.3f} in 95 of 100 draws."
    )


def _picture(found: "Calibration", width: int) -> "Table":
    """A line a bin: how much of it came true, and where it was stated to."""
    from rich.table import Column
    from rich.text import Text

    heads = [Column(name, justify="right", no_wrap=True) for name in ("stated", "n", "came true")]
    rows = (
        (
            f"{interval.lower:.2f} to {interval.upper:.2f}",
            number(interval.n),
            percent(interval.base_rate),
            Text(bar(interval, width)),
        )
        for interval in found.bins
    )
    return made_table((*heads, Column("came true =, stated |", no_wrap=True)), rows, pad_edge=False)


def bar(one: "CalibrationBin", width: int) -> str:
    """`====|   ` from 0 to 1: filled up to the share that came true, with a mark where it was stated."""
    filled = round(one.base_rate * width)
    mark = min(int(one.mean_forecast * width), width - 1)
    drawn = "=" * filled + " " * (width - filled)
    return f"{drawn[:mark]}|{drawn[mark + 1 :]}"
