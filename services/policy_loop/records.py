"""How the policy loop writes its artifacts into the journal: one function per kind, ids by content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from schemas.background import DecisionBackground
from schemas.canonical import content_id
from schemas.invocation import ReflectionInvocationMeta
from schemas.judge import BoundaryVerdict
from schemas.policy import AmendedPolicy, FrozenPolicy, PolicyAmendment
from schemas.proposal import PolicyProposal
from schemas.reflection import PolicyLevelReflectionResult
from schemas.snapshot import PolicySnapshot
from schemas.tick_validation import TickValidationEvent
from schemas.vocabulary import EvaluationOutcome
from services.deliberation.rows import deliberation_rows
from services.policy_loop.admission import Admission, EventSkip
from services.policy_loop.clamps import ProposalClamp
from services.ports import EventJournal, PlanRound
from trading_core.trigger_engine import Boundary

Reflection = PolicyLevelReflectionResult | ReflectionInvocationMeta
BY_RULES: Mapping[str, Any] = MappingProxyType(
    {
        "model": "rules",
        "fallback": None,
        "prompt_hash": None,
        "comment": None,
        "dropped_comments": 0,
        "passed_over": (),
    }
)


@dataclass(frozen=True)
class Ending:
    """How one evaluation ended, with the policy and the amendment that it left behind."""

    outcome: EvaluationOutcome
    reason: str
    policy: FrozenPolicy | None = None
    amendment_id: str | None = None


def tick_event(journal: EventJournal, event: TickValidationEvent, amendment_id: str | None = None) -> None:
    """One typed event of tick validation, with the amendment that caused it, if one did."""
    caused = {} if amendment_id is None else {"amendment_id": amendment_id}
    journal.append(
        str(event.kind),
        ts_event=event.ts_event,
        known_at=event.known_at,
        symbol=event.symbol,
        payload={"bar_label": event.bar_label, **event.detail, **caused},
    )


class PolicyJournal:
    """Writer bound to one boundary: symbol, time and event id are the same for all its artifacts."""

    def __init__(self, journal: EventJournal, symbol: str, label: int, ts_event: int, bar_ns: int) -> None:
        self._journal = journal
        self._symbol = symbol
        self._label = label
        self._ts = ts_event
        self._known_at = ts_event
        self._bar_ns = bar_ns
        self.event_id = content_id([symbol, label, "boundary"])

    def _append(self, kind: str, payload: dict[str, Any], telemetry: dict[str, Any] | None = None) -> None:
        self._journal.append(
            kind,
            ts_event=self._ts,
            known_at=self._known_at,
            symbol=self._symbol,
            payload=payload,
            telemetry=telemetry,
        )

    def note_answer(self, now: int) -> None:
        """The answer is there: what follows is known from now, ns, not from the boundary."""
        self._known_at = max(self._ts, now)

    def event(self, boundary: Boundary, decision: Admission) -> None:
        """The policy event itself, whatever comes of it."""
        self._append(
            "policy_event",
            {
                "event_id": self.event_id,
                "bar_label": self._label,
                "events": [str(event) for event in boundary.events],
                "overrides": [str(reason) for reason in boundary.overrides],
                "state": str(boundary.state),
                "evaluated": decision.evaluate,
            },
        )

    def skip(self, boundary: Boundary, skip: EventSkip) -> None:
        """One skipped policy event: its reason, and when it could be admitted if only time is lacking."""
        self._append(
            "policy_skip",
            {
                "event_id": self.event_id,
                "event": str(skip.event),
                "reason": str(skip.reason),
                "state": str(boundary.state),
                "bars_to_wait": skip.bars_to_wait,
                "next_eligible": None
                if skip.bars_to_wait is None
                else self._ts + skip.bars_to_wait * self._bar_ns,
            },
        )

    def snapshot(self, snapshot: PolicySnapshot) -> None:
        """What the evaluation looked at."""
        self._append(
            "policy_snapshot",
            {
                "snapshot_hash": snapshot.content_hash,
                "event_id": self.event_id,
                "snapshot": snapshot,
            },
        )

    def background(self, background: DecisionBackground) -> None:
        """What a model strategist is shown beside the snapshot."""
        self._append(
            "strategist_background",
            {"snapshot_hash": background.snapshot_hash, "background": background},
        )

    def round(self, number: int, snapshot: PolicySnapshot, answered: PlanRound) -> None:
        """One answer of the strategist and the reflection it met."""
        answer, reflection = answered.answer, answered.reflection
        request = {"model": answer.model, "fallback": answer.fallback, "prompt_hash": answer.prompt_hash}
        own_words = {"comment": answer.comment, "dropped_comments": answer.dropped_comments}
        self._write_proposal(
            number,
            snapshot,
            answer.proposal,
            None,
            str(answer.kind),
            answer.reason,
            request | own_words | {"passed_over": answer.passed_over},
        )
        if answer.deliberation is not None and answer.proposal is not None:
            shown = deliberation_rows(
                answer.deliberation, "rationale", proposal_hash=answer.proposal.content_hash
            )
            for kind, payload, telemetry in shown:
                self._append(kind, payload, telemetry)
        if reflection is not None and answer.proposal is not None:
            self._write_reflection(snapshot, answer.proposal.content_hash, reflection, None)

    def amendment(
        self, number: int, snapshot: PolicySnapshot, amendment: PolicyAmendment, reflection: Reflection
    ) -> None:
        """What the loop wants of a policy that is there, and the reflection it met."""
        self._write_proposal(number, snapshot, None, amendment, str(amendment.kind), amendment.reason)
        self._write_reflection(snapshot, amendment.content_hash, reflection, str(amendment.kind))

    def _write_proposal(
        self, number: int, snapshot: PolicySnapshot, proposal: PolicyProposal | None,
        amendment: PolicyAmendment | None, answer: str, reason: str, author: Mapping[str, Any] = BY_RULES,
    ) -> None:  # fmt: skip
        subject = proposal or amendment
        self._append(
            "policy_proposal",
            {
                "proposal_hash": None if subject is None else subject.content_hash,
                "snapshot_hash": snapshot.content_hash,
                "round": number,
                "answer": answer,
                "reason": reason,
                **author,
                "proposal": proposal,
                "amendment": amendment,
            },
        )

    def _write_reflection(
        self, snapshot: PolicySnapshot, subject_hash: str, reflection: Reflection, amendment: str | None
    ) -> None:
        self._append(
            "policy_reflection",
            {
                "reflection_hash": reflection.content_hash,
                "proposal_hash": subject_hash,
                "snapshot_hash": snapshot.content_hash,
                "amendment": amendment,
                "result": reflection,
            },
            reflection.telemetry(),
        )

    def clamps(
        self,
        snapshot: PolicySnapshot,
        before: PolicyProposal | PolicyAmendment | None,
        after: PolicyProposal | PolicyAmendment | None,
        clamps: tuple[ProposalClamp, ...],
    ) -> None:
        """Each field that was brought down to what the playbook allows, or to the grid of the market."""
        if before is None or after is None:
            return
        for clamp in clamps:
            self._append(
                "proposal_clamped",
                {
                    "proposal_hash": after.content_hash,
                    "asked_hash": before.content_hash,
                    "snapshot_hash": snapshot.content_hash,
                    "field": clamp.field,
                    "asked": clamp.requested,
                    "allowed": clamp.allowed,
                },
            )

    def verdict(self, verdict: BoundaryVerdict) -> None:
        """The judge's decision."""
        self._append(
            "boundary_verdict",
            {
                "verdict_hash": verdict.content_hash,
                "proposal_hash": verdict.proposal_hash,
                "snapshot_hash": verdict.snapshot_hash,
                "reflection_hash": verdict.reflection_hash,
                "verdict": verdict,
            },
        )

    def frozen(self, policy: FrozenPolicy) -> None:
        """A policy in force from the next bar."""
        self._append(
            "policy_frozen",
            {"policy_id": policy.policy_id, "policy_hash": policy.content_hash, "policy": policy},
        )

    def write_amendment(self, amended: AmendedPolicy) -> None:
        """An amendment that is carried out now."""
        self._append(
            "policy_amended",
            {
                "amendment_id": amended.amendment_id,
                "policy_id": amended.policy_id,
                "amended": amended,
            },
        )

    def evaluation(
        self, snapshot_hash: str | None, ending: Ending, revisions: int,
        invocations: Sequence[ReflectionInvocationMeta], latency_ms: float,
    ) -> None:  # fmt: skip
        """How the evaluation ended, and how each of its reflections went."""
        self._append(
            "policy_evaluation",
            {
                "event_id": self.event_id,
                "snapshot_hash": snapshot_hash,
                "outcome": str(ending.outcome),
                "reason": ending.reason,
                "rounds": revisions,
                "policy_id": None if ending.policy is None else ending.policy.policy_id,
                "amendment_id": ending.amendment_id,
                "invocations": list(invocations),
            },
            {"latency_ms": latency_ms, "reflections_ms": [met.latency_ms for met in invocations]},
        )

    def error(self, where: str, error: BaseException) -> None:
        """A failure that was contained; the run ends with a count of these."""
        self._append("error", {"where": where, "type": type(error).__name__, "message": str(error)})
