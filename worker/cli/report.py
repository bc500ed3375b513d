"""`thinktwice report`: any high-level report of a stored run, as Markdown, as a page, or as JSON."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from schemas.errors import ConfigError
from worker.cli.console import print_json
from worker.cli.options import DbOption, JsonOption, RunArgument, open_for_run
from worker.cli.out_folder import entry_on_demand, replace_file, stored_reports

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
    name, entries = asyncio.run(_stored(run, db, on_demand=report_id != LATEST))
    position = _position(entries, report_id, name)
    entry = entries[position]
    if html is not None:
        from worker.pages.report_html import report_html

        _write(html, report_html(entry, entries[:position]))
    if json:
        print_json(entry)
    elif html is None:
        from worker.pages.report_markdown import report_markdown

        sys.stdout.write(report_markdown(entry))


async def _stored(run: str, db: str | None, *, on_demand: bool) -> tuple[str, list[dict[str, Any]]]:
    """Reports of a run's slow loop in order, then those on demand: the latest is one of its slots."""
    store, record = await open_for_run(db, run)
    async with store:
        found = await stored_reports(store, record.run_id)
        if on_demand and store.has_operator_tables:
            found += [entry_on_demand(one) for one in await store.on_demand.of_run(record.run_id)]
        return record.run_id, found


def _position(entries: list[dict[str, Any]], wanted: str, run: str) -> int:
    if not entries:
        raise ConfigError(f"run {run} has no report: see `thinktwice journal {run} --kind slow_skip` for why")
    if wanted == LATEST:
        return len(entries) - 1
    found = [k for k, entry in enumerate(entries) if wanted and entry["report_id"].startswith(wanted)]
    if len(found) == 1:
        return found[0]
    listing = f"list them with `thinktwice journal {run} --kind high_level_report`"
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
