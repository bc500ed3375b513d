"""`thinktwice model`: ask again what a run asked its model, to see how it varies and what a change does.

`thinktwice prompts`: what another wording of a prompt does to what a model says.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from schemas.errors import ConfigError
from schemas.settings import Settings
from worker.cli.console import complain, print_document
from worker.cli.options import (
    LATEST,
    DbOption,
    JsonOption,
    RunArgument,
    RunOption,
    argument,
    open_for_run,
    option,
)
from worker.runs.interrupts import Interrupts
from worker.runs.progress import ReadingBar, progress_bar, told_rows
from worker.settings import load_settings

if TYPE_CHECKING:
    from services.store import Store
    from worker.studies.models.diff import Asking
    from worker.studies.models.planner import PlannerQuestions

Document = dict[str, Any]
MOST_SAMPLES = 1_000
KEPT = "cassettes"
ConfigArgument = Annotated[
    Path | None, argument(metavar="CONFIG", help="TOML file; its [llm] settings replace the run's.")
]
PromptOption = Annotated[
    Path | None, option("--prompt", metavar="FILE", help="Template to ask with. [the present one]")
]
LimitOption = Annotated[int | None, option(min=1, help="Ask only about the first plans of the run.")]
LlmOption = Annotated[str | None, option(help="Replies: live, record or replay. [live]")]
CassetteOption = Annotated[
    str | None, option(metavar="FILE", help="Replies to record into, or to replay without a key.")
]

StrategistOption = Annotated[
    bool,
    typer.Option("--strategist", help="Ask a strategist at the snapshots, not a second reader about plans."),
]

PlannerOption = Annotated[
    bool,
    typer.Option("--planner", help="Ask the planner of evidence: its examples, or the questions of a file."),
]
QuestionsOption = Annotated[
    Path | None,
    option("--questions", metavar="FILE", help="Questions to the planner, one a line. [its examples]"),
]

app = typer.Typer(help="Ask a model again what a run asked it.", rich_markup_mode=None)
prompts_app = typer.Typer(help="Compare prompts on the questions of a run.", rich_markup_mode=None)


@app.callback()
def model() -> None:
    """Ask a model again what a run asked it."""


@prompts_app.callback()
def prompts() -> None:
    """Compare prompts on the questions of a run."""


@app.command("spread")
async def spread(
    run: Annotated[
        str,
        argument(metavar="RUN|CASSETTE", help="Run id, prefix or 'latest'; or a cassette file. [latest]"),
    ] = LATEST,
    config: ConfigArgument = None,
    samples: Annotated[int, typer.Option(min=1, max=MOST_SAMPLES, help="Times to ask each question.")] = 5,
    limit: LimitOption = None,
    prompt: PromptOption = None,
    strategist: StrategistOption = False,
    planner: PlannerOption = False,
    questions: QuestionsOption = None,
    llm: LlmOption = None,
    cassette: CassetteOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Ask each question of a run again and show how often the verdict is the recorded one; stores nothing.

    Of a strategist or a planner: how often its decision is the usual one. Exit 0 when anything was answered,
    1 when nothing was.
    """
    kind = _kind(strategist, planner, questions)
    if _is_file(run):
        given = (config, prompt, strategist or None, planner or None, llm, cassette, db)
        document = _spread_of_file(run, limit, given)
    else:
        from worker.studies.models.spread import spread_of_decisions, spread_of_run
        from worker.studies.models.templates import CONSOLIDATION, read_template

        template = read_template(prompt, kind)
        ask: Callable[..., Awaitable[Document]] = spread_of_decisions
        if kind == CONSOLIDATION:
            ask = spread_of_run
        async with open_questions(kind, run, db, config, questions, llm, cassette) as (asked, settings):
            with progress_bar("spread", Interrupts(), _unit(kind)) as progress:
                document = await ask(
                    asked, settings, template, os.environ, samples=samples, limit=limit, progress=progress
                )
    show(document, "spread", json)
    if document["run_id"] is not None and not document["answered"]:
        complain(f"no sample was answered ({_list_counts(document['failed'])})")
        raise typer.Exit(1)


