"""What a run has learned: reports with their verdicts, what is proven, and the versions of its playbooks."""

from collections.abc import Sequence
from typing import Any

from schemas.claims import FactRow
from schemas.judge import ReplanVerdict
from schemas.vocabulary import REGIMES
from services.evidence import tool_arguments, tool_results
from services.evidence.tools import NEAR, demand_known, page_of, the_one
from services.evidence_tools.report_rows import sections_with_rows
from services.evidence_tools.run_view import RunView, iso, row_of, with_times
from services.journal.index import Event
from services.slow_loop.past_runs import PastRun

REPORT = "high_level_report"
# Of a report as it is told in full; clusters are the gate's, evidence is the page of episodes.
CONTENT = (
    "window_start",
    "window_end",
    "recommendations",
    "drift_findings",
    "expectation_misses",
    "failure_modes",
    "untraded",
    "decay",
    "expectations",
    "fire_quality",
    "regime_shift",
    "excluded",
    "evidence_refs",
    "shadow_trials",
    "judge_history",
)
CLUSTER = (
    "playbook_id",
    "regime",
    "timeframe",
    "grade",
    "n",
    "blocks",
    "unit",
    "claim",
    "leaning",
    "mean_r",
    "mean_raw_r",
    "reference_r",
    "lower_r",
    "upper_r",
    "interval_kind",
    "e_value",
    "alpha",
    "win_rate",
    "smallest_detectable_r",
    "strongest_action",
    "reason",
    "failure_modes",
)


def reports(view: RunView, arguments: tool_arguments.ReportArguments) -> tool_results.ReportResult:
    """Reports with their verdicts, newest first; one of them in full where it is named."""
    found = view.index.of_kind(REPORT)
    if arguments.report_id is not None:
        prefix, newest = arguments.report_id, found[-NEAR:]
        matching = view.index.starting(REPORT, prefix)
        found = [the_one("report", prefix, matching, _id, map(_id, newest))]
    page, cursor = page_of(found, arguments, lambda event: event.row.seq, newest_first=True)
    full = arguments.report_id is not None
    decided = {event.payload["report_id"]: row_of(event) for event in view.index.of_kind("replan_verdict")}
    rows = [*map(row_of, page), *(decided.get(_id(event)) for event in page)]
    return tool_results.ReportResult(
        **view.cite(rows, cursor),
        total=len(found),
        reports=tuple(_report(view, event, decided.get(_id(event)), full=full) for event in page),
    )


def _id(event: Event) -> str:
    return str(event.payload["report_id"])


def _report(view: RunView, event: Event, decided: FactRow | None, *, full: bool) -> tool_results.ReportSeen:
    past, report = view.past_runs[_id(event)], event.payload["report"]
    return tool_results.ReportSeen(
        report_id=_id(event),
        known_at=iso(past.known_at),
        n_episodes=past.n_episodes,
        recommended_action=str(past.recommended_action),
        insufficient_sample=report["insufficient_sample"],
        narrative=report["narrative"],
        verdict=None if past.verdict is None else with_times(_verdict(past, past.verdict)),
        content=with_times(_content(view, report)) if full else None,
        row=row_of(event),
        verdict_row=decided,
    )


def _content(view: RunView, report: dict[str, Any]) -> dict[str, Any]:
    return {"sections": sections_with_rows(report, view.index), **{name: report[name] for name in CONTENT}}


def _verdict(past: PastRun, verdict: ReplanVerdict) -> dict[str, Any]:
    made = verdict.payload()
    names = ("decision", "reason", "model", "actions", "known_at")
    refused = [action.payload() for action in past.refused]
    return {"verdict_id": past.verdict_id, **{name: made[name] for name in names}, "refused": refused}


def gate(view: RunView, arguments: tool_arguments.GateArguments) -> tool_results.GateResult:
    """The clusters of the newest report."""
    newest = view.index.of_kind(REPORT)[-1:]
    clusters = [cluster for event in newest for cluster in event.payload["report"]["clusters"]]
    return gate_of(view, arguments, clusters, _id(newest[0]) if newest else None)


def gate_of(
    view: RunView,
    arguments: tool_arguments.GateArguments,
    clusters: Sequence[dict[str, Any]],
    report_id: str | None,
) -> tool_results.GateResult:
    """Clusters of a report, which has a row only where the run has written it."""
    demand_known("playbook", arguments.playbook_id, view.playbook_ids)
    demand_known("regime", arguments.regime, REGIMES)
    newest = [event for event in view.index.of_kind(REPORT)[-1:] if _id(event) == report_id]
    matching = [
        cluster
        for cluster in clusters
        if arguments.playbook_id in (None, cluster["playbook_id"])
        and arguments.regime in (None, cluster["regime"])
    ]
    page, cursor = page_of(matching, arguments)
    return tool_results.GateResult(
        **view.cite((row_of(event) for event in newest), cursor),
        report_id=report_id,
        resolved=len(view.episodes),
        clusters=tuple({name: cluster[name] for name in CLUSTER} for cluster in page),
    )


def playbooks(view: RunView, arguments: tool_arguments.PlaybookArguments) -> tool_results.PlaybookResult:
    """Versions by playbook and number; with rules and parameters where one playbook is named."""
    demand_known("playbook", arguments.playbook_id, view.playbook_ids)
    history = view.history
    versions = sorted(
        history.of(arguments.playbook_id), key=lambda known: (known.definition.id, known.definition.version)
    )
    page, cursor = page_of(versions, arguments)
    documents, rows = [], []
    for version in page:
        document = with_times(history.document(version))
        if arguments.playbook_id is not None:
            document["definition"] = version.definition.payload()
        documents.append(document)
        rows += [row_of(event) for event in view.index.versions(version.definition.content_hash)]
    return tool_results.PlaybookResult(
        **view.cite(rows, cursor),
        versions=tuple(documents),
    )
