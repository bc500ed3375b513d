"""The judge's contracts: verdicts at the policy boundary, replan verdicts, and the action contract."""

from typing import Any, Literal

from pydantic import Field, model_validator

from schemas.contract import Contract
from schemas.fact_check import FactCheck
from schemas.vocabulary import Direction, FindingClass, JudgeDecision, RecommendedAction


class BoundaryVerdict(Contract):
    """Decision on exactly one proposal or amendment, under one snapshot, after one reflection."""

    decision: JudgeDecision
    finding_class: FindingClass
    reason: str
    evidence_ids: tuple[str, ...] = ()
    snapshot_hash: str
    proposal_hash: str
    reflection_hash: str
    model: str = "rules"


class JudgeAction(Contract):
    """One parameter change within bounds. Which fields are needed depends on `kind`.

    set_eligibility: regime (`trend/volatility`), direction, eligible. set_threshold, set_invalidation:
    parameter, value (on the grid). set_risk_fraction: value. replan: nothing. open_experiment: parameter,
    value, life_blocks. Stored actions of older versions name their life in bars, `ttl_bars`: they are read
    and hashed as they were written, and what has no life in blocks lives for as long as the settings say.
    """

    kind: Literal[
        "set_eligibility",
        "set_threshold",
        "set_invalidation",
        "set_risk_fraction",
        "replan",
        "open_experiment",
    ]
    playbook_id: str | None = None
    regime: str | None = None
    direction: Direction | None = None
    eligible: bool | None = None
    parameter: str | None = None
    value: float | None = None
    life_blocks: int | None = Field(default=None, ge=1)
    ttl_bars: int | None = Field(default=None, ge=1)
    lowers_exposure: bool = False
    reason: str

    @model_validator(mode="after")
    def _fields_for_kind(self) -> "JudgeAction":
        life = "ttl_bars" if self.is_older else "life_blocks"
        needed = {
            "set_eligibility": ("playbook_id", "regime", "eligible", life),
            "set_threshold": ("playbook_id", "parameter", "value"),
            "set_invalidation": ("playbook_id", "parameter", "value"),
            "set_risk_fraction": ("playbook_id", "value"),
            "replan": (),
            "open_experiment": ("playbook_id", life),
        }[self.kind]
        missing = [name for name in needed if getattr(self, name) is None]
        if missing:
            raise ValueError(f"{self.kind} needs {', '.join(missing)}")
        return self

    @property
    def is_older(self) -> bool:
        """Whether it was written when a life was counted in bars."""
        given = self.model_fields_set
        return self.ttl_bars is not None or ("ttl_bars" in given and "life_blocks" not in given)

    def payload(self) -> dict[str, Any]:
        """The hashed part, with the life under the name under which it was written."""
        other = "life_blocks" if self.is_older else "ttl_bars"
        return {name: value for name, value in super().payload().items() if name != other}


class RefusedAction(Contract):
    """An action the contract refused, and the bound it broke."""

    action: JudgeAction
    code: str
    reason: str


class ReplanVerdict(Contract):
    """What the judge made of one report; the report is its evidence.

    `model` is who had the last word, `fallback` why the rules did in a model's place, `prompt_hash` the text
    with which a model was asked.
    """

    decision: RecommendedAction
    report_id: str
    actions: tuple[JudgeAction, ...] = ()
    refused: tuple[RefusedAction, ...] = ()
    reason: str
    evidence_ids: tuple[str, ...] = ()
    known_at: int
    model: str = "rules"
    prompt_hash: str | None = None
    fallback: str | None = None
    fact_check: FactCheck | None = Field(
        default=None, description="of the model's reason; in a journal row of its own"
    )

    def payload(self) -> dict[str, Any]:
        """What was decided, without the check of its reason."""
        payload = super().payload()
        del payload["fact_check"]
        return payload
