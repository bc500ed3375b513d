"""Contracts of tick validation: what the engine saw on every bar, without a model or a memory."""

from typing import Any

from pydantic import Field

from schemas.contract import Contract
from schemas.vocabulary import TickEventKind


class TickValidationEvent(Contract):
    """One change that tick validation saw on one bar of one symbol. Prices in quote currency, `r` in R."""

    kind: TickEventKind
    symbol: str | None
    bar_label: int
    ts_event: int
    known_at: int
    detail: dict[str, Any] = {}


class TickValidationResult(Contract):
    """Counters of one stretch of tick validation.

    The three forbidden counters are zero or the run has failed.
    """

    bars_validated: int = Field(ge=0)
    events: dict[str, int]
    llm_calls: int = Field(ge=0)
    memory_reads: int = Field(ge=0)
    policy_writes: int = Field(ge=0)
