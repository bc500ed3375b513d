"""`thinktwice check`: the fast reflection on a request of one's own, with an exit code for each verdict.

`thinktwice scenarios`: the five human verification scenarios of the runbook, with their evidence.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError
from schemas.vocabulary import ReflectionStatus
from worker.cli import options
from worker.cli.options import MODELS, argument, option, run_settings, takes
from worker.cli.printing import complain, print_document, print_json
from worker.pages.study_text import check_parts
from worker.pages.text_parts import Part
from worker.runs.interrupts import run_async, unwind_on_ctrl_c
from worker.runs.progress import step
from worker.runs.readiness import ready_engine

if TYPE_CHECKING:
    from schemas.settings import Settings

ERROR = "error"
EXIT_CODES = {ReflectionStatus.PASS: 0, ReflectionStatus.REVISE: 3, ReflectionStatus.BLOCK: 4, ERROR: 5}
Document = dict[str, Any]


@takes(*MODELS, after="reflection")
def check(
    context: typer.Context,
    file: Annotated[
        str | None, argument(metavar="FILE", help="PolicyLevelReflectionRequest as JSON; - for stdin.")
    ] = None,
    config: options.Config = None,
    reflection: Annotated[str | None, option(help="deterministic or full. [deterministic]")] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a plan that passed on embedded bars, ready to edit.")
    ] = False,
    playbook: Annotated[
        str | None, option(metavar="ID", help="Playbook of the example. [trend_pullback]")
    ] = None,
    direction: Annotated[str | None, option(help="Direction of the example: long or short. [long]")] = None,
    json: options.Json = False,
) -> None:
    """Reflect on a plan of your own: exit 0 pass, 3 revise, 4 block, 5 error, 2 bad input."""
    replies = {f"--{name}": context.params[name] for name in ("llm", "cassette")}
    for_file = {"FILE": file, "--reflection": reflection, **replies}
    _refuse_mixture(example, for_file, {"--playbook": playbook, "--direction": direction})
    resolved = run_settings(context)
    if file is None:
        _print_example(resolved.settings, playbook, direction)
        return
    document = _check(file, resolved.settings)
    print_document(document, json, check_parts)
    if document["error"] is not None:
        complain(f"the check itself failed: {document['error']['type']}: {document['error']['message']}")
    raise typer.Exit(EXIT_CODES[document["status"]])


def _refuse_mixture(
    example: bool, for_file: dict[str, str | None], for_example: dict[str, str | None]
) -> None:
    """Refuse an option of the other way to use this command: it would not be read."""
    foreign = [name for name, value in (for_file if example else for_example).items() if value is not None]
    if foreign and example:
        raise ConfigError(f"--example prints a request and reads none: leave {', '.join(foreign)} out")
    if foreign:
        raise ConfigError(
            f"{', '.join(foreign)} chooses what --example prints: add --example, or leave it out"
        )
    if not example and for_file["FILE"] is None:
        raise ConfigError(
            "check needs a FILE, or - for standard input: `thinktwice check --example > plan.json` makes one"
        )


def _print_example(settings: "Settings", playbook: str | None, direction: str | None) -> None:
    from worker.studies.faults.right_plans import example_request

    with step("looking for a plan that passes"):
        ready_engine()
        request = run_async(example_request(settings, playbook, direction))
    print_json(request.payload())


def _check(file: str, settings: "Settings") -> dict[str, Any]:
    from worker.studies.plan_check.check_request import read_request
    from worker.studies.plan_check.plan_check import check_document, check_plan

    request = read_request(file)
    with step("checking the plan"):
        done = run_async(check_plan(request, settings, os.environ))
    return check_document(request, settings, done)


def scenarios(json: options.Json = False) -> None:
    """Run the five verification scenarios and print their evidence; exit 1 if one does not hold."""
    unwind_on_ctrl_c()
    ready_engine()
    from worker.studies.scenarios import run_scenarios

    found = [
        {"title": done.title, "passed": done.passed, "evidence": list(done.evidence)}
        for done in run_scenarios()
    ]
    print_document(found, json, _describe_scenarios)
    if not all(done["passed"] for done in found):
        raise typer.Exit(1)


def _describe_scenarios(found: list[Document]) -> Iterator[Part]:
    for number, done in enumerate(found, start=1):
        yield f"{number}. {done['title']}: {'ok' if done['passed'] else 'FAILED'}"
        yield from (f"   {line}" for line in done["evidence"])
    yield f"{sum(done['passed'] for done in found)} of {len(found)} scenarios hold"
