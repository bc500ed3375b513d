"""Whose trades speak for the version in force: evidence belongs to the rules and the regime cell.

What cannot change how trades end keeps it: the risk fraction, the end of a measure, a ban of another cell, a
number or a text. New rules begin an epoch of the playbook; old ones that return go on in theirs. What all
open cells show together begins anew when a cell is closed or opened, because that changes which trades there
are; a cell that is opened again on proof begins an epoch of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from schemas.playbook import PlaybookVersion
from services.high_level.hypotheses import hypothesis
from services.playbooks.measures import eligible_cells, outcome_rules
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
            self.entered(version)

    def entered(self, version: PlaybookVersion) -> None:
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
