"""`thinktwice ask-again`: what a run asked its model, asked again, in other words or of another model."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from schemas.errors import ConfigError
from worker.cli import options
from worker.cli.options import LATEST, option
from worker.cli.printing import complain, print_document, print_line
from worker.cli.stores import open_for_run, store_address
from worker.pages.figures import counts, percent, plain_fields, shown_time
from worker.pages.text_parts import Part, rows_table
from worker.runs.interrupts import Interrupts
from worker.runs.progress import progress_bar

Document = dict[str, Any]
SHOWN = 20
ARM_COLUMNS = {
    "arm": "arm",
    "prompt": lambda arm: arm["prompt_hash"][:8],
    "model": "model",
    "answered": lambda arm: f"{arm['answered']:,} of {arm['asked']:,}",
    "usual": lambda arm: percent(arm["usual_share"]),
    "as-recorded": lambda arm: percent(arm["as_recorded"]),
    "stable": "stable",
    "decisions": lambda arm: counts(arm["decisions"]),
    "on average": "means",
    "no reply": "failed",
    "USD": lambda arm: f"{arm['usd']:.4f}",
}
COMPARED = {
    "arm 0 to": lambda each: f"arm {each['second']}",
    "moved": lambda each: f"{each['moved']:,} of {each['compared']:,}",
    "another plan": "other_plan",
    "p": "p_value",
    "found would be a move of": lambda each: (
        "none: too few" if each["detectable_share"] is None else percent(each["detectable_share"])
    ),
}
MOVES = ("from", "to", "count")
TESTS = {name.replace("_", " "): name for name in ("decision", "left", "entered", "p_value", "p_adjusted")}
ASIDE = ("left_out", "without_background")


async def ask_again(
    run: options.RunArgument = LATEST,
    prompt: Annotated[
        Path | None, option("--prompt", metavar="FILE", help="Template to ask with, beside the present one.")
    ] = None,
    config: Annotated[
        Path | None,
        option("--config", metavar="FILE", help="TOML file whose [llm] is asked, beside the run's."),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, max=1_000, help="Times to ask each question.")] = 3,
    limit: Annotated[int | None, option(min=1, help="Ask only the first questions. [all]")] = None,
    seat: Annotated[
        str | None, option(help="reader or strategist. [that of the prompt, or of the run]")
    ] = None,
    cassette: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of replies: played back, or asked and kept.")
    ] = Path("cassettes"),
    export: Annotated[
        tuple[str, Path] | None,
        option("--export", metavar="inspect DIR", help="Ask nobody: write the questions for inspect_ai."),
    ] = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Ask a run's questions again and show how decisions spread, and how they move between arms of asking.

    An arm is a template and a model; the first is the present words to the run's model. Exit 0 when no usual
    decision moved and all replies came, else 1. Nothing is stored in the run.
    """
    from worker.mcp_server.client_config import without_password
    from worker.studies.ask_again.asking import ask_all, read_template
    from worker.studies.ask_again.figures import study_document
    from worker.studies.ask_again.inspect_export import export_questions
    from worker.studies.ask_again.run_questions import arms_of, prompt_of, read_questions

    if export is not None and export[0] != "inspect":
        raise ConfigError(f"--export {export[0]!r}: there is inspect: give --export inspect DIR")
    template = None if prompt is None else read_template(prompt)
    async with open_for_run(db, run, read_only=True) as (store, record):
        name = prompt_of(seat, template, record)
        found = await read_questions(store, record, name)
        arms = arms_of(record, name, template, config, asks=export is None)
        request = found.requested[:limit]
        if export is not None:
            address, _ = without_password(store_address(db))
            count = await export_questions(found, request, arms, address, export[1])
            print_line(f"{count:,} questions of {record.run_id} for inspect_ai in {export[1]}")
            return
        keep, tables = f"{record.run_id}-{len(request)}x{samples}", []
        for place, arm in enumerate(arms):
            with progress_bar(f"arm {place}", Interrupts(), "replies") as progress:
                how = request, arm, os.environ
                shown = ask_all(*how, samples=samples, folder=cassette, name=keep, progress=progress)
                tables.append(await shown)
    document = study_document(found, request, arms, tables, samples)
    print_document(document, json, study_parts)
    if document["missing"]:
        complain(f"{document['missing']} replies are missing; a arm that missed one keeps no cassette")
    if not document["same"]:
        raise typer.Exit(1)


def study_parts(document: Document) -> Iterator[Part]:
    """The arms, what moved between them with its tests, then the questions whose answers differ."""
    arms = document["arms"]
    title = f"{document['prompt']} of {document['run_id']}: {document['questions']:,} questions"
    yield f"{title}, {document['samples']:,} samples each"
    yield from plain_fields({name: document[name] for name in ASIDE if document[name]})
    yield rows_table([{"arm": place, **arm} for place, arm in enumerate(arms)], ARM_COLUMNS)
    yield rows_table(document["comparisons"], COMPARED)
    for each in document["comparisons"]:
        yield rows_table(each["moves"][:SHOWN], MOVES)
        yield rows_table(each["by_decision"][:SHOWN], TESTS)
    varying = [
        row for row in document["answers"] if len({name for arm in row["decisions"] for name in arm}) > 1
    ]
    rows = [
        {
            "question": f"{shown_time(row['known_at'])} {row['symbol']}",
            "recorded": row["recorded"],
            **{f"arm {place}": list(names) for place, names in enumerate(row["decisions"])},
        }
        for row in varying
    ]
    heads = ("question", "recorded", *(f"arm {place}" for place in range(len(arms))))
    yield rows_table(rows[:SHOWN], heads)
    if len(rows) > SHOWN:
        yield f"and {len(rows) - SHOWN:,} more (--json shows all)"
