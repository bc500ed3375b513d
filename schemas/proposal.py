"""A proposal is one hypothesis, complete enough to trade without asking again."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from schemas.order_terms import OrderTerms, far_target
from schemas.reasons import MOST_REASONS, PlanReason
from schemas.vocabulary import Direction

OWN = "own_"  # how the id of a plan with its own rules begins


class PolicyProposal(OrderTerms):
    """Typed plan of a strategist for one symbol; rules are texts of the rule language.

    The fields without a default are the least that a strategist has to say; see `OrderTerms` for the others.
    An activation window of 0 bars means that the setup itself orders at its close, see `DirectionRules`.
    `because` is what it rests on, and `rationale` says that in words: written by code, or given by a stranger
    who gives no reasons. `argues_for` is what its author says they argue for; None where none was asked.

    A plan whose rules are its strategist's own has a `playbook_id` that begins with `own_` and names no
    playbook; it alone has a `risk_fraction`. A target that is left out is one that is not reached.
    """

    sparse_fields: ClassVar = OrderTerms.sparse_fields | {"exit", "risk_fraction"}
    keeps_its_text = True  # its row and that of the policy made of it hold the same text

    playbook_id: str = Field(max_length=64)
    direction: Direction
    thesis: str = Field(max_length=2_000)
    setup: str = Field(max_length=1_000)
    activation: str | None = Field(default=None, max_length=1_000)
    activation_window_bars: int = Field(default=3, ge=0, le=50)
    refinement: str | None = Field(default=None, max_length=1_000)
    stop: str = Field(max_length=1_000)
    target: str = Field(default_factory=far_target, max_length=1_000)
    invalidation: str | None = Field(default=None, max_length=1_000)
    horizon_bars: int = Field(ge=1, le=500)
    conviction: float = Field(ge=0, le=1)
    because: tuple[PlanReason, ...] = Field(default=(), max_length=MOST_REASONS)
    rationale: str = Field(default="", max_length=4_000)
    entry: str | None = Field(default=None, max_length=1_000)
    trail: str | None = Field(default=None, max_length=1_000)
    exit: str | None = Field(default=None, max_length=1_000)
    argues_for: Direction | Literal["neither"] | None = None
    risk_fraction: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="of equity at the stop, of a plan with its own rules; the envelope caps it",
    )

    @model_validator(mode="after")
    def _rules_fit_terms(self) -> Self:
        if self.activation is not None and self.activation_window_bars == 0:
            raise ValueError("activation_window_bars is 0, yet the activation waits: leave one of them out")
        self.refuse_rules(self.entry, self.refinement, "")
        if "target" not in self.model_fields_set:
            if not self.playbook_id.startswith(OWN):
                raise ValueError("target: missing: a plan of a playbook says its target")
            self.__dict__["target"] = far_target(
                self.__dict__
            )  # the entry is read after the default was made
        return self
