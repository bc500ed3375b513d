"""Levels of what may come into force on its own trades: candidates, and measures that may be contradicted.

All of them share one level (`services.statistics.online_levels`), in the order in which they began; of what
began together, candidates come before bans, and these before risk cuts.
"""

from schemas.config import JudgeSettings
from services.statistics.online_levels import online_level

# What a candidate trades, or the hash of the version from before a measure; then the banned cell, "" for a
# cut, None for a candidate.
Key = tuple[str, str | None]
KINDS = ("candidate", "banned_cell", "risk_cut")  # the order of what began together


class PromotionLevels:
    """The level of everything that has begun, and the promotions so far."""

    def __init__(self, judge: JudgeSettings) -> None:
        self._judge = judge
        self._levels: dict[Key, float] = {}
        self._promotions: list[int] = []

    def begin(self, key: Key, since: int) -> None:
        """Give `key` its level if it has none: what is left after the promotions up to `since`, ns."""
        if key not in self._levels:
            discoveries = sum(at <= since for at in self._promotions)
            self._levels[key] = online_level(self._judge.promotion_alpha, len(self._levels) + 1, discoveries)

    def promoted(self, at: int) -> None:
        """Something that has a level was proven, ns."""
        self._promotions.append(at)

    def of(self, key: Key) -> float | None:
        """The level of a key; None before it has begun."""
        return self._levels.get(key)
