"""Who judges, and the bounds of what follows."""

from typing import Literal

from pydantic import Field

from schemas.contract import Contract
from schemas.settings.bounds import MAX_COUNT


class JudgeSettings(Contract):
    """Who judges reports, the bounds of the judge's actions, and the lifecycle that follows them."""

    replan: Literal["rules", "model"] = Field(
        default="rules",
        description="who judges reports: `rules`, or `model`: after the rules that of the judge "
        "(`llm.model`), which may drop actions and add none; its failures leave what the rules decided",
    )
    minimum_eligible_playbooks: int = Field(
        default=2, le=MAX_COUNT, ge=2, description="playbooks that stay eligible whatever a report says"
    )
    shadow_life_blocks: int = Field(
        default=80,
        le=10_000,
        ge=1,
        description="blocks of `gate.block` that a trial on paper has to prove itself",
    )
    action_life_blocks: int = Field(
        default=26,
        le=10_000,
        ge=1,
        description="blocks after which a ban or a risk cut is weighed again: it goes on unless its ledger "
        "contradicts it",
    )
    promotion_minimum_trades: int = Field(
        default=20, le=MAX_COUNT, ge=20, description="shadow trades that a promotion needs"
    )
    promotion_alpha: float = Field(
        default=0.05,
        gt=0,
        lt=0.5,
        description="shared by all candidates of a run: the k-th needs an e-value of k (k + 1) over this,"
        " less after promotions",
    )
    max_open_experiments: int = Field(
        default=3, le=MAX_COUNT, ge=0, description="experiments in shadow at one time"
    )
