"""`thinktwice reports report reflect page`: what the slow loop of a run wrote, and the run as one page."""

import json as json_text
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.canonical import ns_to_datetime
from schemas.errors import ConfigError
from services.model_calls.quoting import count_noun
from worker.cli import options
from worker.cli.options import LATEST, option
from worker.cli.printing import complain, print_document, print_line, time_option
from worker.cli.stores import listed_runs, open_for_run, open_to_write
from worker.pages.figures import shown_time
from worker.pages.run_marks import document_of_entry
from worker.pages.text_parts import Part, rows_table
from worker.runs.interrupts import interrupt_at_once
from worker.runs.out_folder import OutFolder, replace_file, report_files
from worker.runs.progress import step

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from worker.runs.run_result import RunResult

HtmlOption = Annotated[Path | None, option("--html", metavar="FILE", help="Write the page of the run there.")]
COLUMNS = {
    "slot": lambda slot: shown_time(slot["slot"]),
    "by": "by",
    "state": lambda slot: slot["state"] if slot["reason"] is None else f"{slot['state']}: {slot['reason']}",
    "episodes": "episodes",
    "report": "report_id",
    "recommends": "recommended_action",
    "judge": lambda slot: slot["verdict"] or slot["delivery"],
    "actions": "actions",
}


async def reports(
    run: options.RunArgument = LATEST, db: options.Db = None, json: options.Json = False
) -> None:
    """List the slots of the slow loop of a run, with their reports and the judge's verdicts."""
    from worker.review.run_reports import list_slots

    if run == LATEST:
        async with listed_runs(db) as (store, records):
            if store is None or not records:
                return
            found = await list_slots(store, await store.runs.find(run))
    else:
        async with open_for_run(db, run) as (store, record):
            found = await list_slots(store, record)
    print_document(found, json, _describe)


def _describe(found: dict[str, Any]) -> Iterator[Part]:
    yield rows_table(found["slots"], COLUMNS)
    lease = found["lease"]
    if lease is not None and lease["until_ms"]:
        until = ns_to_datetime(lease["until_ms"] * 10**6).strftime("%Y-%m-%d %H:%M:%SZ")
        yield f"held by {lease['owner']} until {until} (epoch {lease['epoch']})"


async def report(
    run: options.RunArgument = LATEST,
    report_id: Annotated[
        str, typer.Argument(metavar="REPORT", help="Report id, a unique prefix of one, or 'latest'.")
    ] = LATEST,
    html: Annotated[Path | None, option(metavar="FILE", help="Write the page with its plots there.")] = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Print a high-level report of a run as Markdown, or write it as a page with plots."""
    from worker.review.run_reports import find_position, list_reports

    async with open_for_run(db, run) as (store, record):
        entries = await list_reports(store, record.run_id)
    position = find_position(entries, report_id, record.run_id)
    entry = entries[position]
    if html is not None:
        from worker.pages.report_html import report_html

        write_page(html, report_html(entry, entries[:position]))
    if json or html is None:
        print_document(document_of_entry(entry), json, lambda _: _markdown_lines(entry))


async def reflect(
    run: options.RunArgument = LATEST,
    at: options.At = None,
    data: options.Data = None,
    out: Annotated[
        Path | None,
        option(metavar="DIR", help="Write the report below DIR/reports as JSON, Markdown and page."),
    ] = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Reflect on a run now: a report like those of its slow loop, which changes nothing in it."""
    from worker.review.rebuilt import rebuilt_run
    from worker.review.replanning import report_now
    from worker.review.run_requests import takes_requests

    moment = None if at is None else time_option(at, "--at")
    async with open_to_write(db, run) as (store, record):
        if takes_requests(record):
            raise ConfigError(
                f"run {record.run_id} trades: `thinktwice replan {record.run_id}` asks it for a report and a "
                "verdict"
            )
        request, made = await report_now(await rebuilt_run(store, record, data, moment))
        await store.on_demand.put(record.run_id, request, made)
    entry = {
        "run_id": record.run_id,
        "report_id": made.content_hash[:16],
        "request_hash": made.request_hash,
        "report": json_text.loads(made.canonical_text()),
        "verdict": None,
        "evidence": [],
    }
    if out is not None:
        OutFolder(out).write_files(report_files([entry]))
    print_document(entry, json, _describe_report)


def _describe_report(entry: dict[str, Any]) -> Iterator[str]:
    yield from _markdown_lines(entry)
    yield ""
    yield f"Next: `thinktwice replan {entry['report_id']}` asks the judge."


def _markdown_lines(entry: dict[str, Any]) -> list[str]:
    from worker.pages.report_markdown import report_markdown

    return report_markdown(entry).splitlines()


async def page(
    run: options.RunArgument = LATEST,
    html: HtmlOption = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in a browser.")] = False,
    data: options.Data = None,
    db: options.Db = None,
) -> None:
    """Write the page of a run: figures, charts, trades, and what led to each fill."""
    if html is None:
        raise ConfigError("--html FILE says where the page is written, such as --html run.html")
    demand_page_file(html)
    async with open_for_run(db, run) as (store, record):
        if record.status == "running":
            raise ConfigError(
                f"run {record.run_id} is under way, or was killed: its page is made when it is over"
            )
        print_line(await page_of(store, record, html, data=data))
    if open_it:
        open_page(html)


async def page_of(
    store: "Store",
    record: "RunRecord",
    html: Path,
    *,
    data: Path | None = None,
    done: "RunResult | None" = None,
) -> str:
    """Write the page of a run that lies in the store, as `stored_picture`; say where it lies."""
    from worker.pages.run_page import run_html
    from worker.review.rebuilt import stored_picture

    picture = await stored_picture(store, record, data, done)
    with step(f"drawing {html}"), interrupt_at_once():
        text = run_html(picture)
        write_page(html, text)
    return f"page of run {record.run_id}: {html} ({count_noun(len(text.encode()) // 1000, 'kB', 'kB')})"


def demand_page_file(path: Path) -> None:
    """Make sure that a page can be written there, without leaving a trace.

    Raises:
        ConfigError: its folder is missing or cannot be written, or the path is a folder or no name.
    """
    if str(path) == "-":
        raise ConfigError("--html '-': a page is not printed: name a file, such as --html run.html")
    if path == Path():
        raise ConfigError("--html names no file: give one, such as --html run.html")
    if path.is_dir():
        raise ConfigError(f"--html {str(path)!r} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise ConfigError(f"--html {str(path)!r}: there is no folder {str(path.parent)!r}: make it first")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _unwritable(path, error) from error


def write_page(path: Path, text: str) -> None:
    """Write a page whole or not at all.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        replace_file(path, text)
    except OSError as error:
        raise _unwritable(path, error) from error


def open_page(path: Path) -> None:
    """Show a page in a browser; say so where there is none."""
    import webbrowser

    address = path.absolute().as_uri()
    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        complain(f"no browser could be opened here: open {address} in one")


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"--html {str(path)!r} cannot be written ({error.strerror}): name another file")
