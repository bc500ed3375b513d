"""How a plan enters and manages a position, beside its rules: the numbers and choices that the engine reads.

Playbooks and proposals share these fields, so that a proposal can be held against its playbook field by
field.
"""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from schemas.contract import Contract

EntryKind = Literal["market", "limit", "stop"]
RefinementKind = Literal["stop", "limit"]


class OrderTerms(Contract):
    """Terms of a plan's orders; R is the planned risk from the entry to the stop.

    A limit or stop entry rests at the price rule `entry` until the activation window ends. A refinement is
    a tighter stop while the thesis waits, or (`limit`) a better limit than the market offers.
    """

    entry_kind: EntryKind = Field(default="market", description="how an activation enters")
    refinement_kind: RefinementKind = Field(default="stop", description="what the refinement rule improves")
    break_even_r: float | None = Field(
        default=None, gt=0, le=20, description="advance in R that moves the stop to the entry price"
    )
    scale_out_r: float | None = Field(
        default=None, gt=0, le=20, description="advance in R at which a share is closed"
    )
    scale_out_share: float | None = Field(
        default=None, gt=0, lt=1, description="share of the position closed there"
    )

    @model_validator(mode="after")
    def _terms_fit_together(self) -> Self:
        if (self.scale_out_r is None) != (self.scale_out_share is None):
            raise ValueError(
                f"scale_out_r {self.scale_out_r!r} and scale_out_share {self.scale_out_share!r} belong "
                "together: give both or neither"
            )
        if self.entry_kind == "stop" and self.refinement_kind == "limit":
            raise ValueError(
                "refinement_kind 'limit' does not go with entry_kind 'stop': an entry that waits for "
                "strength has no better limit; use refinement_kind 'stop'"
            )
        return self

    def terms(self) -> dict[str, Any]:
        """The terms alone, by name."""
        return {name: getattr(self, name) for name in OrderTerms.model_fields}

    def refuse_rules(self, entry: str | None, refinement: str | None, where: str) -> None:
        """Hold the rules that the terms need against them.

        Raises:
            ValueError: an entry rule without an entry kind that reads it, or one of the two missing.
        """
        if self.entry_kind == "market" and entry is not None:
            raise ValueError(
                f"{where}entry: {entry!r} is read by a limit or stop entry only: set entry_kind, or remove it"
            )
        if self.entry_kind != "market" and entry is None:
            raise ValueError(f"{where}entry: missing: entry_kind {self.entry_kind!r} needs a price rule")
        if self.refinement_kind == "limit" and refinement is None:
            raise ValueError(f"{where}refinement: missing: refinement_kind 'limit' needs a price rule")
