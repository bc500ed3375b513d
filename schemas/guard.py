"""Contracts of the guard: an order of somebody's agent, the account behind it, limits, and the verdict."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from schemas.contract import FINITE, Contract, FrozenMap
from schemas.errors import nearest
from schemas.reflection import Finding
from schemas.regime import RegimeView
from schemas.settings import ExecutionSettings, LlmSettings, MemorySettings, ReflectionSettings
from schemas.settings.bounds import MAX_COUNT
from schemas.settings.envelope import EnvelopeSettings
from schemas.vocabulary import Direction

LONGEST_TEXT = 4_000
MOST_BARS = 500  # of a check by JSON
MOST_BODY = 16 * MOST_BARS * 512  # sixteen times what so many rows take: an exit with too many is heard
CUT = f" [cut at {LONGEST_TEXT} characters]"
Mode = Literal["shadow", "enforce"]
# Of the envelope; the others belong to an account that trades by itself, and are refused where they are set.
HEEDED = frozenset(
    {"risk_fraction", "max_gross_exposure", "max_net_exposure", "max_symbol_exposure", "max_daily_loss"}
    | {"max_drawdown", "max_consecutive_losses", "max_entries_per_hour", "no_trade_windows", "kill_switch"}
    | {"allowed_symbols", "allowed_directions", "no_learn_zones"}
)


def text_of(given: Any) -> str:
    """Nothing that is said of an order may keep an exit from being sent: half a character is escaped."""
    text = "" if given is None else str(given).encode(errors="backslashreplace").decode()
    return text[: LONGEST_TEXT - len(CUT)] + CUT if len(text) > LONGEST_TEXT else text


def _name_of(given: Any) -> str:
    """A strategy by the signs that its playbook may have."""
    signs = (sign if sign.isascii() and sign.isalnum() or sign in "_.-" else "_" for sign in text_of(given))
    return "".join(signs).lstrip("_.-")[:60] or "agent"


def _lower(given: Any) -> Any:
    return given.lower() if isinstance(given, str) else given


def _demand_number(given: Any) -> Any:
    if isinstance(given, bool):
        raise ValueError(f"{given} is no number: give one")
    return given


Text = Annotated[str, BeforeValidator(text_of), Field(max_length=LONGEST_TEXT)]
Number = Annotated[float, BeforeValidator(_demand_number)]
LOWER = BeforeValidator(_lower)


class Order(Contract):
    """What an agent wants to send; the stop and the target are prices of the position that it opens."""

    model_config = FINITE
    sparse_fields = frozenset({"reduce_only"})

    symbol: str = Field(min_length=1, max_length=64)
    side: Annotated[Literal["buy", "sell"], LOWER]
    quantity: Number | None = Field(default=None, gt=0, description="units; or give `notional`")
    notional: Number | None = Field(default=None, gt=0, description="account currency; or give `quantity`")
    kind: Annotated[Literal["market", "limit", "stop"], LOWER] = "market"
    price: Number | None = Field(default=None, gt=0, description="of a limit or stop order; else expected")
    stop: Number | None = Field(default=None, gt=0)
    target: Number | None = Field(default=None, gt=0)
    strategy: Annotated[str, BeforeValidator(_name_of)] = "agent"
    conviction: Number | None = Field(default=None, ge=0, le=1)
    horizon_bars: int | None = Field(default=None, ge=1, le=500)
    reasons: Text = ""
    reduce_only: bool = Field(default=False, strict=True, description="the broker lets it never open")

    @model_validator(mode="after")
    def _says_size_and_price(self) -> Self:
        if (self.quantity is None) == (self.notional is None):
            given = "neither" if self.quantity is None else "both"
            raise ValueError(f"quantity, notional: {given} is given: give exactly one of them")
        if self.kind != "market" and self.price is None:
            raise ValueError(f"price: missing: a {self.kind} order names its price")
        return self

    @property
    def direction(self) -> Direction:
        """Of the position that it opens."""
        return "long" if self.side == "buy" else "short"

    @property
    def sign(self) -> int:
        """1 for buy, -1 for sell."""
        return 1 if self.side == "buy" else -1

    def quantity_at(self, unit: float | None) -> float | None:
        """Units where one is worth `unit`; None where it is sized by notional and that is not known."""
        return self.quantity if self.notional is None or not unit else self.notional / unit


class Holding(Contract):
    """An open position: units, below zero for a short one, and the average price at which it was opened."""

    model_config = FINITE

    quantity: Number
    price: Number = Field(ge=0)


class Account(Contract):
    """What the caller's account says; what is left out (None) is not checked."""

    model_config = FINITE

    equity: Number
    cash: Number | None = None
    positions: FrozenMap[str, Holding] = Field(default_factory=dict)
    orders: tuple[Order, ...] | None = Field(default=None, description="open orders; None: not known")
    day_result: float | None = Field(default=None, description="of the day so far, in account currency")
    drawdown: float | None = Field(default=None, ge=0, le=1, description="fall from the peak, of the peak")


class BarFacts(Contract):
    """What the bars of an order's symbol say at the moment of the check; times in ns.

    Attributes:
        bars: their hash.
        label, known_at: of the last closed bar.
        close, atr: of it; ATR(14) in price, None before there are so many bars.
        jump: close against the one before, in ATR before it; None where not known, or over a gap in time.
        missed: bars that should have closed since; None where too few bars say when the market is closed.
        regime: None while warming up.
    """

    model_config = FINITE

    bars: str
    timeframe: str
    label: int
    known_at: int
    close: float
    atr: float | None
    jump: float | None
    missed: int | None
    regime: RegimeView | None


