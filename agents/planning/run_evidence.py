"""What a run knows about the recommendations of a report, read by our own tools before its judge's verdict.

The tools answer from the run's rows up to the moment of the report: no argument reaches a later one, no other
run, and no server. By rules nothing here waits, so that nothing comes between two rows of the run.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agents.planning.cluster_planner import ClusterPlanner, PagePlanner
from agents.planning.gathering import gather
from agents.tool_hosts.in_process import InProcessTools
from schemas.canonical import ns_to_datetime
from schemas.errors import ModelError, ToolRefused
from schemas.evidence_plan import EvidencePlan, GatheredEvidence, RecommendationEvidence
from schemas.settings.planner import OWN, PlannerSettings
from schemas.slow_reflection import HighLevelReflectionReport, Recommendation
from schemas.vocabulary import RecommendedAction
from services.evidence import tool_arguments
from services.evidence.tool_results import ToolResult
from services.evidence_tools import lesson_answers, market_answers
from services.evidence_tools.evidence_buffer import EvidenceBuffer
from services.evidence_tools.run_view import RunView, iso
from services.ports import EvidencePlanner, EvidenceQuestion, ToolProgress

Answer = Callable[[RunView, Any], ToolResult]
READ: Mapping[str, Answer] = {
    "playbooks": lesson_answers.playbooks,
    "trades": market_answers.trades,
    "gate": lesson_answers.gate,
}


class RunEvidence:
    """Asks a planner about each recommendation beyond hold, and makes its calls.

    Args:
        rows: of the run, so far.
        settings: threshold and number of plans.
        planner_at: who plans the calls for a report that was known at a time, ns; None plans by rules.
    """

    def __init__(
        self,
        rows: EvidenceBuffer,
        settings: PlannerSettings,
        planner_at: Callable[[int], EvidencePlanner] | None = None,
    ) -> None:
        self.rows, self._settings, self._planner_at = rows, settings, planner_at

    async def read(self, report: HighLevelReflectionReport, seen: int) -> tuple[RecommendationEvidence, ...]:
        """What was read about each recommendation beyond hold, from the run's first `seen` rows."""
        asking = [item for item in report.recommendations if item.action is not RecommendedAction.HOLD]
        if not asking:
            return ()
        view = self.rows.as_of(seen, report.known_at)
        read = {**READ, "gate": _gate_of(report)}  # the run may not have written the report yet
        tools = InProcessTools(
            {name: self._handler(name, answer, view, seen) for name, answer in read.items()}
        )
        planner = ClusterPlanner() if self._planner_at is None else self._planner_at(report.known_at)
        brief = PagePlanner(planner)
        return tuple([await self._about(item, view, tools, brief) for item in asking])

    async def _about(
        self, item: Recommendation, view: RunView, tools: InProcessTools, planner: EvidencePlanner
    ) -> RecommendationEvidence:
        kind = str(item.change.get("kind", item.action))
        question = EvidenceQuestion(_question(item, kind), _context(item, view))
        try:
            gathered = await gather(
                question, planner, {OWN: tools}, self._settings, attended=False, deadline_s=None
            )
        except ModelError as error:
            gathered = _nothing(question.text, str(error.context.get("kind", "error")))
        return RecommendationEvidence(
            playbook_id=item.playbook_id, regime=item.regime, kind=kind, gathered=gathered
        )

    def _handler(
        self, name: str, answer: Answer, view: RunView, seen: int
    ) -> Callable[[Any, ToolProgress], Awaitable[ToolResult]]:
        async def answer_call(arguments: tool_arguments.RunArguments, progress: ToolProgress) -> ToolResult:
            if arguments.run != tool_arguments.LATEST:
                raise ToolRefused("there is no run but this one: leave run out")
            if arguments.at is None:
                return answer(view, arguments)
            if arguments.at > view.known_at:
                raise ToolRefused(
                    f"at lies after the clock of this run: give a time up to {iso(view.known_at)}"
                )
            earlier = self.rows.as_of(seen, arguments.at)
            if not earlier.index.events:
                raise ToolRefused("the run had begun at no bar by that time: leave at out")
            return READ[name](earlier, arguments)

        return answer_call


def _gate_of(report: HighLevelReflectionReport) -> Answer:
    """What the report itself has graded."""
    clusters = report.payload()["clusters"]

    def answer_call(view: RunView, arguments: tool_arguments.GateArguments) -> ToolResult:
        return lesson_answers.gate_of(view, arguments, clusters, report.content_hash[:16])

    return answer_call


def _question(item: Recommendation, kind: str) -> str:
    of = "every playbook" if item.playbook_id is None else item.playbook_id
    where = "" if item.regime is None else f" in {item.regime}"
    return f"What do the trades, the gate and the versions of {of}{where} say about {kind}?"


def _context(item: Recommendation, view: RunView) -> dict[str, Any]:
    return {
        "run_id": view.run_id,
        "known_at": ns_to_datetime(view.known_at).isoformat(),
        "symbols": view.symbols,
        "playbooks": view.playbook_ids,
        "regimes": view.regimes,
        "playbook_id": item.playbook_id,
        "regime": item.regime,
    }


def _nothing(question: str, failure: str) -> GatheredEvidence:
    """Evidence that a failed model did not plan; the verdict is made without it."""
    plan = EvidencePlan(confidence=0.0, failure=failure)
    return GatheredEvidence(
        question=question, status="abstained", confidence=0.0, plans=(plan,), iterations=1
    )
