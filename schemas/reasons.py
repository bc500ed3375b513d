"""What a plan rests on, as data: a reason names a thing that code can look up, and code writes its words."""

from typing import Literal

from pydantic import Field

from schemas.contract import Contract

ReasonKind = Literal["feature", "case_rate", "recent_bar", "regime", "lesson", "rule"]
MOST_REASONS = 8

REASON = "reason"  # among the names of a run that a reply may hold: what a plan may rest on


class PlanReason(Contract):
    """One reason of a plan.

    Attributes:
        kind: where the name is looked up.
        name: a feature of the snapshot, a playbook of its case rates or lessons, bars ago, a part of the
            regime, or a rule of the plan by its role.
    """

    kind: ReasonKind
    name: str = Field(min_length=1, max_length=64)


class Reasons(Contract):
    """Why an answer is given, and words of its author that nobody checks."""

    because: tuple[PlanReason, ...] = Field(max_length=MOST_REASONS)
    comment: str | None = None
