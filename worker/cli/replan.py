"""`thinktwice replan`: ask the judge about a report, and see what its actions change."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from schemas.errors import ConfigError
from worker.cli.console import print_json, print_line, time_option
from worker.cli.options import AtOption, DataOption, DbOption, JsonOption, argument, operator_name, option
from worker.cli.rebuilt import open_to_write, queue_request, rebuilt_run, takes_requests, told_request
from worker.pages.figures import shown_time
from worker.runs.interrupts import run_async
from worker.runs.replay import stored_settings

if TYPE_CHECKING:
    from schemas.judge import ReplanVerdict
    from schemas.playbook import PlaybookVersion
    from schemas.settings import Settings
    from services.store import RunRecord, Store
    from worker.review.replanning import Effect, JudgeName
    from worker.review.report_finder import FoundReport
    from worker.runs.replay import Rebuilt


WriteOption = Annotated[
    Path | None,
    option(
        metavar="DIR",
        help="Write the playbooks that result as TOML files there; runtime.playbooks reads them.",
    ),
]


def replan(
    target: Annotated[
        str,
        argument(
            metavar="RUN|REPORT",
            help="A run ('latest'): reflect on it now, then judge; or a report by its id or the start of it.",
        ),
    ],
    at: AtOption = None,
    judge: Annotated[
        Literal["rules", "model"] | None,
        typer.Option(help="Who judges; a model may only drop what the rules accept. [as the run's settings]"),
    ] = None,
    write: WriteOption = None,
    run: Annotated[str | None, option(metavar="RUN", help="The run of REPORT, when several have it.")] = None,
    data: DataOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Ask the judge about a report: what it would change and why, what it refuses and why."""
    place = None if write is None else write.absolute()
    if write is not None:
        from services.playbooks.writing import demand_writable

        demand_writable(write)
    moment = None if at is None else time_option(at, "--at")
    found = run_async(_answered(target, run, moment, judge, place, data, db))
    if write is not None and found.get("written"):
        found["written"]["folder"] = str(write)
    if json:
        print_json(found)
    elif "request" in found:
        print_line(told_request(found))
    else:
        render(found)


async def _answered(
    target: str,
    run: str | None,
    at: int | None,
    judge: "JudgeName | None",
    write: Path | None,
    data: Path | None,
    db: str | None,
) -> dict[str, Any]:
    from worker.review.report_finder import find_report, names_report

    report_wanted = names_report(target)
    if not report_wanted and run is not None:
        raise ConfigError(f"{target!r} names a run: --run goes with a report")
    if report_wanted and at is not None:
        raise ConfigError(f"{target!r} names a report, which has its own time: --at goes with a run")
    store, record = await open_to_write(db, (run or "latest") if report_wanted else target)
    async with store:
        if not report_wanted:
            return await _of_run(store, record, at, judge, write, data)
        found = await find_report(store, target, None if run is None else record)
        record = await store.runs.find(found.run_id)
        return await _of_report(store, record, found, judge, write, data)


async def _of_run(
    store: "Store",
    record: "RunRecord",
    at: int | None,
    judge: "JudgeName | None",
    write: Path | None,
    data: Path | None,
) -> dict[str, Any]:
    """Reflect on a run as of a time or its end, then judge that; ask a process that trades to do so."""
    from worker.review.replanning import report_now
    from worker.review.report_finder import find_report

    if takes_requests(record):
        if at is not None:
            raise ConfigError(f"run {record.run_id} trades: it reflects on the present; leave out --at")
        return await _queued(store, record, None, judge, write)
    _demand_judge(record, judge)
    rebuilt = await rebuilt_run(store, record, data, at)
    request, report = await report_now(rebuilt)
    await store.on_demand.put(record.run_id, request, report)
    found = await find_report(store, report.content_hash[:16], record)
    return await _judged(store, rebuilt, found, judge, write)


async def _of_report(
    store: "Store",
    record: "RunRecord",
    found: "FoundReport",
    judge: "JudgeName | None",
    write: Path | None,
    data: Path | None,
) -> dict[str, Any]:
    if found.source == "run":
        return await _judged_in_run(store, found, judge, write)
    if found.verdict is None and takes_requests(record):
        return await _queued(store, record, found.report_id, judge, write)
    if found.verdict is None:
        _demand_judge(record, judge)
    else:
        _demand_no_judge(found, found.verdict, judge)
    rebuilt = await rebuilt_run(store, record, data, found.known_at)
    return await _judged(store, rebuilt, found, judge, write)


