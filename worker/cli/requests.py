"""`thinktwice kill` and `thinktwice requests`: what an operator asks of a process that trades."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from schemas.errors import ConfigError
from services.model_calls.quoting import count_noun
from worker.cli.console import print_document, print_json, print_line, stdout_console
from worker.cli.guard import attach_desk
from worker.cli.open_runs import open_to_write, queue_request, takes_requests, told_request
from worker.cli.options import (
    LATEST,
    DbOption,
    JsonOption,
    RunArgument,
    RunOption,
    open_for_run,
    operator_name,
)
from worker.pages.tables import made_table

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from services.store.operator_requests import OperatorRequest

SHOWN = 90


async def kill(
    switch: Annotated[
        Literal["on", "off"],
        typer.Argument(metavar="on|off", help="on: close positions, enter no more; off: release."),
    ],
    run: RunOption = LATEST,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Ask the process that trades a run to turn its kill switch on or off; a guard heeds it at once."""
    async with open_to_write(db, run, guards=True) as (store, record):
        if record.mode == "guard":
            every = [known for known in await store.runs.all() if known.mode == "guard"]
            found = [
                await _switch(store, known, switch == "on")
                for known in (every if run == LATEST else [record])
            ]
            print_document(found, json, _render_switched)
            return
        if not takes_requests(record):
            raise ConfigError(
                f"run {record.run_id} is {record.status}: nothing trades it that could be stopped"
            )
        asked = await queue_request(store, record, "kill_switch", {"on": switch == "on"})
    print_document(asked, json, lambda told: print_line(told_request(told)))


async def _switch(store: "Store", record: "RunRecord", on: bool) -> dict[str, Any]:
    """What a guard does from now on."""
    desk = await attach_desk(store, record)
    await desk.kill(on=on, by=operator_name(None))
    return {"run_id": record.run_id, "kind": "kill_switch", "payload": {"on": on}, "mode": desk.mode}


def _render_switched(found: list[dict[str, Any]]) -> None:
    for told in found:
        lets = "every entry is blocked, exits pass" if told["payload"]["on"] else "entries pass again"
        if told["mode"] == "shadow" and told["payload"]["on"]:
            lets = "entries are recorded as blocked, not refused: mode shadow"
        print_line(f"guard {told['run_id']}: {lets}")
    print_line(f"{count_noun(len(found), 'guard')} switched {'on' if found[0]['payload']['on'] else 'off'}")


async def requests(run: RunArgument = LATEST, db: DbOption = None, json: JsonOption = False) -> None:
    """List what was asked of the process that trades a run, and what it answered."""
    async with open_for_run(db, run) as (store, record):
        found = await store.operator.all(record.run_id)
    if json:
        print_json([vars(request) for request in found])
    elif found:
        _render(found)


def _render(found: "list[OperatorRequest]") -> None:
    rows = (
        (
            str(request.number),
            request.kind,
            _brief(request.payload),
            request.state,
            _brief(request.result or {}),
        )
        for request in found
    )
    stdout_console().print(made_table(("request", "kind", "asked for", "state", "result"), rows))


def _brief(values: dict[str, Any]) -> str:
    text = ", ".join(f"{name} {value}" for name, value in values.items() if value is not None)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
