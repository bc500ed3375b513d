"""`thinktwice prompts`: what another wording of a prompt does to the verdicts of a model."""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from worker.cli.console import complain, print_json
from worker.cli.model import ConfigArgument, LimitOption, recorded_questions
from worker.cli.options import DbOption, JsonOption
from worker.cli.progress import progress_bar
from worker.interrupts import Interrupts

PRESENT = "present"

app = typer.Typer(help="Compare prompts on the plans of a run.", rich_markup_mode=None)


@app.callback()
def prompts() -> None:
    """Compare prompts on the plans of a run."""


@app.command("diff")
def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="Template file, or 'present'.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Template file, or 'present'.")],
    config: ConfigArgument = None,
    cassette: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of replies: played back, or asked and kept.")
    ] = Path("cassettes"),
    run: Annotated[str, typer.Option(help="Run whose plans are asked about.")] = "latest",
    limit: LimitOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Show how the verdicts of a model move from prompt A to prompt B, with a paired test.

    Exit 0 when no verdict moved, 1 when one did or a reply is missing. Stores nothing in the run.
    """
    document = asyncio.run(_diff(first, second, config, cassette, run, limit, db))
    if json:
        print_json(document)
    else:
        from worker.cli.model_tables import render_comparison

        render_comparison(document)
    missing = sum(said.get("no reply", 0) for said in document["verdicts"].values())
    if missing:
        complain(f"{missing} replies are missing; the prompts they belong to keep no cassette")
    if missing or not document["same"]:
        raise typer.Exit(1)


async def _diff(
    first: str, second: str, config: Path | None, cassette: Path, run: str, limit: int | None, db: str | None
) -> dict[str, Any]:
    from worker.model_questions import read_template
    from worker.prompt_diff import diff_prompts

    templates = tuple(read_template(None if name == PRESENT else Path(name)) for name in (first, second))
    questions, settings = await recorded_questions(run, db, config, None, None)
    with progress_bar("prompts", Interrupts(), "replies") as progress:
        return await diff_prompts(
            questions, settings, (templates[0], templates[1]), cassette, os.environ,
            limit=limit, progress=progress,
        )  # fmt: skip
