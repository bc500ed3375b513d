"""The facts of one run as of one moment: what its report, its trades and its playbooks say of a subject."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from schemas.claims import FactRow
from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from schemas.slow_reflection import ClusterFinding, HighLevelReflectionReport
from services.evidence.facts import EMPTY, Subject
from services.evidence.observed import Observed, Value
from services.evidence.selection import NAMED_FIELDS, KnownEpisode, chosen_of

EXPECTED = {
    "expected_hold_p50": "expected_hold_p50_bars",
    "expected_hold_p90": "expected_hold_p90_bars",
    "expected_mae_p80": "expected_winner_mae_p80_r",
    "expected_mfe_p50": "expected_mfe_p50_r",
}
Reading = tuple[float, tuple[FactRow, ...]]


@dataclass(frozen=True)
class KnownPlaybook:
    """A playbook's version in force, and the names of its parameters."""

    id: str
    parameters: tuple[str, ...]

    @classmethod
    def of(cls, definition: PlaybookDefinition) -> "KnownPlaybook":
        """From a definition."""
        return cls(definition.id, tuple(definition.parameters))


@dataclass(frozen=True)
class RunFacts:
    """Answers claims on a run; holds nothing that was not known at `known_at`.

    Attributes:
        known_at: ns.
        episodes: resolved trades of the account, oldest first.
        report: the newest one; None before the first.
        report_row: where it stands.
        reports: how many there are.
        playbooks: versions in force.
        observed: what it saw beside its trades.
    """

    known_at: int
    episodes: tuple[KnownEpisode, ...] = ()
    report: HighLevelReflectionReport | None = None
    report_row: FactRow = FactRow(seq=None, kind="high_level_report")
    reports: int = 0
    playbooks: tuple[KnownPlaybook, ...] = ()
    symbols: tuple[str, ...] = ()
    observed: Observed = Observed()

    @classmethod
    def of_report(
        cls,
        report: HighLevelReflectionReport,
        episodes: Sequence[Episode],
        definitions: Sequence[PlaybookDefinition],
    ) -> "RunFacts":
        """What a text about a report may claim, before anything of it is stored.

        Args:
            report: the report itself.
            episodes: of its batch.
            definitions: playbooks in force.
        """
        row = FactRow(seq=None, kind="episode")  # frozen, so one says it for all
        return cls(
            known_at=report.known_at,
            episodes=tuple(KnownEpisode(item, row) for item in episodes),
            report=report,
            reports=1,
            playbooks=tuple(KnownPlaybook.of(item) for item in definitions),
            symbols=tuple(sorted({item.symbol for item in episodes})),
        )

    @cached_property
    def _chosen(self) -> dict[Subject, list[KnownEpisode]]:
        return {}

    @cached_property
    def figures(self) -> dict[tuple[str, Subject], Reading | None]:
        """Those of trades that were asked for: a claim is held against them when it is made and written."""
        return {}

    @cached_property
    def _graded(self) -> dict[tuple[str, str | None], ClusterFinding]:
        return {(c.playbook_id, c.regime): c for c in reversed(self._clusters) if c.timeframe is None}

    @cached_property
    def playbook_ids(self) -> tuple[str, ...]:
        """Every playbook that the run names, in order of name."""
        of_report = [finding.playbook_id for finding in self._clusters]
        of_trades = [known.episode.playbook_id for known in self.episodes]
        return tuple(sorted({*of_report, *of_trades, *(playbook.id for playbook in self.playbooks)}))

    @cached_property
    def parameters(self) -> frozenset[str]:
        """Names of parameters of the playbooks."""
        return frozenset(name for playbook in self.playbooks for name in playbook.parameters)

    @cached_property
    def _clusters(self) -> tuple[ClusterFinding, ...]:
        return () if self.report is None else self.report.clusters

    def of_run(self, question: str, subject: Subject) -> Value | None:
        """A figure of a playbook's file, of reports or of the account, with its row."""
        if question in EXPECTED:
            return self._expectation(EXPECTED[question], subject)
        if question == "reports":
            return (float(self.reports), self.report_row) if subject.is_empty else None
        if question == "recommendations":
            return self._recommendations(subject)
        return self.observed.of_account(question, subject)

    def trades(self, subject: Subject) -> list[KnownEpisode]:
        """The resolved trades that a subject names, oldest first."""
        if subject not in self._chosen:
            self._chosen[subject] = chosen_of(self.episodes, subject)
        return self._chosen[subject]

    def cluster(self, subject: Subject) -> ClusterFinding | None:
        """The graded cluster of all timeframes that is exactly this subject."""
        if subject != Subject(playbook=subject.playbook, regime=subject.regime):
            return None
        return self._graded.get((subject.playbook or "", subject.regime))

    def members(self, field: str, within: Subject = EMPTY) -> list[Subject]:
        """A subject narrowed to each value of a field that its trades have, in order of name."""
        key = (field, within)
        if key not in self._members:
            name = NAMED_FIELDS[field]
            held = {getattr(known.episode, name) for known in self.trades(within)} - {None}
            self._members[key] = [within.having(field, str(value)) for value in sorted(held)]
        return self._members[key]

    @cached_property
    def _members(self) -> dict[tuple[str, Subject], list[Subject]]:
        return {}

    def _expectation(self, name: str, subject: Subject) -> Value | None:
        checks = () if self.report is None else self.report.expectations
        of_playbook = (check for check in checks if subject == Subject(playbook=check.playbook_id))
        found = next(of_playbook, None)
        return None if found is None else (float(getattr(found, name)), self.report_row)

    def _recommendations(self, subject: Subject) -> Value | None:
        if self.report is None or not subject.fields <= {"playbook"}:
            return None
        advised = self.report.recommendations
        count = sum(subject.playbook in (None, item.playbook_id) for item in advised)
        return float(count), self.report_row


def moment_of(ns: int) -> datetime:
    """A time in ns as a moment of UTC."""
    return datetime.fromtimestamp(ns / 1e9, UTC)
