"""An episode is a resolved trade with its opening context: the only thing lessons are made of."""

from typing import Literal

from pydantic import Field

from schemas.contract import Contract
from schemas.vocabulary import Direction, ExitReason, FailureMode

WIN_R = 0.5
LOSS_R = -0.3


class Episode(Contract):
    """One closed position. `known_at` is the close of the exit bar; R after costs on the planned risk."""

    episode_id: str
    symbol: str
    timeframe: str
    playbook_id: str
    playbook_version: int
    playbook_hash: str
    policy_id: str
    direction: Direction
    regime: str
    structure: str
    fingerprint: tuple[float, ...]
    conviction: float
    entry_label: int
    exit_label: int
    known_at: int
    entry_price: float
    exit_price: float
    quantity: float = Field(gt=0)
    fees: float
    pnl: float
    r: float
    mae_r: float = Field(le=0)
    mfe_r: float = Field(ge=0)
    hold_bars: int = Field(ge=0)
    exit_reason: ExitReason
    failure_mode: FailureMode | None = None
    ledger: Literal["live", "shadow"] = "live"
    no_learn: bool = False

    @property
    def outcome(self) -> Literal["win", "loss", "scratch"]:
        """Win above +0.5R, loss below -0.3R, scratch between."""
        if self.r > WIN_R:
            return "win"
        return "loss" if self.r < LOSS_R else "scratch"
