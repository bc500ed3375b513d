"""`thinktwice kill` and `thinktwice requests`: what an operator asks of a process that trades."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from schemas.errors import ConfigError
from worker.cli.console import print_json, print_line, stdout_console
from worker.cli.options import DbOption, JsonOption, RunArgument, open_for_run
from worker.cli.rebuilt import open_to_write, queue_request, takes_requests, told_request
from worker.runs.interrupts import run_async

if TYPE_CHECKING:
    from services.store.operator_requests import OperatorRequest

SHOWN = 90


def kill(
    run: RunArgument,
    switch: Annotated[
        Literal["on", "off"],
        typer.Argument(help="on: close positions, enter no more; off: release."),
    ],
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Ask the process that trades a run to turn its kill switch on or off."""
    asked = run_async(_asked(run, switch == "on", db))
    if json:
        print_json(asked)
    else:
        print_line(told_request(asked))


async def _asked(run: str, on: bool, db: str | None) -> dict[str, Any]:
    store, record = await open_to_write(db, run)
    async with store:
        if not takes_requests(record):
            raise ConfigError(
                f"run {record.run_id} is {record.status}: nothing trades it that could be stopped"
            )
        return await queue_request(store, record, "kill_switch", {"on": on})


def requests(
    run: Annotated[
        str, typer.Argument(metavar="[RUN]", help="Run id, a unique prefix of one, or 'latest'.")
    ] = "latest",
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """List what was asked of the process that trades a run, and what it answered."""
    found = run_async(_stored(run, db))
    if json:
        print_json([vars(request) for request in found])
    elif found:
        _render(found)


async def _stored(run: str, db: str | None) -> "list[OperatorRequest]":
    store, record = await open_for_run(db, run)
    async with store:
        return await store.operator.all(record.run_id) if store.has_operator_tables else []


def _render(found: "list[OperatorRequest]") -> None:
    from rich.table import Table

    table = Table("request", "kind", "asked for", "state", "result", box=None)
    for request in found:
        row = (
            str(request.number),
            request.kind,
            _brief(request.payload),
            request.state,
            _brief(request.result or {}),
        )
        table.add_row(*row)
    stdout_console().print(table)


def _brief(values: dict[str, Any]) -> str:
    text = ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
