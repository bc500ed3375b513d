"""The facts of one run as of one moment: what its report, its trades and its playbooks say of a subject."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from schemas.claims import FactRow
from schemas.episode import Episode
from schemas.slow_reflection import ClusterFinding, HighLevelReflectionReport
from schemas.vocabulary import (
    TIMEFRAME_SECONDS,
    EvidenceGrade,
    ExitReason,
    FailureMode,
    RecommendedAction,
)
from services.evidence.catalogue import CATALOGUE, DAY_SECONDS
from services.evidence.facts import Subject, Unit, period_of
from services.evidence.observed import ACCOUNT, AT_THE_END, SETTINGS, KnownSnapshot, Observed
from services.evidence.selection import NAMED_FIELDS, chosen_of

EXPECTED = {
    "expected_hold_p50": "expected_hold_p50_bars",
    "expected_hold_p90": "expected_hold_p90_bars",
    "expected_mae_p80": "expected_winner_mae_p80_r",
    "expected_mfe_p50": "expected_mfe_p50_r",
}
WHOLE = Subject()
OF_THE_ACCOUNT = frozenset(
    {*ACCOUNT, *SETTINGS, *(name for name in AT_THE_END if CATALOGUE[name].episodes is None)}
)
# What the trades of a subject may have several of.
TRADED = {"playbooks": "playbook", "symbols": "symbol", "regimes": "regime"}
TOTALS = frozenset({*TRADED, "clusters", "recommendations", "reports"})
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+")
CLOSED_NAMES = frozenset(
    member.value for group in (EvidenceGrade, RecommendedAction, FailureMode, ExitReason) for member in group
)


@dataclass(frozen=True)
class Fact:
    """One stored or derived value: R multiples, counts, shares 0 to 1, bars, prices or scores by unit."""

    value: float
    unit: Unit
    rows: tuple[FactRow, ...] = ()


@dataclass(frozen=True)
class KnownEpisode:
    """A resolved trade with its row."""

    episode: Episode
    row: FactRow


@dataclass(frozen=True)
class KnownPlaybook:
    """A playbook's version in force: its definition as plain data, with its row."""

    id: str
    version: int
    parameters: Mapping[str, float]
    row: FactRow


@dataclass(frozen=True)
class KnownVersion:
    """What became of a version of a playbook, and when, in ns."""

    playbook: str
    version: int
    state: str
    since: int
    row: FactRow


