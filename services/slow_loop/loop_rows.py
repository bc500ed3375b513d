"""Journal rows of the slow loop: versions at each place of a lifecycle, measures that go on, texts.

The texts are those about a report: the checks of a report's narrative and of the judge's reason.
"""

from collections.abc import Iterator
from typing import Any

from schemas.claims import FactCheck
from schemas.judge import ReplanVerdict
from schemas.playbook import PlaybookVersion
from schemas.slow_reflection import HighLevelReflectionReport
from services.deliberation.rows import check_row, deliberation_rows
from services.playbooks.renewals import Renewal
from services.ports import EventJournal
from services.slow_loop.evidence_rows import Row


def journal_version(journal: EventJournal, version: PlaybookVersion, now: int) -> None:
    """One playbook version at one place of its lifecycle."""
    definition = version.definition
    payload = {
        **version.payload(),
        "version_hash": definition.content_hash,
        "playbook_id": definition.id,
        "version": definition.version,
    }
    journal.append("playbook_version", ts_event=min(version.since, now), known_at=now, payload=payload)


def journal_renewal(journal: EventJournal, renewal: Renewal, now: int) -> None:
    """A measure that goes on; the version that holds it stays as it is."""
    version = renewal.version
    payload = {
        "playbook_id": version.definition.id,
        "version": version.definition.version,
        "version_hash": version.definition.content_hash,
        "measure": renewal.text,
        "since": renewal.since,
        "until": renewal.until,
        "expires_at": version.expires_at,
        "shown": dict(renewal.shown),
    }
    journal.append("measure_renewed", ts_event=now, known_at=now, payload=payload)


def narrative_rows(report: HighLevelReflectionReport, report_id: str) -> Iterator[Row]:
    """Kind, payload and telemetry of the check of a model's narrative, and of how it was refined."""
    if report.fact_check is not None:
        yield "fact_check", fact_check_row(report, report_id), None
    if report.deliberation is not None:
        yield from deliberation_rows(report.deliberation, "narrative", report_id=report_id)


def fact_check_row(report: HighLevelReflectionReport, report_id: str) -> dict[str, Any]:
    """The journal row of a check: whether the model's text stands, and every claim that did not hold."""
    checked = report.fact_check or FactCheck(known_at=report.known_at)
    kept = report.meta.tier == "consolidated"
    return {"report_id": report_id, **check_row("narrative", checked, kept)}


def reason_rows(verdict: ReplanVerdict, verdict_id: str) -> Iterator[Row]:
    """Kind, payload and telemetry of the check of a judge's reason; none where it was not checked."""
    checked = verdict.fact_check
    if checked is not None:
        row = check_row("judge_reason", checked, checked.count("verified") > 0)
        yield "fact_check", {"report_id": verdict.report_id, "verdict_id": verdict_id, **row}, None
