"""`thinktwice ask-again`: what a run asked its model, asked again, in other words or of another model."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError
from worker.cli.console import complain, print_document, print_line, stdout_console
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
from worker.runs.progress import ReadingBar, progress_bar

if TYPE_CHECKING:
    from services.store import Store
    from worker.studies.ask_again.asking import RunQuestions

Document = dict[str, Any]
SHOWN = 20
WAY_HEADS = (
    *("way", "prompt", "model", "answered", "usual", "stable", "as recorded"),
    *("decisions", "USD"),
)


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
        str | None, option(help="reader, strategist or planner. [that of the prompt, or of the run]")
    ] = None,
    questions: Annotated[
        Path | None,
        option("--questions", metavar="FILE", help="Questions to a planner, one a line. [examples]"),
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
    """Ask a run's questions again and show how decisions spread, and how they move between ways of asking.

    A way is a template and a model; the first is the present words to the run's model. Exit 0 when no usual
    decision moved and all replies came, else 1. Nothing is stored in the run.
    """
    from worker.mcp_server.client_config import without_password
    from worker.studies.ask_again.asking import ask_all
    from worker.studies.ask_again.figures import study_document
    from worker.studies.ask_again.inspect_export import export_questions
    from worker.studies.ask_again.run_questions import prompt_of, read_questions, ways_to_ask
    from worker.studies.ask_again.templates import PLANNER, read_template

    if export is not None and export[0] != "inspect":
        raise ConfigError(f"--export {export[0]!r}: there is inspect: give --export inspect DIR")
    template = None if prompt is None else read_template(prompt)
    async with open_for_run(db, run, read_only=True) as (store, record):
        name = prompt_of(seat, template, record)
        if questions is not None and name != PLANNER:
            raise ConfigError("--questions are asked of the planner: give --seat planner, too")
        if name == PLANNER:
            found = await _planner_questions(store, record.run_id, questions)
        else:
            found = await read_questions(store, record, name)
        ways = ways_to_ask(record, name, template, config)
        asked = found.asked[:limit]
        if export is not None:
            address, _ = without_password(store_address(db))
            count = await export_questions(found, asked, ways, address, export[1])
            print_line(f"{count:,} questions of {record.run_id} for inspect_ai in {export[1]}")
            return
        keep, tables = f"{record.run_id}-{len(asked)}x{samples}", []
        for place, way in enumerate(ways):
            with progress_bar(f"way {place}", Interrupts(), "replies") as progress:
                how = asked, way, os.environ
                told = ask_all(*how, samples=samples, folder=cassette, name=keep, progress=progress)
                tables.append(await told)
    document = study_document(found, asked, ways, tables, samples)
    print_document(document, json, render)
    if document["missing"]:
        complain(f"{document['missing']} replies are missing; a way that missed one keeps no cassette")
    if not document["same"]:
        raise typer.Exit(1)


async def _planner_questions(store: "Store", run_id: str, file: Path | None) -> "RunQuestions":
    """What a planner is asked; its tools answer while the store is open."""
    from worker.review.asking import describe_known
    from worker.review.evidence import store_tools
    from worker.review.run_views import RunViews
    from worker.studies.ask_again.asking import RunQuestions
    from worker.studies.ask_again.planner import example_questions, file_questions
    from worker.studies.ask_again.templates import PLANNER

    views = RunViews(store, run=run_id)
    with ReadingBar() as reading:
        view = await views.view(run_id, None, reading)
    known, host = describe_known(view), store_tools(views)
    fills = [str(fill.payload["fill_id"])[:8] for fill in view.index.of_kind("exit_filled")[-1:]]
    at = known, view.known_at, host
    asked = example_questions(*at, fills[0] if fills else None) if file is None else file_questions(file, *at)
    return RunQuestions(run_id, PLANNER, asked)


def render(document: Document) -> None:
    """The ways, what moved between them with its tests, then the questions whose answers differ."""
    console, ways = stdout_console(), document["ways"]
    title = f"{document['prompt']} of {document['run_id']}: {document['questions']:,} questions"
    console.print(f"{title}, {document['samples']:,} samples each", style="bold", soft_wrap=True)
    if document["left_out"]:
        console.print(f"not asked: {counts(document['left_out'])}", soft_wrap=True)
    if document["without_background"]:
        bare = f"{document['without_background']:,} snapshots: nothing was gathered beside them"
        console.print(f"{bare}, as in a run by rules", soft_wrap=True)
    _print_table(WAY_HEADS, [[str(place), *_way(way)] for place, way in enumerate(ways)])
    for place, way in enumerate(ways):
        means = ", ".join(f"{name} {value:.2f}" for name, value in way["means"].items())
        failed = f"; no reply: {counts(way['failed'])}" if way["failed"] else ""
        if means or failed:
            print_line(f"way {place}, on average: {means or DASH}{failed}")
    for each in document["comparisons"]:
        _print_comparison(each)
    varying = [
        row for row in document["answers"] if len({name for way in row["decisions"] for name in way}) > 1
    ]
    heads = ("question", "recorded", *(f"way {place}" for place in range(len(ways))))
    _print_table(heads, [_question(row) for row in varying])


def _way(way: Document) -> list[str]:
    return [
        way["prompt_hash"][:8],
        way["model"],
        f"{way['answered']:,} of {way['asked']:,}",
        percent(way["usual_share"]),
        f"{way['stable']:,}",
        percent(way["as_recorded"]),
        counts(way["decisions"]),
        f"{way['usd']:.4f}",
    ]


def _print_comparison(each: Document) -> None:
    p_value, share = each["p_value"], each["detectable_share"]
    found = "too few to find anything" if share is None else f"a move of {percent(share)} would be found"
    told = (
        f"{each['moved']:,} of {each['compared']:,} moved, {each['other_plan']:,} kept it with another plan"
    )
    p_text = DASH if p_value is None else f"{p_value:.3g}"
    print_line(f"\nway {each['first']} -> way {each['second']}: {told}; p = {p_text}; {found}".lstrip("\n"))
    lines = [[move["from"], move["to"], f"{move['count']:,}"] for move in each["moves"]]
    _print_table(("from", "to", "questions"), lines)
    tested = [
        [
            row["decision"],
            str(row["left"]),
            str(row["entered"]),
            f"{row['p_value']:.3g}",
            f"{row['p_adjusted']:.3g}",
        ]
        for row in each["by_decision"]
    ]
    _print_table(("decision", "left it", "entered it", "p", "p adjusted"), tested)


def _question(row: Document) -> list[str]:
    place = row.get("question") or f"{shown_time(row['known_at'])} {row['symbol']}"
    return [place, row["recorded"] or DASH, *(", ".join(names) for names in row["decisions"])]


def _print_table(heads: Sequence[str], lines: list[list[str]]) -> None:
    if not lines:
        return
    console = stdout_console()
    console.print()
    console.print(made_table(heads, lines[:SHOWN], padding=(0, 2, 0, 0)))
    if len(lines) > SHOWN:
        console.print(f"and {len(lines) - SHOWN:,} more (--json shows all)")
