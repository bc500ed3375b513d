"""Limits of the portfolio."""

from typing import Literal

from pydantic import Field, model_validator

from schemas.contract import Contract, Nanoseconds
from schemas.no_learn import NoLearnZone
from schemas.settings.bounds import MAX_COUNT

HARD_RISK_CAP = 0.01


class CorrelationBucket(Contract):
    """Symbols that move together, and how much of them may be held at once."""

    name: str = Field(min_length=1, max_length=64)
    symbols: tuple[str, ...] = Field(min_length=1)
    max_exposure: float = Field(gt=0, le=10, description="gross, as a fraction of equity")


class NoTradeWindow(Contract):
    """A stretch in which no entry is ordered; a bar belongs to it by its close.

    Either from `start` to `end` (ns, or a time with its zone), or every day from `from_minute` to `to_minute`
    of the UTC day, on the given weekdays (Monday 0); the end is exclusive.
    """

    reason: str = Field(min_length=1, max_length=200)
    symbol: str | None = Field(default=None, description="None: every symbol")
    start: Nanoseconds | None = None
    end: Nanoseconds | None = None
    from_minute: int | None = Field(default=None, ge=0, lt=1_440)
    to_minute: int | None = Field(default=None, gt=0, le=1_440)
    weekdays: tuple[int, ...] = Field(default=(0, 1, 2, 3, 4, 5, 6))

    @model_validator(mode="after")
    def _one_kind(self) -> "NoTradeWindow":
        dated, daily = (self.start, self.end), (self.from_minute, self.to_minute)
        if (None in dated) == (None in daily):
            raise ValueError("give either start and end, or from_minute and to_minute (UTC)")
        first, last = daily if None in dated else dated
        if (
            first is None
            or last is None
            or first >= last
            or any(part is not None for part in daily) == any(part is not None for part in dated)
        ):
            raise ValueError(f"a window must end after it starts, got {first!r} to {last!r}")
        if not all(0 <= day <= 6 for day in self.weekdays) or not self.weekdays:
            raise ValueError(f"weekdays {self.weekdays!r} must lie in 0..6, Monday 0")
        return self


class EnvelopeSettings(Contract):
    """Limits of the portfolio; fractions of equity. A breach flattens at the next open and halts entries."""

    risk_fraction: float = Field(default=0.005, gt=0, le=0.02, description="risk at the stop per trade")
    max_gross_exposure: float = Field(
        default=1.0, gt=0, le=10, description="sum of position values over equity; orders are clamped to it"
    )
    max_net_exposure: float = Field(default=1.0, gt=0, le=10, description="longs less shorts, either side")
    max_symbol_exposure: float = Field(
        default=1.0,
        gt=0,
        le=10,
        description="position value of one symbol over equity; orders are clamped to it",
    )
    correlation_buckets: tuple[CorrelationBucket, ...] = Field(
        default=(),
        max_length=16,
        description="tables of `name`, `symbols`, `max_exposure` (gross, of equity); orders are clamped "
        "to it",
    )
    max_exposure_drift: float = Field(
        default=0.25,
        ge=0,
        le=100,
        description="a breach above the gross, net or a bucket's cap by this share",
    )
    max_daily_loss: float = Field(
        default=0.03, gt=0, lt=1, description="loss of the UTC day that flattens and halts until the next day"
    )
    max_drawdown: float = Field(
        default=0.20, gt=0, lt=1, description="fall from the peak that flattens and halts"
    )
    drawdown_release_bars: int = Field(
        default=20, le=MAX_COUNT, ge=1, description="bars of the halt after a drawdown"
    )
    recovery_bars: int = Field(
        default=60, le=MAX_COUNT, ge=1, description="half risk until a new high of this many bars"
    )
    max_consecutive_losses: int = Field(
        default=12, le=MAX_COUNT, ge=1, description="over all symbols; a breach"
    )
    max_symbol_losses: int = Field(default=8, le=MAX_COUNT, ge=1, description="of one symbol; it pauses")
    loss_pause_bars: int = Field(
        default=20,
        le=MAX_COUNT,
        ge=1,
        description="own bars without entries after `max_symbol_losses`, and bars of the halt after "
        "`max_consecutive_losses`",
    )
    max_entries_per_hour: int = Field(default=0, ge=0, le=64, description="accepted orders; 0: any number")
    max_entries_per_block: int = Field(
        default=0, ge=0, le=100_000, description="accepted orders per block of `gate.block`; 0: any number"
    )
    no_trade_windows: tuple[NoTradeWindow, ...] = Field(
        default=(),
        description="tables of `reason` and either `start`, `end` or, every day, `from_minute`, "
        "`to_minute` of the UTC day and `weekdays` (Monday 0); with `symbol` for one symbol "
        "only",
    )
    cooldown_bars: int = Field(
        default=3, le=MAX_COUNT, ge=0, description="own bars in COOLDOWN after an exit"
    )
    kill_switch: bool = Field(default=False, description="the operator's switch: flat, and no entries")
    allowed_symbols: tuple[str, ...] = Field(default=(), description="empty: every symbol of the data")
    allowed_directions: tuple[Literal["long", "short"], ...] = Field(
        default=("long", "short"), description="directions that may be proposed"
    )
    allowed_playbooks: tuple[str, ...] = Field(default=(), description="empty: every loaded playbook")
    no_learn_zones: tuple[NoLearnZone, ...] = Field(
        default=(),
        description="tables of `start`, `end` (exclusive), `symbol`, `reason`; a bar that shares a moment"
        " with one is neither traded on nor learnt from",
    )

    @property
    def risk_cap(self) -> float:
        """Fraction of equity above which a playbook's risk is a finding; orders are clamped to the limit."""
        return max(HARD_RISK_CAP, self.risk_fraction)
