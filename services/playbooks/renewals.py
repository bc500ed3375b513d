"""What happens to a measure at the end of its life: which are due, how long they go on, and how that is told.

Pure; called by the lifecycle.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from schemas.playbook import PlaybookVersion
from services.playbooks.measures import Composition, Ledger, Measure
from services.playbooks.trials import Evidence
from services.statistics.calendar_units import BlockUnit, after_units

Due = Mapping[Ledger, tuple[Measure, ...]]
Shown = Mapping[tuple[str, str | None], Evidence]

NOTHING: Shown = MappingProxyType({})


@dataclass(frozen=True)
class Renewal:
    """A measure that goes on after its life was over.

    Attributes:
        version: the active version that holds it; what it trades is as before.
        text: the measure in words.
        since: when it was taken, ns.
        until: when it is weighed again, ns.
        shown: what its own trades have shown; empty before the first of them.
    """

    version: PlaybookVersion
    text: str
    since: int
    until: int
    shown: Evidence


def due_measures(composition: Composition, at: int) -> Due:
    """Measures whose life is over at `at`, ns, by the ledger that speaks for or against them."""
    due: dict[Ledger, tuple[Measure, ...]] = {}
    for measure in composition.due(at):
        due[measure.ledger] = (*due.get(measure.ledger, ()), measure)
    return due


def next_end(end: int, at: int, blocks: int, unit: BlockUnit) -> int:
    """So many blocks after an end that is over, or after `at` where that would be over, too; ns."""
    until = after_units(end - 1, blocks, unit)
    return until if until > at else after_units(at, blocks, unit)


def renewals(version: PlaybookVersion, composition: Composition, due: Due, shown: Shown) -> Iterator[Renewal]:
    """What is told of measures that were `due` and stand in `composition` with their next end."""
    ends = {(measure.key, measure.ledger): measure.expires_at for measure in composition.measures}
    for ledger, measures in due.items():
        text = ", ".join(measure.text for measure in measures)
        until = ends[measures[0].key, ledger]
        yield Renewal(version, text, measures[0].since, until, shown.get(ledger, {}))
