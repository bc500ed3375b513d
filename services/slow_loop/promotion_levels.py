"""Levels of what may come into force on its own trades: candidates, and measures that may be contradicted.

All of them share one level (`services.statistics.multiplicity`), in the order in which they began; of what
began together, candidates come before bans, and these before risk cuts.
"""

from typing import ClassVar

from schemas.settings import JudgeSettings
from schemas.state import Pairs, Stateful
from schemas.trials import NO_TRIALS, TrialLedger
from schemas.vocabulary import Direction
from services.statistics.multiplicity import online_level

# What a candidate trades, or the hash of the version from before a measure; then the banned cell, "" for a
# cut, None for a candidate.
Key = tuple[str, str | None]
# What a ledger on paper trades, its kind, its one regime cell (None: wherever it is eligible), its sides.
TrialKey = tuple[str, str, str | None, tuple[Direction, ...]]
KINDS = ("candidate", "banned_cell", "risk_cut", "experiment")  # the order of what began together


class PromotionLevels(Stateful):
    """The level of everything that has begun, and the promotions so far.

    What began and was promoted in other configurations on the same bars, before this run, comes first.
    """

    STATE: ClassVar = {"_levels": Pairs(Key, float), "_begun": int, "_promotions": list[int]}
    REBUILT = frozenset({"_judge", "_before"})

    def __init__(self, judge: JudgeSettings, before: TrialLedger = NO_TRIALS) -> None:
        self._judge = judge
        self._before = before.in_force
        self._levels: dict[Key, float] = {}
        self._begun = 0
        self._promotions: list[int] = []

    def begin(self, key: Key, since: int) -> None:
        """Give `key` its level if it has none: what is left after the promotions up to `since`, ns."""
        if key not in self._levels:
            self._begun += 1
            number = self._before.candidates + self._begun
            discoveries = self._before.promotions + sum(at <= since for at in self._promotions)
            self._levels[key] = online_level(self._judge.promotion_alpha, number, discoveries)

    def note_promotion(self, at: int) -> None:
        """Something that has a level was proven, ns."""
        self._promotions.append(at)

    def spend(self, key: Key) -> None:
        """A promotion has used up the level of a key: what begins under it again begins anew."""
        self._levels.pop(key, None)

    @property
    def counts(self) -> tuple[int, int]:
        """How many have begun in this run, and how many of them were promoted at most."""
        return self._begun, min(self._begun, len(self._promotions))

    def of(self, key: Key) -> float | None:
        """The level of a key; None before it has begun."""
        return self._levels.get(key)