async def _queued(
    store: "Store", record: "RunRecord", report_id: str | None, judge: "JudgeName | None", write: Path | None
) -> dict[str, Any]:
    if judge is not None or write is not None:
        raise ConfigError(
            f"run {record.run_id} trades: its own judge answers, and its playbooks change in it; leave out "
            "--judge and --write"
        )
    return await queue_request(store, record, "replan", {"report_id": report_id})


async def _judged(
    store: "Store", rebuilt: "Rebuilt", found: "FoundReport", judge: "JudgeName | None", write: Path | None
) -> dict[str, Any]:
    """The verdict on a report, made now or before, and its effect on the playbooks as they stood then."""
    from worker.review.replan_outcome import outcome
    from worker.review.replanning import apply_verdict
    from worker.review.report_finder import evidence_on

    session = rebuilt.session
    verdict, judged = await _verdict(store, rebuilt, found, judge)
    effects = apply_verdict(session, verdict, session.bars.timeframe)
    versions = session.registry.latest()
    document = outcome(
        verdict, effects, versions, lambda key: session.registry.reader().by_hash(key).definition
    )
    evidence = {"evidence": await evidence_on(store, found)}
    return (
        _document(found, judged, document)
        | evidence
        | await _written(store, rebuilt.session.settings, write, effects, versions, found)
    )


async def _verdict(
    store: "Store", rebuilt: "Rebuilt", found: "FoundReport", judge: "JudgeName | None"
) -> "tuple[ReplanVerdict, str]":
    """A report is judged once: the verdict that is there, or a new one, which is kept."""
    from worker.review.replanning import ask_judge

    if found.verdict is not None:
        return found.verdict, "before"
    if found.source == "worker":
        raise ConfigError(
            f"report {found.report_id} waits for the judge of its worker: `thinktwice worker --once --run "
            f"{found.run_id}` lets it judge"
        )
    by = _judge_of(rebuilt.session.settings, judge)
    verdict, calls = await ask_judge(rebuilt.session, found.report, by, os.environ)
    if await store.on_demand.decide(found.run_id, found.report_id, verdict, calls):
        return verdict, "now"
    kept = [
        kept_report
        for kept_report in await store.on_demand.of_run(found.run_id)
        if kept_report.report_id == found.report_id
    ]
    return kept[0].verdict or verdict, "before"


def _judge_of(settings: "Settings", judge: "JudgeName | None") -> "JudgeName":
    return judge or ("rules" if settings.judge.replan == "rules" else "model")


def _demand_judge(record: "RunRecord", judge: "JudgeName | None") -> None:
    """Refuse a model that cannot be asked before a run is replayed for it."""
    from worker.review.replanning import demand_model

    settings = stored_settings(record)
    if _judge_of(settings, judge) == "model":
        demand_model(settings, os.environ)


async def _judged_in_run(
    store: "Store", found: "FoundReport", judge: "JudgeName | None", write: Path | None
) -> dict[str, Any]:
    """What the run itself decided on its report; it is not judged, and nothing of it applied, again."""
    from worker.review.playbook_files import in_force
    from worker.review.replan_outcome import KINDS, outcome, outcome_in_run
    from worker.review.report_finder import evidence_on

    if found.verdict is None:
        raise ConfigError(
            f"report {found.report_id} of {found.run_id} was not judged before the run broke off"
        )
    _demand_no_judge(found, found.verdict, judge)
    rows = store.journal.rows(found.run_id, kinds=KINDS, until=found.verdict.known_at)
    told = await outcome_in_run(rows, found.verdict)
    by_hash = {version.definition.content_hash: version.definition for version in told.history}
    versions = in_force(told.history)
    document = outcome(found.verdict, told.effects, versions, by_hash.__getitem__)
    settings = stored_settings(await store.runs.find(found.run_id))
    evidence = {"evidence": await evidence_on(store, found)}
    return (
        _document(found, "in the run", document)
        | evidence
        | await _written(store, settings, write, told.effects, versions, found)
    )


def _demand_no_judge(found: "FoundReport", verdict: "ReplanVerdict", judge: "JudgeName | None") -> None:
    if judge is not None and (judge == "rules") != (verdict.model == "rules" and verdict.fallback is None):
        raise ConfigError(
            f"report {found.report_id} was judged already (by {verdict.model}, verdict "
            f"{verdict.content_hash[:16]}): a report is judged once; leave out --judge to see it"
        )


