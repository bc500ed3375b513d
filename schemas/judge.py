"""The judge's contracts: verdicts at the policy boundary, replan verdicts, and the action contract."""

from typing import Literal

from pydantic import Field, model_validator

from schemas.contract import Contract
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
    value, ttl_bars.
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
    ttl_bars: int | None = Field(default=None, ge=1)
    lowers_exposure: bool = False
    reason: str

    @model_validator(mode="after")
    def _fields_for_kind(self) -> "JudgeAction":
        needed = {
            "set_eligibility": ("playbook_id", "regime", "eligible", "ttl_bars"),
            "set_threshold": ("playbook_id", "parameter", "value"),
            "set_invalidation": ("playbook_id", "parameter", "value"),
            "set_risk_fraction": ("playbook_id", "value"),
            "replan": (),
            "open_experiment": ("playbook_id", "ttl_bars"),
        }[self.kind]
        missing = [name for name in needed if getattr(self, name) is None]
        if missing:
            raise ValueError(f"{self.kind} needs {', '.join(missing)}")
        return self


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
