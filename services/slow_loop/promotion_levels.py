"""Levels of what may come into force on its own trades: candidates, and measures that may be contradicted.

All of them share one level (`services.statistics.online_levels`), in the order in which they began; of what
began together, candidates come before bans, and these before risk cuts. The slow loop of a run counts them as
they begin, the worker reads them from the journal, and both come to the same levels.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.config import JudgeSettings
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.vocabulary import VersionState
from services.statistics.online_levels import online_level

# Hash of the version on paper, or from before a measure; the banned cell, "" for a cut, None for a candidate.
Key = tuple[str, str | None]
Place = tuple[str, str, str]  # playbook, direction, cell
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


def risk_cuts_seen(versions: Iterable[PlaybookVersion]) -> list[tuple[int, str, Key]]:
    """Risk cuts of a run, read from the versions that became active, in order: (since ns, playbook, key)."""
    fractions: dict[str, float] = {}
    cuts: list[tuple[int, str, Key]] = []
    for version in versions:
        definition, before = version.definition, version.parent_hash
        fractions[definition.content_hash] = definition.risk_fraction
        lowered = before is not None and definition.risk_fraction < fractions.get(before, 0.0)
        if before is not None and lowered and version.state is VersionState.ACTIVE:
            cuts.append((version.since, definition.id, (before, "")))
    return cuts


def _banned(definition: PlaybookDefinition) -> set[Place]:
    return {
        (definition.id, direction, cell)
        for direction, rules in definition.eligibility.items()
        for cell in rules.banned
    }
