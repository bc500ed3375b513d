"""The reports of a run out of its journal: each with the verdict on it and what was read for it."""

from collections.abc import Iterable, Mapping
from typing import Any

from services.slow_loop.evidence_rows import CALL, PLAN, told_evidence

REPORT, VERDICT = "high_level_report", "replan_verdict"
ENTRY_KINDS = frozenset({REPORT, VERDICT, PLAN, CALL})


def report_entries(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Every report among kinds and payloads of rows, in order.

    `verdict` is the judge's on it, null while there is none, `evidence` what was read for it.
    """
    reports: dict[str, dict[str, Any]] = {}
    read: list[tuple[str, Mapping[str, Any]]] = []
    for kind, payload in rows:
        read.append((kind, payload))
        if kind == REPORT:
            reports[payload["report_id"]] = {**payload, "verdict": None}
        elif kind == VERDICT and payload["report_id"] in reports:
            reports[payload["report_id"]]["verdict"] = payload["verdict"]
    evidence = told_evidence(read)
    return [entry | {"evidence": evidence.get(name, [])} for name, entry in reports.items()]
