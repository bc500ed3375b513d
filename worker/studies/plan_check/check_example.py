"""A request that passes, for any playbook: a quiet market that leans the way of the plan its file describes.

The market is imagined, the plan is the `rules` strategist's own. Printed by `thinktwice check --example`, for
people to edit.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from agents.strategies.rule_strategist import candidate, proposal_of
from schemas.canonical import datetime_to_ns
from schemas.errors import ConfigError, nearest
from schemas.playbook import PlaybookDefinition
from schemas.reflection import MemoryCase, MemorySummary, PolicyLevelReflectionRequest
from schemas.regime import RegimeLabels, RegimeView
from schemas.settings import Settings
from schemas.snapshot import DataWindow, MemoryBaseRates, PolicySnapshot, RiskState
from schemas.timeframes import TIMEFRAME_SECONDS
from schemas.vocabulary import Direction, PolicyEventKind, PolicyState
from services.playbooks.expectations import ExpectationBook
from services.playbooks.registry import PlaybookRegistry
from services.playbooks.rendering import render_rules, rule_texts
from services.policy_loop.invariant_context import invariant_context
from trading_core.clock import SimulatedClock
from trading_core.rules import parse
from trading_core.tick_guard import TickGuard

SYMBOL = "AAPL"
DEFAULT_PLAYBOOK = "trend_pullback"
NOW = datetime_to_ns(datetime(2024, 3, 16, tzinfo=UTC))  # close of the daily bar of Friday the 15th
BARS = 500
DAY_NS = TIMEFRAME_SECONDS["1d"] * 1_000_000_000
CLOSE, ATR = 184.5, 3.7
VOLUME = 52_000_000.0
POPULATION = MemoryBaseRates(population=40, winners=20, losers=18)
# R and distance of the nearest cases.
WINNERS = ((1.42, 0.18), (0.93, 0.24), (1.5, 0.31))
LOSERS = ((-1.0, 0.21), (-0.44, 0.27), (-1.0, 0.33))

# Distance from the close in ATR: in the plan's direction, and above it; each with what a bar of length adds.
LEANING = {"open": (-0.3, 0.0), "sma": (0.0, -0.015), "ema": (0.0, -0.015)}
ABOVE = {"highest": (0.3, 0.02), "lowest": (-0.3, -0.02)}
# A bar that closes near its end on the plan's side: distances of its near and its far end, in ATR.
NEAR_END, FAR_END = 0.2, 0.6
# Indicators in their own units, as a long plan likes them; for a short plan the sign changes.
SIGNED = {"trend": 1.2, "zscore": -1.8}
RSI_LEAN = 6.0
RANKS = {"bandwidth": 0.2}
FINGERPRINT = (0.68, 0.42, 0.3, 0.55, 0.5)


def example_request(
    settings: Settings,
    playbooks: Sequence[PlaybookDefinition],
    playbook_id: str | None = None,
    direction: str | None = None,
) -> PolicyLevelReflectionRequest:
    """A request under these settings; a feature that no table here knows is null, which is unknown.

    Args:
        settings: limits in force.
        playbooks: those to choose from.
        playbook_id: None takes the trend pullback, else the first.
        direction: None takes long if the playbook has it.

    Raises:
        ConfigError: there is no such playbook, or it has no rules for the direction.
    """
    playbook = _playbook(playbooks, playbook_id)
    side = _direction(playbook, direction)
    regime = _regime(playbook, side)
    snapshot = _snapshot(settings, playbook, side, regime)
    reader = PlaybookRegistry(playbooks, TickGuard(), NOW).reader()
    return PolicyLevelReflectionRequest(
        snapshot=snapshot,
        proposal=proposal_of(candidate(playbook, side, snapshot), snapshot),
        playbook=playbook,
        state=snapshot.state,
        memory=_memory(playbook, side),
        invariants=invariant_context(settings, snapshot, reader, ()),
    )


def _playbook(playbooks: Sequence[PlaybookDefinition], playbook_id: str | None) -> PlaybookDefinition:
    known = {playbook.id: playbook for playbook in playbooks}
    if playbook_id is None:
        return known.get(DEFAULT_PLAYBOOK) or playbooks[0]
    if playbook_id not in known:
        raise ConfigError(
            f"--playbook {playbook_id!r}: there are {', '.join(sorted(known))}.{nearest(playbook_id, known)}"
        )
    return known[playbook_id]


def _direction(playbook: PlaybookDefinition, direction: str | None) -> Direction:
    sides = sorted(playbook.rules)
    for side in sides:
        if direction in (None, side):
            return side
    raise ConfigError(
        f"--direction {direction!r}: playbook {playbook.id!r} has rules for {', '.join(sides)}."
        f"{nearest(str(direction), sides)}"
    )


def _regime(playbook: PlaybookDefinition, direction: Direction) -> RegimeView:
    eligible = playbook.eligibility[direction]
    labels = (
        RegimeLabels(trend=trend, volatility=volatility, structure=structure)
        for trend in eligible.trend
        for volatility in eligible.volatility
        for structure in eligible.structure
    )
    first = next(labels)
    chosen = next((label for label in (first, *labels) if eligible.allows(label)), first)
    return RegimeView(labels=chosen, fingerprint=FINGERPRINT)


def _snapshot(
    settings: Settings, playbook: PlaybookDefinition, direction: Direction, regime: RegimeView
) -> PolicySnapshot:
    timeframe = (playbook.timeframes or ("1d",))[0]
    bar_ns = TIMEFRAME_SECONDS[timeframe] * 1_000_000_000
    label = NOW - bar_ns
    texts = rule_texts(render_rules(playbook, direction)).values()
    names = sorted({name for text in texts for name in parse(text).features} | {"close"})
    expected = ExpectationBook(SimulatedClock(NOW)).summary(playbook, NOW)
    return PolicySnapshot(
        symbol=SYMBOL,
        timeframe=timeframe,
        bar_label=label,
        ts_event=NOW,
        known_at=NOW,
        close=CLOSE,
        events=(PolicyEventKind.HEARTBEAT.value,),
        state=PolicyState.IDLE,
        regime=regime,
        features={name: feature_value(name, direction) for name in names},
        position=None,
        active_policy_id=None,
        risk=_flat(settings),
        base_rates=POPULATION,
        expectations=(expected,),
        data_window=DataWindow(first_label=label - (BARS - 1) * bar_ns, last_label=label, bars=BARS),
        staleness_bars=0,
    )


def _flat(settings: Settings) -> RiskState:
    """An account without a position."""
    return RiskState(
        equity=settings.account.cash,
        cash=settings.account.cash,
        gross_exposure=0.0,
        drawdown=0.0,
        daily_loss=0.0,
        risk_fraction=settings.envelope.risk_fraction,
        halted=False,
        kill_switch=settings.envelope.kill_switch,
    )


def feature_value(name: str, direction: Direction) -> float | None:
    """The value of a feature in the imagined market; None where no table knows it."""
    sign = 1.0 if direction == "long" else -1.0
    stem, *rest = name.split("_")
    length = max((int(part) for part in rest if part.isdigit()), default=0)
    if rest[-1:] == ["rank"]:
        return RANKS.get(stem, 0.5)
    for table, side in ((LEANING, sign), (ABOVE, 1.0)):
        if stem in table:
            start, step = table[stem]
            return _price(side * (start + step * length))
    high = NEAR_END if direction == "long" else FAR_END
    fixed = {
        "close": CLOSE,
        "high": _price(high),
        "low": _price(high - NEAR_END - FAR_END),
        "true": 1.3 * ATR,
        "atr": ATR,
        "volume": VOLUME,
        "rsi": 50.0 + sign * RSI_LEAN,
    }
    return fixed.get(stem, sign * SIGNED[stem] if stem in SIGNED else None)


def _price(distance_atr: float) -> float:
    return round(CLOSE + distance_atr * ATR, 2)


def _memory(playbook: PlaybookDefinition, direction: Direction) -> MemorySummary:
    def cases(name: str, seen: Sequence[tuple[float, float]]) -> tuple[MemoryCase, ...]:
        return tuple(
            MemoryCase(
                episode_id=f"{name}{number}",
                symbol=SYMBOL,
                playbook_id=playbook.id,
                direction=direction,
                r=r,
                distance=distance,
                known_at=NOW - number * 30 * DAY_NS,
            )
            for number, (r, distance) in enumerate(seen, start=1)
        )

    won, lost = cases("winner", WINNERS), cases("loser", LOSERS)
    return MemorySummary(
        known_at=NOW, winners=won, losers=lost, base_rates=POPULATION, insufficient=("failures",)
    )