@app.command("compare")
async def compare(
    run: RunArgument = LATEST,
    config: ConfigArgument = None,
    prompt: PromptOption = None,
    limit: LimitOption = None,
    strategist: StrategistOption = False,
    planner: PlannerOption = False,
    questions: QuestionsOption = None,
    llm: LlmOption = None,
    cassette: CassetteOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Ask the questions of a run in other words or of another model: exit 0 unchanged, 1 changed.

    A second reader is held against its recorded verdicts. Strategists are both asked, at every snapshot of
    the run, and planners of evidence about the run; their replies are kept in the folder --cassette.
    """
    kind = _kind(strategist, planner, questions)
    if prompt is None and config is None:
        raise ConfigError(
            "nothing to compare with: give --prompt FILE, or a CONFIG with another model; `thinktwice model "
            "spread` asks the same again"
        )
    if (strategist or planner) and llm is not None:
        who = "strategist" if strategist else "planner"
        raise ConfigError(
            f"--llm {llm} does not go with --{who}: replies are kept in "
            f"the folder --cassette [{KEPT}], and played back where they are there"
        )
    from worker.studies.models.comparison import compare_run
    from worker.studies.models.diff import Asking
    from worker.studies.models.templates import read_template

    template = read_template(prompt, kind)
    if strategist or planner:
        async with (
            open_questions(kind, run, db, None, questions) as (asked, present),
            open_questions(kind, run, db, config, questions) as (others, given),
        ):
            askings = (
                Asking(read_template(None, kind), present, asked, by_model=True),
                Asking(template, given, others, by_model=True),
            )
            document = await _tell_moves("compare", askings, Path(cassette or KEPT), limit)
    else:
        async with open_questions(kind, run, db, config, None, llm, cassette) as (asked, settings):
            with progress_bar("compare", Interrupts(), _unit(kind)) as progress:
                document = await compare_run(
                    asked, settings, template, os.environ, limit=limit, progress=progress
                )
    show(document, "comparison", json)
    if document.get("missing"):
        complain(f"{document['missing']} answers are missing; who did not give them keeps no cassette")
    if document.get("failed"):
        complain(
            f"{document['questions'] - document['answered']} questions were not answered, so not compared"
        )
    if not document["same"]:
        raise typer.Exit(1)


@prompts_app.command("diff")
async def diff(
    first: Annotated[str, typer.Argument(metavar="A", help="Template file, or 'present'.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Template file, or 'present'.")],
    config: ConfigArgument = None,
    cassette: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of replies: played back, or asked and kept.")
    ] = Path(KEPT),
    run: RunOption = LATEST,
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
    from worker.studies.models.diff import Asking, diff_prompts
    from worker.studies.models.templates import CONSOLIDATION, PLANNER, read_pair

    templates = read_pair(first, second)
    kind = templates[0].name
    if questions is not None and kind != PLANNER:
        raise ConfigError(f"--questions are asked of the planner: {first!r} and {second!r} are of {kind}")
    async with open_questions(kind, run, db, config, questions) as (asked, settings):
        if kind == CONSOLIDATION:
            with progress_bar("prompts", Interrupts(), _unit(kind)) as progress:
                document = await diff_prompts(
                    asked, settings, templates, cassette, os.environ, limit=limit, progress=progress
                )
        else:
            one, other = (Asking(template, settings, asked) for template in templates)
            document = await _tell_moves("prompts", (one, other), cassette, limit)
    show(document, "comparison", json)
    if missing := _missing(document):
        complain(f"{missing} replies are missing; the prompts they belong to keep no cassette")
    if missing or not document["same"]:
        raise typer.Exit(1)


def _missing(document: Document) -> int:
    """Replies that never came, of both prompts."""
    verdicts = document.get("verdicts", {})
    return int(document.get("missing", 0) + sum(said.get("no reply", 0) for said in verdicts.values()))


async def _tell_moves(
    title: str, askings: "tuple[Asking[Any, Any], Asking[Any, Any]]", folder: Path, limit: int | None
) -> Document:
    """How decisions move from the first way of asking to the second."""
    from worker.studies.models.diff import diff_decisions

    asked: Any = askings[0].questions
    with progress_bar(title, Interrupts(), "answers") as progress:
        return await diff_decisions(asked, askings, folder, os.environ, limit=limit, progress=progress)


def _kind(strategist: bool, planner: bool, questions: Path | None) -> str:
    """The prompt whose questions are asked."""
    if strategist and planner:
        raise ConfigError("--strategist and --planner ask different models: give one of them")
    if questions is not None and not planner:
        raise ConfigError("--questions are asked of the planner: give --planner, too")
    from worker.studies.models.templates import CONSOLIDATION, PLANNER, STRATEGIST

    return PLANNER if planner else STRATEGIST if strategist else CONSOLIDATION


def _unit(kind: str) -> str:
    from worker.studies.models.templates import CONSOLIDATION

    return "replies" if kind == CONSOLIDATION else "answers"


def _is_file(name: str) -> bool:
    return Path(name).is_file()


def _spread_of_file(name: str, limit: int | None, given: tuple[object, ...]) -> Document:
    from agents.language_models.cassette import read_cassette
    from worker.studies.models.spread import spread_of_cassette

    if any(value is not None for value in given):
        raise ConfigError(
            f"{name!r} is a cassette, and its replies are there already: leave CONFIG, --prompt, "
            "--strategist, --planner, --llm, --cassette and --db out"
        )
    return spread_of_cassette(read_cassette(Path(name)), name, limit)


@asynccontextmanager
async def open_questions(
    kind: str,
    run: str,
    db: str | None,
    config: Path | None,
    questions: Path | None = None,
    llm: str | None = None,
    cassette: str | None = None,
) -> AsyncIterator[tuple[Any, Settings]]:
    """What a run asked with a prompt, and the settings to ask with: the run's, with what is given now first.

    The planner is asked its examples, or the `questions` of a file; its tools answer while the store is open.
    """
    from services.journal.index import JournalIndex
    from worker.runs.replay import stored_settings
    from worker.studies.models.second_reader import read_questions
    from worker.studies.models.strategist import read_strategist_questions
    from worker.studies.models.templates import PLANNER, STRATEGIST

    async with open_for_run(db, run, read_only=kind == PLANNER) as (store, record):
        values = stored_settings(record).payload()
        _give(config, values)
        _ask_alone(kind, values)
        values["runtime"] |= {"llm": llm or "live", "cassette": cassette}
        settings = valid_settings(values)
        if kind == PLANNER:
            yield await _planner_questions(store, record.run_id, questions), settings
            return
        index = await JournalIndex.read(told_rows(store.journal.rows(record.run_id), record.events))
    if kind == STRATEGIST:
        yield read_strategist_questions(record.run_id, index, settings), settings
    else:
        yield read_questions(record.run_id, index, anonymise=settings.llm.anonymise), settings


def _ask_alone(kind: str, values: dict[str, Any]) -> None:
    """Of the other models none is asked, so none needs a key or a price."""
    from worker.studies.models.templates import CONSOLIDATION, PLANNER, STRATEGIST

    values["policy_loop"]["strategist"] = "model" if kind == STRATEGIST else "rules"
    if kind == CONSOLIDATION:
        return
    values["judge"]["replan"] = "model" if kind == PLANNER else "rules"
    if kind == PLANNER:
        values["planner"]["judge"] = "model"
    if values["reflection"]["mode"] == "full":
        values["reflection"]["mode"] = "deterministic"


async def _planner_questions(store: "Store", run_id: str, questions: Path | None) -> "PlannerQuestions":
    from worker.review.asking import describe_known
    from worker.review.evidence import store_tools
    from worker.review.run_views import RunViews
    from worker.studies.models.planner import PlannerQuestions, example_questions, file_questions

    views = RunViews(store, run=run_id)
    with ReadingBar() as reading:
        view = await views.view(run_id, None, reading)
    known = describe_known(view)
    if questions is None:
        fills = view.index.of_kind("exit_filled")[-1:]
        ids = [str(fill.payload["fill_id"])[:8] for fill in fills]
        asked = example_questions(known, view.known_at, ids[0] if ids else None)
    else:
        asked = file_questions(questions, known, view.known_at)
    return PlannerQuestions(run_id, tuple(asked), store_tools(views), {})


def _give(config: Path | None, values: dict[str, Any]) -> None:
    """Put what is given now of `[llm]` into the settings of a run."""
    given = load_settings(config)
    asked = given.settings.payload()
    for key in given.origins:
        if key.startswith("llm."):
            _copy(asked, values, key.split("."))


def _copy(source: dict[str, Any], target: dict[str, Any], steps: list[str]) -> None:
    for step in steps[:-1]:
        source, target = source[step], target[step]
    target[steps[-1]] = source[steps[-1]]


def valid_settings(values: dict[str, Any]) -> Settings:
    """Settings of plain data.

    Raises:
        ConfigError: they do not fit together.
    """
    from pydantic import ValidationError

    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{place}: {first['msg']}" if place else first["msg"]) from error


def show(document: Document, view: Literal["spread", "comparison"], json: bool) -> None:
    """Print a document about verdicts or decisions, as JSON or as a person reads it."""
    from worker.cli import model_tables

    kind = "decision_" if "decisions" in document else ""
    print_document(document, json, getattr(model_tables, f"render_{kind}{view}"))


def _list_counts(counted: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counted.items()) or "nothing was asked"
