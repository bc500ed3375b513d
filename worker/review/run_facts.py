"""The facts of a stored run as of a moment: what its index says, and the report that a text is about."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from schemas.claims import FactRow
from schemas.errors import ConfigError
from schemas.playbook import PlaybookDefinition
from schemas.slow_reflection import HighLevelReflectionReport
from services.evidence.observed import AT_THE_END, SETTINGS, KnownSnapshot, Observed
from services.evidence.run_facts import KnownPlaybook, RunFacts
from services.evidence_tools.run_view import RunView, row_of
from services.journal.index import Event, JournalIndex
from worker.review.report_finder import FoundReport, find_report

if TYPE_CHECKING:
    from services.store import RunRecord, Store

REPORT = "high_level_report"
FINISHED = "run_finished"
Made = TypeVar("Made")
KINDS = frozenset({"genesis", "episode", "playbook_version", "policy_snapshot", REPORT, FINISHED})


def facts_of(view: "RunView", run: "RunRecord", *, ended: bool, found: FoundReport | None = None) -> RunFacts:
    """The facts of a run as of a view of it.

    Args:
        view: its rows up to a moment, of `KINDS` at least.
        run: as its store has it.
        ended: whether what the end of the run brought is known.
        found: a report that was asked for; it stands for the newest one.
    """
    index = view.index
    reports = [(_make_once(index, event, _report), row_of(event)) for event in index.of_kind(REPORT)]
    report, row = reports[-1] if reports else (None, FactRow(seq=None, kind=REPORT))
    if found is not None:
        stored = (item for item in reports if item[0].content_hash == found.report.content_hash)
        report, row = next(stored, (found.report, FactRow(seq=None, kind=REPORT)))
    versions = (_make_once(index, event, _playbook) for event in index.of_kind("playbook_version"))
    playbooks = {known.id: known for known in versions if known is not None}
    finished = index.of_kind(FINISHED)
    return RunFacts(
        known_at=view.known_at,
        episodes=tuple(view.episodes),
        report=report,
        report_row=row,
        reports=len(reports),
        playbooks=tuple(playbooks[name] for name in sorted(playbooks)),
        symbols=tuple(name for event in index.of_kind("genesis") for name in event.glance()["symbols"]),
        observed=Observed(
            tuple(_make_once(index, event, _snapshot) for event in index.of_kind("policy_snapshot")),
            cash=run.config.get("account", {}).get("cash"),
            settings=_settings(run.config),
            ended=_read_end(run.document) if ended and run.document is not None else {},
            end_row=row_of(finished[-1]) if finished else FactRow(seq=None, kind=FINISHED),
        ),
    )


def _make_once(index: JournalIndex, event: Event, make: Callable[[Event], Made]) -> Made:
    key = (f"fact of {event.row.kind}", event.row.seq)
    if key not in index.made:
        index.made[key] = make(event)
    return index.made[key]  # type: ignore[no-any-return]


def _report(event: Event) -> HighLevelReflectionReport:
    return HighLevelReflectionReport.model_validate(event.glance()["report"])


def _playbook(event: Event) -> KnownPlaybook | None:
    payload = event.glance()
    definition = PlaybookDefinition.model_validate(payload["definition"])
    return KnownPlaybook.of(definition) if payload["state"] == "active" else None


def _snapshot(event: Event) -> KnownSnapshot:
    return KnownSnapshot.of(event.glance()["snapshot"], row_of(event))


def _settings(config: Mapping[str, Any]) -> dict[str, float]:
    sections = config.get("execution", {})
    return {name: float(sections[name]) for name in SETTINGS if sections.get(name) is not None}


def _read_end(document: dict[str, Any]) -> dict[str, float]:
    """What the document of a run that is over says of its account; nothing where it says less."""
    payload = document.get("performance", {})
    names = ("total_return", "net_return", "max_drawdown")
    if any(payload.get(name) is None for name in names):
        return {}
    policy = document.get("policy_loop", {})
    further = {**policy.get("answers", {}), **policy.get("reflections", {}), **payload}
    further |= {name: policy.get(name) for name in ("stand_downs", "evaluations")}
    further["open_positions"] = len(document.get("open_positions", ()))
    questions = {*AT_THE_END.values(), *names}
    return {name: float(further[name]) for name in sorted(questions) if further.get(name) is not None}


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
    index = await JournalIndex.read(store.journal.rows(run.run_id, kinds=KINDS, until=until), lazily=True)
    known_at = max((event.row.known_at for event in index.events), default=0) if until is None else until
    facts = facts_of(RunView(run.run_id, index, known_at, None), run, ended=until is None, found=found)
    if not facts.symbols:
        raise ConfigError(f"run {run.run_id} had begun at no bar by that time: give a later --at")
    return facts
