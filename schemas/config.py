"""The configuration tree: frozen, closed, with documented defaults; one TOML section per model.

`runtime` says where things lie and how fast they run and is never hashed; `config_hash` covers everything
else, so two runs of the same decisions share it. Read once by `worker.settings`.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from schemas.canonical import content_hash
from schemas.contract import Contract, Nanoseconds
from schemas.language_model import NO_PROVIDER
from schemas.language_model import LlmSettings as LlmSettings
from schemas.live_settings import FeedSettings, OperationsSettings
from schemas.reflection import LARGEST_QUOTA, NoLearnZone
from schemas.regime import RegimeSettings
from schemas.vocabulary import TIMEFRAME_SECONDS, PolicyEventKind, Timeframe

HEARTBEAT_BARS = {"1m": 15, "5m": 12, "15m": 12, "1h": 12, "4h": 12, "1d": 5}

MAX_COUNT = 1_000_000_000  # of bars, seconds or rows: far beyond use, far below what an integer holds
SMALLEST_GRID = 1e-9
OLDER_MODEL = "anthropic"  # how `model` was written when there was one provider
LATER = {
    "llm": ("accept_models", "structured_output", "anonymise"),
    "reflection": ("model_deadline_ms",),
    "envelope": ("max_entries_per_block",),
    "gate": ("block", "strict"),
    "judge": ("shadow_life_blocks", "action_life_blocks"),
}


def _usable_grid(step: float) -> float:
    if step != 0.0 and not SMALLEST_GRID <= step <= 1e9:
        raise ValueError(f"a grid is 0 (none) or lies between {SMALLEST_GRID:g} and 1e9, got {step!r}")
    return step


Grid = Annotated[float, AfterValidator(_usable_grid)]


class AccountSettings(Contract):
    """The simulated account, in quote currency."""

    name: str = "paper"
    cash: float = Field(default=100_000.0, gt=0, le=1e15)


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
    fill: Literal["next_open", "close"] = "next_open"
    level_base: Literal["fill", "signal_close"] = "signal_close"
    entry_bar_exits: bool = True
    both_hit: Literal["stop", "target", "ohlc", "near", "color"] = "stop"
    gap: Literal["open", "level"] = "open"
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
    volatility_multiple: float = Field(default=2.0, gt=0, le=100)
    fixed_quantity: float = Field(default=1.0, gt=0, le=1e15)

    @property
    def slippage(self) -> float:
        """Slippage per side as a fraction of the price."""
        return (self.slippage_bps + self.slippage_spread_fraction * self.spread_bps) * 1e-4


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
    max_gross_exposure: float = Field(default=1.0, gt=0, le=10)
    max_net_exposure: float = Field(default=1.0, gt=0, le=10, description="longs less shorts, either side")
    max_symbol_exposure: float = Field(default=1.0, gt=0, le=10)
    correlation_buckets: tuple[CorrelationBucket, ...] = Field(default=(), max_length=16)
    max_exposure_drift: float = Field(
        default=0.25,
        ge=0,
        le=100,
        description="a breach above the gross, net or a bucket's cap by this share",
    )
    max_daily_loss: float = Field(default=0.03, gt=0, lt=1)
    max_drawdown: float = Field(default=0.20, gt=0, lt=1)
    drawdown_release_bars: int = Field(default=20, le=MAX_COUNT, ge=1)
    recovery_bars: int = Field(
        default=60, le=MAX_COUNT, ge=1, description="half risk until a new high of this many bars"
    )
    max_consecutive_losses: int = Field(
        default=12, le=MAX_COUNT, ge=1, description="over all symbols; a breach"
    )
    max_symbol_losses: int = Field(default=8, le=MAX_COUNT, ge=1, description="of one symbol; it pauses")
    loss_pause_bars: int = Field(default=20, le=MAX_COUNT, ge=1)
    max_entries_per_hour: int = Field(default=0, ge=0, le=64, description="accepted orders; 0: any number")
    max_entries_per_block: int = Field(
        default=0, ge=0, le=100_000, description="accepted orders per block of `gate.block`; 0: any number"
    )
    no_trade_windows: tuple[NoTradeWindow, ...] = ()
    cooldown_bars: int = Field(default=3, le=MAX_COUNT, ge=0)
    kill_switch: bool = Field(default=False, description="the operator's switch: flat, and no entries")
    allowed_symbols: tuple[str, ...] = Field(default=(), description="empty: every symbol of the data")
    allowed_directions: tuple[Literal["long", "short"], ...] = ("long", "short")
    allowed_playbooks: tuple[str, ...] = Field(default=(), description="empty: every loaded playbook")
    no_learn_zones: tuple[NoLearnZone, ...] = ()


class PolicyLoopSettings(Contract):
    """Who proposes, which events start an evaluation, and how often."""

    strategist: Literal["rules", "model", "anthropic"] = Field(
        default="rules",
        description="who proposes: `rules`, or `model`: `llm.strategist_model`, whose failures the rules "
        "answer; `anthropic` is the older name of `model` with `llm.provider` anthropic",
    )
    events: tuple[PolicyEventKind, ...] = (
        PolicyEventKind.REGIME_CHANGE,
        PolicyEventKind.POSITION_OPENED,
        PolicyEventKind.POSITION_CLOSED,
        PolicyEventKind.VOLATILITY_BAND_SHIFT,
        PolicyEventKind.HEARTBEAT,
        PolicyEventKind.REPLAN,
    )
    heartbeat_s: int | None = Field(
        default=None, le=MAX_COUNT, ge=1, description="None: the table of the timeframe"
    )
    minimum_interval_s: int = Field(default=900, le=MAX_COUNT, ge=0)
    minimum_interval_bars: int = Field(default=3, le=MAX_COUNT, ge=0)
    max_revisions: int = Field(default=2, ge=0, le=2)
    max_answer_bars: int = Field(
        default=1, le=MAX_COUNT, ge=0, description="bars of a live feed; an answer after more is stale"
    )
    regime: RegimeSettings = RegimeSettings()

    def heartbeat_bars(self, timeframe: str) -> int:
        """Own bars between heartbeats, at least one."""
        if self.heartbeat_s is None:
            return HEARTBEAT_BARS[timeframe]
        return max(1, -(-self.heartbeat_s // TIMEFRAME_SECONDS[timeframe]))

    def minimum_bars(self, timeframe: str) -> int:
        """Own bars between evaluations: the larger of the time and the bar setting."""
        return max(self.minimum_interval_bars, -(-self.minimum_interval_s // TIMEFRAME_SECONDS[timeframe]))


HOUR_S, FAST_BAR_S = 3_600, 300
SLOW_BAR_DEADLINE_MS, MIDDLE_BAR_DEADLINE_MS = 5_000.0, 2_000.0


class ReflectionSettings(Contract):
    """The fast reflection. `off` is the only way to trade without one, and the summary says so first."""

    mode: Literal["off", "deterministic", "full"] = "deterministic"
    budget_event_ms: float = Field(default=250.0, gt=0)
    budget_heartbeat_ms: float = Field(default=500.0, gt=0)
    model_deadline_ms: float | None = Field(
        default=None,
        gt=0,
        description="how long a reflection waits for its second reader, from its start; None: by timeframe, "
        "the budget up to 5m, at least 2 s below 1h, at least 5 s from 1h on and where the market waits "
        "(a backtest)",
    )
    min_reward_to_risk: float = Field(default=0.8, gt=0)
    max_staleness_bars: int = Field(default=2, le=MAX_COUNT, ge=0)
    contradiction_share: float = Field(
        default=0.75, gt=0.5, le=1, description="share of nearest cases that lost"
    )
    minimum_cases: int = Field(
        default=6, le=MAX_COUNT, ge=2, description="fewer eligible cases: memory is insufficient"
    )
    conviction_tolerance: float = Field(default=0.25, ge=0, le=1, description="conviction above the hit rate")

    def budget_ms(self, source: str) -> float:
        """The time budget of a reflection by what opened its boundary: a heartbeat, or another event."""
        return self.budget_heartbeat_ms if source == PolicyEventKind.HEARTBEAT else self.budget_event_ms

    def deadline_ms(self, source: str, timeframe: Timeframe, *, market_waits: bool) -> float:
        """How long a reflection may wait for its second reader, from its start."""
        if self.model_deadline_ms is not None:
            return self.model_deadline_ms
        budget_ms, bar_s = self.budget_ms(source), TIMEFRAME_SECONDS[timeframe]
        if market_waits or bar_s >= HOUR_S:
            return max(budget_ms, SLOW_BAR_DEADLINE_MS)
        return max(budget_ms, MIDDLE_BAR_DEADLINE_MS) if bar_s > FAST_BAR_S else budget_ms


class MemorySettings(Contract):
    """Contrastive retrieval: quotas of nearest winners, losers and failure patterns."""

    winners: int = Field(default=3, ge=1, le=LARGEST_QUOTA)
    losers: int = Field(default=3, ge=1, le=LARGEST_QUOTA)
    failures: int = Field(default=2, ge=1, le=LARGEST_QUOTA)
    budget_ms: float = Field(
        default=150.0,
        gt=0,
        description="a slower read is counted; live, a retrieval then falls back to base rates",
    )


class HighLevelSettings(Contract):
    """Cadence and gates of the slow loop. `interval` None: daily on intraday bars, weekly on daily bars."""

    enabled: bool = True
    interval: Literal["daily", "weekly"] | None = None
    minimum_episodes: int = Field(default=20, le=MAX_COUNT, ge=20)
    structural_interval_days: int = Field(default=7, le=MAX_COUNT, ge=7)
    window_bars: int | None = Field(default=None, le=MAX_COUNT, ge=1, description="None: everything known")
    surprise_limit_r: float = Field(
        default=40.0, gt=0, description="sum of |R - reference| of new episodes that asks for an early look"
    )

    def interval_for(self, timeframe: str) -> Literal["daily", "weekly"]:
        """The interval in force for a timeframe."""
        return self.interval or ("weekly" if timeframe == "1d" else "daily")


class GateSettings(Contract):
    """What a lesson has to show. See `docs` on the gate for formulas."""

    mode: Literal["runbook_or", "graded", "significance_only"] = "graded"
    q: float = Field(default=0.10, gt=0, lt=0.5)
    minimum_trades: int = Field(default=20, le=MAX_COUNT, ge=20)
    regime_minimum: int = Field(default=20, le=MAX_COUNT, ge=20)
    block: Literal["", "day", "week", "month", "quarter"] = Field(
        default="",
        description="calendar period whose entries make one block; empty: a day up to 30m, a week to 4h, a "
        "month from 1d on",
    )
    strict: bool = Field(
        default=False,
        description="stakes so small that each claim is a true e-process; it needs about twice the blocks",
    )
    winsor_low: float = Field(default=-3.0, lt=0)
    winsor_high: float = Field(default=4.0, gt=0)
    reference_r: float = 0.0


class JudgeSettings(Contract):
    """Who judges reports, the bounds of the judge's actions, and the lifecycle that follows them."""

    replan: Literal["rules", "model", "anthropic"] = Field(
        default="rules",
        description="who judges reports: `rules`, or `model`: after the rules `llm.slow_model`, which may "
        "drop actions and add none; its failures leave what the rules decided; `anthropic` is its older name",
    )
    minimum_eligible_playbooks: int = Field(default=2, le=MAX_COUNT, ge=2)
    shadow_life_blocks: int = Field(
        default=80,
        le=10_000,
        ge=1,
        description="blocks of `gate.block` that a trial on paper has to prove itself",
    )
    action_life_blocks: int = Field(
        default=26,
        le=10_000,
        ge=1,
        description="blocks after which a ban or a risk cut is weighed again: it goes on unless its ledger "
        "contradicts it",
    )
    promotion_minimum_trades: int = Field(default=20, le=MAX_COUNT, ge=20)
    promotion_alpha: float = Field(default=0.05, gt=0, lt=0.5)
    max_open_experiments: int = Field(default=3, le=MAX_COUNT, ge=0)


