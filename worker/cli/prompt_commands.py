"""`thinktwice prompts`: what another wording of a prompt does to what a model says."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError
from worker.cli.console import complain
from worker.cli.model import (
    KEPT,
    ConfigArgument,
    LimitOption,
    QuestionsOption,
    planner_questions,
    planner_settings,
    recorded_questions,
    show,
    strategist_questions,
)
from worker.cli.options import DbOption, JsonOption
from worker.cli.progress import progress_bar
from worker.runs.interrupts import Interrupts, run_async

if TYPE_CHECKING:
    from prompts import PromptTemplate

app = typer.Typer(help="Compare prompts on the questions of a run.", rich_markup_mode=None)


@app.callback()
def prompts() -> None:
    """Compare prompts on the questions of a run."""


@app.command("diff")
def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="Template file, or 'present'.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Template file, or 'present'.")],
    config: ConfigArgument = None,
    cassette: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of replies: played back, or asked and kept.")
    ] = Path(KEPT),
    run: Annotated[str, typer.Option(help="Run whose questions are asked.")] = "latest",
    limit: LimitOption = None,
    questions: QuestionsOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Show how verdicts or decisions of a model move from prompt A to prompt B, with a paired test.

    The placeholders of the templates say which prompt it is: that of the second reader, asked about plans,
    that of the strategist, asked at snapshots, or that of the planner of evidence, asked its examples or the
    questions of a file. Exit 0 when nothing moved, 1 when something did or a reply is
    missing. Stores nothing in the run.
    """
    document = run_async(_diff(first, second, config, cassette, run, limit, questions, db))
    show(document, "comparison", json)
    if missing := _missing(document):
        complain(f"{missing} replies are missing; the prompts they belong to keep no cassette")
    if missing or not document["same"]:
        raise typer.Exit(1)


async def _diff(
    first: str, second: str, config: Path | None, cassette: Path, run: str, limit: int | None,
    questions: Path | None, db: str | None,
) -> dict[str, Any]:  # fmt: skip
    from worker.studies.models.templates import PLANNER, STRATEGIST, read_pair

    templates = read_pair(first, second)
    if templates[0].name == PLANNER:
        return await _plans(templates, config, cassette, run, limit, questions, db)
    if questions is not None:
        raise ConfigError(
            f"--questions are asked of the planner: {first!r} and {second!r} are of {templates[0].name}"
        )
    if templates[0].name == STRATEGIST:
        return await _decisions(templates, config, cassette, run, limit, db)
    from worker.studies.models.diff import diff_prompts

    asked, settings = await recorded_questions(run, db, config, None, None)
    with progress_bar("prompts", Interrupts(), "replies") as progress:
        return await diff_prompts(
            asked, settings, templates, cassette, os.environ, limit=limit, progress=progress
        )


async def _plans(
    templates: "tuple[PromptTemplate, PromptTemplate]", config: Path | None, cassette: Path, run: str,
    limit: int | None, questions: Path | None, db: str | None,
) -> dict[str, Any]:  # fmt: skip
    from worker.studies.models.diff import Asking, diff_decisions

    settings = await planner_settings(run, db, config)
    async with planner_questions(run, db, settings, questions) as asked:
        first, second = (Asking(template, settings, asked) for template in templates)
        with progress_bar("prompts", Interrupts(), "answers") as progress:
            return await diff_decisions(
                asked, (first, second), cassette, os.environ, limit=limit, progress=progress
            )


async def _decisions(
    templates: "tuple[PromptTemplate, PromptTemplate]", config: Path | None, cassette: Path, run: str,
    limit: int | None, db: str | None,
) -> dict[str, Any]:  # fmt: skip
    from worker.studies.models.diff import Asking, diff_decisions

    questions, settings = await strategist_questions(run, db, config)
    first, second = (Asking(template, settings, questions) for template in templates)
    with progress_bar("prompts", Interrupts(), "answers") as progress:
        return await diff_decisions(
            questions, (first, second), cassette, os.environ, limit=limit, progress=progress
        )


def _missing(document: dict[str, Any]) -> int:
    """Replies that never came, of both prompts."""
    if "decisions" in document:
        return int(document["missing"])
    return sum(said.get("no reply", 0) for said in document["verdicts"].values())
