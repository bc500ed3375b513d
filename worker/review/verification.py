"""Does a run hold: its chain, its ids, what is stored beside its rows, and the same run played again."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError
from services.journal.chain import check_chain
from services.journal.index import JournalIndex
from services.journal.references import ReferenceReport, check_references
from worker.operations.environment import environment
from worker.review.rebuilt import stored_script, watch_replay
from worker.runs.progress import Progress
from worker.runs.replay import NotReplayable, Replay, ReplayReport, Script
from worker.runs.stored_settings import SettingsOfAnotherVersion, stored_settings

if TYPE_CHECKING:
    from services.store import RunRecord, Store

Watch = Callable[[Script], AbstractContextManager[Progress]]
UNCHECKED = ReferenceReport(False, 0, (), "not checked: the chain is broken")


async def verify_run(
    store: "Store", record: "RunRecord", data: Path | None = None, watch: Watch = watch_replay
) -> dict[str, Any]:
    """What `verify --json` prints of a run; `watch` gives what is told between bars of its replay."""
    from services.store.failures import MEND

    index, stored = JournalIndex(), store.journal.as_stored(record.run_id)
    chain = await check_chain(index.take(stored), events=record.events, head_hash=record.head_hash)
    references = UNCHECKED
    if chain.ok:
        references = check_references(index, finished=record.status == "finished")
    kept = await store.seals.problems(record.run_id)
    replay = await _replay(store, record, data, kept, watch)
    return {
        "run_id": record.run_id,
        "status": record.status,
        "ended_early": record.ended_early,
        "ok": chain.ok and references.ok and replay.ok and not kept,
        "next": None if chain.ok and not kept and not replay.document else MEND,
        "chain": asdict(chain),
        "references": asdict(references),
        "replay": asdict(replay),
        "stored": {"ok": not kept, "problems": kept},
        "environment": {"recorded": record.environment, "present": environment()},
    }


async def _replay(
    store: "Store", record: "RunRecord", data: Path | None, kept: list[str], watch: Watch
) -> ReplayReport:
    """The replay, unless the row that says how to play the run is not the one that was sealed."""
    from services.store.failures import StoreDamaged
    from services.store.seals import DESCRIBED_ANEW

    try:
        settings = stored_settings(record)
    except SettingsOfAnotherVersion as error:
        return ReplayReport(False, 0, record.events, None, str(error), playable=False)
    except ConfigError as error:
        return ReplayReport(False, 0, record.events, None, str(error))
    if DESCRIBED_ANEW in kept:
        return ReplayReport(False, 0, record.events, None, f"not replayed: {DESCRIBED_ANEW}")
    try:
        if record.mode == "guard":
            from services.guard.recheck import recheck

            count, problem = await recheck(store.journal.rows(record.run_id))
            return ReplayReport(problem is None, count, record.events, record.head_hash, problem)
        script = await stored_script(store, record, settings, data)
        with watch(script) as progress:
            return await Replay(script, store, record).compare(progress)
    except NotReplayable as error:
        return ReplayReport(False, 0, record.events, None, str(error), playable=False)
    except StoreDamaged as error:
        return ReplayReport(False, 0, record.events, None, f"not replayed: {error}")
