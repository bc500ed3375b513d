"""A proposal is one hypothesis, complete enough to trade without asking again."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from schemas.contract import Contract
from schemas.deliberation import Deliberation
from schemas.order_terms import OrderTerms
from schemas.vocabulary import Direction, PlanKind


class PolicyProposal(OrderTerms):
    """Typed plan of a strategist for one symbol; rules are texts of the rule language.

    The fields without a default are the least that a strategist has to say; see `OrderTerms` for the others.
    `argues_for` is what the author of thesis and rationale says they argue for; None where none was asked.
    """

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
    entry: str | None = Field(default=None, max_length=1_000)
    trail: str | None = Field(default=None, max_length=1_000)
    argues_for: Direction | Literal["neither"] | None = None

    @model_validator(mode="after")
    def _rules_fit_terms(self) -> Self:
        self.refuse_rules(self.entry, self.refinement, "")
        return self


class StrategistAnswer(Contract):
    """What a strategist said: a proposal, a held position, a tighter stop, or an abstention.

    `model` is who answered: `rules`, or the model by its name. `fallback` says why the rules answered in a
    model's place: how its call failed, or what was wrong with its reply.
    """

    kind: PlanKind
    reason: str
    proposal: PolicyProposal | None = None
    tighter_stop: float | None = None
    model: str = "rules"
    prompt_hash: str | None = None
    fallback: str | None = None
    deliberation: Deliberation | None = Field(
        default=None, description="how the rationale was looked at again; in journal rows of its own"
    )

    def payload(self) -> dict[str, Any]:
        """What was said, without how its text came about."""
        payload = super().payload()
        del payload["deliberation"]
        return payload
