"""The facts that a report and its batch hold, for a text that is written about them."""

from collections.abc import Sequence

from schemas.claims import FactRow
from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from schemas.slow_reflection import HighLevelReflectionReport
from services.evidence.run_facts import KnownEpisode, KnownPlaybook, RunFacts


def report_facts(
    report: HighLevelReflectionReport,
    episodes: Sequence[Episode],
    definitions: Sequence[PlaybookDefinition],
) -> RunFacts:
    """What a text about a report may claim, before anything of it is stored.

    Args:
        report: the report itself.
        episodes: of its batch.
        definitions: playbooks in force.
    """
    row = FactRow(seq=None, kind="episode")  # frozen, so one says it for all
    return RunFacts(
        known_at=report.known_at,
        episodes=tuple(KnownEpisode(item, row) for item in episodes),
        report=report,
        reports=1,
        playbooks=tuple(known_playbook(item) for item in definitions),
        symbols=tuple(sorted({item.symbol for item in episodes})),
    )


def known_playbook(definition: PlaybookDefinition) -> KnownPlaybook:
    """A definition as a fact."""
    return KnownPlaybook(definition.id, tuple(definition.parameters))
