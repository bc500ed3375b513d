"""`thinktwice verify` and `thinktwice scenarios`: does a run hold, and do the scenarios of the runbook.

A run holds when its chain does and running it again gives the same rows.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from schemas.errors import ConfigError
from services.journal.chain import check_chain
from services.journal.index import JournalIndex
from services.journal.references import ReferenceReport, check_references
from services.model_calls.quoting import count_noun
from worker.cli.console import print_document, stdout_console
from worker.cli.options import LATEST, DataOption, DbOption, JsonOption, RunArgument, open_for_run
from worker.cli.own_features import FeaturesOption, define_features
from worker.cli.rebuilt import stored_script, watch_replay
from worker.operations.environment import environment
from worker.pages.tables import made_table
from worker.runs.replay import (
    NotReplayable,
    Replay,
    ReplayReport,
    Script,
    SettingsOfAnotherVersion,
    stored_settings,
)
from worker.runs.store_run import Progress

if TYPE_CHECKING:
    from services.store import RunRecord, Store

Watch = Callable[[Script], AbstractContextManager[Progress]]
SHOWN = 10
UNCHECKED = ReferenceReport(False, 0, (), "not checked: the chain is broken")


async def verify(
    run: RunArgument = LATEST,
    data: DataOption = None,
    features: FeaturesOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Check the hash chain of a run and replay it: exit 0 when both hold, 1 when one does not."""
    define_features(features)
    async with open_for_run(db, run, changed=True, guards=True) as (store, record):
        result = await verify_run(store, record, data)
    print_document(result, json, _render)
    if not result["ok"]:
        raise typer.Exit(1)


async def verify_run(
    store: "Store", record: "RunRecord", data: Path | None = None, watch: Watch = watch_replay
) -> dict[str, Any]:
    """What `verify --json` prints of a run; `watch` gives what is told between bars of its replay."""
    from services.store.failures import MEND

    chain = await check_chain(
        store.journal.as_stored(record.run_id), events=record.events, head_hash=record.head_hash
    )
    references = UNCHECKED
    if chain.ok:
        index = await JournalIndex.read(store.journal.rows(record.run_id))
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


def _render_stored(stored: dict[str, Any]) -> None:
    console = stdout_console()
    for line in stored["problems"] or ["holds: document, bars and orders are as they were written"]:
        console.print(f"stored  {'CHANGED: ' if stored['problems'] else ''}{line}", soft_wrap=True)


def _render(result: dict[str, Any]) -> None:
    console = stdout_console()
    chain, replay = result["chain"], result["replay"]
    early = f": {result['ended_early']['message']}" if result["ended_early"] else ""
    console.print(f"run {result['run_id']} ({result['status']}){early}", soft_wrap=True)
    held = f"holds: {count_noun(chain['rows'], 'row')}, head {chain['head_hash'][:16]}"
    console.print(f"chain   {held if chain['ok'] else 'BROKEN: ' + chain['problem']}", soft_wrap=True)
    if result["next"] is not None:
        console.print(f"next    {result['next']}", soft_wrap=True)
    references = result["references"]
    resolved = f"resolve: {count_noun(references['checked'], 'id')}"
    lost = (
        references["problem"]
        or f"DANGLING: {len(references['dangling']):,} of {count_noun(references['checked'], 'id')}"
    )
    console.print(f"ids     {resolved if references['ok'] else lost}")
    for line in references["dangling"][:SHOWN]:
        console.print(f"        {line}", soft_wrap=True)
    same = f"same: {replay['compared']:,} of {count_noun(replay['stored'], 'row')} equal"
    changed = "; ".join(replay["document"] or ())
    problem = replay["problem"] or f"the document was changed: {changed}"
    differs = f"DIFFERS: {problem} ({replay['compared']:,} of {count_noun(replay['stored'], 'row')} equal)"
    if replay["playable"]:
        console.print(f"replay  {same if replay['ok'] else differs}", soft_wrap=True)
    else:
        held = "the lines around this one say what was checked"
        console.print(f"replay  cannot be replayed: {problem}; {held}", soft_wrap=True)
    _render_stored(result["stored"])
    recorded, present = result["environment"]["recorded"], result["environment"]["present"]
    rows = (
        (name, str(recorded.get(name)), f"{value}{'' if recorded.get(name) == value else '  (differs)'}")
        for name, value in present.items()
    )
    console.print(made_table(("environment", "recorded", "present"), rows, padding=(0, 2, 0, 0)))
