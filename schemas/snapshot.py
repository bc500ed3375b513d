"""PolicySnapshot: everything a policy evaluation may look at, frozen and hashed whole.

A given snapshot that contradicts itself is refused: what is refused here cannot come from any run. That of a
run is built from the engine and not checked again.
"""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from schemas.contract import FINITE, Contract, FrozenMap
from schemas.errors import nearest
from schemas.playbook import Expectation
from schemas.regime import RegimeLabels, RegimeView
from schemas.timeframes import Timeframe, after_bars, may_open
from schemas.vocabulary import Direction, OverrideReason, PolicyEventKind, PolicyState

NS = 1_000_000_000
ROUNDING = 1e-9  # share by which a sum or a blend may miss what it is made of
FLAT = (PolicyState.IDLE, PolicyState.THESIS_ARMED, PolicyState.COOLDOWN)
HOLDING = (PolicyState.POSITION_OPEN, PolicyState.HOLD_LOCK)
ORDERED = (("low", "open"), ("low", "close"), ("low", "high"), ("open", "high"), ("close", "high"))
EVENTS = tuple(str(name) for name in (*PolicyEventKind, *OverrideReason))


def _known_event(name: str) -> str:
    if name not in EVENTS:
        guess = nearest(name, EVENTS) or f" Known are {', '.join(EVENTS)}."
        raise ValueError(f"{name!r} starts no evaluation.{guess}")
    return name


EventName = Annotated[
    str, AfterValidator(_known_event), WithJsonSchema({"type": "string", "enum": list(EVENTS)})
]


class DataWindow(Contract):
    """Bars behind the snapshot; labels as integer ns."""

    first_label: int
    last_label: int
    bars: int = Field(ge=1)

    @model_validator(mode="after")
    def _labels_ascend(self) -> Self:
        if self.first_label > self.last_label or (self.bars > 1 and self.first_label == self.last_label):
            raise ValueError(
                f"first_label {self.first_label} and last_label {self.last_label} hold no {self.bars} bars: "
                "labels ascend from bar to bar"
            )
        return self


class PositionView(Contract):
    """An open position and why it was opened."""

    model_config = FINITE

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

    @model_validator(mode="after")
    def _excursions_hold_the_close(self) -> Self:
        if not self.mae_r <= self.r_now <= self.mfe_r:
            raise ValueError(
                f"r_now {self.r_now!r} lies outside mae_r {self.mae_r!r} to mfe_r {self.mfe_r!r}: "
                "the excursions include the last close"
            )
        return self


class RiskState(Contract):
    """The portfolio as the envelope sees it; fractions of equity.

    Equity is cash and positions at their last closes, so it lies within the gross exposure of the cash.
    """

    model_config = FINITE

    equity: float = Field(gt=0)
    cash: float
    gross_exposure: float = Field(ge=0)
    drawdown: float = Field(ge=0, le=1)
    daily_loss: float = Field(ge=0, le=1)
    risk_fraction: float = Field(ge=0, le=1)
    halted: bool
    kill_switch: bool

    @model_validator(mode="after")
    def _equity_is_cash_and_positions(self) -> Self:
        held, most = abs(self.equity - self.cash), self.gross_exposure * self.equity
        if held > most + ROUNDING * max(self.equity, abs(self.cash), most):
            raise ValueError(
                f"equity {self.equity!r} and cash {self.cash!r} are {held!r} apart, but gross_exposure "
                f"{self.gross_exposure!r} says that positions are worth {most!r} at most"
            )
        return self


