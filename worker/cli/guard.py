"""`thinktwice guard`: what a guard asks a person about the orders of an agent."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError, DataError
from services.model_calls.quoting import visible
from worker.cli.guard_doors import GuardCommands, proxy, serve
from worker.cli.options import LATEST, DbOption, JsonOption, argument, open_for_run, operator_name, option
from worker.cli.plans import ByOption
from worker.cli.printing import Part, complain, print_document, print_line, rows_table

if TYPE_CHECKING:
    from services.guard.desk import GuardDesk

app = typer.Typer(
    cls=GuardCommands,
    help="Checks in front of an agent's orders: a proxy of a broker's server, and what a person is asked.",
    no_args_is_help=True,
)
app.command("proxy", context_settings={"allow_interspersed_args": False})(proxy)
app.command("serve")(serve)
QuestionArgument = Annotated[str, argument(metavar="HASH", help="Of the question, or its start.")]
GuardOption = Annotated[str | None, option("--run", metavar="RUN", help="The guard. [each of the store]")]


@app.command("questions")
async def questions(run: GuardOption = None, db: DbOption = None, json: JsonOption = False) -> None:
    """List orders that wait for a person: what would be sent, what was found, and until when."""
    async with _open_desks(run, db) as desks:
        found = [_describe(desk, question) for desk in desks for question in desk.ledger.questions]
    now = time.time_ns()
    waiting = [asked for asked in found if asked["approved"] is None and asked["until"] >= now]
    print_document(waiting, json, _list_questions)
    if not waiting and not json:
        complain("no order waits for a person")


@app.command("approve")
async def approve(
    question: QuestionArgument, by: ByOption = None, run: GuardOption = None, db: DbOption = None
) -> None:
    """Let exactly this order pass, once, at its next check."""
    await _decide(question, True, by, run, db)


@app.command("refuse")
async def refuse(
    question: QuestionArgument, by: ByOption = None, run: GuardOption = None, db: DbOption = None
) -> None:
    """Answer a question with no; the order stays refused."""
    await _decide(question, False, by, run, db)


async def _decide(question: str, yes: bool, by: str | None, run: str | None, db: str | None) -> None:
    async with _open_desks(run, db) as desks:
        holders = [
            desk for desk in desks if any(asked.startswith(question) for asked in desk.ledger.questions)
        ]
        if len(holders) > 1:
            raise DataError(f"question {question!a}: {len(holders)} guards ask one that begins so: give more")
        desk = (holders or desks)[0]
        answered = await desk.decide(question, approve=yes, by=operator_name(by))
        order = _describe(desk, answered.hash)["order"]
    print_line(f"{'approved' if yes else 'refused'} {answered.hash[:16]}: {visible(order)}")


@asynccontextmanager
async def _open_desks(run: str | None, db: str | None) -> "AsyncIterator[list[GuardDesk]]":
    """The desk of the guard that was named, or of each that the store has.

    Raises:
        ConfigError: there is none.
    """
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
        "question": lambda asked: asked["question"][:16],
        "order": "order",
        "found": "found",
        "until": lambda asked: shown_time(asked["until"]),
    }
    return [rows_table(found, columns)]
