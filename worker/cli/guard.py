"""`thinktwice guard`: a guard before what speaks no Python, and what it asks a person about orders."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from schemas.errors import ConfigError, DataError
from services.model_calls.quoting import visible
from worker.cli import options
from worker.cli.options import LATEST, argument, operator_name, option
from worker.cli.printing import complain, print_document, print_line
from worker.cli.stores import open_for_run, store_address
from worker.pages.text_parts import Part, rows_table
from worker.runs.interrupts import RunInterrupted, hear_stops
from worker.settings import load_settings

if TYPE_CHECKING:
    from services.guard.desk import GuardDesk

LimitsOption = Annotated[
    Path | None, option("--limits", metavar="FILE", help="guard.toml. [the defaults of `tt.guard`]")
]
ModeOption = Annotated[
    str, typer.Option(metavar="shadow|enforce", help="Of the guard: record alone, or refuse.")
]
StoreOption = Annotated[
    str | None,
    option("--db", "--store", metavar="URL", help="Store of the journal. [sqlite:///thinktwice.db]"),
]
NameOption = Annotated[str, typer.Option(metavar="NAME", help="Processes that name the same share a guard.")]
QuestionArgument = Annotated[str, argument(metavar="HASH", help="Of the question, or its start.")]
GuardOption = Annotated[str | None, option("--run", metavar="RUN", help="The guard. [each of the store]")]


class GuardCommands(TyperGroup):
    """The commands of a guard; where options come first it is the proxy that is meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        meant = args and args[0].startswith("-") and args[0] not in ("--help", "-h")
        found: list[str] = super().parse_args(ctx, ["proxy", *args] if meant else args)
        return found


app = typer.Typer(
    cls=GuardCommands,
    help="Checks in front of an agent's orders: a proxy of a broker's server, and what a person is asked.",
    no_args_is_help=True,
)


@app.command("proxy", context_settings={"allow_interspersed_args": False})
async def proxy(
    command: Annotated[list[str], argument(metavar="COMMAND...", help="Starts the broker's MCP server.")],
    limits: LimitsOption = None,
    db: StoreOption = None,
    mode: ModeOption = "shadow",
    name: NameOption = "guard",
    account: Annotated[
        Path | None, option(metavar="FILE", help="JSON of the account, read at each order. [not known]")
    ] = None,
    bars: Annotated[
        Path | None,
        option(metavar="PATH", help="File or folder of bars, read at each order. [limits alone are checked]"),
    ] = None,
    tz: Annotated[
        str | None, option("--tz", metavar="ZONE", help="Of times of bars that carry none.")
    ] = None,
) -> None:
    """Stand in front of a broker's MCP server: the same tools, and orders only where they pass."""
    from worker.guard_proxy.gate import OrderGate
    from worker.guard_proxy.proxy import run_proxy
    from worker.operations.logs import configure_logging
    from worker.runs.readiness import ready_once

    with configure_logging(load_settings().settings):
        async with open_desk(limits, db, mode, name) as desk:
            gate = OrderGate(desk, account, bars, tz)
            async with path_beside(gate.warm_up(ready_once)):
                await run_proxy(command, gate)


@app.command("serve")
async def serve(
    limits: LimitsOption = None,
    db: StoreOption = None,
    mode: ModeOption = "shadow",
    name: NameOption = "guard",
    host: Annotated[str, typer.Option(metavar="H", help="Where to listen.")] = "127.0.0.1",
    port: options.Port = 8_766,
) -> None:
    """Check orders that are posted to /check, until Ctrl-C."""
    from worker.operations.logs import configure_logging
    from worker.operations.monitoring import operate, prepare
    from worker.operations.order_checks import OrderChecks, warm_up
    from worker.runs.readiness import ready_once

    heard: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
    place = {"runtime.operations.host": ("--host", host), "runtime.operations.port": ("--port", port)}
    settings = load_settings(flags=place).settings
    with configure_logging(settings) as logs:
        prepared = prepare(settings.runtime.operations, logs.redactor)
        async with open_desk(limits, db, mode, name) as desk:
            checks = OrderChecks(desk)
            await warm_up(desk, ready_once)  # before anybody waits for an answer
            async with operate(prepared, checks, desk.run_id, "guard", checks) as operations:
                hear_stops(lambda signum: None if heard.done() else heard.set_result(signum))
                heard_at = 0 if operations.endpoint is None else operations.endpoint.port
                complain(f"orders are checked at http://{host}:{heard_at}/check until Ctrl-C")
                raise RunInterrupted(await heard)


