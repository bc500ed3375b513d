"""`thinktwice model`: ask again what a run asked its model, to see how it varies and what a change does."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from schemas.errors import ConfigError
from schemas.settings import Settings, asking_name
from worker.cli.console import complain, print_json
from worker.cli.options import DbOption, JsonOption, RunArgument, argument, open_for_run, option
from worker.cli.progress import ReadingBar, progress_bar, told_rows
from worker.runs.interrupts import Interrupts, run_async
from worker.settings import load_settings

if TYPE_CHECKING:
    from services.journal.index import JournalIndex
    from worker.studies.models.planner import PlannerQuestions
    from worker.studies.models.second_reader import RecordedQuestions
    from worker.studies.models.strategist import StrategistQuestions

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


@app.callback()
def model() -> None:
    """Ask a model again what a run asked it."""


@app.command("spread")
def spread(
    run: Annotated[str, argument(metavar="RUN", help="Run id, prefix or 'latest'; or a cassette file.")],
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
    _demand_one_kind(strategist, planner, questions)
    if Path(run).is_file():
        given = (config, prompt, strategist or None, planner or None, llm, cassette, db)
        document = _spread_of_file(run, limit, given)
    elif planner:
        document = run_async(
            _spread_of_plans(run, config, samples, limit, prompt, questions, llm, cassette, db)
        )
    else:
        document = run_async(_spread(run, config, samples, limit, prompt, strategist, llm, cassette, db))
    show(document, "spread", json)
    if document["run_id"] is not None and not document["answered"]:
        complain(f"no sample was answered ({_listed(document['failed'])})")
        raise typer.Exit(1)


@app.command("compare")
def compare(
    run: RunArgument,
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
    _demand_one_kind(strategist, planner, questions)
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
    if planner:
        document = run_async(_compare_planners(run, config, limit, prompt, questions, cassette or KEPT, db))
    elif strategist:
        document = run_async(_compare_strategists(run, config, limit, prompt, cassette or KEPT, db))
    else:
        document = run_async(_compare(run, config, limit, prompt, llm, cassette, db))
    show(document, "comparison", json)
    if document.get("missing"):
        complain(f"{document['missing']} answers are missing; who did not give them keeps no cassette")
    if document.get("failed"):
        complain(
            f"{document['questions'] - document['answered']} questions were not answered, so not compared"
        )
    if not document["same"]:
        raise typer.Exit(1)


def _spread_of_file(name: str, limit: int | None, given: tuple[object, ...]) -> dict[str, Any]:
    from agents.language_models.cassette import read_cassette
    from worker.studies.models.spread import spread_of_cassette

    if any(value is not None for value in given):
        raise ConfigError(
            f"{name!r} is a cassette, and its replies are there already: leave CONFIG, --prompt, "
            "--strategist, --planner, --llm, --cassette and --db out"
        )
    return spread_of_cassette(read_cassette(Path(name)), name, limit)


async def _spread(
    run: str, config: Path | None, samples: int, limit: int | None, prompt: Path | None, strategist: bool,
    llm: str | None, cassette: str | None, db: str | None,
) -> dict[str, Any]:  # fmt: skip
    from worker.studies.models.spread import spread_of_decisions, spread_of_run
    from worker.studies.models.templates import CONSOLIDATION, STRATEGIST, read_template

    template = read_template(prompt, STRATEGIST if strategist else CONSOLIDATION)
    ask: Callable[..., Awaitable[dict[str, Any]]]
    if strategist:
        decisions, settings = await strategist_questions(run, db, config, llm, cassette)
        ask = partial(spread_of_decisions, decisions)
    else:
        verdicts, settings = await recorded_questions(run, db, config, llm, cassette)
        ask = partial(spread_of_run, verdicts)
    with progress_bar("spread", Interrupts(), "answers" if strategist else "replies") as progress:
        return await ask(settings, template, os.environ, samples=samples, limit=limit, progress=progress)


async def _compare(
    run: str, config: Path | None, limit: int | None, prompt: Path | None, llm: str | None,
    cassette: str | None, db: str | None,
) -> dict[str, Any]:  # fmt: skip
    from worker.studies.models.comparison import compare_run
    from worker.studies.models.templates import read_template

    template = read_template(prompt)
    questions, settings = await recorded_questions(run, db, config, llm, cassette)
    with progress_bar("compare", Interrupts(), "replies") as progress:
        return await compare_run(questions, settings, template, os.environ, limit=limit, progress=progress)


async def _compare_strategists(
    run: str, config: Path | None, limit: int | None, prompt: Path | None, folder: str, db: str | None
) -> dict[str, Any]:
    from worker.studies.models.diff import Asking, diff_decisions
    from worker.studies.models.templates import STRATEGIST, read_template

    questions, present = await strategist_questions(run, db, None)
    others, given = await strategist_questions(run, db, config)
    askings = (
        Asking(read_template(None, STRATEGIST), present, questions, by_model=True),
        Asking(read_template(prompt, STRATEGIST), given, others, by_model=True),
    )
    with progress_bar("compare", Interrupts(), "answers") as progress:
        return await diff_decisions(
            questions, askings, Path(folder), os.environ, limit=limit, progress=progress
        )


def _demand_one_kind(strategist: bool, planner: bool, questions: Path | None) -> None:
    if strategist and planner:
        raise ConfigError("--strategist and --planner ask different models: give one of them")
    if questions is not None and not planner:
        raise ConfigError("--questions are asked of the planner: give --planner, too")


async def _spread_of_plans(
    run: str, config: Path | None, samples: int, limit: int | None, prompt: Path | None,
    questions: Path | None, llm: str | None, cassette: str | None, db: str | None,
) -> dict[str, Any]:  # fmt: skip
    from worker.studies.models.spread import spread_of_decisions
    from worker.studies.models.templates import PLANNER, read_template

    template = read_template(prompt, PLANNER)
    settings = await planner_settings(run, db, config, llm, cassette)
    async with planner_questions(run, db, settings, questions) as asked:
        with progress_bar("spread", Interrupts(), "answers") as progress:
            return await spread_of_decisions(
                asked, settings, template, os.environ, samples=samples, limit=limit, progress=progress
            )


async def _compare_planners(
    run: str, config: Path | None, limit: int | None, prompt: Path | None, questions: Path | None,
    folder: str, db: str | None,
) -> dict[str, Any]:  # fmt: skip
    from worker.studies.models.diff import Asking, diff_decisions
    from worker.studies.models.templates import PLANNER, read_template

    present, given = [await planner_settings(run, db, one) for one in (None, config)]
    async with planner_questions(run, db, given, questions) as asked:
        askings = (
            Asking(read_template(None, PLANNER), present, asked, by_model=True),
            Asking(read_template(prompt, PLANNER), given, asked, by_model=True),
        )
        with progress_bar("compare", Interrupts(), "answers") as progress:
            return await diff_decisions(
                asked, askings, Path(folder), os.environ, limit=limit, progress=progress
            )


async def planner_settings(
    run: str, db: str | None, config: Path | None, llm: str | None = None, cassette: str | None = None
) -> Settings:
    """The settings to ask the planner of evidence with: no other model needs a key or a price."""
    from worker.runs.replay import stored_settings

    store, record = await open_for_run(db, run)
    async with store:
        values = stored_settings(record).payload()
    _give(config, values)
    values["policy_loop"]["strategist"] = "rules"
    values["judge"]["replan"] = asking_name(values["llm"]["provider"])
    values["planner"]["judge"] = "model"
    if values["reflection"]["mode"] == "full":
        values["reflection"]["mode"] = "deterministic"
    values["runtime"] |= {"llm": llm or "live", "cassette": cassette}
    return valid_settings(values)


@asynccontextmanager
async def planner_questions(
    run: str, db: str | None, settings: Settings, questions: Path | None
) -> AsyncIterator["PlannerQuestions"]:
    """The questions to the planner about a run, and the tools that answer from it while the store is open."""
    from worker.review.asking import known_before
    from worker.review.evidence import store_tools
    from worker.review.run_views import RunViews
    from worker.studies.models.planner import PlannerQuestions, example_questions, file_questions

    store, record = await open_for_run(db, run, read_only=True)
    async with store:
        views = RunViews(store, run=record.run_id)
        with ReadingBar() as reading:
            view = await views.view(record.run_id, None, reading)
        known = known_before(view)
        if questions is None:
            fills = view.index.of_kind("exit_filled")[-1:]
            ids = [str(fill.payload["fill_id"])[:8] for fill in fills]
            asked = example_questions(known, view.known_at, ids[0] if ids else None)
        else:
            asked = file_questions(questions, known, view.known_at)
        yield PlannerQuestions(record.run_id, tuple(asked), store_tools(views), {})


async def strategist_questions(
    run: str, db: str | None, config: Path | None, llm: str | None = None, cassette: str | None = None
) -> tuple["StrategistQuestions", Settings]:
    """The snapshots of a run at which a strategist had a choice, and the settings to ask it with."""
    from worker.studies.models.strategist import read_strategist_questions

    run_id, index, values = await recorded_run(run, db, config)
    # No other model is asked here, so no other needs a key or a price.
    values["policy_loop"]["strategist"] = asking_name(values["llm"]["provider"])
    values["judge"]["replan"] = "rules"
    if values["reflection"]["mode"] == "full":
        values["reflection"]["mode"] = "deterministic"
    values["runtime"] |= {"llm": llm or "live", "cassette": cassette}
    settings = valid_settings(values)
    return read_strategist_questions(run_id, index, settings), settings


async def recorded_questions(
    run: str, db: str | None, config: Path | None, llm: str | None, cassette: str | None
) -> tuple["RecordedQuestions", Settings]:
    """What the run asked, and the settings to ask with: the run's, with what is given now before them."""
    from worker.studies.models.second_reader import read_questions

    run_id, index, values = await recorded_run(run, db, config)
    values["runtime"] |= {"llm": llm or "live", "cassette": cassette}
    values["policy_loop"]["strategist"] = "rules"  # it is not asked here, so it needs neither key nor price
    settings = valid_settings(values)
    return read_questions(run_id, index, anonymise=settings.llm.anonymise), settings


async def recorded_run(
    run: str, db: str | None, config: Path | None
) -> tuple[str, "JournalIndex", dict[str, Any]]:
    """Id and rows of a run, and its settings as plain data with what is given now of `[llm]`."""
    from services.journal.index import JournalIndex
    from worker.runs.replay import stored_settings

    store, record = await open_for_run(db, run)
    async with store:
        values = stored_settings(record).payload()
        index = await JournalIndex.read(told_rows(store.journal.rows(record.run_id), record.events))
    _give(config, values)
    return record.run_id, index, values


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


def show(document: dict[str, Any], view: Literal["spread", "comparison"], json: bool) -> None:
    """Print a document about verdicts or decisions, as JSON or as a person reads it."""
    if json:
        print_json(document)
        return
    from worker.cli import model_tables

    kind = "decision_" if "decisions" in document else ""
    getattr(model_tables, f"render_{kind}{view}")(document)


def _listed(counted: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counted.items()) or "nothing was asked"
