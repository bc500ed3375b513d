"""`thinktwice page`: a stored run as one page, drawn from its rows and its bars."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from schemas.errors import ConfigError
from services.model_calls.quoting import count_noun
from worker.cli.console import complain, print_line
from worker.cli.options import LATEST, DataOption, DbOption, RunArgument, open_for_run, option
from worker.cli.out_folder import replace_file
from worker.cli.rebuilt import stored_picture
from worker.runs.interrupts import interrupt_at_once
from worker.runs.progress import step

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from worker.runs.run_result import RunResult

HtmlOption = Annotated[Path | None, option("--html", metavar="FILE", help="Write the page of the run there.")]


async def page(
    run: RunArgument = LATEST,
    html: HtmlOption = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in a browser.")] = False,
    data: DataOption = None,
    db: DbOption = None,
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
        told = await page_of(store, record, html, data=data)
    print_line(told)
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
