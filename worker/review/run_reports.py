"""The reports of a run and its slots: of its own slow loop, of a worker, and on demand."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError, the_one
from services.slow_loop.past_runs import PastRuns
from worker.runs.out_folder import attached_entry, look_up_rows, stored_reports
from worker.slow_worker.ports import JOB, lease_name

if TYPE_CHECKING:
    from schemas.judge import ReplanVerdict
    from services.store import RunRecord, Store
    from services.store.claims import Claim
    from services.store.reports import OnDemandReport, StoredReport

OF_CLAIM = ("by", "facts", "attempts", "epoch")  # what a run that heard of a report does not know of it
LATEST = "latest"


async def list_slots(store: "Store", record: "RunRecord") -> dict[str, Any]:
    """What became of every slot of a run, with the reports on demand, and who holds its slow loop."""
    past = PastRuns()
    async for row in store.journal.rows(record.run_id, kinds=past.takers):
        past.add(row)
    slots = {
        run.slot: _slot("run", run.slot, (run.report_id, run.n_episodes, run.recommended_action), run.verdict)
        for run in past.all()
    }
    payload = {stored.key.slot: stored for stored in await store.reports.all(record.run_id, JOB)}
    for claim in await store.claims.all(record.run_id, JOB):
        made, heard = _of_worker(claim, payload.get(claim.key.slot)), slots.get(claim.key.slot)
        if heard is None:
            slots[claim.key.slot] = made
        elif heard["report_id"] == made["report_id"]:
            heard |= {name: made[name] for name in OF_CLAIM}
    lease = await store.leases.holder(lease_name(record.run_id))
    # A report on demand stands at the moment it is about; it is no slot and delays none.
    asked_for = [
        _slot("on demand", request.known_at, _columns_of(request), request.verdict)
        for request in await store.on_demand.of_run(record.run_id)
    ]
    return {
        "run_id": record.run_id,
        "lease": None if lease is None else vars(lease),
        "slots": sorted([*slots.values(), *asked_for], key=lambda slot: (slot["slot"], slot["by"])),
    }


def _columns_of(one: "OnDemandReport | StoredReport") -> tuple[str, int, object]:
    return one.report_id, one.report.n_episodes, one.report.recommended_action


def _of_worker(claim: "Claim", stored_report: "StoredReport | None") -> dict[str, Any]:
    reply, verdict, delivery = None, None, None
    if stored_report is not None:
        reply, verdict, delivery = _columns_of(stored_report), stored_report.verdict, stored_report.delivery
    names = ("state", "reason", "facts", "attempts", "epoch")
    claimed = {name: getattr(claim, name) for name in names}
    return _slot("worker", claim.key.slot, reply, verdict) | claimed | {"delivery": delivery}


def _slot(
    by: str, slot: int, lines: tuple[str, int, object] | None, verdict: "ReplanVerdict | None"
) -> dict[str, Any]:
    """A slot that is done, with its report where there is one and what the judge made of it."""
    report_id, episodes, action = lines or (None, None, None)
    return {
        "slot": slot,
        "by": by,
        "state": "done",
        "reason": None,
        "facts": {},
        "attempts": 1,
        "epoch": None,
        "report_id": report_id,
        "episodes": episodes,
        "recommended_action": None if action is None else str(action),
        "delivery": "waiting" if verdict is None else "delivered",
        "verdict": None if verdict is None else str(verdict.decision),
        "actions": None if verdict is None else len(verdict.actions),
    }


async def list_reports(store: "Store", run_id: str) -> list[dict[str, Any]]:
    """Reports of a run by the time at which they were known: its own, those of a worker, and on demand."""
    found = {entry["report_id"]: entry for entry in await stored_reports(store, run_id)}
    others: list[OnDemandReport | StoredReport] = [
        *(kept for kept in await store.reports.all(run_id, JOB) if kept.report_id not in found),
        *await store.on_demand.of_run(run_id),
    ]
    entries = [attached_entry(kept) for kept in others]
    await look_up_rows(store, run_id, entries)
    return sorted([*found.values(), *entries], key=lambda report: int(report["report"]["known_at"]))


def find_position(entries: Sequence[dict[str, Any]], wanted: str, run: str) -> int:
    """Where a report stands among those of its run; `latest`, an id, or the start of one.

    Raises:
        ConfigError: there is none, or there are several.
    """
    if not entries:
        raise ConfigError(f"run {run} has no report: see `thinktwice journal {run} --kind slow_skip` for why")
    if wanted == LATEST:
        return len(entries) - 1
    names = [entry["report_id"] for entry in entries]
    return names.index(the_one("report", wanted, names, f"in run {run}", f"see `thinktwice reports {run}`"))
