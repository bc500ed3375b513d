"""A question about a run, the calls of tools that answer it, and what they brought."""

from typing import ClassVar, Literal

from pydantic import Field

from schemas.contract import Contract, FrozenMap
from schemas.tool import ToolReply

Intent = Literal["snapshot", "episodes", "context", "chain", "ambiguous", "fill", "playbook"]


class PlannedCall(Contract):
    """One call of a tool as a planner wants it; `client` is a server's name, or our own."""

    client: str
    method: str
    params: FrozenMap[str, object] = {}


class DroppedCall(Contract):
    """A planned call that is not made, and why: in words of ours."""

    client: str
    method: str
    reason: str


class EvidencePlan(Contract):
    """What a planner answers to a question; no call and confidence 0 where it did not understand.

    `intent` is named by the rules alone, `model` and `prompt_hash` where a model planned.
    """

    confidence: float = Field(default=1.0, ge=0, le=1)
    clarification: str | None = None
    tools: tuple[PlannedCall, ...] = ()
    reasoning: str = ""
    dropped: tuple[DroppedCall, ...] = ()
    intent: Intent | None = None
    model: str | None = None
    prompt_hash: str | None = None
    failure: str | None = Field(default=None, description="why the planner's reply could not be read")


class EvidenceCall(Contract):
    """One call that was made, with its reply."""

    telemetry_fields: ClassVar[frozenset[str]] = frozenset({"latency_ms"})

    id: str = Field(description="c1, c2, ... in the order of the plans")
    client: str
    method: str
    params: FrozenMap[str, object]
    iteration: int = Field(ge=1)
    reply: ToolReply
    latency_ms: float = 0.0


class EvidenceStep(Contract):
    """One event of gathering, with the names that its log has, such as planner_confidence."""

    step: str
    iteration: int = Field(ge=1)
    facts: FrozenMap[str, object] = {}


class GatheredEvidence(Contract):
    """A question with everything that was planned, called and read for it.

    `status` is `gathered`, `clarify` (the planner asks back) or `abstained` (it would, and nobody is there).
    """

    question: str
    status: Literal["gathered", "clarify", "abstained"]
    confidence: float = Field(ge=0, le=1)
    clarification: str | None = None
    plans: tuple[EvidencePlan, ...]
    calls: tuple[EvidenceCall, ...] = ()
    steps: tuple[EvidenceStep, ...] = ()
    iterations: int = Field(ge=1)
    refined: bool = False
    complete: bool = False


class RecommendationEvidence(Contract):
    """What was read about one recommendation of a report before the verdict on it."""

    playbook_id: str | None
    regime: str | None
    kind: str = Field(description="of the change that is recommended, or the action where it names none")
    gathered: GatheredEvidence
