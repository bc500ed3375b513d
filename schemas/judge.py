"""The judge's contracts: verdicts at the policy boundary, replan verdicts, and the action contract."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from schemas.claims import FactCheck
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


ActionKind = Literal[
    "set_eligibility",
    "set_threshold",
    "set_invalidation",
    "set_risk_fraction",
    "replan",
    "open_experiment",
]


class ActionForm(NamedTuple):
    """What a kind of action does, the fields that it needs, and those that it may have."""

    effect: str
    needed: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


_PARAMETER = ("playbook_id", "parameter", "value")
ACTION_FORMS: Mapping[ActionKind, ActionForm] = {
    "set_eligibility": ActionForm(
        "Ban a playbook in a regime, or let it trade there again.",
        ("playbook_id", "regime", "eligible", "life_blocks"),
        ("direction",),
    ),
    "set_threshold": ActionForm("Move a threshold of the rules of a playbook.", _PARAMETER),
    "set_invalidation": ActionForm("Move what invalidates the trades of a playbook.", _PARAMETER),
    "set_risk_fraction": ActionForm("Risk more or less a trade of a playbook.", ("playbook_id", "value")),
    "replan": ActionForm("Retire every frozen policy and evaluate anew."),
    "open_experiment": ActionForm(
        "Try another value of a parameter of a playbook on paper.", (*_PARAMETER, "life_blocks")
    ),
}


class JudgeAction(Contract):
    """One parameter change within bounds. Which fields are needed depends on `kind`, see `ACTION_FORMS`."""

    kind: ActionKind
    playbook_id: str | None = Field(default=None, description="A playbook in force")
    regime: str | None = Field(default=None, description="TREND/VOLATILITY, one that the playbook declares")
    direction: Direction | None = Field(default=None, description="Only this side; both without it")
    eligible: bool | None = Field(default=None, description="Whether the playbook trades there")
    parameter: str | None = Field(default=None, description="One of the playbook's parameters")
    value: float | None = Field(
        default=None, description="On the parameter's grid; of a risk a fraction of equity: 0.005 is 0.5 %"
    )
    life_blocks: int | None = Field(
        default=None, ge=1, description="Blocks that it lives; without it as the settings say"
    )
    lowers_exposure: bool = False
    reason: str

    @model_validator(mode="after")
    def _fields_for_kind(self) -> "JudgeAction":
        missing = [name for name in ACTION_FORMS[self.kind].needed if getattr(self, name) is None]
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
    comment: str | None = Field(
        default=None, description="the model's own words; nobody checks or reads them"
    )
    fact_check: FactCheck | None = Field(
        default=None, description="of the model's reasons; in a journal row of its own"
    )

    def payload(self) -> dict[str, Any]:
        """What was decided, without the check of its reason."""
        payload = super().payload()
        del payload["fact_check"]
        if self.comment is None:
            del payload["comment"]
        return payload
