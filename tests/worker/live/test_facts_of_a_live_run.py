"""A live run whose answers come late: what its own report is told, and what a worker reads, are the same."""

import asyncio
import json
from typing import Any

from schemas.judge import ReplanVerdict
from schemas.no_learn import NoLearnZone
from schemas.reflection import PolicyLevelReflectionResult
from schemas.settings import EnvelopeSettings, Settings
from schemas.vocabulary import RecommendedAction
from services.ports import Plan, PlanRound
from services.slow_loop.cadence import Run
from services.slow_loop.loop_facts import LoopFacts
from tests.worker.test_session_wires import plans_changed, session
from trading_core.research.counterfactual import PaperPlans
from trading_core.rules import RuleColumns
from worker.live.evaluations import Answer, apply_answer, think
from worker.session import Session, Timing

LATE = 1
TEN_DAYS = 10 * 86_400 * 10**9


def wishing(plan: Plan) -> Plan:
    """Every reflection defers a need."""

    def wished(one: PlanRound) -> PlanRound:
        reply = one.reflection
        if not isinstance(reply, PolicyLevelReflectionResult) or one.request is None:
            return one
        reply = reply.model_copy(
            update={"deferred": (f"a trigger on gaps, {one.request.snapshot.bar_label}",)}
        )
        return PlanRound(one.answer, one.request, reply)

    return Plan(plan.end, tuple(wished(entry) for entry in plan.rounds), plan.reason)


class Live:
    """A session row by row; each answer arrives a row after its question."""

    def __init__(self, settings: Settings) -> None:
        self.made: Session = session(settings)
        self.made.policy_loop._settings = Settings()  # the proposals themselves stay free of the zone
        plans_changed(self.made, wishing)
        self.waiting: list[tuple[int, Answer]] = []
        self.facts = LoopFacts(settings)

    def until(self, row: int) -> None:
        asyncio.run(self._until(row))

    async def _until(self, row: int) -> None:
        made = self.made
        while made.engine.t < row:
            step = made.validate(Timing(), made.engine.t + 1)
            while self.waiting and self.waiting[0][0] <= step.t:
                apply_answer(made, self.waiting.pop(0)[1])
            for boundary in step.boundaries:
                evaluation = made.policy_loop.open(boundary)
                if evaluation is not None:
                    self.waiting.append((step.t + LATE, await think(made, evaluation)))
        await made.journal.flush()

    def requested(self) -> tuple[Any, Any]:
        """A request at the present and its report; the same request is read from the journal."""
        made, facts = self.made, self.facts
        request, report = asyncio.run(made.slow_loop.reflect_now(made.engine.t - 1))
        now, last = request.slot, facts.last_seq
        for row in made.journal._sink.rows:  # type: ignore[attr-defined]
            if row.seq > last:
                facts.add(row)
        due = Run(now, "batch", request.structural_allowed, request.structural_override)
        read = facts.request(due, now, PaperPlans(RuleColumns(made.bars)))
        assert read.content_hash == request.content_hash
        return request, report

    def apply_report(self, request: Any, report: Any) -> None:
        """As of a slot that lies before the clock of the request: the clock says what was told."""
        request = request.model_copy(update={"slot": request.slot - TEN_DAYS})
        verdict = ReplanVerdict(
            decision=RecommendedAction.HOLD,
            report_id=report.content_hash[:16],
            reason="-",
            known_at=report.known_at,
        )
        self.made.slow_loop.apply_report(request, report, verdict, self.made.engine.t - 1)
        assert self.made.slow_loop.counters.errors == 0


def deferred(request: Any) -> list[str]:
    return [item.text for item in request.deferred_items]


def test_facts_of_a_live_run_are_told_once_in_the_run_and_from_its_journal() -> None:
    bars = session().bars
    zone = NoLearnZone(start=int(bars.times[180]), end=int(bars.times[260]), reason="a feed gap")
    live = Live(Settings(envelope=EnvelopeSettings(no_learn_zones=(zone,))))
    shown: list[str] = []
    signals: list[tuple[str, int, str, str]] = []
    arriving: tuple[Any, Any] | None = None
    for row in (120, 124, 180, 186, 260, 270, 340):
        live.until(row)
        if arriving is None:
            arriving = live.requested()
            shown += deferred(arriving[0])
            signals += [
                (signal.symbol, signal.label, signal.playbook_id, signal.reason)
                for signal in arriving[0].untraded_signals
            ]
        else:
            live.apply_report(*arriving)  # some rows after its clock: what came meanwhile is for the next one
            arriving = None
    written = [
        text
        for event in live.made.journal._sink.rows  # type: ignore[attr-defined]
        if event.kind == "policy_reflection"
        for text in json.loads(event.payload)["result"].get("deferred", ())
    ]
    assert sorted(shown) == sorted(written)
    assert len(shown) > 20
    assert len(signals) == len(set(signals)) > 10
    episodes = [episode.no_learn for episode in live.made.slow_loop.facts.episodes]
    assert set(episodes) == {True, False}
