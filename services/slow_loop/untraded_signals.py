"""Signals that never became a position, with what they would have done; kept apart from episodes.

Collected from tick events and from blocked proposals as they happen; resolved by the slow loop from bars at
or before its clock. They are shown beside the lessons and never counted among them.

The counterfactual is a plain bracket on paper: a market entry at the open after the bar of the signal, stop
and target as they stood at its close, the time stop, costs; no trailing stop, break-even or scale-out. For a
limit or stop entry that was never met, the signal is the bar that accepted it: the figure says what not
waiting for the price would have brought, and assumes nothing about a fill that did not happen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from schemas.config import ExecutionSettings
from schemas.proposal import PolicyProposal
from schemas.reflection import TickValidationEvent, UntradedSignal
from schemas.vocabulary import TickEventKind
from services.slow_loop.shadow_ledger import paper_execution
from trading_core.bars import BarSeries
from trading_core.research.counterfactual import bracket_outcome
from trading_core.rules import RuleColumns

Reason = Literal["unfilled", "expired", "blocked"]
UNMET = ("unfilled", "invalidated")  # refusals of an entry whose price never came; any other is a limit's


class Planned(Protocol):
    """A frozen policy, by the part that a signal needs."""

    @property
    def proposal(self) -> PolicyProposal:
        """What was proposed."""
        ...


@dataclass(frozen=True)
class PendingSignal:
    """A signal waiting for its counterfactual outcome; `known_at` is when it came to nothing, ns."""

    s: int
    row: int
    proposal: PolicyProposal
    reason: Reason
    known_at: int


class UntradedSignals:
    """Collector of one run."""

    def __init__(self, bars: BarSeries, columns: RuleColumns, execution: ExecutionSettings) -> None:
        self._bars = bars
        self._columns = columns
        self._execution = paper_execution(execution)
        self._signal_row: dict[str, int] = {}
        self._pending: list[PendingSignal] = []
        self._resolved: list[UntradedSignal] = []

    def observe(self, event: TickValidationEvent, row: int, policies: Mapping[str, Planned]) -> None:
        """Note an armed thesis and its order; collect it when it expires, or its order is refused.

        A resting entry that runs out is refused as unfilled, and its thesis expires with it: one signal.
        """
        if event.symbol is None:
            return
        if event.kind in (TickEventKind.THESIS_ARMED, TickEventKind.ORDER_ACCEPTED):
            self._signal_row[event.symbol] = row
        elif event.kind is TickEventKind.ENTRY_FILLED:
            self._signal_row.pop(event.symbol, None)
        elif event.kind in (TickEventKind.THESIS_EXPIRED, TickEventKind.ORDER_REFUSED):
            policy = policies.get(str(event.detail.get("policy_id")))
            signalled = self._signal_row.pop(event.symbol, None)
            if policy is None or signalled is None:
                return
            s = self._bars.symbols.index(event.symbol)
            signal = PendingSignal(s, signalled, policy.proposal, _reason(event), event.known_at)
            self._pending.append(signal)

    def blocked(self, s: int, row: int, proposal: PolicyProposal, known_at: int) -> None:
        """A proposal that a reflection blocked, taken as if it had been entered at the next open.

        Args:
            s: symbol column.
            row: of the signal.
            proposal: what was blocked.
            known_at: when that was carried out, ns.
        """
        self._pending.append(PendingSignal(s, row, proposal, "blocked", known_at))

    def known(self, until_row: int) -> tuple[UntradedSignal, ...]:
        """All signals so far, resolved as far as bars before row `until_row` allow, by time and symbol."""
        waiting = []
        for one in self._pending:
            signal = self._resolve(one, until_row)
            if signal is None:
                waiting.append(one)
            else:
                self._resolved.append(signal)
        self._pending = waiting
        self._resolved.sort(key=lambda one: (one.known_at, one.symbol, one.label))
        return tuple(self._resolved)

    def _resolve(self, one: PendingSignal, until_row: int) -> UntradedSignal | None:
        """The same signal, known at the same time, whenever it is asked for; None while it is open."""
        last = (
            one.row + 4 * one.proposal.horizon_bars + 9
        )  # where the symbol stopped trading, no outcome comes
        stop = self._columns.number(one.proposal.stop, one.s)[one.row]
        target = self._columns.number(one.proposal.target, one.s)[one.row]
        outcome = bracket_outcome(
            self._bars,
            one.s,
            one.row,
            min(until_row, last),
            direction=1 if one.proposal.direction == "long" else -1,
            stop=float(stop),
            target=float(target),
            horizon=one.proposal.horizon_bars,
            execution=self._execution,
        )
        if outcome is None and until_row < last:
            return None
        r, row = outcome if outcome is not None else (None, last - 1)
        return UntradedSignal(
            symbol=self._bars.symbols[one.s],
            playbook_id=one.proposal.playbook_id,
            direction=one.proposal.direction,
            label=int(self._bars.times[one.row]),
            reason=one.reason,
            counterfactual_r=r,
            known_at=max(int(self._bars.close_times[row]), one.known_at),
        )


def _reason(event: TickValidationEvent) -> Reason:
    """How it ended: the window ran out, the price was never met, or a limit of the account said no."""
    if event.kind is TickEventKind.THESIS_EXPIRED:
        return "expired"
    return "unfilled" if event.detail["reason"] in UNMET else "blocked"
