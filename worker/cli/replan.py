"""`thinktwice replan`: ask the judge about a report, and see what its actions change."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from schemas.errors import ConfigError
from worker.cli.console import print_document, print_lines, time_option
from worker.cli.open_runs import open_to_write, queue_request, takes_requests, told_request
from worker.cli.options import (
    LATEST,
    AtOption,
    DataOption,
    DbOption,
    JsonOption,
    argument,
    operator_name,
    option,
)
from worker.cli.rebuilt import rebuilt_run
from worker.pages.figures import shown_time
from worker.runs.replay import stored_settings

if TYPE_CHECKING:
    from schemas.judge import ReplanVerdict
    from schemas.playbook import PlaybookVersion
    from schemas.settings import Settings
    from services.store import RunRecord, Store
    from worker.review.replanning import Effect, JudgeName
    from worker.review.report_finder import FoundReport
    from worker.session import Session


WriteOption = Annotated[
    Path | None,
    option(
        metavar="DIR",
        help="Write the playbooks that result as TOML files there; runtime.playbooks reads them.",
    ),
]


async def replan(
    target: Annotated[
        str,
        argument(
            metavar="RUN|REPORT",
            help="A run: reflect on it now, then judge; or a report by the start of its id. [latest]",
        ),
    ] = LATEST,
    at: AtOption = None,
    judge: Annotated[
        Literal["rules", "model"] | None,
        typer.Option(help="Who judges; a model may only drop what the rules accept. [as the run's settings]"),
    ] = None,
    write: WriteOption = None,
    run: Annotated[str | None, option(metavar="RUN", help="The run of REPORT. [the one that has it]")] = None,
    data: DataOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Ask the judge about a report: what it would change and why, what it refuses and why."""
    place = None if write is None else write.resolve()
    if write is not None:
        from services.playbooks.writing import demand_writable

        demand_writable(write)
    moment = None if at is None else time_option(at, "--at")
    found = await _answer(target, run, moment, judge, place, data, db)
    if write is not None and found.get("written"):
        found["written"]["folder"] = str(write)
    print_document(found, json, render)


