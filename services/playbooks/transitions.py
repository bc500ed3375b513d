"""The versions of one run and how they move: what the lifecycle writes into its registry.

Every transition is recorded once and returned; whether it may happen is decided above.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from schemas.judge import RefusedAction
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.settings import JudgeSettings
from schemas.state import Stateful
from schemas.vocabulary import VersionState
from services.playbooks.action_effects import Situation
from services.playbooks.measures import Composition, alter
from services.playbooks.registry import PlaybookRegistry
from services.playbooks.renewals import Shown
from services.playbooks.trials import Evidence, OpenTrial
from trading_core.tick_guard import TickGuard

Transitions = tuple[PlaybookVersion, ...]
Origin = Mapping[str, str | None]
Mark = tuple[dict[str, Any], dict[str, Any]]


class VersionTransitions(Stateful):
    """The compositions of versions and the open trials of one registry."""

    STATE: ClassVar = {
        "_compositions": dict[str, Composition],
        "_trials": dict[str, OpenTrial],
        "_applied": set[str],
        "_refused": list[RefusedAction],
    }
    REBUILT = frozenset({"_registry", "_reader", "_settings", "_guard", "_block"})

    def __init__(
        self, registry: PlaybookRegistry, settings: JudgeSettings, guard: TickGuard, block: str = ""
    ) -> None:
        self._registry = registry
        self._reader = registry.reader()
        self._settings = settings
        self._guard = guard
        self._block = block
        self._compositions = {
            version.definition.content_hash: Composition(version.definition)
            for version in self._reader.active()
        }
        self._trials: dict[str, OpenTrial] = {}
        self._applied: set[str] = set()
        self._refused: list[RefusedAction] = []

    def mark(self) -> Mark:
        """Where the versions stand, to return to."""
        return self._registry.state(), self.state()

    def return_to(self, mark: Mark) -> None:
        """Stand where `mark` was taken: what was recorded since has not happened."""
        registry, lifecycle = mark
        self._registry.restore(registry)
        self.restore(lifecycle)

    def definitions(self) -> dict[str, PlaybookDefinition]:
        """Versions in force by playbook id."""
        return {version.definition.id: version.definition for version in self._reader.active()}

    def _composition(self, version: PlaybookVersion) -> Composition:
        return self._compositions[version.definition.content_hash]

    def _next(self, composition: Composition, at: int) -> PlaybookDefinition:
        return composition.definition(self._registry.next_number(composition.baseline.id), at)

    def _situation(self, at: int, timeframe: str, proven: Shown) -> Situation:
        compositions = {
            version.definition.id: self._composition(version) for version in self._reader.active()
        }
        return Situation(
            self.definitions(),
            compositions,
            tuple(self._trials.values()),
            self._settings,
            at,
            timeframe,
            self._block,
            proven,
        )

    def _retire_rivals(self, playbook_id: str, at: int, reason: str) -> list[PlaybookVersion]:
        """Candidates of a playbook whose baseline has changed: they were compared with what is gone."""
        rivals = [
            version_hash
            for version_hash, opened in self._trials.items()
            if opened.baseline.id == playbook_id and opened.trial.kind == "candidate"
        ]
        for version_hash in rivals:
            del self._trials[version_hash]
        return [self._move(self._reader.by_hash(rival), VersionState.RETIRED, at, reason) for rival in rivals]

    def _move(
        self,
        version: PlaybookVersion,
        state: VersionState,
        at: int,
        reason: str,
        evidence: Evidence | None = None,
    ) -> PlaybookVersion:
        """Record an existing version in another state; evidence joins what it already has."""
        merged = {**version.evidence, **(evidence or {})}
        return self._registry.record(alter(version, state=state, since=at, reason=reason, evidence=merged))

    def _replace_active(
        self, active: PlaybookVersion, definition: PlaybookDefinition, composition: Composition, at: int,
        left: str, reason: str, origin: Origin, evidence: Evidence | None = None,
    ) -> list[PlaybookVersion]:  # fmt: skip
        """Retire the active version because of `left`, and record another in its place."""
        retired, named = self._move(active, VersionState.RETIRED, at, left), alter(active, **origin)
        return [retired, self._enter(definition, composition, at, reason, named, active, evidence)]

    def _enter(
        self,
        definition: PlaybookDefinition,
        composition: Composition,
        at: int,
        reason: str,
        origin: PlaybookVersion,
        parent: PlaybookVersion,
        evidence: Evidence | None = None,
    ) -> PlaybookVersion:
        """Record a version as active: content from `definition`, ids of report and verdict from `origin`."""
        self._compositions[definition.content_hash] = composition
        entered = alter(
            origin,
            definition=definition,
            state=VersionState.ACTIVE,
            parent_hash=parent.definition.content_hash,
            since=at,
            expires_at=composition.ends,
            reason=reason,
            evidence=dict(evidence or {}),
        )
        return self._registry.record(entered)
