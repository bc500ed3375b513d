"""What a lesson has to show."""

from typing import Literal

from pydantic import Field

from schemas.contract import Contract
from schemas.settings.bounds import MAX_COUNT


class GateSettings(Contract):
    """What a lesson has to show. See `docs` on the gate for formulas."""

    mode: Literal["runbook_or", "graded", "significance_only"] = Field(
        default="graded", description="which grade allows which action: see the gate"
    )
    q: float = Field(
        default=0.10,
        gt=0,
        lt=0.5,
        description="share of false findings that the family of hypotheses may spend",
    )
    minimum_trades: int = Field(
        default=20, le=MAX_COUNT, ge=20, description="resolved trades below which a count says nothing"
    )
    regime_minimum: int = Field(
        default=20,
        le=MAX_COUNT,
        ge=20,
        description="resolved trades that a change of eligibility in one regime needs",
    )
    block: Literal["", "day", "week", "month", "quarter"] = Field(
        default="",
        description="calendar period whose entries make one block; empty: a day up to 30m, a week to 4h, a "
        "month from 1d on",
    )
    strict: bool = Field(
        default=False,
        description="stakes so small that each claim is a true e-process; it needs about twice the blocks",
    )
    looks: int = Field(
        default=5,
        ge=0,
        le=20,
        description="yearly looks of one series of the second opinion on a playbook; 0: none is formed",
    )
    winsor_low: float = Field(default=-3.0, lt=0, description="R below it counts as it")
    winsor_high: float = Field(default=4.0, gt=0, description="R above it counts as it")
    reference_r: float = Field(default=0.0, description="expectancy against which a cluster is tested")
