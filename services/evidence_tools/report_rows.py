"""The rows that the statements of a report stand on: looked up in the run, as of the report.

A report is stored without them: whoever shows one asks here.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from schemas.claims import Claim, FactRow
from schemas.playbook import PlaybookDefinition
from schemas.slow_reflection import HighLevelReflectionReport
from services.claims.check import ClaimResult, check
from services.evidence.run_facts import KnownPlaybook, RunFacts
from services.evidence_tools.run_view import episode_of, row_of
from services.journal.index import JournalIndex

REPORT = "high_level_report"
KINDS = frozenset({"genesis", "episode", "playbook_version", REPORT})
CLAIM: TypeAdapter[Claim] = TypeAdapter(Claim, config=ConfigDict(defer_build=True))


def sections_with_rows(report: Mapping[str, Any], index: JournalIndex) -> list[dict[str, Any]]:
    """The sections of a stored report, each statement with its rows.

    Args:
        report: as it is stored, of the journal or beside it.
        index: the run's rows; those of `KINDS` are read.
    """
    facts = _facts(report, index) if report["sections"] else RunFacts(0)
    return [
        {**part, "statements": [_with_rows(statement, facts) for statement in part["statements"]]}
        for part in report["sections"]
    ]


def _with_rows(statement: Mapping[str, Any], facts: RunFacts) -> dict[str, Any]:
    result = check(CLAIM.validate_python(statement["claim"]), facts)
    rows = result.rows if isinstance(result, ClaimResult) else ()
    return {**statement, "rows": [row.payload() for row in rows]}


def _facts(stored: Mapping[str, Any], index: JournalIndex) -> RunFacts:
    report = HighLevelReflectionReport.model_validate(dict(stored))
    until = report.known_at
    reports = [event for event in index.of_kind(REPORT) if event.row.known_at <= until]
    own = next((event for event in reports if event.payload["report"] == stored), None)
    episodes = [event for event in index.of_kind("episode") if event.row.known_at <= until]
    genesis = index.of_kind("genesis")
    return RunFacts(
        known_at=until,
        episodes=tuple(episode_of(event, index.made) for event in episodes),
        report=report,
        report_row=FactRow(seq=None, kind=REPORT) if own is None else row_of(own),
        reports=len(reports),
        playbooks=_playbooks(index, until),
        symbols=tuple(genesis[0].payload["symbols"]) if genesis else (),
    )


def _playbooks(index: JournalIndex, until: int) -> tuple[KnownPlaybook, ...]:
    found = {}
    for event in index.of_kind("playbook_version"):
        if event.row.known_at <= until and event.payload["state"] == "active":
            definition = PlaybookDefinition.model_validate(event.payload["definition"])
            found[definition.id] = KnownPlaybook.of(definition)
    return tuple(found[name] for name in sorted(found))
