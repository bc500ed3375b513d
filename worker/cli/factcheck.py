"""`thinktwice factcheck`: every claim of a text held against the rows of a run."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError
from worker.cli.console import made_table, print_json, stdout_console, time_option
from worker.cli.options import LATEST, DbOption, JsonOption, RunOption, argument, open_for_run, option
from worker.runs.interrupts import run_async

if TYPE_CHECKING:
    from schemas.fact_check import CheckedClaim, FactCheck
    from services.evidence.run_facts import RunFacts

HOLDS, FAILS = 0, 1
MARKS = {"verified": "ok", "contradicted": "FALSE", "unverifiable": "?"}
SHOWN_ROWS = 5


FileArgument = Annotated[
    str, argument(metavar="FILE", help="Text in UTF-8, at most 51,200 bytes; - for stdin.")
]


def factcheck(
    file: FileArgument,
    run: RunOption = LATEST,
    report: Annotated[
        str | None, option(metavar="ID", help="As of this report, which the text is about. [the newest]")
    ] = None,
    at: Annotated[
        str | None, option(metavar="TIME", help="As of TIME (ISO, UTC), with the report of then. [the end]")
    ] = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Check what a text claims about a run: figures, names, dates, grades, comparisons.

    Exit 0: every claim is verified. 1: a claim is contradicted, or the run cannot answer it. 2: bad input.
    The store is opened so that nothing can be written to it.
    """
    from services.deliberation.fact_check import check_facts
    from worker.studies.given_text import given_text

    if report is not None and at is not None:
        raise ConfigError("--report names a report, which has its own time: leave out --at")
    text = given_text(file)
    moment = None if at is None else time_option(at, "--at")
    run_id, facts = run_async(_facts(run, report, moment, db))
    checked = check_facts(text, facts)
    if json:
        print_json({"run_id": run_id, **document_of(checked)})
    else:
        _print(run_id, checked)
    raise typer.Exit(HOLDS if checked.holds else FAILS)


async def _facts(run: str, report: str | None, at: int | None, db: str | None) -> "tuple[str, RunFacts]":
    from worker.review.run_facts import read_facts

    async with open_for_run(db, run, read_only=True) as (store, record):
        return record.run_id, await read_facts(store, record, report=report, at=at)


def document_of(checked: "FactCheck") -> dict[str, Any]:
    """The JSON of a check, times in ns."""
    return {
        "known_at": checked.known_at,
        "claims": [claim.payload() for claim in checked.claims],
        "counts": checked.counts,
        "struck_text": checked.struck_text,
    }


def _print(run_id: str, checked: "FactCheck") -> None:
    from rich.table import Column
    from rich.text import Text

    from worker.pages.figures import shown_time

    console = stdout_console()
    counts = ", ".join(f"{count} {verdict}" for verdict, count in checked.counts.items())
    console.print(f"run {run_id} as of {shown_time(checked.known_at)}: {counts}")
    if not checked.claims:
        console.print(
            "The text claims nothing that a run could answer: no figure, name, date, grade or comparison."
        )
    if checked.claims:
        heads = ("", "kind", "said", "the run has", "would pass", "rows")
        rows = ([Text(cell) for cell in _cells(claim)] for claim in checked.claims)
        console.print(made_table([Column(head, overflow="fold") for head in heads], rows, pad_edge=False))
    if not checked.holds:
        console.print()
        console.print("What holds:" if checked.struck_text else "Nothing of the text holds.")
        for line in checked.struck_text.splitlines():
            console.print(line)


def _cells(claim: "CheckedClaim") -> tuple[str, ...]:
    rows = " ".join("?" if row.seq is None else str(row.seq) for row in claim.rows[:SHOWN_ROWS])
    return (
        MARKS[claim.verdict],
        claim.kind,
        claim.said,
        claim.found or "",
        " or ".join(claim.would_pass),
        rows,
    )
