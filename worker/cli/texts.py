"""`thinktwice factcheck deliberate`: a text of one's own, held against a run, and improved."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError
from worker.cli import options
from worker.cli.options import LATEST, MODELS, argument, option, run_settings, takes
from worker.cli.printing import print_document, time_option
from worker.cli.stores import open_for_run
from worker.pages.figures import plain_fields, shown_time
from worker.pages.text_parts import Part, rows_table
from worker.runs.progress import step

if TYPE_CHECKING:
    from schemas.claims import FactCheck
    from services.deliberation.extraction import ReadClaims

HOLDS, FAILS = 0, 1
MARKS = {"verified": "ok", "contradicted": "FALSE", "unverifiable": "?"}
SHOWN_ROWS, SHOWN_FINDINGS = 5, 20
FIGURES = (
    *("skip_reason", "stop_reason", "degraded_from", "verified_gain", "self_reported_gain", "usage"),
    *("cleaned", "error"),
)
FileArgument = Annotated[
    str, argument(metavar="FILE", help="Text in UTF-8, at most 51,200 bytes; - for stdin.")
]


@takes(*MODELS, after="at")
async def factcheck(
    context: typer.Context,
    file: FileArgument,
    config: options.Config = None,
    run: options.RunOption = LATEST,
    report: Annotated[
        str | None, option(metavar="ID", help="As of this report, which the text is about. [the newest]")
    ] = None,
    at: Annotated[
        str | None, option(metavar="TIME", help="As of TIME (ISO, UTC), with the report of then. [the end]")
    ] = None,
    reflection: Annotated[
        str | None, option(help="deterministic, or full: a model reads the claims. [deterministic]")
    ] = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Check what a text claims about a run.

    Without a model, sentences are read that give a figure with its measure and whom it is of, and nothing
    else ("The mean R of AAPL was 0.36R"). With --reflection full a model reads the claims, and code holds
    them. What was not read is counted; it is neither true nor false.

    Exit 0: no claim is contradicted. 1: one is, or the run cannot answer it. 2: bad input. Nothing is stored.
    """
    from services.deliberation.extraction import check_read
    from worker.review.run_facts import read_facts
    from worker.studies.deliberated import document_of_check, read_text_claims
    from worker.studies.given_text import given_text

    if report is not None and at is not None:
        raise ConfigError("--report names a report, which has its own time: leave out --at")
    text, settings = given_text(file), run_settings(context).settings
    moment = None if at is None else time_option(at, "--at")
    async with open_for_run(db, run, read_only=True) as (store, record):
        facts = await read_facts(store, record, report=report, at=moment)
    read = await read_text_claims(text, facts, settings, os.environ)
    checked = check_read(text, read, facts)
    document = {"run_id": record.run_id, **document_of_check(checked, read)}
    print_document(document, json, lambda _: checked_parts(record.run_id, checked, read))
    raise typer.Exit(HOLDS if checked.holds else FAILS)


def checked_parts(run_id: str, checked: "FactCheck", read: "ReadClaims") -> Iterator[Part]:
    """The check of a text; of what a model read, each claim in code's words beside the quote."""
    from services.claims.sections import describe_claim

    counts = {**checked.counts, "sentences not read": len(read.not_read)}
    text = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    yield f"run {run_id} as of {shown_time(checked.known_at)}: {text}"
    if read.failed is not None:
        yield f"The model read nothing ({read.failed}); figures with their names were read."
    # Of a model only code's own words say what it read.
    held = {"held as": lambda claim: describe_claim(claim.claim)} if read.by_model else {}
    columns = {
        "verdict": lambda claim: MARKS[claim.verdict],
        "said": lambda claim: claim.text,
        **held,
        "the run has": lambda claim: claim.so,
        "rows": lambda claim: " ".join(
            "?" if row.seq is None else str(row.seq) for row in claim.rows[:SHOWN_ROWS]
        ),
    }
    yield rows_table(checked.claims, columns)
    yield from _list_unread(read.not_read)


def _list_unread(sentences: Sequence[str]) -> Iterator[str]:
    if sentences:
        yield "Not read:"
    yield from (f"  {sentence}" for sentence in sentences)


@takes(*MODELS, after="also")
async def deliberate(
    context: typer.Context,
    file: FileArgument,
    preset: Annotated[
        str,
        option(
            metavar="PRESET",
            help="pass (one critique, one correction), quality (scores and facts), review (passes), chunked.",
        ),
    ],
    config: options.Config = None,
    run: options.RunOption = LATEST,
    question: Annotated[
        str, typer.Option(metavar="TEXT", help="What the text is to answer; at most 8,000 characters.")
    ] = "",
    mode: Annotated[
        str | None,
        option(
            metavar="MODE",
            help="quality: full, critique_only. review: always, never, on_error, on_incomplete, on_complex. "
            "chunked: final_only, per_chunk, both.",
        ),
    ] = None,
    reflection: Annotated[
        str | None, option(help="deterministic, or full: ask a model, too. [deterministic]")
    ] = None,
    also: Annotated[
        list[str] | None,
        option(metavar="FILE", help="Another text, one after the other; the run is read once."),
    ] = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Read the claims of a text, hold them against a run, and write it anew from those that are so.

    Without a model, figures with their measure and names are read, and only --preset quality runs, in mode
    critique_only; with --reflection full a model reads, scores and writes claims, and code holds them. What
    was not read is listed. Nothing is written to the store.
    With --also there are several outcomes, of which --json makes one list.
    """
    from worker.review.run_facts import read_facts
    from worker.studies.deliberated import (
        TextRequest,
        check_question,
        deliberate_all,
        document_of_text,
        preset_named,
        with_mode,
    )
    from worker.studies.given_text import given_text

    named = preset_named(preset)
    settings = run_settings(context).settings
    settings = settings.model_copy(update={"deliberation": with_mode(settings.deliberation, named, mode)})
    files, request = [file, *(also or ())], check_question(question)
    if files.count("-") > 1:
        raise ConfigError("- is standard input, which holds one text: name the others by their files")
    requests = [TextRequest(given_text(name).strip(), named, request) for name in files]
    with step("refining the text"):
        async with open_for_run(db, run, read_only=True) as (store, record):
            texts = await deliberate_all(requests, settings, os.environ, lambda: read_facts(store, record))
    documents = [document_of_text(record.run_id, text) for text in texts]
    print_document(documents if also else documents[0], json, lambda _: _describe(files, documents))


def _describe(files: Sequence[str], documents: Sequence[dict[str, Any]]) -> Iterator[Part]:
    from worker.studies.given_text import source_of

    for name, document in zip(files, documents, strict=True):
        if len(files) > 1:
            yield f"== {source_of(name)}"
        yield from _describe_text(document)


def _describe_text(document: dict[str, Any]) -> Iterator[Part]:
    status = document["status"].replace("_", " ")
    yield f"{document['preset']} against run {document['run_id']}: {status}"
    figures = {name: document[name] for name in FIGURES if document[name]}
    yield from (f"  {name} {text}" for name, text in plain_fields(figures))
    critiques = [critique for critique in document["critiques"] if critique["candidate"] == 0]
    findings = [found for critique in critiques for found in critique["findings"]]
    yield rows_table(findings[:SHOWN_FINDINGS], {"found": "code", "what": "message"})
    if len(findings) > SHOWN_FINDINGS:
        yield f"... and {len(findings) - SHOWN_FINDINGS} more: --json has them all"
    yield from _list_unread(document["not_read"])
    final = document["final"]
    yield ""
    yield "Unchanged:" if final == document["initial"] else "What stands:" if final else "Nothing stands."
    yield from final.splitlines()