class BarRow(Contract):
    """A bar as JSON has it."""

    model_config = FINITE

    t: str | int = Field(description="when it opened: ISO 8601 with its zone, or an epoch")

    @field_validator("t")
    @classmethod
    def _has_zone(cls, given: str | int) -> str | int:
        """A time of the wire has no other place for its zone."""
        try:
            zone = True if isinstance(given, int) else datetime.fromisoformat(given.strip()).tzinfo
        except ValueError:  # what reads the table knows more shapes, and says what is wrong
            return given
        if zone is None:
            raise ValueError(f"{given!a} has no zone: write it as 2026-03-02T14:00Z")
        return given

    o: float
    h: float
    l: float  # noqa: E741 - as every feed calls it
    c: float
    v: float | None = None


class OrderCheck(Contract):
    """What a door that speaks JSON is asked."""

    order: Order
    bars: tuple[BarRow, ...] | None = Field(
        default=None,
        min_length=2,
        max_length=MOST_BARS,
        description="of its symbol up to now; None: limits alone",
    )
    account: Account | None = Field(default=None, description="as it is now; without it exits are not known")
    why: Text = Field(default="", description="what the agent says of it")
    spend: bool = Field(default=False, description="whether the order is sent now, which uses its verdict")


class GuardLimits(Contract):
    """Limits of single orders; a limit that is None is off."""

    model_config = FINITE

    max_notional: float | None = Field(default=None, gt=0, description="account currency an order")
    max_share_of_equity: float | None = Field(default=0.25, gt=0, description="notional over equity")
    price_collar: float | None = Field(default=0.1, gt=0, lt=1, description="price from the last close")
    price_through: float | None = Field(default=0.03, gt=0, lt=1, description="limit through the last close")
    needs_stop: bool = Field(default=True, description="whether an order that opens must have a stop")
    stop_atr_least: float | None = Field(default=0.25, gt=0, description="distance of the stop in ATR(14)")
    stop_atr_most: float | None = Field(default=10.0, gt=0, description="distance of the stop in ATR(14)")
    bar_jump_atr: float | None = Field(default=10.0, gt=0, description="last close from the one before")
    point_value: FrozenMap[str, Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict, description="by symbol, account currency per unit and 1 of price; else 1"
    )
    needs_cash: bool = Field(default=False, description="whether cash must pay for what is bought")
    duplicate_window_s: float = Field(default=60.0, ge=0, le=MAX_COUNT, description="the same order again")
    entries_a_day: int | None = Field(default=20, ge=1, le=MAX_COUNT, description="of a UTC day")
    averaging_down: int | None = Field(default=0, ge=0, le=MAX_COUNT, description="adds to a losing position")
    expires_s: float = Field(default=300.0, gt=0, le=86_400, description="how long a verdict may be spent")
    ask_first_order: bool = Field(default=False, description="a person approves the first entry of a UTC day")
    required: tuple[str, ...] = Field(
        default=("notional",), description="checks without whose input an entry is blocked"
    )


class ProxySettings(Contract):
    """Tools of a broker's MCP server; what is not named here and does not say that it reads is held back.

    `orders` has, by tool, the argument of each field of an order; `=sell` is a value, not an argument.
    `client_order_id` names the argument that gets the verdict's id.
    """

    orders: FrozenMap[str, FrozenMap[str, str]] = Field(default_factory=dict)
    free: tuple[str, ...] = Field(default=(), description="arguments of such tools that change no order")
    unchecked: tuple[str, ...] = Field(default=(), description="tools that pass as they are")

    @model_validator(mode="after")
    def _names_fields(self) -> Self:
        known = (*Order.model_fields, "why", "client_order_id")
        for tool, names in self.orders.items():
            for field in names.keys() - set(known):
                raise ValueError(f"orders.{tool}.{field}: no field of an order.{nearest(field, known)}")
        return self


class GuardSettings(Contract):
    """The file `guard.toml`."""

    envelope: EnvelopeSettings = EnvelopeSettings()
    reflection: ReflectionSettings = ReflectionSettings()
    execution: ExecutionSettings = ExecutionSettings()
    memory: MemorySettings = MemorySettings()
    llm: LlmSettings = LlmSettings()
    limits: GuardLimits = GuardLimits()
    proxy: ProxySettings = ProxySettings()

    @model_validator(mode="after")
    def _says_nothing_idle(self) -> Self:
        usual = EnvelopeSettings()
        idle = [
            name
            for name in EnvelopeSettings.model_fields
            if name not in HEEDED and getattr(self.envelope, name) != getattr(usual, name)
        ]
        if idle:
            raise ValueError(f"envelope.{idle[0]}: a guard does not heed it: take it out")
        return self


class Verdict(Contract):
    """What the guard says of one order; true where the order may be sent.

    Attributes:
        id: of this check; give it to the broker as the client's order id.
        order_hash: of exactly this order.
        status: what enforcing comes to; in mode `shadow` nothing is refused.
        findings: what the checks found, in their order.
        reply: what the model is told.
        not_checked: checks whose input was missing.
        reduces: whether the order only lowers the exposure of its symbol.
        at, expires_at: when it was made, and until when it may be spent; ns.
    """

    id: str
    order_hash: str
    status: Literal["pass", "revise", "block"]
    findings: tuple[Finding, ...] = ()
    reply: str
    not_checked: tuple[str, ...] = ()
    reduces: bool = False
    at: int
    expires_at: int
    mode: Mode

    def __bool__(self) -> bool:
        return self.mode == "shadow" or self.status == "pass"