def _document(found: "FoundReport", judged: str, outcome: dict[str, Any]) -> dict[str, Any]:
    return {
        "run_id": found.run_id,
        "report_id": found.report_id,
        "source": found.source,
        "known_at": found.known_at,
        "recommended_action": str(found.report.recommended_action),
        "insufficient_sample": found.report.insufficient_sample,
        "judged": judged,
        **outcome,
    }


async def _written(
    store: "Store",
    settings: "Settings",
    write: Path | None,
    effects: "Sequence[Effect]",
    versions: "tuple[PlaybookVersion, ...]",
    found: "FoundReport",
) -> dict[str, Any]:
    """Files of the versions that result: a plan that whoever gives the command approves with it."""
    if write is None:
        return {"written": None}
    from worker.review.replan_outcome import write_approved

    by = operator_name()
    plan_id, files = await write_approved(store, settings, write, effects, versions, found, by)
    return {"written": {"folder": str(write), "files": list(files), "plan_id": plan_id}}


JUDGED = {
    "now": "",
    "before": " (judged before: a report is judged once)",
    "in the run": " (judged and applied in the run: nothing is applied again)",
}
TOLD_BY = {"run": "of the run", "worker": "of its worker", "on_demand": "on demand"}
TARGET = ("playbook_id", "regime", "direction", "parameter", "value")


def render(found: Mapping[str, Any]) -> None:
    """Print the outcome of a report."""
    for line in _lines(found):
        print_line(line)


def transition_lines(transitions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each transition, and one for each field that a new version changes."""
    for moved in transitions:
        came = f" from version {moved['from_version']}" if moved["from_version"] != moved["version"] else ""
        ends = "" if moved["ends"] is None else f", ends {moved['ends'][:16].replace('T', ' ')}"
        yield f"{moved['playbook_id']} version {moved['version']}{came}: {moved['state']}{ends}"
        yield from (f"  {line}" for line in change_lines(moved["changes"]))


def change_lines(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """`risk_fraction 0.005 -> 0.0025`."""
    for change in changes:
        yield f"{change['field']} {shown_value(change['from'])} -> {shown_value(change['to'])}"


def version_lines(title: str, versions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Versions with when they end."""
    if versions:
        yield f"{title}:"
    for version in versions:
        ends = "" if version["ends"] is None else f"  until {version['ends'][:16].replace('T', ' ')}"
        yield f"  {version['playbook_id']} version {version['version']}{ends}"


def written_lines(written: Mapping[str, Any] | None) -> Iterator[str]:
    """Where the files are, and what to do with them."""
    if written is not None:
        plan = f", as plan {written['plan_id']}" if written.get("plan_id") else ""
        yield f"wrote {len(written['files'])} files to {written['folder']}{plan}"
        yield f'Next: set runtime.playbooks = "{written["folder"]}" to trade with them.'


def shown_value(value: Any) -> str:
    """A value as a reader writes it."""
    if isinstance(value, list):
        return f"[{', '.join(map(shown_value, value))}]"
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    from services.slow_loop.evidence_rows import evidence_line

    verdict = found["verdict"]
    yield (
        f"report {found['report_id']} {TOLD_BY[found['source']]} {found['run_id']}, "
        f"known {shown_time(found['known_at'])}, recommends {found['recommended_action']}"
    )
    said = f"verdict {verdict['verdict_id']}: {verdict['decision']}, by {verdict['model']}"
    yield said + JUDGED[found["judged"]]
    if verdict["fallback"] is not None:
        yield f"  no model had a say: {verdict['fallback']}"
    yield f"  {verdict['reason']}"
    yield from (f"  {evidence_line(read)}" for read in found["evidence"])
    for action in found["actions"]:
        yield from _action(action)
    for action in found["refused"]:
        yield f"refused {_named(action['action'])}: {action['code']}, {action['reason']}"
    yield from version_lines("active", found["active"])
    yield from version_lines("on trial", found["on_trial"])
    yield from written_lines(found["written"])


def _action(one: Mapping[str, Any]) -> Iterator[str]:
    done = "action" if one["carried_out"] else "not carried out"
    yield f"{done} {_named(one['action'])}: {one['action']['reason']}"
    for line in transition_lines(one["transitions"]):
        yield f"  {line}"
    if one["boundaries"]:
        yield f"  retires the policies of {', '.join(one['boundaries'])}, a boundary at their next close"


def _named(action: Mapping[str, Any]) -> str:
    parts = [shown_value(action[name]) for name in TARGET if name in action]
    return " ".join([action["kind"], *parts])
