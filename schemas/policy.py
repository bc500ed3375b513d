"""A frozen policy and what becomes of it, each with the hashes of everything that let it pass."""

from pydantic import Field

from schemas.contract import Contract
from schemas.proposal import PolicyProposal
from schemas.vocabulary import AmendmentKind


class FrozenPolicy(Contract):
    """In force from the bar after `frozen_at` until its horizon or the next freeze."""

    symbol: str
    proposal: PolicyProposal
    playbook_id: str
    playbook_version: int
    playbook_hash: str
    regime_key: str
    fingerprint: tuple[float, ...]
    risk_fraction: float = Field(gt=0)
    frozen_at: int
    snapshot_hash: str
    proposal_hash: str
    reflection_hash: str
    verdict_hash: str
    prompt_hash: str | None
    model: str
    replaces: str | None = None
    changed_fields: tuple[str, ...] = ()

    @property
    def policy_id(self) -> str:
        """First 16 hex digits of the content hash."""
        return self.content_hash[:16]


class PolicyAmendment(Contract):
    """What is to become of a policy: the stop of its position moves, it is kept, or it is stood down.

    `policy_id` is the policy in force, or the one that opened the position; None where there is neither.
    `stop` is the new level; None for any other kind, and where the level that was asked for is no number.
    """

    kind: AmendmentKind
    symbol: str
    policy_id: str | None
    stop: float | None = Field(default=None, allow_inf_nan=False)
    reason: str


class AmendedPolicy(Contract):
    """An amendment that passed, frozen: carried out at the bar at which it is recorded."""

    amendment: PolicyAmendment
    policy_id: str
    amended_at: int
    snapshot_hash: str
    amendment_hash: str
    reflection_hash: str
    verdict_hash: str

    @property
    def amendment_id(self) -> str:
        """First 16 hex digits of the content hash."""
        return self.content_hash[:16]
