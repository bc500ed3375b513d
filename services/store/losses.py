"""What a loss of the store's file takes along: which rows of the run that was written are where."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from services.store.failures import MEND, StoreDamaged, store_error
from services.store.file_watch import FileLost, StoreLost, alone_address, damage_in, identity_of
from services.store.urls import StoreUrl

# SQLite writes its log into whatever lies in the file when the last connection closes.
MIXED = "what was copied there is damaged when this process ends, copy it again then"


@contextmanager
def losses_of(run_id: str, last: int | None = None) -> Iterator[None]:
    """Say of a loss which rows of a run it takes along.

    Args:
        run_id: the run that is written.
        last: number of the last row that was to be stored.

    Raises:
        StoreLost: with what is left of the run in the file at the address, or with what will tell it.
        StoreDamaged: with what will tell it.
    """
    try:
        yield
    except StoreLost as error:
        lost = error.context.get("lost")
        if lost is None:
            raise
        shown = _loss(lost, error.context["url"], run_id, last)
        raise StoreLost(f"{error}; {shown}", run_id=run_id) from error
    except StoreDamaged as error:
        if "file" not in error.context:
            raise
        raise StoreDamaged(f"{error}; {_unknown(run_id, last)}", run_id=run_id) from error


async def demand_readable(url: StoreUrl) -> None:
    """Look once through the pages of a SQLite store, so that no run ends well in one that cannot be read.

    Raises:
        StoreDamaged: SQLite finds something wrong.
        StoreError: the file cannot be read at all.
    """
    if url.path is None:
        return
    try:
        damage = await asyncio.to_thread(damage_in, url.path)
    except (OSError, sqlite3.Error) as error:
        raise store_error(error, url) from error
    if damage is not None:
        shown = damage.splitlines()[-1]
        raise StoreDamaged(f"store {url.text} is damaged: {shown}: {MEND}", file=url.path)


def _loss(lost: FileLost, url: StoreUrl, run_id: str, last: int | None) -> str:
    if lost.open_still:
        return _later(url, run_id)
    if lost.damaged:
        return _unknown(run_id, last)
    found = identity_of(lost.path)
    if found is None:
        return (
            f"run {run_id} is lost with it, rows 0{_to(last)}, unless the file was moved: "
            "nothing lies at the address"
        )
    if lost.overwritten:
        return f"{_describe_other(lost, run_id, last)}; {MIXED}"
    if found == lost.file:
        return f"the file is back at the address; {_later(url, run_id)}"
    return _describe_other(lost, run_id, last)


def _describe_other(lost: FileLost, run_id: str, last: int | None) -> str:
    """Of a file at the address that is another one, or holds another store."""
    left = _read_left(lost.path, run_id)
    if left is None:
        return f"run {run_id} is lost with it, rows 0{_to(last)}: the file at the address does not hold it"
    made, rows, known_at = left
    ours = lost.runs.get(run_id, (made, 0))
    if made != ours[0] or (last is not None and rows > last + 1):
        return (
            f"run {run_id} is lost with it, rows 0{_to(last)}: the file at the address holds another run of "
            f"that id, with {rows} rows"
        )
    if last is not None and rows > last:
        return f"the file at the address holds run {run_id} up to row {rows - 1}"
    since = "" if known_at is None else f", what was decided since {_moment(known_at)}"
    return f"run {run_id}: rows {rows}{_to(last)}{since} are not in the file at the address"


def _to(last: int | None) -> str:
    return " and later" if last is None else f" to {last}"


def _later(url: StoreUrl, run_id: str) -> str:
    return (
        f"which rows of run {run_id} are in the file is known only when every process that has the store "
        f"open has ended: {url.command(f'verify {run_id}')} tells it then"
    )


def _unknown(run_id: str, last: int | None) -> str:
    return (
        f"which rows of run {run_id}, 0{_to(last)}, can still be read is not known: "
        "`thinktwice db check --full` names what is broken"
    )


def _read_left(path: Path, run_id: str) -> tuple[int, int, int | None] | None:
    """When a run in the file itself was made, its rows, and when the last was known; None without one."""
    try:
        with closing(sqlite3.connect(alone_address(path), uri=True)) as file:
            run = file.execute("SELECT created_at, events FROM runs WHERE run_id = ?", (run_id,)).fetchone()
            if run is None:
                return None
            query = "SELECT known_at FROM journal WHERE run_id = ? AND seq = ?"
            last = file.execute(query, (run_id, run[1] - 1)).fetchone()
    except sqlite3.Error:  # nothing there can be read, which is what is said of it
        return None
    return int(run[0]), int(run[1]), None if last is None else int(last[0])


def _moment(known_at: int) -> str:
    return datetime.fromtimestamp(known_at // 1_000_000_000, UTC).isoformat().replace("+00:00", "Z")
