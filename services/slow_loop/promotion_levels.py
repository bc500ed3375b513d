"""Levels of what may come into force on its own paper trades: candidates, and bans that may be lifted.

All of them share one level (`services.statistics.online_levels`), in the order in which they began; of what
began together, candidates come before bans. The slow loop of a run counts them as they begin, the worker
reads them from the journal, and both come to the same levels.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.config import JudgeSettings
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.trials import NO_TRIALS, TrialLedger
from schemas.vocabulary import VersionState
from services.statistics.online_levels import online_level

Key = tuple[str, str | None]  # hash of the version on paper, and the banned cell; None for a candidate
Place = tuple[str, str, str]  # playbook, direction, cell


class PromotionLevels:
    """The level of everything that has begun, and the promotions so far.

    What began and was promoted in other configurations on the same bars, before this run, comes first.
    """

    def __init__(self, judge: JudgeSettings, before: TrialLedger = NO_TRIALS) -> None:
        self._judge = judge
        self._before = before.in_force
        self._levels: dict[Key, float] = {}
        self._promotions: list[int] = []

    def begin(self, key: Key, since: int) -> None:
        """Give `key` its level if it has none: what is left after the promotions up to `since`, ns."""
        if key not in self._levels:
            number = self._before.candidates + len(self._levels) + 1
            discoveries = self._before.promotions + sum(at <= since for at in self._promotions)
            self._levels[key] = online_level(self._judge.promotion_alpha, number, discoveries)

    def promoted(self, at: int) -> None:
        """Something that has a level was proven, ns."""
        self._promotions.append(at)

    @property
    def counts(self) -> tuple[int, int]:
        """How many have begun in this run, and how many of them were promoted at most."""
        return len(self._levels), min(len(self._levels), len(self._promotions))

    def of(self, key: Key) -> float | None:
        """The level of a key; None before it has begun."""
        return self._levels.get(key)


@dataclass(frozen=True)
class Ban:
    """A lesson's ban of one cell, by the version that was active before it; `since` in ns."""

    playbook_id: str
    before: str
    cell: str
    since: int


class BansSeen:
    """Bans of a run, read from the versions that became active, in order."""

    def __init__(self, versions: Iterable[PlaybookVersion]) -> None:
        self.begun: list[Ban] = []
        self._definitions: dict[str, PlaybookDefinition] = {}
        self._origin: dict[Place, Ban] = {}
        self._in_force: dict[str, set[Ban]] = {}
        for version in versions:
            self._definitions[version.definition.content_hash] = version.definition
            if version.state is VersionState.ACTIVE:
                self._entered(version)

    @property
    def in_force(self) -> set[Key]:
        """The paper ledgers of the cells that are banned at the end."""
        return {(ban.before, ban.cell) for bans in self._in_force.values() for ban in bans}

    def _entered(self, version: PlaybookVersion) -> None:
        name, before = version.definition.id, version.parent_hash
        known = _banned(self._definitions[before]) if before in self._definitions else set()
        found: set[Ban] = set()
        for place in sorted(_banned(version.definition)):
            if before is not None and place not in known:
                self._origin[place] = Ban(name, before, place[2], version.since)
            if place in self._origin:  # what a file bans has no origin and no ledger
                found.add(self._origin[place])
        self.begun += sorted(found - set(self.begun), key=lambda ban: (ban.since, ban.cell))
        self._in_force[name] = found


def _banned(definition: PlaybookDefinition) -> set[Place]:
    return {
        (definition.id, direction, cell)
        for direction, rules in definition.eligibility.items()
        for cell in rules.banned
    }