class ExpectationSummary(Contract):
    """Point-in-time expectation of one playbook version: design prior and resolved trades, shrunken together.

    `hit_rate`, quantiles and R figures blend the design values with weight `prior.weight_trades` and the
    measured ones with weight `n`.
    """

    model_config = FINITE
    keeps_its_text = True

    playbook_id: str
    playbook_version: int = Field(ge=1)
    n: int = Field(ge=0)
    prior: Expectation
    expectancy_r: float
    shrunken_r: float | None = Field(
        default=None, description="mean R drawn towards that of all playbooks: what a ranking goes by"
    )
    hit_rate: float = Field(ge=0, le=1)
    hold_p50_bars: float = Field(gt=0)
    hold_p90_bars: float = Field(gt=0)
    winner_mae_p80_r: float = Field(le=0)
    mfe_p50_r: float = Field(ge=0)

    @model_validator(mode="after")
    def _is_a_blend(self) -> Self:
        if self.hold_p90_bars < self.hold_p50_bars * (1.0 - ROUNDING):
            raise ValueError(
                f"hold_p90_bars {self.hold_p90_bars!r} is below hold_p50_bars {self.hold_p50_bars!r}"
            )
        for name in BLENDED if self.n == 0 else ():
            value, design = getattr(self, name), getattr(self.prior, name)
            if abs(value - design) > ROUNDING * max(1.0, abs(design)):
                raise ValueError(
                    f"{name} {value!r} over n 0 is not prior.{name} {design!r}: nothing was measured, "
                    "so give the prior's value or count the trades in n"
                )
        return self._refuse_hit_rate()

    def _refuse_hit_rate(self) -> Self:
        weight = self.prior.weight_trades
        none, all_won = ((self.prior.hit_rate * weight + won) / (weight + self.n) for won in (0, self.n))
        if not none - ROUNDING <= self.hit_rate <= all_won + ROUNDING:
            raise ValueError(
                f"hit_rate {self.hit_rate!r} over n {self.n}: with the prior's {self.prior.hit_rate!r} over "
                f"{weight:g} trades it lies from {none:.4f} (none won) to {all_won:.4f} (all won)"
            )
        return self


class SetupCount(Contract):
    """How often plans of one entry rule were put in force, and how often one met its setup."""

    keeps_its_text = True

    playbook_id: str
    direction: Direction
    plans: int = Field(ge=1)
    armed: int = Field(ge=0)


BLENDED = ("expectancy_r", "hit_rate", "hold_p50_bars", "hold_p90_bars", "winner_mae_p80_r", "mfe_p50_r")


class MemoryBaseRates(Contract):
    """Counts over the whole eligible population at `known_at`; never over a retrieved bundle."""

    population: int = Field(ge=0)
    winners: int = Field(ge=0)
    losers: int = Field(ge=0)

    @model_validator(mode="after")
    def _are_parts_of_the_population(self) -> Self:
        if self.winners + self.losers > self.population:
            raise ValueError(
                f"winners {self.winners} and losers {self.losers} are more than population "
                f"{self.population}: an episode counts once, and scratches are neither"
            )
        return self


