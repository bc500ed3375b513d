"""Playbook versions as of a time, of all that were ever known, in order, each with the time in ns."""

from collections.abc import Sequence

from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.vocabulary import VersionState
from services.playbooks.measures import same_rules

KnownVersions = Sequence[tuple[int, PlaybookVersion]]


def active(versions: KnownVersions, clock: int) -> list[PlaybookVersion]:
    """Those in force, by id."""
    found: dict[str, PlaybookVersion] = {}
    for at, version in versions:
        name = version.definition.id
        if at > clock:
            continue
        if version.state is VersionState.ACTIVE:
            found[name] = version
        elif name in found and found[name].definition.content_hash == version.definition.content_hash:
            del found[name]
    return [found[name] for name in sorted(found)]


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
