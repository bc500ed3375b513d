"""Right plans by seed: every playbook and direction on many markets, with the reasons of their rules.

What is right is said by the playbook and the market, not by the critics: the setup holds, levels lie on
their sides, costs are a tenth of the risk at most, horizon and conviction suit what trades of the playbook
look like.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log
from random import Random
from typing import Any

from schemas.no_learn import NoLearnZone
from schemas.playbook import PlaybookDefinition
from schemas.reflection import InvariantContext, MemorySummary, PolicyLevelReflectionRequest
from schemas.regime import RegimeLabels, RegimeView
from schemas.timeframes import TIMEFRAME_SECONDS
from schemas.vocabulary import Direction, PolicyState
from services.playbooks.rendering import render_rules, rule_texts
from services.policy_checks.reasons import with_reasons
from tests.services.policy_checks.plans import (
    DAY,
    NOW,
    PLANS,
    changed,
    expected,
    proposal_for,
    snapshot_for,
    summary,
)
from trading_core.rules import parse

EACH = 8  # plans of each playbook and direction
PRICES = (0.05, 0.7, 4.2, 31.0, 100.0, 850.0, 7_400.0, 60_000.0)
SYMBOLS = ("AAA", "BTC-USD", "BRK.B", "EURUSD")
TIMEFRAMES = ("1m", "5m", "15m", "1h", "4h", "1d")
STATES = (PolicyState.IDLE, PolicyState.IDLE, PolicyState.COOLDOWN, PolicyState.INVALIDATED)
ATR_SHARE = (0.003, 0.06)  # of the close
COSTS_OF_RISK = 0.1  # a round trip, of the risk


@dataclass(frozen=True)
class RightPlan:
    """A request that passes, with the name it has in messages."""

    name: str
    request: PolicyLevelReflectionRequest


@lru_cache(maxsize=4)
def right_plans(seed: str) -> tuple[RightPlan, ...]:
    """`EACH` plans of every playbook and direction; the same ones for the same seed."""
    return tuple(
        RightPlan(f"{seed}-{playbook.id}-{direction}-{k}", _request(playbook, direction, k, seed))
        for playbook, direction in PLANS
        for k in range(EACH)
    )


def _request(
    playbook: PlaybookDefinition, direction: Direction, k: int, seed: str
) -> PolicyLevelReflectionRequest:
    rng = Random(f"{seed}/{playbook.id}/{direction}/{k}")
    version, overrides = _version(playbook, rng)
    rules = rule_texts(render_rules(version, direction, overrides))
    close = PRICES[k % len(PRICES)] * rng.uniform(0.9, 1.1)
    atr = close * _between(*ATR_SHARE, rng)
    summary_of_version = _expectation(version, rng)
    snapshot = changed(
        snapshot_for(version, direction),
        {
            "symbol": rng.choice(SYMBOLS),
            "timeframe": (timeframe := rng.choice(TIMEFRAMES)),
            "bar_label": (label := NOW - TIMEFRAME_SECONDS[timeframe] * 1_000_000_000),
            "data_window.last_label": label,
            "close": close,
            "state": (state := rng.choice(STATES)),
            "regime": _regime(version, direction, rng),
            "features": _features(rules, version, direction, close, atr, rng),
            "expectations": (summary_of_version,),
            "staleness_bars": rng.choice((0, 0, 1)),
        },
    )
    texts = {role: text.replace(" ", "  ") if rng.random() < 0.2 else text for role, text in rules.items()}
    shortest = int(summary_of_version.hold_p50_bars) + 1
    proposal = changed(
        proposal_for(version, direction),
        {
            **texts,
            "conviction": round(rng.uniform(0.2, summary_of_version.hit_rate + 0.24), 3),
            "horizon_bars": rng.randint(shortest, version.horizon_bars),
            "activation_window_bars": rng.randint(1, version.activation_window_bars),
        },
    )
    memory, invariants = _memory(rng, version.id), _guardrails(snapshot.symbol, version, atr / close, rng)
    return PolicyLevelReflectionRequest(
        snapshot=changed(snapshot, {"risk.gross_exposure": invariants.gross_exposure}),
        proposal=with_reasons(proposal, snapshot),
        playbook=version,
        state=state,
        memory=memory,
        invariants=invariants,
    )


def _version(
    playbook: PlaybookDefinition, rng: Random
) -> tuple[PlaybookDefinition, Mapping[str, float] | None]:
    """The playbook as shipped, a version in which a lesson moved a parameter, or a plan that moves one."""
    kind = rng.choice(("shipped", "lesson", "lesson", "plan"))
    if kind == "shipped":
        return playbook, None
    name = rng.choice(sorted(playbook.parameters))
    parameter = playbook.parameters[name]
    value = rng.choice(parameter.grid)
    if kind == "plan":
        return playbook, {name: value}
    moved = {f"parameters.{name}": changed(parameter, {"value": value}), "version": 2, "known_at": NOW - DAY}
    return changed(playbook, moved), None


def _expectation(version: PlaybookDefinition, rng: Random):
    if rng.random() < 0.5:
        return expected(version)
    prior = version.expectation
    n, hit_rate = rng.randint(3, 400), rng.uniform(0.3, 0.6)
    design, weight = prior.hit_rate * prior.weight_trades, prior.weight_trades + n
    return expected(
        version,
        n=n,
        hit_rate=min(max(hit_rate, design / weight), (design + n) / weight),
        hold_p50_bars=prior.hold_p50_bars * rng.uniform(0.6, 1.0),
        hold_p90_bars=prior.hold_p90_bars * rng.uniform(0.7, 1.0),
        winner_mae_p80_r=-rng.uniform(0.3, 0.7),
        mfe_p50_r=rng.uniform(0.9, 1.6),
    )


def _regime(version: PlaybookDefinition, direction: Direction, rng: Random) -> RegimeView:
    eligible = version.eligibility[direction]
    labels = RegimeLabels(
        trend=rng.choice(eligible.trend),
        volatility=rng.choice(eligible.volatility),
        structure=rng.choice(eligible.structure),
    )
    return RegimeView(labels=labels, fingerprint=tuple(rng.random() for _ in range(5)))


def _features(
    rules: Mapping[str, str],
    version: PlaybookDefinition,
    direction: Direction,
    close: float,
    atr: float,
    rng: Random,
) -> dict[str, float | None]:
    """A bar on which the setup holds; distances in ATR, to the plan's losing side of the close."""
    against = -1.0 if direction == "long" else 1.0
    body, ahead, later = rng.uniform(0.2, 0.8), rng.uniform(0.05, 0.3), rng.uniform(0.5, 1.2)
    edge = rng.uniform(-0.4, 0.15)  # of the channel on the winning side: reached or just passed
    nearest = rng.uniform(0.1, 0.8)  # extreme of the last bars on the losing side
    mean = rng.uniform(-0.3, 0.9) if version.id == "trend_pullback" else rng.uniform(0.3, 2.4)

    def at(distance: float) -> float:
        return close + against * distance * atr

    extremes = {"low": later, "high": -ahead} if direction == "long" else {"low": -ahead, "high": later}
    win_side, lose_side = ("highest", "lowest") if direction == "long" else ("lowest", "highest")
    values: dict[str, float] = {
        "open": at(body),
        "close": close,
        "volume": exp(rng.uniform(5, 20)),
        "true_range": rng.uniform(1.6, 2.5) * atr,
        "atr_14": atr,
        "ema_10": at(mean / 2),
        "ema_20": at(mean),
        "sma_20": at(mean),
        "sma_200": at(5.0 * mean),
        "zscore_20": against * rng.uniform(2.3, 3.5),
        "trend_strength_20_50": -against * rng.uniform(1.1, 3.0),
        "bandwidth_20_rank": rng.uniform(0.0, 0.1),
        "rsi_14": 50.0 - against * rng.uniform(-25.0, 25.0),
        **{name: at(distance) for name, distance in extremes.items()},
    }
    for bars in (5, 10, 20, 40):
        values[f"{win_side}_{bars}"] = at(-edge - 0.001 * bars)
        values[f"{lose_side}_{bars}"] = at(nearest + 0.05 * bars)
    names = {name for text in rules.values() for name in parse(text).features} | {"close", "rsi_14"}
    return {name: values[name] for name in sorted(names)}