@dataclass(frozen=True)
class RunFacts:
    """Answers questions of the catalogue; holds nothing that was not known at `known_at`.

    Attributes:
        known_at: ns.
        episodes: resolved trades of the account, oldest first.
        report: the newest one; None before the first.
        report_row: where it stands.
        past: every report with its row, oldest first.
        playbooks: versions in force.
        versions: every state of every version, oldest first.
        ids: what a short id in a text may name, with its row.
        named: symbols and further names of the run.
        observed: what it saw beside its trades.
    """

    known_at: int
    episodes: tuple[KnownEpisode, ...] = ()
    report: HighLevelReflectionReport | None = None
    report_row: FactRow = FactRow(seq=None, kind="high_level_report")
    reports: int = 0
    playbooks: tuple[KnownPlaybook, ...] = ()
    ids: Mapping[str, FactRow] = field(default_factory=dict)
    symbols: tuple[str, ...] = ()
    first_label: int | None = None
    versions: tuple[KnownVersion, ...] = ()
    observed: Observed = Observed()
    past: tuple[tuple[HighLevelReflectionReport, FactRow], ...] = ()

    def as_of(self, moment: int) -> "RunFacts":
        """What was known at a moment in ns, with the report of then; the parameters are those of now."""
        reports = [item for item in self.past if item[0].known_at <= moment]
        report, row = reports[-1] if reports else (None, self.report_row)
        return replace(
            self,
            known_at=moment,
            episodes=tuple(known for known in self.episodes if known.episode.known_at <= moment),
            report=report,
            report_row=row,
            reports=len(reports),
            past=tuple(reports),
            versions=tuple(known for known in self.versions if known.since <= moment),
            observed=self.observed.as_of(moment),
        )

    @cached_property
    def _chosen(self) -> dict[Subject, list[KnownEpisode]]:
        """Trades that were asked for before."""
        return {}

    @cached_property
    def _graded(self) -> dict[tuple[str, str | None, str | None], ClusterFinding]:
        return {(c.playbook_id, c.regime, c.timeframe): c for c in reversed(self._clusters)}

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

    @property
    def features(self) -> frozenset[str]:
        """Names of features that a snapshot has."""
        return self.observed.features

    @cached_property
    def names(self) -> frozenset[str]:
        """Identifiers that the run uses anywhere in its report and its closed sets."""
        found = set(CLOSED_NAMES) | set(self.playbook_ids) | set(self.symbols) | set(self.parameters)
        if self.report is not None:
            found |= _identifiers(self.report.payload(), leave_out=("narrative", "deferred_seen"))
        return frozenset(found)

    @cached_property
    def _clusters(self) -> tuple[ClusterFinding, ...]:
        return () if self.report is None else self.report.clusters

    def facts(self, question: str, subject: Subject) -> tuple[Fact, ...]:
        """Answers to a question of the catalogue, the one that a report states first; none without rows."""
        if (question, subject) not in self._answered:
            self._answered[question, subject] = self._answers(question, subject)
        return self._answered[question, subject]

    @cached_property
    def _answered(self) -> dict[tuple[str, Subject], tuple[Fact, ...]]:
        """Answers to what was asked before."""
        return {}

    def _answers(self, question: str, subject: Subject) -> tuple[Fact, ...]:
        known = CATALOGUE[question]
        if subject.trial is not None:
            values = self.observed.of_trial(question, subject)
        elif question in OF_THE_ACCOUNT:
            values = self.observed.of_account(question, subject)
        elif question == "feature":
            policies = [known.episode.policy_id for known in self.trades(subject)]
            values = self.observed.of_bar(subject, policies)
        elif question in EXPECTED:
            values = self._expectations(EXPECTED[question], subject)
        elif question == "failures":
            values = self._failures(subject)
        elif question == "parameter":
            values = self._parameter(subject)
        elif question == "version":
            values = [(float(p.version), p.row) for p in self.playbooks if subject.playbook in (None, p.id)]
        elif question == "price":
            values = self._prices(subject)
        elif question == "days_p90":
            values = self._days("hold_p90", subject)
        elif question in TOTALS:
            values = self._totals(question, subject)
        else:
            values = [*self._of_clusters(known.cluster, subject), *self._of_report(question, subject)]
            values += self._of_regime(known.marginal, subject)
            chosen = self.trades(subject) if known.episodes is not None else []
            if known.episodes is not None and chosen:
                values += [(value, chosen[-1].row) for value in self._of_trades(question, subject)]
                values += self.observed.of_account(question, subject)
            elif known.episodes is not None and known.unit == "count" and self._names(subject):
                values.append((0.0, self.report_row))
        return tuple(Fact(value, known.unit, (row,)) for value, row in values)

    def trades(self, subject: Subject) -> list[KnownEpisode]:
        """The resolved trades that a subject names, oldest first."""
        if subject not in self._chosen:
            self._chosen[subject] = chosen_of(self.episodes, subject)
        return self._chosen[subject]

    def cluster(self, subject: Subject) -> ClusterFinding | None:
        """The graded cluster that is exactly this subject."""
        if subject != Subject(subject.playbook, subject.regime, subject.timeframe):
            return None
        return self._graded.get((subject.playbook or "", subject.regime, subject.timeframe))

    def grades(self, *, of_playbooks: bool = False) -> tuple[EvidenceGrade, ...]:
        """Grades of all clusters, or of those that are one playbook in every regime and timeframe."""
        return tuple(
            finding.grade
            for finding in self._clusters
            if not of_playbooks or finding.regime is None and finding.timeframe is None
        )

    def members(self, field: str, within: Subject = WHOLE) -> list[Subject]:
        """A subject narrowed to each value of a field that its trades have, in order of name."""
        key = (field, within)
        if key not in self._members:
            name = NAMED_FIELDS[field]
            held = {getattr(known.episode, name) for known in self.trades(within)} - {None}
            self._members[key] = [within.having(field, str(value)) for value in sorted(held)]
        return self._members[key]

    def years(self, within: Subject = WHOLE) -> list[Subject]:
        """A subject narrowed to each year in which its trades were entered."""
        held = {moment_of(known.episode.entry_label).year for known in self.trades(within)}
        return [within.merge(Subject(period=period_of(year))) for year in sorted(held)]

    def graded_subjects(self) -> list[Subject]:
        """Every graded cluster as a subject, those of one timeframe left aside."""
        return [Subject(c.playbook_id, c.regime) for c in self._clusters if c.timeframe is None]

    @cached_property
    def _members(self) -> dict[tuple[str, Subject], list[Subject]]:
        return {}

    def _of_trades(self, question: str, subject: Subject) -> list[float]:
        """What the trades of a subject answer."""
        known = CATALOGUE[question]
        episodes = [item.episode for item in self.trades(subject)]
        told = [way(episodes) for way in (known.episodes, *known.further) if way is not None]
        return [value for value in told if value is not None]

    def _names(self, subject: Subject) -> bool:
        """Whether every part of a subject is one that the run has."""
        return subject.playbook in (None, *self.playbook_ids) and subject.symbol in (None, *self.symbols)

    def _of_clusters(self, fields: Sequence[str], subject: Subject) -> list[tuple[float, FactRow]]:
        found = self.cluster(subject)
        if found is None:
            return []
        stated = [getattr(found, name) for name in fields]
        return [(float(value), self.report_row) for value in stated if value is not None]

    def _of_report(self, question: str, subject: Subject) -> list[tuple[float, FactRow]]:
        if self.report is None:
            return []
        if question == "trades" and subject.is_empty:
            return [(float(self.report.n_episodes), self.report_row)]
        is_lost = question == "trades" and subject == Subject(outcome="lost")
        if is_lost or question == "losers" and subject in (WHOLE, Subject(failure_mode=subject.failure_mode)):
            return [(float(sum(self.report.failure_modes.values())), self.report_row)]
        return []

    def _of_regime(self, name: str | None, subject: Subject) -> list[tuple[float, FactRow]]:
        if self.report is None or name is None or subject != Subject(regime=subject.regime):
            return []
        of_regime = [row for row in self.report.regime_cluster_summary if row["regime"] == subject.regime]
        return [(float(row[name]), self.report_row) for row in of_regime if row.get(name) is not None]

    def _days(self, question: str, subject: Subject) -> list[tuple[float, FactRow]]:
        """A hold in bars as days, where all trades of a subject have one timeframe."""
        frames = self.members("timeframe", subject)
        if len(frames) != 1:
            return []
        days = TIMEFRAME_SECONDS.get(str(frames[0].timeframe), 0) / DAY_SECONDS
        return [(fact.value * days, fact.rows[0]) for fact in self.facts(question, subject)]

    def _failures(self, subject: Subject) -> list[tuple[float, FactRow]]:
        mode = subject.failure_mode
        if mode is None:
            return []
        values: list[tuple[float, FactRow]] = []
        if self.report is not None and subject == Subject(failure_mode=mode):
            values.append((float(self.report.failure_modes.get(mode, 0)), self.report_row))
        chosen = self.trades(subject)
        counted = sum(known.episode.failure_mode == mode for known in chosen)
        return [*values, (float(counted), chosen[-1].row if chosen else self.report_row)]

    def _expectations(self, name: str, subject: Subject) -> list[tuple[float, FactRow]]:
        """What a playbook's file expects of its holds and excursions."""
        checks = () if self.report is None else self.report.expectations
        of_playbook = [check for check in checks if subject == Subject(playbook=check.playbook_id)]
        return [(float(getattr(check, name)), self.report_row) for check in of_playbook]

    def _parameter(self, subject: Subject) -> list[tuple[float, FactRow]]:
        name = subject.parameter
        return [
            (playbook.parameters[name], playbook.row)
            for playbook in self.playbooks
            if name is not None and name in playbook.parameters and subject.playbook in (None, playbook.id)
        ]

    def _prices(self, subject: Subject) -> list[tuple[float, FactRow]]:
        if subject.is_empty:
            return []
        chosen = self.trades(subject)
        return [
            (price, known.row)
            for known in chosen
            for price in (known.episode.entry_price, known.episode.exit_price)
        ]

    def _totals(self, question: str, subject: Subject) -> list[tuple[float, FactRow]]:
        """How many there are; of a subject, how many its trades have."""
        own: list[tuple[float, FactRow]] = []
        if not subject.is_empty and question in TRADED:
            found = self.members(TRADED[question], subject)
            own = [(float(len(found)), self.trades(subject)[-1].row)] if found else []
            if own and TRADED[question] not in subject.fields:
                return own
        report = self.report
        clusters, advised = self._clusters, () if report is None else report.recommendations
        if not subject.is_empty and question not in TRADED:
            of_playbook = subject.fields <= {"playbook"} and question in ("clusters", "recommendations")
            clusters = tuple(
                item for item in clusters if of_playbook and item.playbook_id == subject.playbook
            )
            advised = tuple(item for item in advised if of_playbook and item.playbook_id == subject.playbook)
            report = report if of_playbook else None
        counts: dict[str, tuple[int, ...]] = {
            "playbooks": (len(self.playbook_ids), len(self.members("playbook"))),
            "symbols": (len(self.symbols), len(self.members("symbol"))),
            "regimes": (len(self.members("regime")),),
            "clusters": (len(clusters),) if report else (),
            "recommendations": (len(advised),) if report else (),
            "reports": (self.reports,) if subject.is_empty else (),
        }
        return [*own, *((float(value), self.report_row) for value in counts[question])]


def snapshot_facts(told: Mapping[str, Any], label: int) -> RunFacts:
    """What one snapshot alone answers, from its plain data: its bar at `label` in ns, and its account.

    Volume is left out: a strategist is shown that of other bars as well.
    """
    row = FactRow(seq=None, kind="policy_snapshot")
    features = {name: value for name, value in told["features"].items() if name != "volume"}
    known = KnownSnapshot.of({**told, "bar_label": label, "features": features}, row)
    return RunFacts(label, symbols=(known.symbol,), observed=Observed((known,)))


def moment_of(ns: int) -> datetime:
    """A time in ns as a moment of UTC."""
    return datetime.fromtimestamp(ns / 1e9, UTC)


def _identifiers(value: Any, *, leave_out: Iterable[str] = ()) -> set[str]:
    """Every identifier among the keys and the short texts of plain data."""
    found: set[str] = set()
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key not in leave_out:
                found.add(str(key))
                found |= _identifiers(part)
    elif isinstance(value, str):
        found |= set(IDENTIFIER.findall(value))
    elif isinstance(value, Sequence):
        for part in value:
            found |= _identifiers(part)
    return found
