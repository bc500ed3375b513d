"""Registry of playbook versions: one place that writes, and readers that cannot.

The registry keeps the latest state of every version and the whole history of transitions; it enforces
which transition may follow which and that each playbook has at most one active version. Policy, fast
reflection and judge get `reader()`: an object over read-only views, without a reference to anything that
writes (R8).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar

from schemas.errors import ConfigError, InvariantViolation, nearest
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.regime import RegimeLabels
from schemas.state import Stateful
from schemas.vocabulary import DIRECTIONS, Direction, VersionState
from services.playbooks.measures import alter, outcome_rules
from trading_core.tick_guard import TickGuard

TRANSITIONS: Mapping[VersionState | None, frozenset[VersionState]] = MappingProxyType(
    {
        None: frozenset({VersionState.CANDIDATE, VersionState.ACTIVE}),
        VersionState.CANDIDATE: frozenset({VersionState.SHADOW, VersionState.RETIRED}),
        VersionState.SHADOW: frozenset({VersionState.ACTIVE, VersionState.EXPIRED, VersionState.RETIRED}),
        VersionState.ACTIVE: frozenset({VersionState.EXPIRED, VersionState.RETIRED}),
        VersionState.EXPIRED: frozenset(),
        VersionState.RETIRED: frozenset({VersionState.ACTIVE}),  # a rollback
    }
)


@dataclass(frozen=True, slots=True)
class RegistryReader:
    """Read-only view of a registry; follows it as it changes and has no way to change it."""

    _active: Mapping[str, PlaybookVersion]
    _latest: Mapping[str, PlaybookVersion]
    _rules: dict[str, str] = field(default_factory=dict)

    def active(self) -> tuple[PlaybookVersion, ...]:
        """Active versions by playbook id."""
        return tuple(map(self._active.__getitem__, sorted(self._active)))

    def get(self, playbook_id: str) -> PlaybookVersion:
        """The active version of one playbook.

        Raises:
            ConfigError: no active playbook has this id; names the nearest.
        """
        if playbook_id not in self._active:
            known = ", ".join(sorted(self._active))
            raise ConfigError(
                f"unknown playbook {playbook_id!r}: active are {known}.{nearest(playbook_id, self._active)}"
            )
        return self._active[playbook_id]

    def by_hash(self, version_hash: str) -> PlaybookVersion:
        """The latest state of the version whose definition has this content hash.

        Raises:
            InvariantViolation: no version was ever recorded under it.
        """
        if version_hash not in self._latest:
            raise InvariantViolation(
                f"no playbook version has the hash {version_hash!r}", version_hash=version_hash
            )
        return self._latest[version_hash]

    def rules(self, version_hash: str) -> str:
        """What decides how trades of a recorded version end, see `outcome_rules`; empty without a version.

        Raises:
            InvariantViolation: no version was ever recorded under this hash.
        """
        if not version_hash:
            return ""
        if version_hash not in self._rules:
            self._rules[version_hash] = outcome_rules(self.by_hash(version_hash).definition)
        return self._rules[version_hash]

    def eligible(
        self, labels: RegimeLabels | None, timeframe: str
    ) -> tuple[tuple[PlaybookDefinition, Direction], ...]:
        """Enabled playbooks and directions that labels (None: not known yet) and timeframe allow.

        By id, long before short.
        """
        return tuple(
            (definition, direction)
            for definition in (version.definition for version in self.active())
            if definition.enabled and (not definition.timeframes or timeframe in definition.timeframes)
            for direction in DIRECTIONS
            if direction in definition.eligibility and definition.eligibility[direction].allows(labels)
        )


class PlaybookRegistry(Stateful):
    """Every version of every playbook. Only the lifecycle writes, through `record`."""

    STATE: ClassVar = {
        "_active": dict[str, PlaybookVersion],
        "_latest": dict[str, PlaybookVersion],
        "_history": list[PlaybookVersion],
    }
    REBUILT = frozenset({"_guard"})

    def __init__(self, definitions: Sequence[PlaybookDefinition], guard: TickGuard, known_at: int) -> None:
        """Start with `definitions` active since `known_at` (ns).

        Raises:
            ConfigError: no definitions, or an id given twice.
        """
        self._guard = guard
        self._active: dict[str, PlaybookVersion] = {}
        self._latest: dict[str, PlaybookVersion] = {}
        self._history: list[PlaybookVersion] = []
        if not definitions:
            raise ConfigError("no playbooks: there is nothing to trade")
        for definition in sorted(definitions, key=lambda item: item.id):
            if definition.id in self._active:
                raise ConfigError(f"playbook id {definition.id!r} is given twice")
            self.record(
                PlaybookVersion(
                    definition=definition, state=VersionState.ACTIVE, since=known_at, reason="file"
                )
            )

    def reader(self) -> RegistryReader:
        """A read-only view for the fast path."""
        return RegistryReader(MappingProxyType(self._active), MappingProxyType(self._latest))

    def record(self, version: PlaybookVersion) -> PlaybookVersion:
        """Write one transition and return it.

        Raises:
            InvariantViolation: inside the tick path; the transition is not legal; it goes back in time; or
                the playbook has another active version, which has to leave first.
        """
        self._guard.forbid("policy_writes")
        version_hash, name = version.definition.content_hash, version.definition.id
        previous = self._latest.get(version_hash)
        state = previous.state if previous else None
        if version.state not in TRANSITIONS[state]:
            raise InvariantViolation(
                f"playbook {name!r}: {state} -> {version.state} is not a legal transition"
            )
        if self._history and version.since < self._history[-1].since:
            raise InvariantViolation(
                f"playbook {name!r}: a transition at {version.since} comes after {self._history[-1].since}"
            )
        active = self._active.get(name)
        if version.state is VersionState.ACTIVE:
            if active is not None:
                raise InvariantViolation(
                    f"playbook {name!r} already has version {active.definition.version} active"
                )
            self._active[name] = version
        elif active is not None and active.definition.content_hash == version_hash:
            del self._active[name]
        self._latest[version_hash] = version
        self._history.append(version)
        return version

    def extend(self, playbook_id: str, expires_at: int | None) -> PlaybookVersion:
        """Move the end of the active version of a playbook, ns; no transition, so the history stays.

        Raises:
            InvariantViolation: inside the tick path.
        """
        self._guard.forbid("policy_writes")
        version = alter(self._active[playbook_id], expires_at=expires_at)
        self._active[playbook_id] = self._latest[version.definition.content_hash] = version
        return version

    def latest(self) -> tuple[PlaybookVersion, ...]:
        """The present state of every version, in order of first appearance."""
        return tuple(self._latest.values())

    def history(self, playbook_id: str | None = None) -> tuple[PlaybookVersion, ...]:
        """Every transition in order, of one playbook or of all."""
        return tuple(v for v in self._history if playbook_id is None or v.definition.id == playbook_id)

    def next_number(self, playbook_id: str) -> int:
        """The version number that a new version of this playbook gets."""
        return 1 + max(v.definition.version for v in self._latest.values() if v.definition.id == playbook_id)
