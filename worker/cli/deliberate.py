"""`thinktwice deliberate`: a text of one's own, criticised, improved and held against a run."""

import os
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError
from worker.cli.console import print_json, print_line, stdout_console
from worker.cli.options import LATEST, DbOption, JsonOption, RunOption, argument, open_for_run, option
from worker.cli.run_options import ConfigArgument, run_settings, takes
from worker.pages.tables import made_table
from worker.runs.interrupts import run_async
from worker.runs.progress import step

if TYPE_CHECKING:
    from schemas.deliberation import Deliberation
    from schemas.settings import Settings
    from worker.studies.deliberated import DeliberatedText, TextRequest

SHOWN_FINDINGS = 20


@takes("model", "llm", "cassette", after="also")
def deliberate(
    context: typer.Context,
    file: Annotated[str, argument(metavar="FILE", help="Text in UTF-8, at most 51,200 bytes; - for stdin.")],
    preset: Annotated[
        str,
        option(
            metavar="PRESET",
            help="pass (one critique, one correction), quality (scores and facts), review (passes), chunked.",
        ),
    ],
    config: ConfigArgument = None,
    run: RunOption = LATEST,
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
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Read the claims of a text, hold them against a run, and write it anew from those that are so.

    Without a model, figures with their measure and names are read, and only --preset quality runs, in mode
    critique_only; with --reflection full a model reads, scores and writes claims, and code holds them. What
    was not read is listed. Nothing is written to the store.
    With --also there are several outcomes, of which --json makes one list.
    """
    from worker.studies.deliberated import TextRequest, check_question, preset_named, with_mode
    from worker.studies.given_text import given_text, source_of

    named = preset_named(preset)
    settings = run_settings(context).settings
    settings = settings.model_copy(update={"deliberation": with_mode(settings.deliberation, named, mode)})
    files, asked = [file, *(also or ())], check_question(question)
    if files.count("-") > 1:
        raise ConfigError("- is standard input, which holds one text: name the others by their files")
    requests = [TextRequest(given_text(name).strip(), named, asked) for name in files]
    with step("refining the text"):
        run_id, texts = run_async(_deliberate(requests, settings, run, db))
    if json:
        documents = [document_of(run_id, done) for done in texts]
        print_json(documents if also else documents[0])
        return
    for name, done in zip(files, texts, strict=True):
        if also:
            print_line(f"== {source_of(name)}")
        _print(run_id, done)


async def _deliberate(
    requests: "list[TextRequest]", settings: "Settings", run: str, db: str | None
) -> "tuple[str, list[DeliberatedText]]":
    from worker.review.run_facts import read_facts
    from worker.studies.deliberated import deliberate_all

    async with open_for_run(db, run, read_only=True) as (store, record):
        return record.run_id, await deliberate_all(
            requests, settings, os.environ, lambda: read_facts(store, record)
        )


def document_of(run_id: str, text: "DeliberatedText") -> dict[str, Any]:
    """The JSON of an outcome, with the fields of its preset."""
    from worker.studies.deliberated import result_fields

    done = text.done
    told = done.payload()
    del told["details"]
    own = result_fields(done)
    events = [
        {"kind": event.kind, **dict(event.fields), "elapsed_ms": event.elapsed_ms} for event in done.events
    ]
    return {
        "run_id": run_id,
        **told,
        "events": events,
        "elapsed_ms": done.elapsed_ms,
        **own,
        "not_read": list(text.not_read),
    }


def _print(run_id: str, text: "DeliberatedText") -> None:
    from rich.table import Column
    from rich.text import Text

    console, done = stdout_console(), text.done
    console.print(f"{done.preset} against run {run_id}: {done.status.replace('_', ' ')}{_why(done)}")
    for line in _figures(done):
        console.print(f"  {line}")
    findings = [
        found for critique in done.critiques for found in critique.findings if critique.candidate == 0
    ]
    if findings:
        heads = [Column(head, overflow="fold") for head in ("found", "what")]
        rows = ([Text(found.code), Text(found.message)] for found in islice(findings, SHOWN_FINDINGS))
        console.print(made_table(heads, rows, pad_edge=False))
        if len(findings) > SHOWN_FINDINGS:
            console.print(f"... and {len(findings) - SHOWN_FINDINGS} more: --json has them all")
    if text.not_read:
        console.print("Not read:")
        for sentence in text.not_read:
            console.print(Text(f"  {sentence}"))
    console.print()
    console.print("Unchanged:" if not done.changed else "What stands:" if done.final else "Nothing stands.")
    for line in done.final.splitlines():
        console.print(line)


def _why(done: "Deliberation") -> str:
    if done.skip_reason is not None:
        return f" ({done.skip_reason})"
    parts = [f"stopped by {done.stop_reason}" if done.stop_reason else "", done.degraded_from or ""]
    told = ", ".join(part for part in parts if part)
    return f" ({told})" if told else ""


def _figures(done: "Deliberation") -> list[str]:
    lines = []
    if len(done.candidates) > 1:
        lines.append(f"candidates {len(done.candidates)}")
    if done.verified_gain is not None:
        lines.append(f"faults that are gone {done.verified_gain}")
    if done.self_reported_gain is not None:
        lines.append(f"the model's own score {100 * done.self_reported_gain:+.0f} %, which decides nothing")
    if done.usage.calls:
        lines.append(f"model calls {done.usage.calls}, tokens {done.usage.tokens:,}")
    if done.cleaned:
        lines.append(f"characters that nobody sees, taken out {done.cleaned}")
    if done.error is not None:
        lines.append(f"error: {done.error}")
    return lines
