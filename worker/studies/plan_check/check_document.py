"""The JSON document of one check of a plan."""

from typing import Any

from schemas.reflection import PolicyLevelReflectionRequest
from schemas.settings import Settings
from schemas.vocabulary import CheckName, InvocationOutcome
from worker.studies.plan_check.plan_check import PlanCheck

ERROR = "error"


def check_document(
    request: PolicyLevelReflectionRequest, settings: Settings, done: PlanCheck
) -> dict[str, Any]:
    """The JSON document of one check; the same keys whatever came of it."""
    result = done.result
    findings = [] if result is None else [found.model_dump(mode="json") for found in result.findings]
    outcome = InvocationOutcome.ERROR if result is None else result.meta.outcome
    return {
        "status": ERROR if result is None else result.status.value,
        "symbol": request.snapshot.symbol,
        "playbook_id": request.proposal.playbook_id,
        "direction": request.proposal.direction,
        "findings": {
            name.value: [_without_check(found) for found in findings if found["check"] == name]
            for name in CheckName
        },
        "requested_revisions": [] if result is None else list(result.requested_revisions),
        "deferred": [] if result is None else list(result.deferred),
        "checks_run": [] if result is None else [name.value for name in result.checks_run],
        "reflection": settings.reflection.mode,
        "tier": None if result is None else result.meta.tier,
        "outcome": outcome.value,
        "skip_reason": None if result is None else result.meta.skip_reason,
        "latency_ms": None if result is None else round(result.meta.latency_ms, 3),
        "over_budget": done.over_budget,
        "model": done.model,
        "snapshot_hash": request.snapshot.content_hash,
        "proposal_hash": request.proposal.content_hash,
        "playbook_hash": request.playbook.content_hash,
        "prompt_hash": None if result is None else result.prompt_hash,
        "error": None if done.error is None else _error(done.error),
    }


def _without_check(finding: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in finding.items() if name != "check"}


def _error(error: Exception) -> dict[str, str]:
    return {"type": type(error).__name__, "message": str(error)}
