"""`thinktwice reports`: what became of every slot of a run, and what the judge made of its reports."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.canonical import ns_to_datetime
from schemas.errors import ConfigError
from worker.cli.console import print_document, print_json, print_page, print_table, stdout_console
from worker.cli.options import (
    LATEST,
    DbOption,
    JsonOption,
    RunArgument,
    listed_runs,
    open_for_run,
    option,
)
from worker.cli.out_folder import attached_entry, look_up_rows, stored_reports
from worker.cli.page import write_page
from worker.pages.figures import shown_time
from worker.pages.run_marks import document_of_entry
from worker.pages.tables import made_table

if TYPE_CHECKING:
    from schemas.judge import ReplanVerdict
    from services.store import RunRecord, Store
    from services.store.claims import Claim
    from services.store.reports import StoredReport
    from services.store.reports_on_demand import OnDemandReport


OF_CLAIM = ("by", "facts", "attempts", "epoch")  # what a run that heard of a report does not know of it


async def reports(run: RunArgument = LATEST, db: DbOption = None, json: JsonOption = False) -> None:
    """List the slots of the slow loop of a run, with their reports and the judge's verdicts."""
    if run == LATEST:
        async with listed_runs(db) as (store, records):
            if store is None or not records:
                return
            found = await _document(store, await store.runs.find(run))
    else:
        async with open_for_run(db, run) as (store, record):
            found = await _document(store, record)
    print_document(found, json, _render)


async def _document(store: "Store", record: "RunRecord") -> dict[str, Any]:
    from services.slow_loop.past_runs import PastRuns
    from worker.slow_worker.ports import JOB, lease_name

    past = PastRuns()
    async for row in store.journal.rows(record.run_id, kinds=past.takers):
        past.add(row)
    slots = {
        run.slot: _slot("run", run.slot, (run.report_id, run.n_episodes, run.recommended_action), run.verdict)
        for run in past.all()
    }
    told = {stored.key.slot: stored for stored in await store.reports.all(record.run_id, JOB)}
    for claim in await store.claims.all(record.run_id, JOB):
        made, heard = _of_worker(claim, told.get(claim.key.slot)), slots.get(claim.key.slot)
        if heard is None:
            slots[claim.key.slot] = made
        elif heard["report_id"] == made["report_id"]:
            heard |= {name: made[name] for name in OF_CLAIM}
    lease = await store.leases.holder(lease_name(record.run_id))
    # A report on demand stands at the moment it is about; it is no slot and delays none.
    asked_for = [
        _slot("on demand", asked.known_at, _columns_of(asked), asked.verdict)
        for asked in await store.on_demand.of_run(record.run_id)
    ]
    return {
        "run_id": record.run_id,
        "lease": None if lease is None else vars(lease),
        "slots": sorted([*slots.values(), *asked_for], key=lambda slot: (slot["slot"], slot["by"])),
    }


def _columns_of(one: "OnDemandReport | StoredReport") -> tuple[str, int, object]:
    return one.report_id, one.report.n_episodes, one.report.recommended_action


def _of_worker(claim: "Claim", told: "StoredReport | None") -> dict[str, Any]:
    said, verdict, delivery = None, None, None
    if told is not None:
        said, verdict, delivery = _columns_of(told), told.verdict, told.delivery
    names = ("state", "reason", "facts", "attempts", "epoch")
    claimed = {name: getattr(claim, name) for name in names}
    return _slot("worker", claim.key.slot, said, verdict) | claimed | {"delivery": delivery}


def _slot(
    by: str, slot: int, said: tuple[str, int, object] | None, verdict: "ReplanVerdict | None"
) -> dict[str, Any]:
    """A slot that is done, with its report where there is one and what the judge made of it."""
    report_id, episodes, action = said or (None, None, None)
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


def _render(found: dict[str, Any]) -> None:
    if found["slots"]:
        heads = ("slot", "by", "state", "episodes", "report", "recommends", "judge", "actions")
        print_table(made_table(heads, map(_cells, found["slots"])))
    lease = found["lease"]
    if lease is not None and lease["until_ms"]:
        until = ns_to_datetime(lease["until_ms"] * 10**6).strftime("%Y-%m-%d %H:%M:%SZ")
        stdout_console().print(f"held by {lease['owner']} until {until} (epoch {lease['epoch']})")


def _cells(one: dict[str, Any]) -> list[str]:
    state = one["state"] if one["reason"] is None else f"{one['state']}: {one['reason']}"
    judged = one["verdict"] or one["delivery"]
    rest = (one["episodes"], one["report_id"], one["recommended_action"], judged, one["actions"])
    return [shown_time(one["slot"]), one["by"], state, *("-" if cell is None else str(cell) for cell in rest)]


SHOWN = 5


async def report(
    run: RunArgument = LATEST,
    report_id: Annotated[
        str,
        typer.Argument(metavar="REPORT", help="Report id, a unique prefix of one, or 'latest'."),
    ] = LATEST,
    html: Annotated[Path | None, option(metavar="FILE", help="Write the page with its plots there.")] = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Print a high-level report of a run as Markdown, or write it as a page with plots."""
    async with open_for_run(db, run) as (store, record):
        entries = await _list_stored(store, record.run_id)
    position = _position(entries, report_id, record.run_id)
    entry = entries[position]
    if html is not None:
        from worker.pages.report_html import report_html

        write_page(html, report_html(entry, entries[:position]))
    if json:
        print_json(document_of_entry(entry))
    elif html is None:
        from worker.pages.report_markdown import report_markdown

        print_page(report_markdown(entry))


async def _list_stored(store: "Store", run_id: str) -> list[dict[str, Any]]:
    """Reports of a run by the time at which they were known: its own, those of a worker, and on demand."""
    from worker.slow_worker.ports import JOB

    found = {entry["report_id"]: entry for entry in await stored_reports(store, run_id)}
    beside: list[OnDemandReport | StoredReport] = [
        *(kept for kept in await store.reports.all(run_id, JOB) if kept.report_id not in found),
        *await store.on_demand.of_run(run_id),
    ]
    entries = [attached_entry(kept) for kept in beside]
    await look_up_rows(store, run_id, entries)
    return sorted([*found.values(), *entries], key=lambda report: int(report["report"]["known_at"]))


def _position(entries: list[dict[str, Any]], wanted: str, run: str) -> int:
    if not entries:
        raise ConfigError(f"run {run} has no report: see `thinktwice journal {run} --kind slow_skip` for why")
    if wanted == LATEST:
        return len(entries) - 1
    found = [k for k, entry in enumerate(entries) if wanted and entry["report_id"].startswith(wanted)]
    if len(found) == 1:
        return found[0]
    listing = f"list them with `thinktwice reports {run}`"
    if not found:
        raise ConfigError(f"no report {wanted!r} in run {run}: {listing}")
    some = ", ".join(entries[k]["report_id"] for k in found[:SHOWN])
    raise ConfigError(f"report {wanted!r} is not unique in run {run} ({some}): {listing}")
