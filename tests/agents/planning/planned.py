"""A planner whose model says what it is told to say."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.evidence_planner import ModelPlanner
from schemas.evidence_plan import EvidenceCall, EvidencePlan
from schemas.settings.planner import OWN, PlannerSettings
from schemas.tool import ToolDefinition, Tools, ToolUse
from services.evidence.tools import TOOLS
from services.model_calls.language_model import ModelReply
from services.ports import EvidenceQuestion

SHOWN: Mapping[str, Sequence[ToolDefinition]] = {OWN: tuple(tool.definition for tool in TOOLS.values())}


@dataclass
class Says:
    """A model that says one thing; what it was asked is kept."""

    text: str
    uses: tuple[ToolUse, ...] = ()
    requested: list[dict[str, Any]] = field(default_factory=list)

    async def complete(
        self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float, tools: Tools = ()
    ) -> ModelReply:
        self.requested.append({"system": system, "prompt": prompt, "tools": tuple(tools)})
        return ModelReply(self.text, "said", 1, 1, 0.0, uses=self.uses)


def planned(
    text: str,
    question: str = "Why did squeeze_breakout lose?",
    context: Mapping[str, Any] | None = None,
    earlier: Sequence[EvidenceCall] = (),
    *,
    tools: Mapping[str, Sequence[ToolDefinition]] = SHOWN,
    **settings: Any,
) -> EvidencePlan:
    """The plan of a reply."""
    planner = ModelPlanner(Says(text), PlannerSettings(**settings), max_tokens=1_000)
    return asyncio.run(planner.plan(EvidenceQuestion(question, context or {}), tools, earlier))
