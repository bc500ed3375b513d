"""`thinktwice check`: the fast reflection on a request of one's own, with an exit code for each verdict.

`thinktwice scenarios`: the five human verification scenarios of the runbook, with their evidence.
"""

import json as json_text
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from schemas.errors import ConfigError
from schemas.vocabulary import ReflectionStatus
from services.model_calls.quoting import visible
from worker.cli import wiring
from worker.cli.console import complain, print_document, print_json, print_page, stdout_console
from worker.cli.options import JsonOption, argument, option
from worker.cli.run_options import ConfigArgument, run_settings, takes
from worker.pages.figures import counts, milliseconds
from worker.runs.interrupts import run_async, unwind_on_ctrl_c
from worker.runs.progress import step

if TYPE_CHECKING:
    from schemas.settings import Settings
    from worker.studies.scenarios import ScenarioResult

ERROR = "error"
EXIT_CODES = {ReflectionStatus.PASS: 0, ReflectionStatus.REVISE: 3, ReflectionStatus.BLOCK: 4, ERROR: 5}
Document = dict[str, Any]
STYLES = {"pass": "bold green", "revise": "bold yellow", "block": "bold red", "error": "bold red"}
WISHES = {"at_most": "at most", "at_least": "at least", "equals": "exactly"}


@takes("model", "llm", "cassette", after="reflection")
def check(
    context: typer.Context,
    file: Annotated[
        str | None, argument(metavar="FILE", help="PolicyLevelReflectionRequest as JSON; - for stdin.")
    ] = None,
    config: ConfigArgument = None,
    reflection: Annotated[str | None, option(help="deterministic or full. [deterministic]")] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a request that passes, ready to edit.")
    ] = False,
    playbook: Annotated[
        str | None, option(metavar="ID", help="Playbook of the example. [trend_pullback]")
    ] = None,
    direction: Annotated[str | None, option(help="Direction of the example: long or short. [long]")] = None,
    json: JsonOption = False,
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
    print_document(document, json, render)
    if document["error"] is not None:
        complain(f"the check itself failed: {document['error']['type']}: {document['error']['message']}")
    raise typer.Exit(EXIT_CODES[document["status"]])


def _refuse_mixture(
    example: bool, for_file: dict[str, str | None], for_example: dict[str, str | None]
) -> None:
    """An option of the other way to use this command would not be read.

    Raises:
        ConfigError: one was given, or neither a file nor `--example`.
    """
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
    from worker.studies.plan_check.check_example import example_request

    request = example_request(settings, wiring.playbooks(settings), playbook, direction)
    text = json_text.dumps(request.payload(), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    print_page(text + "\n")


def _check(file: str, settings: "Settings") -> dict[str, Any]:
    from worker.studies.plan_check.check_request import read_request
    from worker.studies.plan_check.plan_check import check_document, check_plan

    request = read_request(file)
    with step("checking the plan"):
        done = run_async(check_plan(request, settings, os.environ))
    return check_document(request, settings, done)


def render(document: Document) -> None:
    """Print the verdict first, then findings by check, then how it came about."""
    console = stdout_console()
    head = Text(document["status"], style=STYLES[document["status"]])
    head.append(f"   {document['playbook_id']} {document['direction']} on {document['symbol']}", "default")
    lines = [head, *_findings(document["findings"]), *_facts(document), *_how(document)]
    for line in lines:
        plain = visible(line.plain)  # words of the request stand in findings
        console.print(line if plain == line.plain else Text(plain), soft_wrap=True)


def _findings(by_check: dict[str, list[Document]]) -> list[Text]:
    lines = []
    for check, found in by_check.items():
        if found:
            lines += [Text(""), Text(check, style="bold")]
        for finding in found:
            line = Text(f"  {finding['severity']:<8}", style="dim").append(finding["code"], "default bold")
            lines += [line, Text(f"          {finding['message']}")]
            if finding["evidence"]:
                lines.append(Text(f"          evidence: {', '.join(finding['evidence'])}", style="dim"))
            if finding["remedy"] is not None:
                lines.append(Text(f"          would satisfy it: {_wish(finding['remedy'])}"))
    return lines


def _wish(remedy: Document) -> str:
    return f"{remedy['field']} {WISHES[remedy['op']]} {remedy['value']!r}"


def _facts(document: Document) -> list[Text]:
    lines = [Text(f"deferred to the slow loop: {need}") for need in document["deferred"]]
    if document["error"] is not None:
        lines.append(Text(f"{document['error']['type']}: {document['error']['message']}"))
    return [Text(""), *lines] if lines else []


def _how(document: Document) -> list[Text]:
    ran = document["checks_run"]
    lines = [Text(""), Text(f"checks run   {', '.join(ran) or 'none that finished'}")]
    if document["model"] is not None:
        asked = f"model        {counts(document['model']['outcomes'])}   {document['model']['usd']:.6f} USD"
        lines.append(Text(asked))
    if document["tier"] is not None:
        late = "   over its budget" if document["over_budget"] else ""
        why = f" ({document['skip_reason']})" if document["skip_reason"] else ""
        outcome = f"{document['tier']} tier, {document['outcome']}{why}"
        lines.append(Text(f"reached      {outcome} in {milliseconds(document['latency_ms'])}{late}"))
    return lines


def scenarios(json: JsonOption = False) -> None:
    """Run the five verification scenarios and print their evidence; exit 1 if one does not hold."""
    unwind_on_ctrl_c()
    results = wiring.scenario_runner()()
    if json:
        print_json([{"title": r.title, "passed": r.passed, "evidence": list(r.evidence)} for r in results])
    else:
        _render(results)
    if not all(result.passed for result in results):
        raise typer.Exit(1)


def _render(results: "Sequence[ScenarioResult]") -> None:
    console = stdout_console()
    for number, result in enumerate(results, start=1):
        mark = "ok" if result.passed else "FAILED"
        style = "green" if result.passed else "bold red"
        console.print(f"{number}. {result.title}: {mark}", style=style)
        for line in result.evidence:
            console.print(f"   {line}", soft_wrap=True)
    held = sum(result.passed for result in results)
    console.print(f"{held} of {len(results)} scenarios hold")
