"""Gathers what a model strategist is shown beside the snapshot, at the moment of the snapshot.

It holds readers only. Bars are read up to the decision bar, memory as of its close, and of plans, lessons and
reports there is nothing yet that came later.

What became of the last plans of each symbol, told by the tick events of their policies.

A strategist that is a model is shown it; nothing here decides anything. Events come in the order in which
they are known.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import AfterValidator

from schemas.background import (
    ClosedTrade,
    DecisionBackground,
    FoundLesson,
    LessonInForce,
    PlanCases,
    PlanOutcome,
    RecentBar,
    SymbolPosition,
)
from schemas.policy import FrozenPolicy
from schemas.settings import EnvelopeSettings
from schemas.slow_reflection import HighLevelReflectionReport
from schemas.snapshot import PolicySnapshot
from schemas.state import PART, Stateful
from schemas.tick_validation import TickValidationEvent
from schemas.vocabulary import Direction, EvidenceGrade, TickEventKind
from services.ports import MemoryQuery, MemoryReader, PlaybookReader
from services.statistics.blocks import Floats
from trading_core.bars import BarSeries

SHOWN_BARS = 20
RANKED_BARS = 250
MOST_FINDINGS = 10
DIGITS = 6
GRADED = (EvidenceGrade.SUGGESTIVE, EvidenceGrade.SIGNIFICANT)
LastReport = Callable[[], HighLevelReflectionReport | None]
LAST = 5
REPLACED, RETIRED = "replaced", "retired"
OVER = frozenset({TickEventKind.POLICY_EXPIRED, TickEventKind.EXIT_FILLED, REPLACED})


def _last(plans: deque[PlanOutcome]) -> deque[PlanOutcome]:
    return deque(plans, maxlen=LAST)


class PlanOutcomes(Stateful):
    """The last plans of a run, by symbol."""

    STATE: ClassVar = {"_plans": dict[str, Annotated[deque[PlanOutcome], AfterValidator(_last)]]}

    def __init__(self) -> None:
        self._plans: dict[str, deque[PlanOutcome]] = {}

    def frozen(self, policy: FrozenPolicy, now: int) -> None:
        """A policy is in force from now, ns; the one before it is not any more."""
        plans = self._plans.setdefault(policy.symbol, deque(maxlen=LAST))
        proposal = policy.proposal
        if plans and plans[-1].became not in OVER:
            plans[-1] = plans[-1].model_copy(update={"became": REPLACED, "became_at": now})
        plans.append(
            PlanOutcome(
                policy_id=policy.policy_id,
                playbook_id=proposal.playbook_id,
                direction=proposal.direction,
                conviction=proposal.conviction,
                frozen_at=now,
                became_at=now,
            )
        )

    def observe(self, event: TickValidationEvent) -> None:
        """One tick event; those of older or of no policies say nothing here."""
        plans = self._plans.get(event.symbol or "", deque())
        for place, plan in enumerate(plans):
            if plan.policy_id == event.detail.get("policy_id"):
                plans[place] = plan.model_copy(update=_describe_plan(plan, event))
                return

    def of(self, snapshot: PolicySnapshot) -> tuple[PlanOutcome, ...]:
        """The last plans of the snapshot's symbol, newest first."""
        plans = tuple(reversed(self._plans.get(snapshot.symbol, ())))
        managed = snapshot.managed_policy_id
        if plans and plans[0].policy_id != managed and plans[0].became not in OVER:
            gone = {"became": RETIRED, "became_at": snapshot.known_at}
            return plans[0].model_copy(update=gone), *plans[1:]
        return plans


def _describe_plan(plan: PlanOutcome, event: TickValidationEvent) -> dict[str, Any]:
    update: dict[str, Any] = {"became": str(event.kind), "became_at": event.known_at}
    if event.kind is TickEventKind.THESIS_ARMED:
        update["theses_armed"] = plan.theses_armed + 1
    elif event.kind is TickEventKind.THESIS_EXPIRED:
        update["theses_expired"] = plan.theses_expired + 1
    elif event.kind is TickEventKind.ORDER_REFUSED:
        update["orders_refused"] = (*plan.orders_refused, event.detail["reason"])
    elif event.kind is TickEventKind.EXIT_FILLED:
        payload = event.detail
        trade = ClosedTrade(closed_at=event.known_at, reason=payload["reason"], r=payload["r"])
        update["trades"] = (*plan.trades, trade)
    return update


