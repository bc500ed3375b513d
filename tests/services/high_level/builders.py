"""Builders of episodes, playbooks and requests that several tests of the slow loop share."""

from datetime import UTC, datetime

from schemas.canonical import content_id, ns_to_datetime
from schemas.episode import Episode
from schemas.playbook import (
    DirectionRules,
    Eligibility,
    Expectation,
    Parameter,
    PlaybookDefinition,
)
from schemas.slow_reflection import HighLevelReflectionRequest
from schemas.vocabulary import ExitReason, Structure, Trend, VolatilityBand

DAY_NS = 86_400_000_000_000
START = 19_723 * DAY_NS  # 2024-01-01, a Monday


def playbook(name="pullback", **changes):
    rules = DirectionRules(
        setup="close > sma_20 * {stretch}",
        stop="close - 2 * atr_14",
        target="close + 3 * atr_14",
        invalidation="close < sma_50",
    )
    values = {
        "id": name,
        "title": name.title(),
        "description": f"{name} for tests",
        "eligibility": {
            "long": Eligibility(
                trend=(Trend.UP, Trend.SIDEWAYS),
                volatility=(VolatilityBand.LOW, VolatilityBand.MID),
                structure=tuple(Structure),
            )
        },
        "rules": {"long": rules},
        "parameters": {
            "stretch": Parameter(value=1.0, grid=(0.9, 1.0, 1.1), risk_reducing="up"),
            "exit_below": Parameter(value=50.0, grid=(20.0, 50.0), role="invalidation"),
        },
        "horizon_bars": 20,
        "expectation": Expectation(
            hit_rate=0.4, hold_p50_bars=8, hold_p90_bars=16, winner_mae_p80_r=-0.7, mfe_p50_r=0.8
        ),
    } | changes
    return PlaybookDefinition(**values)


def episode(definition=None, *, number=0, r=0.1, week=None, **changes):
    """One resolved trade; five a week, two hours each, unless told otherwise."""
    definition = definition or playbook()
    week = number // 5 if week is None else week
    entry = START + week * 7 * DAY_NS + (number % 5) * DAY_NS
    values = {
        "symbol": "AAA",
        "timeframe": "1h",
        "playbook_id": definition.id,
        "playbook_version": definition.version,
        "playbook_hash": definition.content_hash,
        "policy_id": f"policy{number:06d}",
        "direction": "long",
        "regime": "up/mid",
        "structure": "neutral",
        "fingerprint": (0.5, 0.5, 0.5, 0.5, 0.5),
        "conviction": 0.4,
        "entry_label": entry,
        "exit_label": entry + 2 * DAY_NS // 24,
        "known_at": entry + 3 * DAY_NS // 24,
        "entry_price": 100.0,
        "exit_price": 100.0 + r,
        "quantity": 1.0,
        "fees": 0.1,
        "pnl": r,
        "r": r,
        "mae_r": min(r, -0.1),
        "mfe_r": max(r, 0.1),
        "hold_bars": 8,
        "exit_reason": ExitReason.TARGET if r > 0 else ExitReason.STOP,
    } | changes
    ledger = values.get("ledger", "live")
    values.setdefault("episode_id", content_id([definition.id, number, values["regime"], ledger]))
    return Episode(**values)


def request(episodes, **changes):
    known_at = changes.get("known_at", max((item.known_at for item in episodes), default=START) + DAY_NS)
    values = {
        "slot": known_at,
        "known_at": known_at,
        "window_start": datetime(2024, 1, 1, tzinfo=UTC),
        "window_end": ns_to_datetime(known_at),
        "timeframe": "1h",
        "episode_ids": tuple(item.episode_id for item in episodes),
        "new_episodes": len(episodes),
    } | changes
    return HighLevelReflectionRequest(**values)