class DeliberationSettings(Contract):
    """How long texts are reviewed before they are stored; no setting yet."""


class DataSettings(Contract):
    """What is traded. Where it lies is in `runtime`."""

    label: Literal["open", "close"] = "open"
    symbols: tuple[str, ...] = Field(default=(), description="empty: every symbol of the data")
    timeframe: str | None = None
    plausibility: Literal["live", "always", "off"] = Field(
        default="live",
        description="where a bar outside the band around the last good close is in doubt until the next two "
        "bars of its symbol confirm the new level: on live feeds, `always` also on recorded bars, or nowhere",
    )
    plausible_change: float = Field(
        default=0.5,
        gt=0,
        le=1_000,
        description="half the width of that band at least, as a share of the last good close",
    )
    plausible_atr: float = Field(
        default=20.0,
        ge=0,
        le=10_000,
        description="half the width of that band at least, in mean true ranges of the last 14 good bars",
    )


class RuntimeSettings(Contract):
    """Where things lie; never hashed."""

    db: str = "sqlite:///thinktwice.db"
    data: str | None = Field(default=None, description="bar file; None: the embedded daily bars")
    tz: str | None = None
    start: str | None = None
    end: str | None = None
    out: str | None = None
    playbooks: str | None = Field(
        default=None, description="folder of playbook files; None: the embedded ones"
    )
    flush_rows: int = Field(default=2_000, le=MAX_COUNT, ge=1)
    llm: Literal["live", "record", "replay"] = Field(
        default="live",
        description="where replies of a model come from: asked for; asked for and kept in `cassette`; "
        "played from `cassette`, without key or network",
    )
    cassette: str | None = Field(default=None, description="file of recorded replies, JSON lines")
    feed: FeedSettings = FeedSettings()
    operations: OperationsSettings = OperationsSettings()