class BackgroundBuilder(Stateful):
    """Builder of one run.

    Args:
        bars: of the run; they may grow.
        memory: a reader of its own, so that no other reader's answers are touched.
        playbooks: active versions.
        envelope: what may be proposed at all.
        last_report: the newest report of the slow loop that has arrived.

    Attributes:
        plans: what became of frozen plans; told by whoever sees tick events.
    """

    STATE: ClassVar = {"plans": PART}
    REBUILT = frozenset({"_bars", "_memory", "_playbooks", "_envelope", "_last_report"})

    def __init__(
        self,
        bars: BarSeries,
        memory: MemoryReader,
        playbooks: PlaybookReader,
        envelope: EnvelopeSettings,
        last_report: LastReport,
    ) -> None:
        self._bars = bars
        self._memory = memory
        self._playbooks = playbooks
        self._envelope = envelope
        self._last_report = last_report
        self.plans = PlanOutcomes()

    def build(
        self, snapshot: PolicySnapshot, others: tuple[SymbolPosition, ...] = ()
    ) -> DecisionBackground | None:
        """The background of a snapshot; None where no plan can be chosen and no position managed.

        `others` are the symbols beside that of the snapshot.
        """
        considered = tuple(self._list_considered(snapshot))
        if snapshot.position is None and not considered:
            return None
        return DecisionBackground(
            snapshot_hash=snapshot.content_hash,
            recent_bars=recent_bars(self._bars, snapshot),
            cases=tuple(self._cases(snapshot, name, direction) for name, direction in considered),
            last_plans=self.plans.of(snapshot),
            lessons=tuple(self._lessons()),
            others=others,
            findings=tuple(self._findings(snapshot.known_at)),
        )

    def _list_considered(self, snapshot: PolicySnapshot) -> Iterator[tuple[str, Direction]]:
        """Playbook and direction of the position, else of every plan that may be proposed."""
        if snapshot.regime is None:
            return
        if snapshot.position is not None:
            yield snapshot.position.playbook_id, snapshot.position.direction
            return
        allowed = self._envelope.allowed_playbooks
        for playbook, direction in self._playbooks.eligible(snapshot.regime.labels, snapshot.timeframe):
            if direction in self._envelope.allowed_directions and (not allowed or playbook.id in allowed):
                yield playbook.id, direction

    def _cases(self, snapshot: PolicySnapshot, playbook_id: str, direction: Direction) -> PlanCases:
        fingerprint = () if snapshot.regime is None else snapshot.regime.fingerprint
        active = {version.definition.id: version.definition for version in self._playbooks.active()}
        version = active[playbook_id].content_hash if playbook_id in active else ""
        query = MemoryQuery(snapshot.symbol, playbook_id, direction, fingerprint, version)
        memory = self._memory.retrieve(query, snapshot.known_at)
        return PlanCases(playbook_id=playbook_id, direction=direction, memory=memory)

    def _lessons(self) -> Iterator[LessonInForce]:
        for version in self._playbooks.active():
            if version.report_id is not None:
                yield LessonInForce(
                    playbook_id=version.definition.id,
                    version=version.definition.version,
                    since=version.since,
                    expires_at=version.expires_at,
                    reason=version.reason,
                )

    def _findings(self, known_at: int) -> Iterator[FoundLesson]:
        report = self._last_report()
        if report is None or report.known_at > known_at:
            return
        shown = [found for found in report.clusters if found.grade in GRADED]
        for found in shown[:MOST_FINDINGS]:
            yield FoundLesson(**{name: getattr(found, name) for name in FoundLesson.model_fields})


def recent_bars(bars: BarSeries, snapshot: PolicySnapshot) -> tuple[RecentBar, ...]:
    """The symbol's own last bars up to the decision bar, oldest first, ranked among its last known ones."""
    s = bars.symbols.index(snapshot.symbol)
    end = int(bars.close_times.searchsorted(snapshot.known_at, side="right"))
    own = np.flatnonzero(bars.present[:end, s])[-RANKED_BARS - 1 :]
    close = bars.close[own, s]
    before = np.concatenate(([np.nan], close[:-1]))
    columns = {
        "close_return": close / before - 1.0,
        "range_share": (bars.high[own, s] - bars.low[own, s]) / close,
        "volume": bars.volume[own, s].astype(float),
    }
    shown: list[dict[str, Any]] = [{} for _ in own[-SHOWN_BARS:]]
    for name, values in columns.items():
        known = np.sort(values[-RANKED_BARS:][np.isfinite(values[-RANKED_BARS:])])
        for bar, value in zip(shown, values[-SHOWN_BARS:], strict=True):
            bar[name], bar[f"{name}_rank"] = _rank_among(float(value), known)
    return tuple(RecentBar(bars_ago=len(shown) - 1 - place, **bar) for place, bar in enumerate(shown))


def _rank_among(value: float, known: Floats) -> tuple[float | None, float | None]:
    """A value and its rank among the others of the sorted `known`, which hold it; None where unknown."""
    if not np.isfinite(value):
        return None, None
    below, up_to = known.searchsorted(value, "left"), known.searchsorted(value, "right")
    rank = None if known.size < 2 else _round((below + 0.5 * (up_to - below - 1)) / (known.size - 1))
    return _round(value), rank


def _round(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
