"""A proposal is one hypothesis, complete enough to trade without asking anybody again."""

from pydantic import Field

from schemas.contract import Contract
from schemas.vocabulary import Direction, PlanKind


class PolicyProposal(Contract):
    """Typed plan of a strategist for one symbol; rules are texts of the rule language."""

    playbook_id: str = Field(max_length=64)
    direction: Direction
    thesis: str = Field(max_length=2_000)
    setup: str = Field(max_length=1_000)
    activation: str | None = Field(default=None, max_length=1_000)
    activation_window_bars: int = Field(default=3, ge=1, le=50)
    refinement: str | None = Field(default=None, max_length=1_000)
    stop: str = Field(max_length=1_000)
    target: str = Field(max_length=1_000)
    invalidation: str = Field(max_length=1_000)
    horizon_bars: int = Field(ge=1, le=500)
    conviction: float = Field(ge=0, le=1)
    rationale: str = Field(max_length=4_000)


class StrategistAnswer(Contract):
    """What a strategist said: a proposal, a held position, a tighter stop, or an abstention."""

    kind: PlanKind
    reason: str
    proposal: PolicyProposal | None = None
    tighter_stop: float | None = None
    model: str = "rules"
    prompt_hash: str | None = None