@app.command("questions")
async def questions(run: GuardOption = None, db: options.Db = None, json: options.Json = False) -> None:
    """List orders that wait for a person: what would be sent, what was found, and until when."""
    async with _open_desks(run, db) as desks:
        found = [_describe(desk, question) for desk in desks for question in desk.ledger.questions]
    now = time.time_ns()
    waiting = [question for question in found if question["approved"] is None and question["until"] >= now]
    print_document(waiting, json, _list_questions)
    if not waiting and not json:
        complain("no order waits for a person")


@app.command("approve")
async def approve(
    question: QuestionArgument, by: options.By = None, run: GuardOption = None, db: options.Db = None
) -> None:
    """Let exactly this order pass, once, at its next check."""
    await _decide(question, True, by, run, db)


@app.command("refuse")
async def refuse(
    question: QuestionArgument, by: options.By = None, run: GuardOption = None, db: options.Db = None
) -> None:
    """Answer a question with no; the order stays refused."""
    await _decide(question, False, by, run, db)


async def _decide(question: str, yes: bool, by: str | None, run: str | None, db: str | None) -> None:
    async with _open_desks(run, db) as desks:
        holders = [
            desk for desk in desks if any(prompt.startswith(question) for prompt in desk.ledger.questions)
        ]
        if len(holders) > 1:
            raise DataError(f"question {question!a}: {len(holders)} guards ask one that begins so: give more")
        desk = (holders or desks)[0]
        answered = await desk.decide(question, approve=yes, by=operator_name(by))
        order = _describe(desk, answered.hash)["order"]
    print_line(f"{'approved' if yes else 'refused'} {answered.hash[:16]}: {visible(order)}")


@asynccontextmanager
async def _open_desks(run: str | None, db: str | None) -> "AsyncIterator[list[GuardDesk]]":
    from services.guard.desk import GuardDesk
    from services.guard.runs import MODE

    async with open_for_run(db, run or LATEST, guards=True) as (store, record):
        guards = [record] if run else [known for known in await store.runs.all() if known.mode == MODE]
        if not guards:
            raise ConfigError(f"{store.url} holds no guard: name its store with --db")
        yield [await GuardDesk.attach(store, known, time.time_ns) for known in guards]


def _describe(desk: "GuardDesk", name: str) -> dict[str, Any]:
    question = desk.ledger.questions[name]
    checked = desk.ledger.orders[question.verdict_id]
    order = {key: value for key, value in checked.order.payload().items() if value not in (None, "")}
    return {
        "question": question.hash,
        "order": " ".join(f"{key}={value}" for key, value in order.items()),
        "found": checked.verdict.reply,
        "until": question.expires_at,
        "approved": question.approve,
    }


def _list_questions(found: list[dict[str, Any]]) -> list[Part]:
    from worker.pages.figures import shown_time

    columns = {
        "question": lambda question: question["question"][:16],
        "order": "order",
        "found": "found",
        "until": lambda question: shown_time(question["until"]),
    }
    return [rows_table(found, columns)]


@asynccontextmanager
async def path_beside(work: Coroutine[Any, Any, None] | None) -> AsyncIterator[None]:
    """Work that goes on beside the block, until its end; a failure of it is found again by what needs it."""
    task = None if work is None else asyncio.create_task(work)
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
            task.cancelled() or task.exception()


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
