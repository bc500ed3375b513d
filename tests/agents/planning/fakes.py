"""Hosts and planners that do what a test says, also what none should do."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.planning.gathering import gather
from schemas.evidence_plan import EvidenceCall, EvidencePlan, GatheredEvidence, PlannedCall
from schemas.settings.planner import OWN, PlannerSettings
from schemas.tool import ToolDefinition, ToolReply
from services.evidence.tools import TOOLS
from services.ports import EvidenceQuestion, ToolProgress

CONTEXT: dict[str, Any] = {
    "run_id": "r0001-embedded",
    "known_at": "2006-12-29T21:00:00+00:00",
    "symbols": ("AAPL", "IBM", "MSFT"),
    "playbooks": (
        "channel_breakout",
        "mean_reversion",
        "momentum_continuation",
        "squeeze_breakout",
        "trend_pullback",
    ),
    "regimes": ("up/low", "up/high", "down/high"),
    "recent_symbol": None,
    "recent_playbook": None,
    "recent_fill": None,
}
OWN_TOOLS = tuple(tool.definition for tool in TOOLS.values())
Answer = Callable[[str, Mapping[str, Any]], Any]


def tool(name: str, **fields: Any) -> ToolDefinition:
    """A tool of another server; `fields` are of its input schema."""
    return ToolDefinition(name=name, description="", input_schema={"type": "object", **fields})


def own(method: str, **params: Any) -> PlannedCall:
    """A call of our own tools."""
    return PlannedCall(client=OWN, method=method, params=params)


class ScriptedHost:
    """Tools whose answers a function gives: a document, a reply, an error to raise, or seconds to hang."""

    def __init__(self, answer: Answer | Any = None, tools: Sequence[ToolDefinition] = OWN_TOOLS) -> None:
        self._answer, self._tools = answer, tuple(tools)
        self.called: list[tuple[str, dict[str, Any]]] = []
        self.at_once = self.most_at_once = self.cancelled = 0
        self.two_at_once = asyncio.Event()

    async def tools(self) -> tuple[ToolDefinition, ...]:
        return self._tools

    async def call(
        self, name: str, arguments: Mapping[str, Any], progress: ToolProgress | None = None
    ) -> ToolReply:
        self.called.append((name, dict(arguments)))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        if self.at_once == 2:
            self.two_at_once.set()
        try:
            return await self._reply(name, arguments)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.at_once -= 1

    async def _reply(self, name: str, arguments: Mapping[str, Any]) -> ToolReply:
        given = self._answer(name, arguments) if callable(self._answer) else self._answer
        if isinstance(given, Exception):
            raise given
        if given == "hang":
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return given if isinstance(given, ToolReply) else ToolReply(text=json.dumps(given or {}))


class ScriptedPlanner:
    """Plans one after another; the last one again and again."""

    def __init__(self, *plans: EvidencePlan) -> None:
        self._plans = plans
        self.seen: list[tuple[EvidenceCall, ...]] = []
        self.tools: Mapping[str, Sequence[ToolDefinition]] = {}

    async def plan(
        self,
        question: EvidenceQuestion,
        tools: Mapping[str, Sequence[ToolDefinition]],
        earlier: Sequence[EvidenceCall] = (),
    ) -> EvidencePlan:
        self.seen.append(tuple(earlier))
        self.tools = tools
        return self._plans[min(len(self.seen), len(self._plans)) - 1]


def plan(*calls: PlannedCall, **fields: Any) -> EvidencePlan:
    """A plan of calls."""
    return EvidencePlan(tools=calls, **fields)


def gathered(
    text: str,
    planner: Any,
    hosts: Mapping[str, Any],
    *,
    attended: bool = True,
    deadline_s: float | None = 5.0,
    **settings: Any,
) -> GatheredEvidence:
    """What is gathered for a question."""
    request = EvidenceQuestion(text, CONTEXT)
    work = gather(
        request, planner, hosts, PlannerSettings(**settings), attended=attended, deadline_s=deadline_s
    )
    return asyncio.run(work)
