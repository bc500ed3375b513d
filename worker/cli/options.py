"""Options that several commands share, and the store they name."""

from typing import TYPE_CHECKING, Annotated

import typer

from schemas.errors import ConfigError
from worker.settings import load_settings

if TYPE_CHECKING:
    from services.store import RunRecord, Store

RunArgument = Annotated[
    str,
    typer.Argument(metavar="RUN", help="Run id, a unique prefix of one, or 'latest'.", show_default=False),
]
DbOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        help="Store: sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE. [sqlite:///thinktwice.db]",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def store_address(db: str | None) -> str:
    """The store of a reading command: `--db`, else the environment, else the default."""
    return load_settings(flags={"runtime.db": ("--db", db)}).settings.runtime.db


async def open_for_run(db: str | None, run: str) -> tuple["Store", "RunRecord"]:
    """The store and the named run in it; close the store.

    Raises:
        ConfigError: there is no such store, or no such run in it.
    """
    from services.store import StoreMissing, open_store

    try:
        store = await open_store(store_address(db), create=False)
    except StoreMissing as error:
        raise ConfigError(f"no run {run!r}: {error}") from error
    try:
        return store, await store.runs.find(run)
    except BaseException:
        await store.close()
        raise
