"""`thinktwice ask-again`: what a run asked its model, asked again, in other words or of another model."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from schemas.errors import ConfigError
from worker.cli.console import complain, print_document, print_line, print_table, stdout_console
from worker.cli.options import (
    LATEST,
    DbOption,
    JsonOption,
    RunArgument,
    open_for_run,
    option,
    store_address,
)
from worker.pages.figures import DASH, counts, percent, shown_time
from worker.pages.tables import made_table
from worker.runs.interrupts import Interrupts
from worker.runs.progress import progress_bar

Document = dict[str, Any]
SHOWN = 20
ARM_HEADS = ["arm", "prompt", "model", "answered", "usual", "as-recorded", "stable", "decisions", "USD"]
TEST_HEADS = ("decision", "left it", "entered it", "p", "p adjusted")


async def ask_again(
    run: RunArgument = LATEST,
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
    db: DbOption = None,
    json: JsonOption = False,
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
        asked = found.asked[:limit]
        if export is not None:
            address, _ = without_password(store_address(db))
            count = await export_questions(found, asked, arms, address, export[1])
            print_line(f"{count:,} questions of {record.run_id} for inspect_ai in {export[1]}")
            return
        keep, tables = f"{record.run_id}-{len(asked)}x{samples}", []
        for place, arm in enumerate(arms):
            with progress_bar(f"arm {place}", Interrupts(), "replies") as progress:
                how = asked, arm, os.environ
                told = ask_all(*how, samples=samples, folder=cassette, name=keep, progress=progress)
                tables.append(await told)
    document = study_document(found, asked, arms, tables, samples)
    print_document(document, json, render)
    if document["missing"]:
        complain(f"{document['missing']} replies are missing; a arm that missed one keeps no cassette")
    if not document["same"]:
        raise typer.Exit(1)


def render(document: Document) -> None:
    """The arms, what moved between them with its tests, then the questions whose answers differ."""
    console, arms = stdout_console(), document["arms"]
    title = f"{document['prompt']} of {document['run_id']}: {document['questions']:,} questions"
    console.print(f"{title}, {document['samples']:,} samples each", style="bold", soft_wrap=True)
    if document["left_out"]:
        console.print(f"not asked: {counts(document['left_out'])}", soft_wrap=True)
    if document["without_background"]:
        bare = f"{document['without_background']:,} snapshots: nothing was gathered beside them"
        console.print(f"{bare}, as in a run by rules", soft_wrap=True)
    _print_table(ARM_HEADS, [[str(place), *_arm(arm)] for place, arm in enumerate(arms)])
    for place, arm in enumerate(arms):
        means = ", ".join(f"{name} {value:.2f}" for name, value in arm["means"].items())
        if means or arm["failed"]:
            print_line(f"arm {place}, on average: {means or DASH}; no reply: {counts(arm['failed'])}")
    for each in document["comparisons"]:
        share, p_value = each["detectable_share"], each["p_value"]
        power = "too few to find anything" if share is None else f"a move of {percent(share)} would be found"
        moved = f"{each['moved']:,} of {each['compared']:,} moved, {each['other_plan']:,} have another plan"
        p_text = DASH if p_value is None else f"{p_value:.3g}"
        print_line(f"arm 0 -> arm {each['second']}: {moved}; p = {p_text}; {power}")
        _print_table(("from", "to", "questions"), [[*map(str, move.values())] for move in each["moves"]])
        _print_table(TEST_HEADS, [[*map(_cell, row.values())] for row in each["by_decision"]])
    varying = [
        row for row in document["answers"] if len({name for arm in row["decisions"] for name in arm}) > 1
    ]
    heads = ("question", "recorded", *(f"arm {place}" for place in range(len(arms))))
    _print_table(heads, [_question(row) for row in varying])


def _arm(arm: Document) -> list[str]:
    answered, shares = f"{arm['answered']:,} of {arm['asked']:,}", (arm["usual_share"], arm["as_recorded"])
    figures = [*map(percent, shares), f"{arm['stable']:,}", counts(arm["decisions"]), f"{arm['usd']:.4f}"]
    return [arm["prompt_hash"][:8], arm["model"], answered, *figures]


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _question(row: Document) -> list[str]:
    place = f"{shown_time(row['known_at'])} {row['symbol']}"
    return [place, row["recorded"] or DASH, *(", ".join(names) for names in row["decisions"])]


def _print_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    if lines:
        print_table(made_table(heads, lines[:SHOWN], padding=(0, 2, 0, 0)))
    if len(lines) > SHOWN:
        print_line(f"and {len(lines) - SHOWN:,} more (--json shows all)")