def _guardrails(symbol: str, version: PlaybookDefinition, atr_share: float, rng: Random) -> InvariantContext:
    risk_bps = min(version.parameters["stop_atr"].grid) * atr_share * 10_000
    zones = (
        NoLearnZone(start=NOW - 40 * DAY, end=NOW - 39 * DAY, reason="exchange outage"),
        NoLearnZone(start=NOW - 5 * DAY, end=NOW + 5 * DAY, symbol="ZZZ", reason="merger talks"),
    )
    values: dict[str, Any] = {
        "allowed_symbols": rng.choice(((), (symbol, "ZZZ"))),
        "allowed_playbooks": rng.choice(((), (version.id, "another"))),
        "gross_exposure": rng.choice((0.0, rng.uniform(0.0, 0.95))),
        "cost_bps_per_side": min(rng.uniform(0.5, 10.0), COSTS_OF_RISK * risk_bps / 2),
        "no_learn_zones": rng.choice(((), zones)),
    }
    return InvariantContext(**values)


def _memory(rng: Random, of: str) -> MemorySummary | None:
    """Nothing, too little, a population as expected, or near losers that chance explains."""
    some = tuple(rng.uniform(0.2, 2.5) for _ in range(3))
    lost = tuple(-rng.uniform(0.4, 1.1) for _ in range(3))
    return rng.choice(
        (
            None,
            summary(of=of),
            summary(losers=lost[:2], population=(0, 2), of=of),
            summary(winners=some, losers=lost, population=(rng.randint(30, 60), rng.randint(20, 50)), of=of),
            summary(
                winners=some, losers=lost, population=(300, 420), modes=("chop", "chop", "late_entry"), of=of
            ),
            summary(winners=some, losers=lost, population=(20, 18), losers_nearer=True, of=of),
        )
    )


def _between(low: float, high: float, rng: Random) -> float:
    return exp(rng.uniform(log(low), log(high)))
