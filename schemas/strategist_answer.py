"""What a strategist says when it is asked: a proposal, or why there is none."""

from typing import Any

from pydantic import Field

from schemas.contract import Contract
from schemas.deliberation import Deliberation
from schemas.proposal import PolicyProposal
from schemas.vocabulary import PlanKind


class RefusedBase(Contract):
    """A playbook's own plan that ranks before the proposal and cannot pass now; `codes` say why."""

    proposal: PolicyProposal
    codes: tuple[str, ...]


class StrategistAnswer(Contract):
    """What a strategist said: a proposal, a held position, a tighter stop, or an abstention.

    `model` is who answered: `rules`, or the model by its name. `fallback` says why the rules answered in a
    model's place: how its call failed, or what was wrong with its reply. `comment` is a model's own words,
    which nobody checks and no part of a run reads; one with a figure or a name is dropped and counted.
    """

    kind: PlanKind
    reason: str
    proposal: PolicyProposal | None = None
    tighter_stop: float | None = None
    model: str = "rules"
    prompt_hash: str | None = None
    fallback: str | None = None
    passed_over: tuple[RefusedBase, ...] = ()
    comment: str | None = None
    dropped_comments: int = Field(default=0, ge=0)
    deliberation: Deliberation | None = Field(
        default=None, description="how the rationale was looked at again; in journal rows of its own"
    )

    def payload(self) -> dict[str, Any]:
        """What was said, without how its text came about."""
        payload = super().payload()
        del payload["deliberation"]
        return payload
