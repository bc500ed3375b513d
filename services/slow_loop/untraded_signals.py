"""Signals that never became a position, with what they would have done; kept apart from episodes.

Collected from tick events and from blocked proposals, resolved from bars at or before a clock. They are shown
beside the lessons and never counted among them.

The counterfactual is the plan on paper: a market entry at the open after the bar of the signal, then every
exit that the plan has, carried out by the engine, after costs. For a limit or stop entry that was never met,
the signal is the bar that accepted it: the figure says what not waiting for the price would have brought, and
assumes nothing about a fill that did not happen.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol

import numpy as np

from schemas.proposal import PolicyProposal
from schemas.settings import ExecutionSettings
from schemas.slow_reflection import UntradedSignal
from schemas.state import Stateful
from schemas.vocabulary import TickEventKind
from trading_core.bars import BarSeries

Reason = Literal["unfilled", "expired", "blocked"]
UNMET = ("unfilled", "invalidated")  # refusals of an entry whose price never came; any other is a limit's
SIGNALLED = frozenset({str(TickEventKind.THESIS_ARMED), str(TickEventKind.ORDER_ACCEPTED)})
ENDINGS = (TickEventKind.ENTRY_FILLED, TickEventKind.THESIS_EXPIRED, TickEventKind.ORDER_REFUSED)
UNREAD = {"thesis": "", "rationale": "", "because": (), "conviction": 0.0}  # by an outcome
EVENTS = SIGNALLED | {str(kind) for kind in ENDINGS}


class PaperBars(Protocol):
    """Bars, and what a plan would have done on them; see `trading_core.research.counterfactual`."""

    @property
    def bars(self) -> BarSeries:
        """The series."""
        ...

    def outcome(
        self, plan: PolicyProposal, s: int, row: int, until: int, execution: ExecutionSettings
    ) -> tuple[float, int] | None:
        """R and exit row of a market entry signalled at the close of `row`; None where it has none."""
        ...


@dataclass(frozen=True)
class PendingSignal:
    """A signal waiting for its counterfactual outcome; `known_at` is when it came to nothing, ns.

    Of its proposal it has what the outcome reads, in one object with every signal of the same plan.
    """

    symbol: str
    label: int
    proposal: PolicyProposal
    reason: Reason
    known_at: int


class UntradedSignals(Stateful):
    """Collector of one run."""

    STATE: ClassVar = {
        "_signalled": dict[str, int],
        "_pending": list[PendingSignal],
        "_resolved": list[UntradedSignal],
    }
    REBUILT = frozenset({"_execution", "_plans"})

    def __init__(self, execution: ExecutionSettings) -> None:
        self._execution = execution.for_one_unit
        self._signalled: dict[str, int] = {}
        self._pending: list[PendingSignal] = []
        self._plans: dict[PolicyProposal, PolicyProposal] = {}
        self._resolved: list[UntradedSignal] = []

    def observe(
        self,
        kind: str,
        symbol: str,
        label: int,
        known_at: int,
        proposal: PolicyProposal | None,
        refusal: str = "",
    ) -> None:
        """Note an armed thesis and its order; collect it when it expires, or its order is refused.

        A resting entry that runs out is refused as unfilled, and its thesis expires with it: one signal.

        Args:
            kind: of the tick event, one of `EVENTS`.
            symbol: whose.
            label: of its bar, ns.
            known_at: when it was known, ns.
            proposal: of the policy behind it.
            refusal: why an order was refused.
        """
        if kind in SIGNALLED:
            self._signalled[symbol] = label
            return
        signalled = self._signalled.pop(symbol, None)
        if kind == TickEventKind.ENTRY_FILLED or proposal is None or signalled is None:
            return
        reason: Reason = "expired"
        if kind == TickEventKind.ORDER_REFUSED:
            reason = "unfilled" if refusal in UNMET else "blocked"
        self._wait(PendingSignal(symbol, signalled, proposal, reason, known_at))

    def note_blocked(self, symbol: str, label: int, proposal: PolicyProposal, known_at: int) -> None:
        """A proposal that a reflection blocked, taken as if it had been entered at the next open.

        Args:
            symbol: whose.
            label: of the bar of the signal, ns.
            proposal: what was blocked.
            known_at: when that was carried out, ns.
        """
        self._wait(PendingSignal(symbol, label, proposal, "blocked", known_at))

    def _wait(self, signal: PendingSignal) -> None:
        plan = signal.proposal.model_copy(update=UNREAD)
        self._pending.append(replace(signal, proposal=self._plans.setdefault(plan, plan)))

    def select_known(self, on_paper: PaperBars, since: int, clock: int) -> tuple[UntradedSignal, ...]:
        """Signals whose outcome became known after `since` and by `clock`, both ns, by time and symbol.

        `on_paper` has the run's bars, as far as they are known at the clock at least.
        """
        rows = int(np.searchsorted(on_paper.bars.close_times, clock, side="right"))
        waiting = []
        for pending in self._pending:
            signal = self._outcome(pending, on_paper, rows) if pending.known_at <= clock else None
            if signal is None:
                waiting.append(pending)
            else:
                self._resolved.append(signal)
        self._pending = waiting
        self._resolved.sort(key=lambda signal: (signal.known_at, signal.symbol, signal.label))
        return tuple(signal for signal in self._resolved if since < signal.known_at <= clock)

    def forget(self, until: int) -> None:
        """No request tells again of an outcome that was known by `until`, ns."""
        self._plans = {signal.proposal: signal.proposal for signal in self._pending}
        self._resolved = [signal for signal in self._resolved if signal.known_at > until]

    def _outcome(self, pending: PendingSignal, on_paper: PaperBars, rows: int) -> UntradedSignal | None:
        """The same signal, known at the same time, whenever it is asked for; None while it is open."""
        bars, proposal = on_paper.bars, pending.proposal
        s, row = bars.symbols.index(pending.symbol), int(np.searchsorted(bars.times, pending.label))
        last = row + 4 * proposal.horizon_bars + 9  # where the symbol stopped trading, no outcome comes
        outcome = on_paper.outcome(proposal, s, row, min(rows, last), self._execution)
        if outcome is None and rows < last:
            return None
        r, end = outcome if outcome is not None else (None, last - 1)
        return UntradedSignal(
            symbol=pending.symbol,
            playbook_id=proposal.playbook_id,
            direction=proposal.direction,
            label=pending.label,
            reason=pending.reason,
            counterfactual_r=r,
            known_at=max(int(bars.close_times[end]), pending.known_at),
        )
