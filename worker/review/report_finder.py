"""A stored report by the start of its id: of the slow loop of a run, of a worker, or on demand."""

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from schemas.errors import SHOWN, ConfigError, the_one
from schemas.judge import ReplanVerdict
from schemas.slow_reflection import HighLevelReflectionReport
from services.slow_loop.evidence_rows import CALL, PLAN, told_evidence
from services.store.claims import SlotKey
from worker.slow_worker.ports import JOB

if TYPE_CHECKING:
    from services.store import RunRecord, Store

REPORT_ID = re.compile(r"[0-9a-f]{1,64}")
ID_LENGTH = 16


@dataclass(frozen=True)
class FoundReport:
    """A report and where it is kept.

    Attributes:
        source: `run`: written and judged inside the run; `worker`; `on_demand`.
        known_at: ns; when it could be known.
        verdict: the judge's on it; None while there is none.
        key: its slot, for a report of a worker.
    """

    run_id: str
    report_id: str
    source: Literal["run", "worker", "on_demand"]
    known_at: int
    report: HighLevelReflectionReport
    verdict: ReplanVerdict | None
    key: SlotKey | None = None


def names_report(target: str) -> bool:
    """Whether a word names a report and not a run: run ids and `latest` are no hex digits."""
    return REPORT_ID.fullmatch(target) is not None


async def find_report(store: "Store", prefix: str, run: "RunRecord | None") -> FoundReport:
    """The one report whose id starts so, in one run or in all.

    Raises:
        ConfigError: there is none, or there are several.
    """
    records = [run] if run is not None else await store.runs.all()
    prefix = prefix[:ID_LENGTH]
    found = [report for record in records for report in await _of_run(store, record.run_id, prefix)]
    names = sorted(report.report_id for report in found)
    where = "in this store" if run is None else f"in run {run.run_id}"
    name = the_one("report", prefix, names, where, "see `thinktwice reports RUN`")
    if len(found) > 1:
        runs = ", ".join(report.run_id for report in found[:SHOWN])
        raise ConfigError(f"report {name} is in several runs ({runs}): name one with --run")
    return found[0]


async def evidence_on(store: "Store", found: FoundReport) -> list[dict[str, Any]]:
    """What was read for the verdict on a report, in its run or on demand; nothing of a worker's."""
    read: list[tuple[str, dict[str, Any]]] = []
    if found.source == "run":
        rows = store.journal.rows(found.run_id, kinds={PLAN, CALL})
        read = [(row.kind, json.loads(row.payload)) async for row in rows]
    elif found.source == "on_demand":
        questions = [
            report
            for report in await store.on_demand.of_run(found.run_id)
            if report.report_id == found.report_id
        ]
        read = [(call["kind"], call["payload"]) for report in questions for call in report.calls]
    return told_evidence(read).get(found.report_id, [])


async def latest_report(store: "Store", run: "RunRecord") -> FoundReport:
    """The newest report of a run, whoever wrote it.

    Raises:
        ConfigError: it has none.
    """
    found = await _of_run(store, run.run_id, "")
    if not found:
        raise ConfigError(
            f"run {run.run_id} has no report: `thinktwice replan {run.run_id}` makes and judges one"
        )
    return max(found, key=lambda report: report.known_at)


async def _of_run(store: "Store", run_id: str, prefix: str) -> list[FoundReport]:
    found = await _find_journalled(store, run_id, prefix)
    found += [
        FoundReport(
            run_id,
            report.report_id,
            "worker",
            report.report.known_at,
            report.report,
            report.verdict,
            report.key,
        )
        for report in await store.reports.all(run_id, JOB)
        if report.report_id.startswith(prefix)
    ]
    found += [
        FoundReport(run_id, report.report_id, "on_demand", report.known_at, report.report, report.verdict)
        for report in await store.on_demand.find_by_prefix(prefix)
        if report.run_id == run_id
    ]
    return found


async def _find_journalled(store: "Store", run_id: str, prefix: str) -> list[FoundReport]:
    found: dict[str, FoundReport] = {}
    verdicts: dict[str, ReplanVerdict] = {}
    async for row in store.journal.rows(run_id, kinds={"high_level_report", "replan_verdict"}):
        if f'"report_id":"{prefix}' not in row.payload:  # most rows need no reading
            continue
        payload = json.loads(row.payload)
        name = payload["report_id"]
        if not name.startswith(prefix):
            continue
        if row.kind == "replan_verdict":
            verdicts[name] = ReplanVerdict.model_validate(payload["verdict"])
        else:
            report = HighLevelReflectionReport.model_validate(payload["report"])
            found[name] = FoundReport(run_id, name, "run", row.known_at, report, None)
    return [replace(report, verdict=verdicts.get(name)) for name, report in found.items()]
