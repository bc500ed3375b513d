"""`thinktwice scenarios`: the five human verification scenarios of the runbook, with their evidence."""

from collections.abc import Sequence

import typer

from worker.cli import wiring
from worker.cli.console import print_json, stdout_console
from worker.cli.options import JsonOption
from worker.cli.wiring import Scenario
from worker.runs.interrupts import unwind_on_ctrl_c


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


def _render(results: Sequence[Scenario]) -> None:
    console = stdout_console()
    for number, result in enumerate(results, start=1):
        mark = "ok" if result.passed else "FAILED"
        style = "green" if result.passed else "bold red"
        console.print(f"{number}. {result.title}: {mark}", style=style)
        for line in result.evidence:
            console.print(f"   {line}", soft_wrap=True)
    held = sum(result.passed for result in results)
    console.print(f"{held} of {len(results)} scenarios hold")
