"""`thinktwice reports`: what became of every slot of a run, and what the judge made of its reports."""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.canonical import canonical_json, ns_to_datetime
from schemas.errors import ConfigError
from worker.cli.console import complain, print_json, print_page, print_table, stdout_console
from worker.cli.options import DbOption, JsonOption, RunArgument, open_for_run, option, store_address
from worker.cli.out_folder import entry_beside, stored_reports
from worker.cli.page import write_page
from worker.pages.figures import shown_time
from worker.runs.interrupts import run_async

if TYPE_CHECKING:
    from schemas.judge import ReplanVerdict
    from services.slow_loop.past_runs import PastRun
    from services.store import RunRecord, Store
    from services.store.claims import Claim
    from services.store.reports import StoredReport
    from services.store.reports_on_demand import OnDemandReport


LATEST = "latest"
OF_CLAIM = ("by", "facts", "attempts", "epoch")  # what a run that heard of a report does not know of it


def reports(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="Run id, a unique prefix of one, or 'latest'.")
    ] = LATEST,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """List the slots of the slow loop of a run, with their reports and the judge's verdicts."""
    found = run_async(_found(run, db))
    if found is None:
        return
    if json:
        print_json(found)
    else:
        _render(found)


async def _found(run: str, db: str | None) -> dict[str, Any] | None:
    from services.store import StoreMissing, open_store

    if run == LATEST:
        try:
            store = await open_store(store_address(db), create=False)
        except StoreMissing as error:
            complain(str(error))
            return None
        async with store:
            if not await store.runs.all():
                complain("the store holds no run yet: `thinktwice backtest` makes one")
                return None
    store, record = await open_for_run(db, run)
    async with store:
        return await _document(store, record)


async def _document(store: "Store", record: "RunRecord") -> dict[str, Any]:
    from services.slow_loop.past_runs import PastRuns
    from worker.slow_worker.ports import JOB, lease_name

    past = PastRuns()
    async for row in store.journal.rows(record.run_id, kinds=past.takers):
        past.add(row)
    slots = {run.slot: _of_journal(run) for run in past.all()}
    lease, asked_for = None, []
    if store.has_worker_tables:
        told = {stored.key.slot: stored for stored in await store.reports.all(record.run_id, JOB)}
        for claim in await store.claims.all(record.run_id, JOB):
            made, heard = _of_worker(claim, told.get(claim.key.slot)), slots.get(claim.key.slot)
            if heard is None:
                slots[claim.key.slot] = made
            elif heard["report_id"] == made["report_id"]:
                heard |= {name: made[name] for name in OF_CLAIM}
        lease = await store.leases.holder(lease_name(record.run_id))
    if store.has_operator_tables:
        asked_for = [_of_operator(asked) for asked in await store.on_demand.of_run(record.run_id)]
    return {
        "run_id": record.run_id,
        "lease": None if lease is None else vars(lease),
        "slots": sorted([*slots.values(), *asked_for], key=lambda slot: (slot["slot"], slot["by"])),
    }


def _of_operator(one: "OnDemandReport") -> dict[str, Any]:
    """A report on demand stands at the moment it is about; it is no slot and delays none."""
    report = one.report
    said = one.report_id, report.n_episodes, str(report.recommended_action)
    return _of_report("on demand", one.known_at, said, one.verdict)


def _of_journal(one: "PastRun") -> dict[str, Any]:
    said = one.report_id, one.n_episodes, str(one.recommended_action)
    return _of_report("run", one.slot, said, one.verdict)


def _of_report(
    by: str, slot: int, said: tuple[str, int, str], verdict: "ReplanVerdict | None"
) -> dict[str, Any]:
    report_id, episodes, action = said
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
        "recommended_action": action,
        "delivery": "waiting" if verdict is None else "delivered",
        "verdict": None if verdict is None else str(verdict.decision),
        "actions": None if verdict is None else len(verdict.actions),
    }


def _of_worker(claim: "Claim", told: "StoredReport | None") -> dict[str, Any]:
    verdict = None if told is None else told.verdict
    return {
        "slot": claim.key.slot,
        "by": "worker",
        "state": claim.state,
        "reason": claim.reason,
        "facts": claim.facts,
        "attempts": claim.attempts,
        "epoch": claim.epoch,
        "report_id": None if told is None else told.report_id,
        "episodes": None if told is None else told.report.n_episodes,
        "recommended_action": None if told is None else str(told.report.recommended_action),
        "delivery": None if told is None else told.delivery,
        "verdict": None if verdict is None else str(verdict.decision),
        "actions": None if verdict is None else len(verdict.actions),
    }


def _render(found: dict[str, Any]) -> None:
    from rich.table import Table

    if found["slots"]:
        table = Table("slot", "by", "state", "episodes", "report", "recommends", "judge", "actions", box=None)
        for slot in found["slots"]:
            table.add_row(*_cells(slot))
        print_table(table)
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


def report(
    run: RunArgument,
    report_id: Annotated[
        str,
        typer.Argument(metavar="[REPORT]", help="Report id, a unique prefix of one, or 'latest'."),
    ] = LATEST,
    html: Annotated[Path | None, option(metavar="FILE", help="Write the page with its plots there.")] = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Print a high-level report of a run as Markdown, or write it as a page with plots."""
    name, entries = run_async(_stored(run, db))
    position = _position(entries, report_id, name)
    entry = entries[position]
    if html is not None:
        from worker.pages.report_html import report_html

        write_page(html, report_html(entry, entries[:position]))
    if json:
        print_json(entry)
    elif html is None:
        from worker.pages.report_markdown import report_markdown

        print_page(report_markdown(entry))


async def _stored(run: str, db: str | None) -> tuple[str, list[dict[str, Any]]]:
    """Reports of a run by the time at which they were known: of its slots, and on demand."""
    store, record = await open_for_run(db, run)
    async with store:
        found = await _of_slots(store, record.run_id)
        if store.has_operator_tables:
            found += [entry_beside(asked) for asked in await store.on_demand.of_run(record.run_id)]
        return record.run_id, sorted(found, key=lambda report: int(report["report"]["known_at"]))


async def _of_slots(store: "Store", run_id: str) -> list[dict[str, Any]]:
    """Those that the run wrote itself and those of a worker."""
    from worker.slow_worker.ports import JOB

    found = {
        stored_report["report_id"]: stored_report for stored_report in await stored_reports(store, run_id)
    }
    if store.has_worker_tables:
        for kept in await store.reports.all(run_id, JOB):
            found.setdefault(kept.report_id, _waiting_report(kept))
    return list(found.values())


def _waiting_report(one: "StoredReport") -> dict[str, Any]:
    verdict = None if one.verdict is None else json_text.loads(canonical_json(one.verdict.payload()))
    return {
        "report_id": one.report_id,
        "request_hash": one.request_hash,
        "report": json_text.loads(canonical_json(one.report.payload())),
        "verdict": verdict,
        "evidence": [],
    }


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
