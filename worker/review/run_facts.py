"""The facts of a stored run as of a moment: a fold over its rows, and the report that a text is about."""

import json
from collections.abc import AsyncIterable
from typing import TYPE_CHECKING

from schemas.episode import Episode
from schemas.errors import ConfigError
from schemas.fact_check import FactRow
from schemas.playbook import PlaybookDefinition
from schemas.reflection import HighLevelReflectionReport
from services.evidence.run_facts import KnownEpisode, KnownPlaybook, KnownVersion, RunFacts
from services.high_level.report_facts import known_playbook
from services.high_level.report_lines import report_lines
from services.journal.chain import JournalRow
from services.journal.index import ID_FIELDS
from services.slow_loop.artefacts import with_moments
from worker.review.report_finder import FoundReport, find_report

if TYPE_CHECKING:
    from services.store import RunRecord, Store

REPORT = "high_level_report"
KINDS = frozenset({"genesis", "episode", "playbook_version", REPORT, *ID_FIELDS})


class FactFold:
    """Takes the rows of a run in order; what they say together are its facts."""

    def __init__(self) -> None:
        self._known_at = 0
        self._episodes: list[KnownEpisode] = []
        self._reports: list[tuple[HighLevelReflectionReport, FactRow]] = []
        self._playbooks: dict[str, KnownPlaybook] = {}
        self._versions: list[KnownVersion] = []
        self._ids: dict[str, FactRow] = {}
        self._symbols: tuple[str, ...] = ()
        self._first_label: int | None = None

    def add(self, row: JournalRow) -> None:
        """Take one row."""
        payload = json.loads(row.payload)
        named = FactRow(seq=row.seq, kind=row.kind)
        self._known_at = max(self._known_at, row.known_at)
        if row.kind in ID_FIELDS:
            self._ids.setdefault(payload[ID_FIELDS[row.kind]], named)
        if row.kind == "genesis":
            self._symbols = tuple(payload["symbols"])
        elif row.kind == "episode":
            episode = Episode.model_validate(payload["episode"])
            self._episodes.append(KnownEpisode(episode, named))
            self._ids.setdefault(episode.episode_id, named)
        elif row.kind == REPORT:
            self._reports.append(
                (HighLevelReflectionReport.model_validate(with_moments(payload["report"])), named)
            )
        elif row.kind == "playbook_version":
            definition = PlaybookDefinition.model_validate(payload["definition"])
            state, since = str(payload["state"]), int(payload["since"])
            self._versions.append(KnownVersion(definition.id, definition.version, state, since, named))
            if state == "active":
                self._playbooks[definition.id] = known_playbook(definition, named)

    def facts(self, known_at: int | None, found: FoundReport | None) -> RunFacts:
        """What the rows say; a report that was asked for stands for the newest one."""
        report, row = self._reports[-1] if self._reports else (None, FactRow(seq=None, kind=REPORT))
        if found is not None:
            stored = (item for item in self._reports if item[0].content_hash == found.report.content_hash)
            report, row = next(stored, (found.report, FactRow(seq=None, kind=REPORT)))
        return RunFacts(
            known_at=self._known_at if known_at is None else known_at,
            episodes=tuple(self._episodes),
            report=report,
            report_row=row,
            reports=len(self._reports),
            playbooks=tuple(self._playbooks[name] for name in sorted(self._playbooks)),
            ids=self._ids,
            symbols=self._symbols,
            texts=() if report is None else report_lines(report),
            first_label=self._first_label,
            versions=tuple(self._versions),
        )


async def read_facts(
    store: "Store", run: "RunRecord", *, report: str | None = None, at: int | None = None
) -> RunFacts:
    """The facts of a run as of a report, of a moment in ns, or of its end.

    Raises:
        ConfigError: there is no such report, or the run knew nothing at the moment.
        StoreError: a row is damaged.
    """
    found = None if report is None else await find_report(store, report, run)
    until = at if found is None else found.known_at
    fold = await _folded(store.journal.rows(run.run_id, kinds=KINDS, until=until))
    facts = fold.facts(until, found)
    if not facts.symbols:
        raise ConfigError(f"run {run.run_id} had begun at no bar by that time: give a later --at")
    return facts


async def _folded(rows: AsyncIterable[JournalRow]) -> FactFold:
    fold = FactFold()
    async for row in rows:
        fold.add(row)
    return fold
