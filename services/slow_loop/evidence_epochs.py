"""Whose trades speak for the version in force: evidence belongs to the rules and the regime cell.

What cannot change how trades end keeps it: the risk fraction, the end of a measure, a ban of another cell, a
number or a text. New rules begin an epoch of the playbook; old ones that return go on in theirs. What all
open cells show together begins anew when a cell is closed or opened, because that changes which trades there
are; a cell that is opened again on proof begins an epoch of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from schemas.playbook import PlaybookVersion
from services.high_level.clusters import eligible_cells, hypothesis
from services.playbooks.measures import outcome_rules
from services.statistics.multiplicity import WHOLE


@dataclass
class _Standing:
    rules: list[str] = field(default_factory=list)
    hashes: dict[str, list[str]] = field(default_factory=dict)
    open_cells: frozenset[str] = frozenset()
    in_force: str = ""
    whole_changes: int = -1
    whole_since: int = 0
    reopened: dict[str, list[int]] = field(default_factory=dict)


class EvidenceEpochs:
    """Epochs of every playbook of a run, from the versions that became active, in order."""

    def __init__(self, versions: Iterable[PlaybookVersion] = ()) -> None:
        self._standing: dict[str, _Standing] = {}
        for version in versions:
            self.entered(version)

    def entered(self, version: PlaybookVersion) -> None:
        """A version became active."""
        definition = version.definition
        one = self._standing.setdefault(definition.id, _Standing())
        key, cells = outcome_rules(definition), frozenset(eligible_cells(definition))
        if key not in one.rules:
            one.rules.append(key)
        if definition.content_hash not in one.hashes.setdefault(key, []):
            one.hashes[key].append(definition.content_hash)
        if (key, cells) != (one.in_force, one.open_cells):
            if key == one.in_force:
                for cell in sorted(cells - one.open_cells):
                    one.reopened.setdefault(cell, []).append(version.since)
            one.whole_changes += 1
            one.whole_since = version.since
        one.in_force, one.open_cells = key, cells

    @property
    def epochs(self) -> dict[str, int]:
        """Epoch of each playbook, of its open cells together (`|*`), and of cells opened again."""
        found = {}
        for name, one in sorted(self._standing.items()):
            found[name] = one.rules.index(one.in_force)
            found[hypothesis(name, WHOLE)] = one.whole_changes
            for cell, times in sorted(one.reopened.items()):
                found[hypothesis(name, cell)] = found[name] + len(times)
        return found

    @property
    def starts(self) -> dict[str, int]:
        """Entries before this time, ns, are not tested.

        Of all open cells together, and of cells opened again.
        """
        found = {}
        for name, one in sorted(self._standing.items()):
            found[hypothesis(name, WHOLE)] = one.whole_since
            for cell, times in sorted(one.reopened.items()):
                found[hypothesis(name, cell)] = times[-1]
        return found

    @property
    def same_rules(self) -> Mapping[str, tuple[str, ...]]:
        """Hashes of the versions whose trades count as those of the one in force, by playbook."""
        return {name: tuple(one.hashes[one.in_force]) for name, one in sorted(self._standing.items())}
