"""How the process of a run is, and its kill switch."""

import time
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError
from services.guard.desk import GuardDesk
from worker.review.run_requests import queue_request, takes_requests

if TYPE_CHECKING:
    from services.store import RunRecord, Store

SILENT_MS = 10_000


async def status_of(store: "Store", record: "RunRecord") -> dict[str, Any]:
    """What `status --json` prints of a run."""
    seen = await store.trading.last_seen(record.run_id)
    guard = {"kill_switch": await _is_killed(store, record)} if record.mode == "guard" else {}
    growth = await store.growth.of(record.run_id)
    process = None
    if seen is not None:
        process = {
            "owner": seen.owner,
            "alive": record.status == "running" and seen.age_ms < SILENT_MS,
            "seen_ms_ago": seen.age_ms,
            "signs": seen.signs,
        }
    return {
        "run_id": record.run_id,
        "mode": record.mode,
        "status": record.status,
        "ended_early": record.ended_early,
        "events": record.events,
        "head_hash": record.head_hash,
        "store_bytes": growth.size,
        "store_bytes_per_day": growth.per_day,
        "process": process,
        **guard,
        "requests_waiting": [request.number for request in await store.operator.waiting(record.run_id)],
        "plans_waiting": await store.plans.waiting(record.run_id, now=time.time_ns()),
    }


async def _is_killed(store: "Store", record: "RunRecord") -> bool:
    desk = await GuardDesk.attach(store, record, time.time_ns)
    return desk.settings.envelope.kill_switch or desk.ledger.killed


async def switch_guards(
    store: "Store", record: "RunRecord | None", *, on: bool, by: str
) -> list[dict[str, Any]]:
    """Switch a guard, or all of a store, which heed it at once; what each does from now on."""
    every = [known for known in await store.runs.all() if known.mode == "guard"]
    found = []
    for guard in every if record is None else [record]:
        desk = await GuardDesk.attach(store, guard, time.time_ns)
        await desk.kill(on=on, by=by)
        found.append(
            {"run_id": guard.run_id, "kind": "kill_switch", "payload": {"on": on}, "mode": desk.mode}
        )
    return found


async def switch_run(store: "Store", record: "RunRecord", *, on: bool) -> dict[str, Any]:
    """Ask the process that trades a run; the request with its number.

    Raises:
        ConfigError: nothing trades it.
    """
    if not takes_requests(record):
        raise ConfigError(f"run {record.run_id} is {record.status}: nothing trades it that could be stopped")
    return await queue_request(store, record, "kill_switch", {"on": on})
