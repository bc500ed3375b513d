"""Signals that never became a position, read from the journal of a run; their outcomes need its bars.

The same events in the same order as the trading session saw them, so what a worker resolves on the bars of a
run is what the session would have.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from schemas.config import ExecutionSettings
from schemas.proposal import PolicyProposal
from schemas.reflection import TickValidationEvent, UntradedSignal
from schemas.vocabulary import CheckName, EvaluationOutcome, ReflectionStatus, Severity, TickEventKind
from services.journal.chain import JournalRow
from services.slow_loop.untraded_signals import UntradedSignals
from trading_core.bars import BarSeries
from trading_core.rules import RuleColumns

EVENTS = frozenset(
    {
        TickEventKind.THESIS_ARMED,
        TickEventKind.ORDER_ACCEPTED,
        TickEventKind.ENTRY_FILLED,
        TickEventKind.THESIS_EXPIRED,
        TickEventKind.ORDER_REFUSED,
    }
)


@dataclass(frozen=True)
class FrozenPlan:
    """What a signal needs of the policy behind it."""

    proposal: PolicyProposal


@dataclass(frozen=True)
class _Blocked:
    label: int
    symbol: str
    proposal: PolicyProposal
    known_at: int


class SignalFacts:
    """Collector of one journal."""

    kinds = frozenset(str(kind) for kind in EVENTS) | {
        "policy_snapshot", "policy_proposal", "policy_reflection", "policy_evaluation", "policy_frozen",
    }  # fmt: skip

    def __init__(self) -> None:
        self._events: list[TickValidationEvent | _Blocked] = []
        self._plans: dict[str, FrozenPlan] = {}
        self._labels: dict[str, int] = {}
        self._proposals: dict[str, dict[str, Any]] = {}
        self._refused: dict[str, PolicyProposal] = {}

    def add(self, row: JournalRow, payload: dict[str, Any]) -> None:
        """Take one row of a kind in `kinds`, in order of sequence."""
        symbol = str(row.symbol)
        if row.kind == "policy_snapshot":
            self._labels[symbol] = payload["snapshot"]["bar_label"]
            self._refused.pop(symbol, None)
        elif row.kind == "policy_proposal":
            self._proposals[symbol] = payload["proposal"]
        elif row.kind == "policy_reflection":
            if payload.get("amendment") is None and _blocks(payload["result"]):
                self._refused[symbol] = PolicyProposal.model_validate(self._proposals[symbol])
        elif row.kind == "policy_evaluation":
            self._evaluated(row, symbol, payload["outcome"])
        elif row.kind == "policy_frozen":
            proposal = PolicyProposal.model_validate(payload["policy"]["proposal"])
            self._plans[payload["policy_id"]] = FrozenPlan(proposal)
        else:
            self._events.append(_event(row, payload))

    def _evaluated(self, row: JournalRow, symbol: str, outcome: str) -> None:
        refused = self._refused.pop(symbol, None)
        if refused is not None and outcome != EvaluationOutcome.STALE:
            self._events.append(_Blocked(self._labels[symbol], symbol, refused, row.known_at))

    def untraded(
        self, bars: BarSeries, columns: RuleColumns, execution: ExecutionSettings, since: int, clock: int
    ) -> tuple[UntradedSignal, ...]:
        """Signals whose outcome became known after `since` and by `clock`, both ns.

        Args:
            bars: of the run, as far as they are known at the clock at least.
            columns: rule columns of these bars.
            execution: of the run.
            since: what was known by then belongs to an earlier report.
            clock: what was known later does not exist.
        """
        signals = UntradedSignals(bars, columns, execution)
        for event in self._events:
            if event.known_at > clock:
                continue
            if isinstance(event, _Blocked):
                row = int(np.searchsorted(bars.times, event.label))
                s = bars.symbols.index(event.symbol)
                signals.blocked(s, row, event.proposal, event.known_at)
            else:
                signals.observe(event, int(np.searchsorted(bars.times, event.bar_label)), self._plans)
        known = int(np.searchsorted(bars.close_times, clock, side="right"))
        return tuple(one for one in signals.known(known) if one.known_at > since)


def _blocks(result: dict[str, Any]) -> bool:
    """Whether a reflection blocked a plan for another reason than an invariant: that one may not trade."""
    return result.get("status") == ReflectionStatus.BLOCK and not any(
        finding["check"] == CheckName.INVARIANT and finding["severity"] == Severity.BLOCKER
        for finding in result["findings"]
    )


def _event(row: JournalRow, payload: dict[str, Any]) -> TickValidationEvent:
    return TickValidationEvent.model_validate(
        {
            "kind": row.kind,
            "symbol": row.symbol,
            "bar_label": payload["bar_label"],
            "ts_event": row.ts_event,
            "known_at": row.known_at,
            "detail": payload,
        }
    )