async def _answer(
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
        raise ConfigError(f"--run goes with a report; a run stands first: `thinktwice replan {run}`")
    if report_wanted and at is not None:
        raise ConfigError(f"{target!r} names a report, which has its own time: --at goes with a run")
    async with open_to_write(db, (run or LATEST) if report_wanted else target) as (store, record):
        found = await find_report(store, target, None if run is None else record) if report_wanted else None
        if found is not None:
            record = await store.runs.find(found.run_id)
        return await JudgedRun(store, record, judge, write, data).answer(found, at)


@dataclass(frozen=True)
class JudgedRun:
    """A run whose report is judged.

    Attributes:
        store: that holds it, with every table.
        judge: who judges; None: as the run's settings.
        write: where files go; absolute.
        data: the run's bar file, if it lies elsewhere now.
    """

    store: "Store"
    record: "RunRecord"
    judge: "JudgeName | None"
    write: Path | None
    data: Path | None

    async def answer(self, found: "FoundReport | None", at: int | None) -> dict[str, Any]:
        """What comes of a report; without one of a new one as of a time, ns, or the end of the run."""
        if found is not None and found.source == "run":
            return await self._find_own_verdict(found)
        if (found is None or found.verdict is None) and takes_requests(self.record):
            if at is not None:
                raise ConfigError(
                    f"run {self.record.run_id} trades: it reflects on the present; leave out --at"
                )
            return await self._queue(None if found is None else found.report_id)
        if found is None or found.verdict is None:
            self._demand_judge()
        else:
            self._demand_no_judge(found, found.verdict)
        return await self._judge(found, at)

    async def _queue(self, report_id: str | None) -> dict[str, Any]:
        """A process that trades the run is asked."""
        if self.judge is not None or self.write is not None:
            raise ConfigError(
                f"run {self.record.run_id} trades: its own judge answers, and its playbooks change in it; "
                "leave out --judge and --write"
            )
        return await queue_request(self.store, self.record, "replan", {"report_id": report_id})

    async def _judge(self, found: "FoundReport | None", at: int | None) -> dict[str, Any]:
        """The verdict on a report, made now or before, and its effect on the playbooks as they stood then."""
        from worker.review.replan_outcome import outcome
        from worker.review.replanning import apply_verdict, report_now
        from worker.review.report_finder import find_report

        store, run_id = self.store, self.record.run_id
        moment = at if found is None else found.known_at
        session = (rebuilt := await rebuilt_run(store, self.record, self.data, moment)).session
        if found is None:
            request, report = await report_now(rebuilt)
            await store.on_demand.put(run_id, request, report)
            found = await find_report(store, report.content_hash[:16], self.record)
        verdict, judged = await self._verdict(session, found)
        effects = apply_verdict(session, verdict, session.bars.timeframe)
        versions = session.books.registry.latest()
        document = outcome(
            verdict, effects, versions, lambda key: session.books.reader.by_hash(key).definition
        )
        return await self._document(found, judged, document, session.settings, effects, versions)

    async def _verdict(self, session: "Session", found: "FoundReport") -> "tuple[ReplanVerdict, str]":
        """A report is judged once: the verdict that is there, or a new one, which is kept."""
        from worker.review.replanning import ask_judge

        if found.verdict is not None:
            return found.verdict, "before"
        if found.source == "worker":
            raise ConfigError(
                f"report {found.report_id} waits for the judge of its worker: `thinktwice worker --once "
                f"--run {found.run_id}` lets it judge"
            )
        by = self._judge_of(session.settings)
        verdict, calls = await ask_judge(session, found.report, by, os.environ)
        on_demand = self.store.on_demand
        if await on_demand.decide(found.run_id, found.report_id, verdict, calls):
            return verdict, "now"
        kept = [
            report for report in await on_demand.of_run(found.run_id) if report.report_id == found.report_id
        ]
        return kept[0].verdict or verdict, "before"

    def _judge_of(self, settings: "Settings") -> "JudgeName":
        return self.judge or ("rules" if settings.judge.replan == "rules" else "model")

    def _demand_judge(self) -> None:
        """Refuse a model that cannot be asked before a run is replayed for it."""
        from worker.review.replanning import demand_model

        settings = stored_settings(self.record)
        if self._judge_of(settings) == "model":
            demand_model(settings, os.environ)

    def _demand_no_judge(self, found: "FoundReport", verdict: "ReplanVerdict") -> None:
        by_rules = verdict.model == "rules" and verdict.fallback is None
        if self.judge is not None and (self.judge == "rules") != by_rules:
            raise ConfigError(
                f"report {found.report_id} was judged already (by {verdict.model}, verdict "
                f"{verdict.content_hash[:16]}): a report is judged once; leave out --judge to see it"
            )

    async def _find_own_verdict(self, found: "FoundReport") -> dict[str, Any]:
        """What the run itself decided on its report; it is not judged, and nothing of it applied, again."""
        from worker.review.playbook_files import in_force
        from worker.review.replan_outcome import KINDS, outcome, outcome_in_run

        if found.verdict is None:
            raise ConfigError(
                f"report {found.report_id} of {found.run_id} was not judged before the run broke off"
            )
        self._demand_no_judge(found, found.verdict)
        rows = self.store.journal.rows(found.run_id, kinds=KINDS, until=found.verdict.known_at)
        told = await outcome_in_run(rows, found.verdict)
        by_hash = {version.definition.content_hash: version.definition for version in told.history}
        versions = in_force(told.history)
        document = outcome(found.verdict, told.effects, versions, by_hash.__getitem__)
        settings = stored_settings(self.record)
        return await self._document(found, "in the run", document, settings, told.effects, versions)

    async def _document(
        self,
        found: "FoundReport",
        judged: str,
        outcome: dict[str, Any],
        settings: "Settings",
        effects: "Sequence[Effect]",
        versions: "tuple[PlaybookVersion, ...]",
    ) -> dict[str, Any]:
        """What came of a report; files that are written are a plan that whoever asks approves with it."""
        from worker.review.replan_outcome import write_approved
        from worker.review.report_finder import evidence_on

        written = None
        evidence = await evidence_on(self.store, found)
        if self.write is not None:
            plan_id, files = await write_approved(
                self.store, settings, self.write, effects, versions, found, operator_name()
            )
            written = {"folder": str(self.write), "files": list(files), "plan_id": plan_id}
        return {
            "run_id": found.run_id,
            "report_id": found.report_id,
            "source": found.source,
            "known_at": found.known_at,
            "recommended_action": str(found.report.recommended_action),
            "insufficient_sample": found.report.insufficient_sample,
            "judged": judged,
            **outcome,
            "evidence": evidence,
            "written": written,
        }


JUDGED = {
    "now": "",
    "before": " (judged before: a report is judged once)",
    "in the run": " (judged and applied in the run: nothing is applied again)",
}
TOLD_BY = {"run": "of the run", "worker": "of its worker", "on_demand": "on demand"}
TARGET = ("playbook_id", "regime", "direction", "parameter", "value")


def render(found: dict[str, Any]) -> None:
    """Print the outcome of a report, or that it was asked for."""
    print_lines([told_request(found)] if "request" in found else _lines(found))


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
        yield f"refused {_name_action(action['action'])}: {action['code']}, {action['reason']}"
    yield from version_lines("active", found["active"])
    yield from version_lines("on trial", found["on_trial"])
    yield from written_lines(found["written"])


def _action(one: Mapping[str, Any]) -> Iterator[str]:
    done = "action" if one["carried_out"] else "not carried out"
    yield f"{done} {_name_action(one['action'])}: {one['action']['reason']}"
    for line in transition_lines(one["transitions"]):
        yield f"  {line}"
    if one["boundaries"]:
        yield f"  retires the policies of {', '.join(one['boundaries'])}, a boundary at their next close"


def _name_action(action: Mapping[str, Any]) -> str:
    parts = [shown_value(action[name]) for name in TARGET if name in action]
    return " ".join([action["kind"], *parts])
