"""`thinktwice replan`: ask the judge about a report, and see what its actions change."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import typer

from schemas.errors import ConfigError
from worker.cli import options
from worker.cli.options import LATEST, argument, operator_name, option
from worker.cli.printing import print_document, time_option
from worker.cli.stores import open_to_write
from worker.cli.version_text import outcome_parts
from worker.pages.figures import shown_cell, shown_time
from worker.pages.text_parts import Part, rows_table


async def replan(
    target: Annotated[
        str,
        argument(
            metavar="RUN|REPORT",
            help="A run: reflect on it now, then judge; or a report by the start of its id. [latest]",
        ),
    ] = LATEST,
    at: options.At = None,
    judge: Annotated[
        Literal["rules", "model"] | None,
        typer.Option(help="Who judges; a model may only drop what the rules accept. [as the run's settings]"),
    ] = None,
    write: options.Write = None,
    run: Annotated[str | None, option(metavar="RUN", help="The run of REPORT. [the one that has it]")] = None,
    data: options.Data = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Ask the judge about a report: what it would change and why, what it refuses and why."""
    from services.playbooks.writing import demand_writable
    from worker.review.judged_run import JudgedRun
    from worker.review.report_finder import find_report, names_report

    place = None if write is None else write.resolve()
    if write is not None:
        demand_writable(write)
    moment = None if at is None else time_option(at, "--at")
    report_wanted = names_report(target)
    if not report_wanted and run is not None:
        raise ConfigError(f"--run goes with a report; a run stands first: `thinktwice replan {run}`")
    if report_wanted and at is not None:
        raise ConfigError(f"{target!r} names a report, which has its own time: --at goes with a run")
    async with open_to_write(db, (run or LATEST) if report_wanted else target) as (store, record):
        found = await find_report(store, target, None if run is None else record) if report_wanted else None
        if found is not None:
            record = await store.runs.find(found.run_id)
        judged = await JudgedRun(store, record, judge, place, data, operator_name()).answer(found, moment)
    if write is not None and judged.get("written"):
        judged["written"]["folder"] = str(write)
    print_document(judged, json, replan_parts)


JUDGED = {
    "now": "",
    "before": " (judged before: a report is judged once)",
    "in the run": " (judged and applied in the run: nothing is applied again)",
}
TOLD_BY = {"run": "of the run", "worker": "of its worker", "on_demand": "on demand"}
TARGET = ("playbook_id", "regime", "direction", "parameter", "value")


def replan_parts(found: Mapping[str, Any]) -> Iterator[Part]:
    """The outcome of a report, or that it was asked for."""
    from services.slow_loop.evidence_rows import evidence_line
    from worker.review.run_requests import describe_request

    if "request" in found:
        yield describe_request(found)
        return
    verdict = found["verdict"]
    yield (
        f"report {found['report_id']} {TOLD_BY[found['source']]} {found['run_id']}, "
        f"known {shown_time(found['known_at'])}, recommends {found['recommended_action']}"
    )
    text = f"verdict {verdict['verdict_id']}: {verdict['decision']}, by {verdict['model']}"
    yield text + JUDGED[found["judged"]]
    if verdict["fallback"] is not None:
        yield f"  no model had a say: {verdict['fallback']}"
    yield f"  {verdict['reason']}"
    yield from (f"  {evidence_line(read)}" for read in found["evidence"])
    yield rows_table(found["actions"], ACTIONS)
    yield rows_table(found["refused"], REFUSED)
    yield from outcome_parts(found, [moved for action in found["actions"] for moved in action["transitions"]])


def _name_action(action: Mapping[str, Any]) -> str:
    parts = [shown_cell(action[name]) for name in TARGET if name in action]
    return " ".join([action["kind"], *parts])


ACTIONS = {
    "action": lambda one: _name_action(one["action"]),
    "carried out": "carried_out",
    "retires the policies of": "boundaries",
    "because": lambda one: one["action"]["reason"],
}
REFUSED = {"refused": lambda one: _name_action(one["action"]), "code": "code", "because": "reason"}
