"""A frozen policy: the proposal that passed, with the hashes of everything that let it pass."""

from pydantic import Field

from schemas.contract import Contract
from schemas.proposal import PolicyProposal


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
