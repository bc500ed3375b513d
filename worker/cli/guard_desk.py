"""A guard of a command: its limits, its mode, and its place in the store."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError
from worker.cli.options import option, store_address

if TYPE_CHECKING:
    from services.guard.desk import GuardDesk

LimitsOption = Annotated[
    Path | None, option("--limits", metavar="FILE", help="guard.toml. [the defaults of `tt.guard`]")
]
ModeOption = Annotated[
    str, typer.Option(metavar="shadow|enforce", help="Of the guard: record alone, or refuse.")
]


@asynccontextmanager
async def open_desk(
    limits: Path | None, db: str | None, mode: str, name: str = "guard"
) -> "AsyncIterator[GuardDesk]":
    """A guard that checks by rules.

    Raises:
        ConfigError: a limit, a mode or a store that cannot be.
    """
    from services.guard.desk import GuardDesk
    from services.guard.reading import read_settings
    from worker.operations.environment import environment

    settings = read_settings(limits)
    if settings.reflection.mode == "full":
        raise ConfigError("reflection.mode 'full': `tt.guard` alone asks a second reader; take it out")
    given: Any = mode
    desk = await GuardDesk.open(
        store_address(db), settings, mode=given, name=name, clock=time.time_ns, environment=environment()
    )
    try:
        yield desk
    finally:
        await desk.close()
