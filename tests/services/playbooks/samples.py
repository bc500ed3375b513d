"""Small playbooks and episodes for the tests of playbooks, expectations and memory."""

from typing import Any

from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from schemas.vocabulary import ExitReason, FailureMode

DAY = 86_400 * 1_000_000_000
NOON = 100 * DAY


def definition(name: str = "alpha", **changes: Any) -> PlaybookDefinition:
    """A playbook with long and short rules, two parameters and eligibility in six cells."""
    eligibility = {
        "trend": ("up", "sideways"),
        "volatility": ("low", "mid", "high"),
        "structure": ("neutral", "breakout"),
    }
    values: dict[str, Any] = {
        "id": name,
        "title": name.title(),
        "description": "For tests.",
        "eligibility": {"long": eligibility, "short": eligibility},
        "rules": {
            "long": {
                "setup": "close > ema_20 + {edge} * atr_14",
                "stop": "close - {stop_atr} * atr_14",
                "target": "close + 3 * atr_14",
                "invalidation": "close < ema_20",
            },
            "short": {
                "setup": "close < ema_20 - {edge} * atr_14",
                "stop": "close + {stop_atr} * atr_14",
                "target": "close - 3 * atr_14",
                "invalidation": "close > ema_20",
            },
        },
        "parameters": {
            "edge": {"value": 0.5, "grid": (0.25, 0.5, 1.0), "risk_reducing": "up"},
            "stop_atr": {"value": 2.0, "grid": (1.5, 2.0, 2.5), "role": "invalidation"},
        },
        "horizon_bars": 10,
        "expectation": {
            "hit_rate": 0.4,
            "hold_p50_bars": 4,
            "hold_p90_bars": 10,
            "winner_mae_p80_r": -0.7,
            "mfe_p50_r": 1.0,
        },
    }
    return PlaybookDefinition.model_validate(values | changes)


def definitions(n: int = 4) -> tuple[PlaybookDefinition, ...]:
    """`n` playbooks named alpha, beta, gamma, delta."""
    return tuple(definition(name) for name in ("alpha", "beta", "gamma", "delta")[:n])


def episode(number: int = 0, **changes: Any) -> Episode:
    """A long trade of `alpha`, known `number` days after `NOON`."""
    values: dict[str, Any] = {
        "episode_id": f"{number:016x}",
        "symbol": "TEST",
        "timeframe": "1d",
        "playbook_id": "alpha",
        "playbook_version": 1,
        "playbook_hash": "0" * 64,
        "policy_id": "p" * 16,
        "direction": "long",
        "regime": "up/mid",
        "structure": "neutral",
        "fingerprint": (0.5, 0.5, 0.5, 0.5, 0.5),
        "conviction": 0.5,
        "entry_label": NOON + (number - 5) * DAY,
        "exit_label": NOON + (number - 1) * DAY,
        "known_at": NOON + number * DAY,
        "entry_price": 100.0,
        "exit_price": 101.0,
        "quantity": 1.0,
        "fees": 0.1,
        "pnl": 0.9,
        "r": 1.0,
        "mae_r": -0.2,
        "mfe_r": 1.2,
        "hold_bars": 4,
        "exit_reason": ExitReason.TARGET,
    }
    return Episode.model_validate(values | changes)


def loser(number: int, mode: FailureMode | None = None, **changes: Any) -> Episode:
    """A trade that lost its whole risk."""
    lost = {"r": -1.0, "mae_r": -1.0, "mfe_r": 0.1, "exit_reason": ExitReason.STOP, "failure_mode": mode}
    return episode(number, **(lost | changes))
