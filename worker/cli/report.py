"""`thinktwice report`: any high-level report of a stored run, as Markdown, as a page, or as JSON."""

import json as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.canonical import canonical_json
from schemas.errors import ConfigError
from worker.cli.console import print_json, print_page
from worker.cli.options import DbOption, JsonOption, RunArgument, open_for_run
from worker.cli.out_folder import entry_on_demand, replace_file, stored_reports
from worker.runs.interrupts import run_async

if TYPE_CHECKING:
    from services.store import Store
    from services.store.reports import StoredReport

LATEST = "latest"
SHOWN = 5


def report(
    run: RunArgument,
    report_id: Annotated[
        str,
        typer.Argument(metavar="[REPORT]", help="Report id, a unique prefix of one, or 'latest'."),
    ] = LATEST,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the page with its plots there.", show_default=False),
    ] = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Print a high-level report of a run as Markdown, or write it as a page with plots."""
    name, entries = run_async(_stored(run, db))
    position = _position(entries, report_id, name)
    entry = entries[position]
    if html is not None:
        from worker.pages.report_html import report_html

        _write(html, report_html(entry, entries[:position]))
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
            found += [entry_on_demand(one) for one in await store.on_demand.of_run(record.run_id)]
        return record.run_id, sorted(found, key=lambda one: int(one["report"]["known_at"]))


async def _of_slots(store: "Store", run_id: str) -> list[dict[str, Any]]:
    """Those that the run wrote itself and those of a worker."""
    from worker.slow_worker.ports import JOB

    found = {one["report_id"]: one for one in await stored_reports(store, run_id)}
    if store.has_worker_tables:
        for kept in await store.reports.all(run_id, JOB):
            found.setdefault(kept.report_id, _of_worker(kept))
    return list(found.values())


def _of_worker(one: "StoredReport") -> dict[str, Any]:
    verdict = None if one.verdict is None else json_text.loads(canonical_json(one.verdict.payload()))
    return {
        "report_id": one.report_id,
        "request_hash": one.request_hash,
        "report": json_text.loads(canonical_json(one.report.payload())),
        "verdict": verdict,
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


def _write(path: Path, text: str) -> None:
    try:
        replace_file(path, text)
    except OSError as error:
        raise ConfigError(
            f"--html {str(path)!r} cannot be written ({error.strerror}): name another file"
        ) from error
