"""What an account holds, how orders are sized and fill, and what they cost."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from schemas.contract import Contract

SMALLEST_GRID = 1e-9


class AccountSettings(Contract):
    """The simulated account, in quote currency."""

    name: str = Field(default="paper", description="part of every order id")
    cash: float = Field(default=100_000.0, gt=0, le=1e15, description="starting cash, in quote currency")


def _usable_grid(step: float) -> float:
    if step != 0.0 and not SMALLEST_GRID <= step <= 1e9:
        raise ValueError(f"a grid is 0 (none) or lies between {SMALLEST_GRID:g} and 1e9, got {step!r}")
    return step


Grid = Annotated[float, AfterValidator(_usable_grid)]


class ExecutionSettings(Contract):
    """How orders are sized and fill, and what they cost. Defaults are the conservative choice of each."""

    fee_bps: float = Field(default=5.0, ge=0, le=1_000, description="per side, of notional")
    maker_fee_bps: float | None = Field(
        default=None,
        ge=-1_000,
        le=1_000,
        description="of limit entries and targets; None: they pay `fee_bps`, and a target fills as a market "
        "order, with slippage, when it is touched",
    )
    fee_per_trade: float = Field(
        default=0.0,
        ge=0,
        le=1e9,
        description="per fill, in quote currency: twice for a trade without scale-out",
    )
    fee_rounding: Grid = Field(default=0.0, description="unit to which a fee is rounded; 0: exact")
    slippage_bps: float = Field(default=2.0, ge=0, le=1_000, description="per side, against the order")
    spread_bps: float = Field(default=0.0, ge=0, le=1_000, description="quoted spread of the market")
    slippage_spread_fraction: float = Field(
        default=0.0, ge=0, le=10, description="share of the spread that slippage adds per side"
    )
    funding_bps: float = Field(
        default=0.0, ge=-100, le=100, description="per bar on notional: longs pay it, shorts receive it"
    )
    borrow_bps: float = Field(default=0.0, ge=0, le=100, description="per bar on notional: shorts pay it")
    fill: Literal["next_open", "close"] = Field(
        default="next_open", description="where an entry fills: the next open, or the close of the signal bar"
    )
    level_base: Literal["fill", "signal_close"] = Field(
        default="signal_close",
        description="stop and target are measured from the signal close, or moved along to the fill",
    )
    entry_bar_exits: bool = Field(
        default=True, description="whether stop and target may already close a position on its entry bar"
    )
    both_hit: Literal["stop", "target", "ohlc", "near", "color"] = Field(
        default="stop", description="which level counts when one bar holds both: see engine semantics"
    )
    gap: Literal["open", "level"] = Field(
        default="open", description="a bar that opens beyond a level fills at its open, or at the level"
    )
    limit_fill: Literal["touch", "through"] = Field(
        default="touch", description="whether a bar that only touches a limit or target fills it"
    )
    time_exit: Literal["open", "after_stops", "close"] = Field(
        default="open",
        description="a due time stop exits at the open before stops, at the open unless a stop or target of "
        "that bar was hit, or at the close of the bar",
    )
    reentry: bool = Field(
        default=True,
        description="a bar that closes a position may signal the next entry: in `simulate`, and in the "
        "shadow ledgers of a run whose `envelope.cooldown_bars` is 0",
    )
    tick_size: Grid = Field(default=0.0, description="grid of levels and fills; 0: none")
    lot_size: Grid = Field(default=0.0, description="grid of quantities, rounded down; 0: none")
    sizing: Literal["risk", "volatility", "fixed"] = Field(
        default="risk",
        description="risk: equity x fraction over the distance to the stop; volatility: over "
        "`volatility_multiple` x ATR(14); fixed: `fixed_quantity`. The risk cap holds in each",
    )
    volatility_multiple: float = Field(
        default=2.0,
        gt=0,
        le=100,
        description="ATRs that the risk fraction pays for, where sizing is by volatility",
    )
    fixed_quantity: float = Field(
        default=1.0, gt=0, le=1e15, description="units per entry, where sizing is fixed"
    )

    @property
    def slippage(self) -> float:
        """Slippage per side as a fraction of the price."""
        return (self.slippage_bps + self.slippage_spread_fraction * self.spread_bps) * 1e-4

    @property
    def for_one_unit(self) -> "ExecutionSettings":
        """The same for one unit on paper, without what depends on an order's size.

        Lots, the fee per fill and the rounding of fees have no meaning for one unit: R on paper is before the
        fixed part of a fee.
        """
        return self.model_copy(update={"lot_size": 0.0, "fee_per_trade": 0.0, "fee_rounding": 0.0})
