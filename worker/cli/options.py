"""Options that several commands share, and the store they name."""

import getpass
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from schemas.errors import ConfigError
from services.model_calls.quoting import visible
from worker.cli.console import complain
from worker.settings import load_settings

if TYPE_CHECKING:
    from services.store import RunRecord, Store

LONGEST_NAME = 64

# An option or argument whose help says its default in brackets, where it has one.
option, argument = partial(typer.Option, show_default=False), partial(typer.Argument, show_default=False)

# One grammar: a command about a run takes it first; one about anything else takes that first, and --run.
LATEST = "latest"
RUN_HELP = "Run id, a unique prefix of one, or 'latest'. [latest]"
RunArgument = Annotated[str, argument(metavar="RUN", help=RUN_HELP)]
RunOption = Annotated[str, option("--run", metavar="RUN", help=RUN_HELP)]
DbOption = Annotated[
    str | None,
    option(
        "--db",
        metavar="URL",
        help="Store: sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE. [sqlite:///thinktwice.db]",
    ),
]
DataOption = Annotated[Path | None, option(help="The run's bar file, if it lies elsewhere now.")]
AtOption = Annotated[
    str | None,
    option(metavar="TIME", help="As of the last bar that had closed at TIME (ISO, UTC). [the end]"),
]
ByOption = Annotated[str | None, option("--by", metavar="NAME", help="Who decides. [the user's name]")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


class OnceCommand(TyperCommand):
    """A command whose options are given once; of two values one would be passed over without a word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments.

        Raises:
            ConfigError: an option that takes one value, or a switch with its other half, is there twice.
        """
        given = [param for param in self.make_parser(ctx).parse_args(args=[*args])[2] if param.opts]
        for place, param in enumerate(given):
            if param in given[:place] and not getattr(param, "multiple", True):
                words = "/".join([*param.opts, *param.secondary_opts])
                raise ConfigError(f"{words} is given twice: give it once")
        found: list[str] = super().parse_args(ctx, args)
        return found


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


def operator_name(by: str | None = None) -> str:
    """Who decides, by the name of an option or of the user.

    Raises:
        ConfigError: it is empty, too long, or holds what cannot be seen.
    """
    return visible_name(getpass.getuser() if by is None else by, "--by", "letters")


def visible_name(text: str, option: str, letters: str = "visible letters") -> str:
    """A name as it is given to an option, without blanks around it.

    Raises:
        ConfigError: it is empty, too long, or holds what cannot be seen.
    """
    name = text.strip()
    if not name or len(name) > LONGEST_NAME or visible(name) != name:
        raise ConfigError(f"{option} {name[:LONGEST_NAME]!r}: give a name of 1 to {LONGEST_NAME} {letters}")
    return name
