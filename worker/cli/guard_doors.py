"""`thinktwice guard -- COMMAND` and `thinktwice guard serve`: a guard in front of what speaks no Python."""

import asyncio
import signal
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from worker.cli.guard_desk import LimitsOption, ModeOption, open_desk
from worker.cli.options import argument, option
from worker.cli.printing import complain
from worker.runs.interrupts import RunInterrupted, hear_stops
from worker.settings import load_settings

StoreOption = Annotated[
    str | None,
    option("--db", "--store", metavar="URL", help="Store of the journal. [sqlite:///thinktwice.db]"),
]
NameOption = Annotated[str, typer.Option(metavar="NAME", help="Processes that name the same share a guard.")]


class GuardCommands(TyperGroup):
    """The commands of a guard; where options come first it is the proxy that is meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        meant = args and args[0].startswith("-") and args[0] not in ("--help", "-h")
        found: list[str] = super().parse_args(ctx, ["proxy", *args] if meant else args)
        return found


async def proxy(
    command: Annotated[list[str], argument(metavar="COMMAND...", help="Starts the broker's MCP server.")],
    limits: LimitsOption = None,
    db: StoreOption = None,
    mode: ModeOption = "shadow",
    name: NameOption = "guard",
    account: Annotated[
        Path | None, option(metavar="FILE", help="JSON of the account, read at each order. [not known]")
    ] = None,
) -> None:
    """Stand in front of a broker's MCP server: the same tools, and orders only where they pass."""
    from worker.guard_proxy.gate import OrderGate
    from worker.guard_proxy.proxy import run_proxy
    from worker.operations.logs import configure_logging

    with configure_logging(load_settings().settings):
        async with open_desk(limits, db, mode, name) as desk:
            await run_proxy(command, OrderGate(desk, account))


async def serve(
    limits: LimitsOption = None,
    db: StoreOption = None,
    mode: ModeOption = "shadow",
    name: NameOption = "guard",
    host: Annotated[str, typer.Option(metavar="H", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65_535, help="Port; 0 takes any.")] = 8_766,
) -> None:
    """Check orders that are posted to /check, until Ctrl-C."""
    from worker.operations.logs import configure_logging
    from worker.operations.monitoring import operate, prepare
    from worker.operations.order_checks import OrderChecks

    heard: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
    place = {"runtime.operations.host": ("--host", host), "runtime.operations.port": ("--port", port)}
    settings = load_settings(flags=place).settings
    with configure_logging(settings) as logs:
        prepared = prepare(settings.runtime.operations, logs.redactor)
        async with open_desk(limits, db, mode, name) as desk:
            checks = OrderChecks(desk)
            async with operate(prepared, checks, desk.run_id, "guard", checks.answer) as operations:
                hear_stops(lambda signum: None if heard.done() else heard.set_result(signum))
                heard_at = 0 if operations.endpoint is None else operations.endpoint.port
                complain(f"orders are checked at http://{host}:{heard_at}/check until Ctrl-C")
                raise RunInterrupted(await heard)
