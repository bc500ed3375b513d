"""PolicySnapshot: everything a policy evaluation may look at, frozen and hashed whole."""

from pydantic import Field

from schemas.contract import Contract, FrozenMap
from schemas.playbook import Expectation
from schemas.regime import RegimeView
from schemas.vocabulary import Direction, PolicyEventKind, PolicyState


class DataWindow(Contract):
    """Bars behind the snapshot; labels as integer ns."""

    first_label: int
    last_label: int
    bars: int = Field(ge=1)


class PositionView(Contract):
    """An open position and why it was opened."""

    direction: Direction
    quantity: float = Field(gt=0)
    entry_price: float = Field(gt=0)
    entry_label: int
    stop: float
    target: float
    bars_held: int = Field(ge=0)
    r_now: float
    mae_r: float = Field(le=0)
    mfe_r: float = Field(ge=0)
    playbook_id: str
    policy_id: str
    thesis: str


class RiskState(Contract):
    """The portfolio as the envelope sees it; fractions of equity."""

    equity: float
    cash: float
    gross_exposure: float = Field(ge=0)
    drawdown: float = Field(ge=0)
    daily_loss: float = Field(ge=0)
    risk_fraction: float = Field(ge=0)
    halted: bool
    kill_switch: bool


class ExpectationSummary(Contract):
    """Point-in-time expectation of one playbook version: design prior and resolved trades, shrunken together.

    `hit_rate`, quantiles and R figures blend the design values with weight `prior.weight_trades` and the
    measured ones with weight `n`.
    """

    playbook_id: str
    playbook_version: int
    n: int = Field(ge=0)
    prior: Expectation
    expectancy_r: float
    hit_rate: float = Field(ge=0, le=1)
    hold_p50_bars: float
    hold_p90_bars: float
    winner_mae_p80_r: float = Field(le=0)
    mfe_p50_r: float = Field(ge=0)


class MemoryBaseRates(Contract):
    """Counts over the whole eligible population at `known_at`; never over a retrieved bundle."""

    population: int = Field(ge=0)
    winners: int = Field(ge=0)
    losers: int = Field(ge=0)


class PolicySnapshot(Contract):
    """Standard input of strategist, reflection and judge. The same hash reaches all three.

    `ts_event` and `known_at` are the close of the decision bar, in ns. `staleness_bars` counts bars of the
    portfolio clock since this symbol's last present bar.
    """

    symbol: str
    timeframe: str
    bar_label: int
    ts_event: int
    known_at: int
    close: float = Field(gt=0)
    events: tuple[str, ...]
    state: PolicyState
    regime: RegimeView | None
    features: FrozenMap[str, float | None]
    position: PositionView | None
    active_policy_id: str | None
    risk: RiskState
    base_rates: MemoryBaseRates
    expectations: tuple[ExpectationSummary, ...]
    data_window: DataWindow
    staleness_bars: int = Field(ge=0)

    @property
    def leading_event(self) -> str:
        """The event that chooses the budget: a heartbeat only when nothing else opened the boundary."""
        urgent = (name for name in self.events if name != PolicyEventKind.HEARTBEAT)
        return next(urgent, self.events[0] if self.events else "none")

    @property
    def managed_policy_id(self) -> str | None:
        """The policy that an amendment is about: of the open position, else the one in force, if any."""
        return self.active_policy_id if self.position is None else self.position.policy_id
