"""`thinktwice factcheck`: the claims of a text held against the rows of a run."""

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError
from worker.cli.console import print_json, stdout_console, time_option
from worker.cli.options import LATEST, DbOption, JsonOption, RunOption, argument, open_for_run, option
from worker.cli.run_options import ConfigArgument, run_settings, takes
from worker.pages.tables import made_table
from worker.runs.interrupts import run_async

if TYPE_CHECKING:
    from schemas.claims import CheckedClaim, FactCheck
    from services.deliberation.extraction import ReadClaims
    from services.evidence.run_facts import RunFacts

HOLDS, FAILS = 0, 1
MARKS = {"verified": "ok", "contradicted": "FALSE", "unverifiable": "?"}
SHOWN_ROWS = 5
FileArgument = Annotated[
    str, argument(metavar="FILE", help="Text in UTF-8, at most 51,200 bytes; - for stdin.")
]


@takes("model", "llm", "cassette", after="at")
def factcheck(
    context: typer.Context,
    file: FileArgument,
    config: ConfigArgument = None,
    run: RunOption = LATEST,
    report: Annotated[
        str | None, option(metavar="ID", help="As of this report, which the text is about. [the newest]")
    ] = None,
    at: Annotated[
        str | None, option(metavar="TIME", help="As of TIME (ISO, UTC), with the report of then. [the end]")
    ] = None,
    reflection: Annotated[
        str | None, option(help="deterministic, or full: a model reads the claims. [deterministic]")
    ] = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Check what a text claims about a run.

    Without a model, sentences are read that give a figure with its measure and whom it is of, and nothing
    else ("The mean R of AAPL was 0.36R"). With --reflection full a model reads the claims, and code holds
    them. What was not read is counted; it is neither true nor false.

    Exit 0: no claim is contradicted. 1: one is, or the run cannot answer it. 2: bad input.
    The store is opened so that nothing can be written to it.
    """
    from services.deliberation.extraction import check_read
    from worker.studies.deliberated import read_text_claims
    from worker.studies.given_text import given_text

    if report is not None and at is not None:
        raise ConfigError("--report names a report, which has its own time: leave out --at")
    text, settings = given_text(file), run_settings(context).settings
    moment = None if at is None else time_option(at, "--at")
    run_id, facts = run_async(_facts(run, report, moment, db))
    read = run_async(read_text_claims(text, facts, settings, os.environ))
    checked = check_read(text, read, facts)
    if json:
        print_json({"run_id": run_id, **document_of(checked, read)})
    else:
        print_checked(run_id, checked, read)
    raise typer.Exit(HOLDS if checked.holds else FAILS)


async def _facts(run: str, report: str | None, at: int | None, db: str | None) -> "tuple[str, RunFacts]":
    from worker.review.run_facts import read_facts

    async with open_for_run(db, run, read_only=True) as (store, record):
        return record.run_id, await read_facts(store, record, report=report, at=at)


def document_of(checked: "FactCheck", read: "ReadClaims") -> dict[str, Any]:
    """The JSON of a check, times in ns."""
    return {
        "known_at": checked.known_at,
        "claims": [{**claim.payload()} for claim in checked.claims],
        "counts": {**checked.counts, "not_read": len(read.not_read)},
        "not_read": list(read.not_read),
        "read_by": "model" if read.by_model else "rules",
        "model_failed": read.failed,
        "claims_without_their_words": read.unplaced,
    }


def print_checked(run_id: str, checked: "FactCheck", read: "ReadClaims") -> None:
    """The check of a text as a table; of what a model read, each claim in code's words beside the quote."""
    from rich.table import Column
    from rich.text import Text

    from worker.pages.figures import shown_time

    console = stdout_console()
    counts = {**checked.counts, "sentences not read": len(read.not_read)}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    console.print(f"run {run_id} as of {shown_time(checked.known_at)}: {told}")
    if read.failed is not None:
        console.print(f"The model read nothing ({read.failed}); figures with their names were read.")
    if checked.claims:
        held = ("held as",) if read.by_model else ()  # of a model only code's own words say what it read
        heads = ("", "said", *held, "the run has", "rows")
        rows = ([Text(cell) for cell in _cells(claim, read.by_model)] for claim in checked.claims)
        console.print(made_table([Column(head, overflow="fold") for head in heads], rows, pad_edge=False))
    if read.not_read:
        console.print("Not read:")
        for sentence in read.not_read:
            console.print(Text(f"  {sentence}"))


def _cells(claim: "CheckedClaim", by_model: bool) -> tuple[str, ...]:
    from services.claims.sections import describe_claim

    rows = " ".join("?" if row.seq is None else str(row.seq) for row in claim.rows[:SHOWN_ROWS])
    held = (describe_claim(claim.claim),) if by_model else ()
    return MARKS[claim.verdict], claim.text, *held, claim.so or "", rows
