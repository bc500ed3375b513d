"""How a plan enters and manages a position, beside its rules: the numbers and choices that the engine reads.

Playbooks and proposals share these fields, so that a proposal can be held against its playbook field by
field.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from schemas.contract import Contract

EntryKind = Literal["market", "limit", "stop"]
RefinementKind = Literal["stop", "limit"]
MOST_SCALE_OUTS = 4
MOST_R = 20.0
FAR_R = 1_000_000  # of a target that stands for none, in R: beyond any price, however near the stop


def _several(value: float | tuple[float, ...] | None) -> tuple[float, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


def _number_of_one(value: Any) -> Any:
    """A list of one number is that number: one way to write it, one hash."""
    if not isinstance(value, list | tuple):
        return value
    return value[0] if len(value) == 1 else tuple(value)


OneOrSeveral = Annotated[float | tuple[float, ...] | None, BeforeValidator(_number_of_one)]


class OrderTerms(Contract):
    """Terms of a plan's orders; R is the planned risk from the entry to the stop.

    A limit or stop entry rests at the price rule `entry` until the activation window ends. A refinement is
    a tighter stop while the thesis waits, or (`limit`) a better limit than the market offers.
    """

    sparse_fields: ClassVar = frozenset({"add_at_r", "add_share", "target_moves", "repeats", "tightens"})

    entry_kind: EntryKind = Field(default="market", description="how an activation enters")
    refinement_kind: RefinementKind = Field(default="stop", description="what the refinement rule improves")
    break_even_r: float | None = Field(
        default=None, gt=0, le=20, description="advance in R that moves the stop to the entry price"
    )
    scale_out_r: OneOrSeveral = Field(
        default=None, description="advance in R at which a share is closed; a list: one after another"
    )
    scale_out_share: OneOrSeveral = Field(
        default=None, description="share of the position closed there; a list: one for each advance"
    )
    add_at_r: float | None = Field(
        default=None, gt=0, le=MOST_R, description="advance in R at whose close an entry is added, once"
    )
    add_share: float | None = Field(
        default=None, gt=0, le=1, description="what is added, as a share of the first quantity"
    )
    target_moves: bool = Field(default=False, description="whether the target is read anew at each close")
    repeats: bool = Field(
        default=False, description="whether the plan stays in force after its position, for the next signal"
    )
    tightens: bool = Field(
        default=True,
        description="whether an evaluation may tighten the stop; false: the plan's rules alone do",
    )

    @property
    def scale_outs(self) -> tuple[tuple[float, float], ...]:
        """Advance in R and share of each scale-out, nearest first."""
        return tuple(zip(_several(self.scale_out_r), _several(self.scale_out_share), strict=True))

    @model_validator(mode="after")
    def _terms_fit_together(self) -> Self:
        self._check_scale_outs(_several(self.scale_out_r), _several(self.scale_out_share))
        if (self.add_at_r is None) != (self.add_share is None):
            raise ValueError(
                f"add_at_r {self.add_at_r!r} and add_share {self.add_share!r} belong together: give both or "
                "neither"
            )
        if self.entry_kind == "stop" and self.refinement_kind == "limit":
            raise ValueError(
                "refinement_kind 'limit' does not go with entry_kind 'stop': an entry that waits for "
                "strength has no better limit; use refinement_kind 'stop'"
            )
        return self

    def _check_scale_outs(self, advances: tuple[float, ...], shares: tuple[float, ...]) -> None:
        if len(advances) != len(shares):
            raise ValueError(
                f"scale_out_r {self.scale_out_r!r} and scale_out_share {self.scale_out_share!r} belong "
                "together: give both or neither, as many of one as of the other"
            )
        if len(advances) > MOST_SCALE_OUTS:
            raise ValueError(f"scale_out_r has {len(advances)} steps: give at most {MOST_SCALE_OUTS}")
        if not all(0.0 < advance <= MOST_R for advance in advances) or sorted(set(advances)) != [*advances]:
            raise ValueError(
                f"scale_out_r {self.scale_out_r!r}: each must be greater than 0, at most {MOST_R:g} and "
                "greater than the one before"
            )
        if not all(share > 0.0 for share in shares) or not sum(shares) < 1.0:
            raise ValueError(
                f"scale_out_share {self.scale_out_share!r}: each must be greater than 0, all together less "
                "than 1, because the rest is closed by another exit"
            )

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


def far_target(known: Mapping[str, Any]) -> str:
    """The price rule of a target that is not reached: `FAR_R` times the risk, of a short a hundredth."""
    entry = "close" if known.get("entry") is None else f"({known['entry']})"
    return f"max({entry} + {FAR_R} * ({entry} - ({known.get('stop')})), {entry} / 100)"
