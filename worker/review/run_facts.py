"""The facts of a stored run as of a moment: a fold over its rows, and the report that a text is about."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from schemas.claims import FactRow
from schemas.errors import ConfigError
from schemas.playbook import PlaybookDefinition
from schemas.slow_reflection import HighLevelReflectionReport
from services.evidence.observed import AT_THE_END, SETTINGS, KnownSnapshot, Observed
from services.evidence.run_facts import KnownPlaybook, RunFacts
from services.evidence.selection import KnownEpisode
from services.evidence_tools.run_view import episode_of
from services.journal.index import Event, RecentRows, StoredEvent
from worker.review.report_finder import FoundReport, find_report

if TYPE_CHECKING:
    from services.evidence_tools.run_view import RunView
    from services.store import RunRecord, Store

REPORT = "high_level_report"
FINISHED = "run_finished"
Made = TypeVar("Made")
KINDS = frozenset({"genesis", "episode", "playbook_version", "policy_snapshot", REPORT, FINISHED})


class FactFold:
    """Takes the rows of a run in order; what they say together are its facts.

    Args:
        made: what was made of rows before, by what and seq, as `JournalIndex.made`; None: nothing.
    """

    def __init__(self, made: dict[tuple[str, int], Any] | None = None) -> None:
        self._made: dict[tuple[str, int], Any] = {} if made is None else made
        self._known_at = 0
        self._episodes: list[KnownEpisode] = []
        self._reports: list[tuple[HighLevelReflectionReport, FactRow]] = []
        self._playbooks: dict[str, KnownPlaybook] = {}
        self._symbols: tuple[str, ...] = ()
        self._snapshots: list[KnownSnapshot] = []
        self._finished = FactRow(seq=None, kind=FINISHED)

    def add(self, event: Event) -> None:
        """Take one row of `KINDS`."""
        row = event.row
        named = FactRow(seq=row.seq, kind=row.kind)
        self._known_at = max(self._known_at, row.known_at)
        if row.kind == FINISHED:
            self._finished = named
        elif row.kind == "genesis":
            self._symbols = tuple(event.glance()["symbols"])
        elif row.kind == "episode":
            self._episodes.append(episode_of(event, self._made))
        elif row.kind == REPORT:
            self._reports.append((self._make_once(event, _report), named))
        elif row.kind == "playbook_version":
            if (playbook := self._make_once(event, _playbook)) is not None:
                self._playbooks[playbook.id] = playbook
        elif row.kind == "policy_snapshot":
            self._snapshots.append(self._make_once(event, _snapshot))

    def _make_once(self, event: Event, make: Callable[[Event], Made]) -> Made:
        key = (f"fact of {event.row.kind}", event.row.seq)
        if key not in self._made:
            self._made[key] = make(event)
        return self._made[key]  # type: ignore[no-any-return]

    def facts(self, known_at: int | None, found: FoundReport | None, run: "RunRecord") -> RunFacts:
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
            symbols=self._symbols,
            observed=Observed(
                tuple(self._snapshots),
                cash=run.config.get("account", {}).get("cash"),
                settings=_settings(run.config),
                ended={} if known_at is not None or run.document is None else _read_end(run.document),
                end_row=self._finished,
            ),
        )


def _report(event: Event) -> HighLevelReflectionReport:
    return HighLevelReflectionReport.model_validate(event.glance()["report"])


def _playbook(event: Event) -> KnownPlaybook | None:
    payload = event.glance()
    definition = PlaybookDefinition.model_validate(payload["definition"])
    return KnownPlaybook.of(definition) if payload["state"] == "active" else None


def _snapshot(event: Event) -> KnownSnapshot:
    named = FactRow(seq=event.row.seq, kind=event.row.kind)
    return KnownSnapshot.of(event.glance()["snapshot"], named)


def _settings(config: Mapping[str, Any]) -> dict[str, float]:
    """What the settings of a run say of costs."""
    sections = config.get("execution", {})
    return {name: float(sections[name]) for name in SETTINGS if sections.get(name) is not None}


def _read_end(document: dict[str, Any]) -> dict[str, float]:
    """What the document of a run that is over says of its account; nothing where it says less."""
    told = document.get("performance", {})
    names = ("total_return", "net_return", "max_drawdown")
    if any(told.get(name) is None for name in names):
        return {}
    policy = document.get("policy_loop", {})
    further = {**policy.get("answers", {}), **policy.get("reflections", {}), **told}
    further |= {name: policy.get(name) for name in ("stand_downs", "evaluations")}
    further["open_positions"] = len(document.get("open_positions", ()))
    asked = {*AT_THE_END.values(), *names}
    return {name: float(further[name]) for name in sorted(asked) if further.get(name) is not None}


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
    fold, parsed = FactFold(), RecentRows()
    async for row in store.journal.rows(run.run_id, kinds=KINDS, until=until):
        fold.add(StoredEvent(row, parsed))
    facts = fold.facts(until, found, run)
    if not facts.symbols:
        raise ConfigError(f"run {run.run_id} had begun at no bar by that time: give a later --at")
    return facts


def facts_of(view: "RunView", run: "RunRecord", *, ended: bool) -> RunFacts:
    """The facts of a run as of a view of it; what its end brought only where it has `ended` by then."""
    fold = FactFold(view.index.made)
    for event in view.index.events:
        if event.row.kind in KINDS:
            fold.add(event)
    return fold.facts(None if ended else view.known_at, None, run)