def asking_name(provider: str) -> str:
    """What `policy_loop.strategist` or `judge.replan` say to ask a model, also where no provider is set."""
    return OLDER_MODEL if provider == NO_PROVIDER else "model"


class Settings(Contract):
    """The whole tree."""

    seed: int = Field(default=0, le=MAX_COUNT, ge=0)
    data: DataSettings = DataSettings()
    account: AccountSettings = AccountSettings()
    execution: ExecutionSettings = ExecutionSettings()
    envelope: EnvelopeSettings = EnvelopeSettings()
    policy_loop: PolicyLoopSettings = PolicyLoopSettings()
    reflection: ReflectionSettings = ReflectionSettings()
    memory: MemorySettings = MemorySettings()
    high_level: HighLevelSettings = HighLevelSettings()
    gate: GateSettings = GateSettings()
    judge: JudgeSettings = JudgeSettings()
    llm: LlmSettings = LlmSettings()
    deliberation: DeliberationSettings = DeliberationSettings()
    runtime: RuntimeSettings = RuntimeSettings()

    @model_validator(mode="after")
    def _models_need_a_provider(self) -> "Settings":
        if self.provider == NO_PROVIDER:
            if asking := self._asking():
                name, value, instead = asking[0]
                raise ValueError(f"{name} {value!r} needs a model: set llm.provider, or use {instead!r}")
        elif OLDER_MODEL in self._names() and self.provider != OLDER_MODEL:
            raise ValueError(
                f"'anthropic' is the older name of 'model' at that provider, but llm.provider is "
                f"{self.provider!r}: write 'model'"
            )
        return self

    @model_validator(mode="after")
    def _recorded_needs_a_cassette(self) -> "Settings":
        mode, cassette = self.runtime.llm, self.runtime.cassette
        if mode != "live" and cassette is None:
            raise ValueError(f"runtime.llm {mode!r} needs a file: set runtime.cassette (--cassette FILE)")
        if mode != "live" and not self.uses_models:
            raise ValueError(
                f"runtime.llm {mode!r} has no model to speak for: use reflection.mode 'full', "
                "policy_loop.strategist 'model' or judge.replan 'model'"
            )
        if mode == "live" and cassette is not None:
            raise ValueError("runtime.cassette is not used with runtime.llm 'live': say record or replay")
        return self

    @property
    def uses_models(self) -> bool:
        """Whether any part of a run asks a language model."""
        return bool(self._asking())

    @property
    def provider(self) -> str:
        """Whose API the models are asked over; a setting of the older name says it by itself."""
        named = self.llm.provider
        return OLDER_MODEL if named == NO_PROVIDER and OLDER_MODEL in self._names() else named

    def _names(self) -> tuple[str, str]:
        return self.policy_loop.strategist, self.judge.replan

    def _asking(self) -> list[tuple[str, str, str]]:
        """Key and value of every setting that asks a model, and the value that asks none."""
        mode, (strategist, judge) = self.reflection.mode, self._names()
        return [
            *([("reflection.mode", mode, "deterministic")] if mode == "full" else []),
            *([("policy_loop.strategist", strategist, "rules")] if strategist != "rules" else []),
            *([("judge.replan", judge, "rules")] if judge != "rules" else []),
        ]

    def hashed(self) -> dict[str, Any]:
        """Everything that decides, as plain data: not `runtime`, nor where a model's API is.

        What was added to a section later is left out at its default, so a run of before keeps its hash.
        """
        payload = self.payload()
        del payload["runtime"]
        del payload["llm"]["base_url"]
        for section, names in LATER.items():
            fresh = type(getattr(self, section))().payload()
            for name in names:
                if payload[section][name] == fresh[name]:
                    del payload[section][name]
        return payload

    @property
    def config_hash(self) -> str:
        """SHA-256 over everything but `runtime`."""
        return content_hash(self.hashed())
