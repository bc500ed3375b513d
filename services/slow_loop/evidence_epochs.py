"""Whose trades speak for the version in force: evidence belongs to the rules and the regime cell.

What cannot change how trades end keeps it: the risk fraction, the end of a measure, a ban of another cell, a
number or a text. New rules begin an epoch of the playbook; old ones that return go on in theirs. What all
open cells show together begins anew when a cell is closed or opened, because that changes which trades there
are; a cell that is opened again on proof begins an epoch of its own. Versions are those as of a time, of all
that were ever known, in order, each with the time in ns.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.vocabulary import VersionState
from services.high_level.hypotheses import hypothesis
from services.playbooks.measures import eligible_cells, outcome_rules, same_rules
from services.statistics.multiplicity import WHOLE


@dataclass
class _Epochs:
    rules: list[str] = field(default_factory=list)
    hashes: dict[str, list[str]] = field(default_factory=dict)
    open_cells: frozenset[str] = frozenset()
    in_force: str = ""
    whole_changes: int = -1
    whole_since: int = 0
    reopened: dict[str, list[int]] = field(default_factory=dict)


class EvidenceEpochs:
    """Epochs of every playbook of a run, from the versions that became active, in order.

    Attributes:
        versions: how many there were.
    """

    def __init__(self, versions: Iterable[PlaybookVersion] = ()) -> None:
        self.versions = 0
        self._by_playbook: dict[str, _Epochs] = {}
        for version in versions:
            self.note_version(version)

    def note_version(self, version: PlaybookVersion) -> None:
        """A version became active."""
        self.versions += 1
        definition = version.definition
        epochs = self._by_playbook.setdefault(definition.id, _Epochs())
        key, cells = outcome_rules(definition), frozenset(eligible_cells(definition))
        if key not in epochs.rules:
            epochs.rules.append(key)
        if definition.content_hash not in epochs.hashes.setdefault(key, []):
            epochs.hashes[key].append(definition.content_hash)
        if (key, cells) != (epochs.in_force, epochs.open_cells):
            if key == epochs.in_force:
                for cell in sorted(cells - epochs.open_cells):
                    epochs.reopened.setdefault(cell, []).append(version.since)
            epochs.whole_changes += 1
            epochs.whole_since = version.since
        epochs.in_force, epochs.open_cells = key, cells

    @property
    def epochs(self) -> dict[str, int]:
        """Epoch of each playbook, of its open cells together (`|*`), and of cells opened again."""
        found = {}
        for name, kept in sorted(self._by_playbook.items()):
            found[name] = kept.rules.index(kept.in_force)
            found[hypothesis(name, WHOLE)] = kept.whole_changes
            for cell, times in sorted(kept.reopened.items()):
                found[hypothesis(name, cell)] = found[name] + len(times)
        return found

    @property
    def starts(self) -> dict[str, int]:
        """Entries before this time, ns, are not tested.

        Of all open cells together, and of cells opened again.
        """
        found = {}
        for name, kept in sorted(self._by_playbook.items()):
            found[hypothesis(name, WHOLE)] = kept.whole_since
            for cell, times in sorted(kept.reopened.items()):
                found[hypothesis(name, cell)] = times[-1]
        return found

    @property
    def same_rules(self) -> Mapping[str, tuple[str, ...]]:
        """Hashes of the versions whose trades count as those of the one in force, by playbook."""
        return {name: tuple(kept.hashes[kept.in_force]) for name, kept in sorted(self._by_playbook.items())}


KnownVersions = Sequence[tuple[int, PlaybookVersion]]


def active(versions: KnownVersions, clock: int) -> list[PlaybookVersion]:
    """Those in force, by id."""
    found: dict[str, PlaybookVersion] = {}
    for at, version in versions:
        if at <= clock:
            follow(found, version)
    return [found[name] for name in sorted(found)]


def follow(in_force: dict[str, PlaybookVersion], version: PlaybookVersion) -> None:
    """Change what is in force, by id, by one transition, as the registry does."""
    name = version.definition.id
    if version.state is VersionState.ACTIVE:
        in_force[name] = version
    elif name in in_force and in_force[name].definition.content_hash == version.definition.content_hash:
        del in_force[name]


def on_trial(versions: KnownVersions, clock: int) -> list[PlaybookVersion]:
    """Those in shadow."""
    latest = _by_hash(versions, clock)
    return [version for version in latest.values() if version.state is VersionState.SHADOW]


def next_versions(versions: KnownVersions, clock: int) -> dict[str, int]:
    """The number that a new version of each playbook in force gets, by id."""
    known = [version.definition for at, version in versions if at <= clock]
    return {
        version.definition.id: 1 + max(made.version for made in known if made.id == version.definition.id)
        for version in active(versions, clock)
    }


def ancestors(versions: KnownVersions, clock: int) -> dict[str, PlaybookDefinition]:
    """By id, the nearest ancestor of each version in force that traded differently, if any."""
    by_hash = _by_hash(versions, clock)
    found: dict[str, PlaybookDefinition] = {}
    for version in active(versions, clock):
        ancestor: PlaybookVersion | None = version
        while ancestor is not None and same_rules(ancestor.definition, version.definition):
            ancestor = by_hash.get(ancestor.parent_hash or "")
        if ancestor is not None:
            found[version.definition.id] = ancestor.definition
    return found


def _by_hash(versions: KnownVersions, clock: int) -> dict[str, PlaybookVersion]:
    return {version.definition.content_hash: version for at, version in versions if at <= clock}
