"""What a model was asked about plans and how that ended, rebuilt from the rows of one run.

The journal holds no prompt: it holds the snapshot, the proposal, the playbook version and the findings of the
rules, and the question is made of these and of the template. Read-only; called by the comparisons of models
and prompts.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from schemas.errors import StoreError, first_fault
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.reflection import (
    Finding,
    InvariantContext,
    PolicyLevelReflectionRequest,
    PolicyLevelReflectionResult,
)
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import CheckName, ReflectionStatus
from services.journal.index import Event, JournalIndex
from services.model_calls.record import LATE
from services.playbooks.own_plans import own_playbook
from services.policy_checks.findings import status_of


@dataclass(frozen=True)
class AnsweredConsolidation:
    """One question about a plan that a model answered in a run.

    Attributes:
        request: snapshot, proposal, playbook and memory; guardrails are no part of the question.
        findings: those of the rules.
        final: verdict of the reflection, the model's reply weighed in.
        source: policy event that opened the boundary; it chose the budget.
    """

    seq: int
    request: PolicyLevelReflectionRequest
    findings: tuple[Finding, ...]
    final: ReflectionStatus
    source: str

    @property
    def snapshot(self) -> PolicySnapshot:
        """What the plan was made on."""
        return self.request.snapshot

    @property
    def rules(self) -> ReflectionStatus:
        """The verdict of the rules alone: the floor."""
        return status_of(self.findings)


@dataclass(frozen=True)
class RecordedConsolidations:
    """Those of one run; `unanswered` counts the others by how they ended."""

    answered: tuple[AnsweredConsolidation, ...]
    unanswered: Counter[str]


def recorded_consolidations(index: JournalIndex) -> RecordedConsolidations:
    """Every question about a plan, in order; the same reflection counts once.

    Raises:
        StoreError: an artifact is missing, or does not fit this version.
    """
    answered: list[AnsweredConsolidation] = []
    unanswered: Counter[str] = Counter()
    for event, result in _reflections(index):
        reason = result.meta.skip_reason or ""
        if result.meta.tier == "consolidated" or reason.startswith("model_"):
            answered.append(_read_answer(index, event, result))
        elif reason == LATE or reason.startswith("llm_"):
            unanswered[reason.removeprefix("llm_")] += 1
    return RecordedConsolidations(tuple(answered), unanswered)


def reflected_plans(index: JournalIndex) -> Iterator[tuple[Event, PolicyLevelReflectionRequest]]:
    """Every plan by a playbook that a run reflected on, in order, with the row of its verdict.

    Guardrails are those of the account alone; amendments and plans with their own rules are left out.

    Raises:
        StoreError: an artifact is missing, or does not fit this version.
    """
    for event, result in _reflections(index):
        if event.payload["amendment"] is None and result.playbook_hash:
            yield event, _read_request(index, event, result)


def _reflections(index: JournalIndex) -> Iterator[tuple[Event, PolicyLevelReflectionResult]]:
    seen = set()
    for event in index.events:
        if event.row.kind != "policy_reflection" or "status" not in event.payload["result"]:
            continue
        key = event.payload["reflection_hash"]
        if key not in seen:
            seen.add(key)
            yield event, _read(PolicyLevelReflectionResult, event.payload["result"], event)


def _read_answer(
    index: JournalIndex, event: Event, result: PolicyLevelReflectionResult
) -> AnsweredConsolidation:
    return AnsweredConsolidation(
        seq=event.row.seq,
        request=_read_request(index, event, result),
        findings=tuple(found for found in result.findings if found.check is not CheckName.CONSOLIDATION),
        final=result.status,
        source=result.meta.source,
    )


def _read_request(
    index: JournalIndex, event: Event, result: PolicyLevelReflectionResult
) -> PolicyLevelReflectionRequest:
    snapshot = _read(
        PolicySnapshot, _part(index, event, "policy_snapshot", result.snapshot_hash, "snapshot"), event
    )
    shown = _part(index, event, "policy_proposal", result.proposal_hash, "proposal")
    proposal = _read(PolicyProposal, shown, event)
    if version := result.playbook_hash:
        stored = _part(index, event, "playbook_version", version, "definition")
        playbook: PlaybookDefinition = _read(PlaybookDefinition, stored, event)
    else:
        playbook = own_playbook(proposal)
    return PolicyLevelReflectionRequest(
        snapshot=snapshot,
        proposal=proposal,
        playbook=playbook,
        state=snapshot.state,
        memory=result.memory,
        invariants=InvariantContext(
            kill_switch=snapshot.risk.kill_switch,
            halted=snapshot.risk.halted,
            gross_exposure=snapshot.risk.gross_exposure,
        ),
    )


def _part(index: JournalIndex, event: Event, kind: str, key: str, name: str) -> Any:
    found = index.get(kind, key)
    if found is None:
        raise StoreError(
            f"row {event.row.seq} (policy_reflection) names {kind} {key[:16]!r}, which is not there: "
            "see `thinktwice verify`"
        )
    return found.payload[name]


def _read(contract: Any, values: Any, event: Event) -> Any:
    try:
        return contract.model_validate(values)
    except ValidationError as error:
        raise StoreError(
            f"row {event.row.seq}: the {contract.__name__} does not fit this version "
            f"({first_fault(error)}): read it with the version that made it"
        ) from error