class PolicySnapshot(Contract):
    """Standard input of strategist, reflection and judge. The same hash reaches all three.

    `ts_event` and `known_at` are the close of the decision bar, in ns. `staleness_bars` counts bars of the
    portfolio clock since this symbol's last present bar.
    """

    model_config = FINITE

    symbol: str
    timeframe: Timeframe
    bar_label: int
    ts_event: int
    known_at: int
    close: float = Field(gt=0)
    events: tuple[EventName, ...]
    state: PolicyState
    regime: RegimeView | None
    features: FrozenMap[str, float | None]
    position: PositionView | None
    active_policy_id: str | None
    risk: RiskState
    base_rates: MemoryBaseRates
    expectations: tuple[ExpectationSummary, ...]
    setups: tuple[SetupCount, ...] = ()
    data_window: DataWindow
    staleness_bars: int = Field(ge=0)

    @property
    def labels(self) -> RegimeLabels | None:
        """Of the regime; None while it is not known."""
        return None if self.regime is None else self.regime.labels

    @property
    def leading_event(self) -> str:
        """The event that chooses the budget: a heartbeat only when nothing else opened the boundary."""
        urgent = (name for name in self.events if name != PolicyEventKind.HEARTBEAT)
        return next(urgent, self.events[0] if self.events else "none")

    @property
    def managed_policy_id(self) -> str | None:
        """The policy that an amendment is about: of the open position, else the one in force, if any."""
        return self.active_policy_id if self.position is None else self.position.policy_id

    @property
    def opened_at(self) -> int:
        """Open time of the decision bar in ns, whatever its label says."""
        if self.bar_label != self.ts_event:
            return self.bar_label
        return after_bars(self.ts_event, self.timeframe, bars=-1)

    @model_validator(mode="after")
    def _is_of_one_moment(self) -> Self:
        if self.known_at != self.ts_event:
            raise ValueError(
                f"known_at {self.known_at} is not ts_event {self.ts_event}: "
                "both are the close of the decision bar"
            )
        if self.bar_label != self.ts_event and not may_open(self.bar_label, self.ts_event, self.timeframe):
            opened = after_bars(self.ts_event, self.timeframe, bars=-1)
            raise ValueError(
                f"bar_label {self.bar_label} is neither open {opened} nor close {self.ts_event} "
                f"of a {self.timeframe} bar that closes at ts_event"
            )
        if self.data_window.last_label > self.bar_label:
            raise ValueError(
                f"data_window.last_label {self.data_window.last_label} lies after bar_label {self.bar_label}"
            )
        if self.staleness_bars == 0 and self.data_window.last_label != self.bar_label:
            raise ValueError(
                f"data_window.last_label {self.data_window.last_label} is not bar_label {self.bar_label}, "
                "but staleness_bars 0 says that the symbol has this bar"
            )
        return self

    @model_validator(mode="after")
    def _is_one_bar(self) -> Self:
        shown = self.features.get("close")
        if shown is not None and shown != self.close:
            raise ValueError(f"close {self.close!r} is not features.close {shown!r}: they are the same price")
        for below, above in ORDERED:
            lesser, greater = self.features.get(below), self.features.get(above)
            if lesser is not None and greater is not None and lesser > greater:
                raise ValueError(
                    f"features.{below} {lesser!r} is above features.{above} {greater!r} of the same bar"
                )
        volume = self.features.get("volume")
        if volume is not None and volume < 0:
            raise ValueError(f"features.volume {volume!r} is below zero")
        return self

    @model_validator(mode="after")
    def _holds_what_it_says(self) -> Self:
        position, window = self.position, self.data_window
        if position is None:
            if self.state in HOLDING:
                raise ValueError(f"state {self.state.value} has a position, but none is given: give position")
            return self
        if self.state in FLAT:
            raise ValueError(f"state {self.state.value} has no position, but one is given: leave it out")
        if position.entry_label > self.bar_label:
            raise ValueError(
                f"position.entry_label {position.entry_label} lies after bar_label {self.bar_label}"
            )
        if position.entry_label < window.first_label:
            raise ValueError(
                f"position.entry_label {position.entry_label} lies before data_window.first_label "
                f"{window.first_label}"
            )
        if position.bars_held > window.bars:
            raise ValueError(
                f"position.bars_held {position.bars_held} is more than data_window.bars {window.bars}"
            )
        return self

    @model_validator(mode="after")
    def _values_its_position_at_the_close(self) -> Self:
        position = self.position
        if position is None:
            return self
        sign = 1.0 if position.direction == "long" else -1.0
        gain = (self.close - position.entry_price) * sign
        if (gain > 0) != (position.r_now > 0) or (gain < 0) != (position.r_now < 0):
            raise ValueError(
                f"position.r_now {position.r_now!r} does not fit close {self.close!r} of a "
                f"{position.direction} position from entry_price {position.entry_price!r}"
            )
        value, gross = position.quantity * self.close, self.risk.gross_exposure * self.risk.equity
        if value > gross * (1.0 + ROUNDING):
            raise ValueError(
                f"position.quantity {position.quantity!r} at close {self.close!r} is worth {value!r}, but "
                f"risk.gross_exposure {self.risk.gross_exposure!r} of equity says {gross!r} for all positions"
            )
        return self

    @model_validator(mode="after")
    def _names_what_there_is(self) -> Self:
        books = [expected.playbook_id for expected in self.expectations]
        if len(set(books)) != len(books):
            raise ValueError(f"expectations name a playbook twice: {', '.join(map(repr, books))}")
        return self
