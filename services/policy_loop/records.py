"""How the policy loop writes its artifacts into the journal: one function per kind, ids by content."""

from typing import Any

from schemas.canonical import content_id
from schemas.judge import BoundaryVerdict
from schemas.policy import FrozenPolicy
from schemas.reflection import TickValidationEvent
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import EvaluationOutcome
from services.policy_loop.gate import EventSkip, GateDecision
from services.ports import EventJournal, PlanRound
from trading_core.trigger_engine import Boundary


def tick_event(journal: EventJournal, event: TickValidationEvent) -> None:
    """One typed event of tick validation."""
    journal.append(
        str(event.kind),
        ts_event=event.ts_event,
        known_at=event.known_at,
        symbol=event.symbol,
        payload={"bar_label": event.bar_label, **event.detail},
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

    def arrived(self, now: int) -> None:
        """The answer is there: what follows is known from now, ns, not from the boundary."""
        self._known_at = max(self._ts, now)

    def event(self, boundary: Boundary, decision: GateDecision) -> None:
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
                "snapshot": snapshot.payload(),
            },
        )

    def round(self, number: int, snapshot: PolicySnapshot, one: PlanRound) -> None:
        """One answer of the strategist and the reflection it met."""
        proposal = one.answer.proposal
        self._append(
            "policy_proposal",
            {
                "proposal_hash": None if proposal is None else proposal.content_hash,
                "snapshot_hash": snapshot.content_hash,
                "round": number,
                "answer": str(one.answer.kind),
                "reason": one.answer.reason,
                "model": one.answer.model,
                "fallback": one.answer.fallback,
                "prompt_hash": one.answer.prompt_hash,
                "proposal": None if proposal is None else proposal.payload(),
            },
        )
        if one.reflection is None or proposal is None:
            return
        self._append(
            "policy_reflection",
            {
                "reflection_hash": one.reflection.content_hash,
                "proposal_hash": proposal.content_hash,
                "snapshot_hash": snapshot.content_hash,
                "result": one.reflection.payload(),
            },
            one.reflection.telemetry(),
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
                "verdict": verdict.payload(),
            },
        )

    def frozen(self, policy: FrozenPolicy) -> None:
        """A policy in force from the next bar."""
        self._append(
            "policy_frozen",
            {"policy_id": policy.policy_id, "policy_hash": policy.content_hash, "policy": policy.payload()},
        )

    def evaluation(
        self, snapshot_hash: str | None, outcome: EvaluationOutcome, reason: str, rounds: int,
        policy_id: str | None, latency_ms: float,
    ) -> None:  # fmt: skip
        """How the evaluation ended."""
        self._append(
            "policy_evaluation",
            {
                "event_id": self.event_id,
                "snapshot_hash": snapshot_hash,
                "outcome": str(outcome),
                "reason": reason,
                "rounds": rounds,
                "policy_id": policy_id,
            },
            {"latency_ms": latency_ms},
        )

    def error(self, where: str, error: BaseException) -> None:
        """A failure that was contained; the run ends with a count of these."""
        self._append("error", {"where": where, "type": type(error).__name__, "message": str(error)})
