"""The record of one invocation of a reflection, fast or slow, which did not have to take place."""

from typing import ClassVar, Literal

from pydantic import Field

from schemas.contract import Contract
from schemas.vocabulary import InvocationOutcome


class ReflectionInvocationMeta(Contract):
    """How one invocation of a reflection went, whatever it said."""

    telemetry_fields: ClassVar[frozenset[str]] = frozenset({"latency_ms"})

    cadence: Literal["policy_loop", "high_level"]
    source: str = Field(description="policy event, or slot")
    outcome: InvocationOutcome
    skip_reason: str | None = None
    batch_size: int | None = None
    tier: Literal["deterministic", "consolidated"] = "deterministic"
    latency_ms: float = Field(default=0.0, ge=0)
