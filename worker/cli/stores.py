"""The store that a command names: opened to be read or written, with the run that it names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.errors import ConfigError
from worker.cli.printing import complain
from worker.settings import load_settings

if TYPE_CHECKING:
    from services.store import RunRecord, Store


def store_address(db: str | None) -> str:
    """The store of a reading command: `--db`, else the environment, else the default."""
    return load_settings(flags={"runtime.db": ("--db", db)}).settings.runtime.db


async def open_to_read(address: str, *, read_only: bool = False) -> "Store":
    """The store at an address; with `read_only` the database itself refuses whatever would write.

    Raises:
        StoreMissing: there is none.
    """
    from services.store import open_store

    return await open_store(address, create=False, read_only=read_only)


async def open_for_writing(address: str, command_s: float | None = None) -> "Store":
    """The store at an address, made where there is none."""
    from services.store import open_store

    return await open_store(address, create=True, command_s=command_s)


@asynccontextmanager
async def open_for_run(
    db: str | None, run: str, *, read_only: bool = False, changed: bool = False, guards: bool = False
) -> "AsyncIterator[tuple[Store, RunRecord]]":
    """The store and the named run in it.

    With `read_only` nothing can write to it; with `changed` a run is read whose row is not as it was sealed;
    with `guards` one that holds verdicts on orders and no bars.

    Raises:
        ConfigError: there is no such store, or no such run in it, or it is a guard's.
    """
    from services.store import StoreMissing

    address = store_address(db)
    _refuse_file(run)
    try:
        store = await open_to_read(address, read_only=read_only)
    except StoreMissing as error:
        raise ConfigError(f"no run {run!r}: {error}") from error
    async with store:
        record = await store.runs.find(run, changed=changed)
        if record.mode == "guard" and not guards:
            ways = ", ".join(
                f"`thinktwice {word}`" for word in ("guard", "journal", "kill", "status", "verify", "why")
            )
            raise ConfigError(
                f"run {record.run_id} is a guard: it holds verdicts on orders and no bars; {ways} read it"
            )
        yield store, record


@asynccontextmanager
async def open_to_write(
    db: str | None, run: str, *, guards: bool = False
) -> "AsyncIterator[tuple[Store, RunRecord]]":
    """The store, to be written to, and the named run in it, with `guards` also one of a guard.

    Raises:
        ConfigError: there is no such store, or no such run in it; then nothing was made.
    """
    async with open_for_run(db, run, guards=guards) as (_, record):
        pass
    async with await open_for_writing(store_address(db)) as store:
        yield store, record


def _refuse_file(run: str) -> None:
    if Path(run).is_file():
        raise ConfigError(f"{run!r} is a file where a run is named: `thinktwice runs` lists the runs")


@asynccontextmanager
async def listed_runs(db: str | None) -> "AsyncIterator[tuple[Store | None, list[RunRecord]]]":
    """The store of a reading command with its runs; what is not there is told of on stderr."""
    from services.store import StoreMissing

    try:
        store = await open_to_read(store_address(db))
    except StoreMissing as error:
        complain(str(error))
        yield None, []
        return
    async with store:
        found = await store.runs.all()
        if not found:
            complain("the store holds no run yet: `thinktwice backtest` makes one")
        yield store, found
