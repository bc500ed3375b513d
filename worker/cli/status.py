"""`thinktwice status kill requests`: how the process of a run is, and what an operator asks of it."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import typer

from services.model_calls.quoting import count_noun
from worker.cli import options
from worker.cli.options import LATEST, operator_name
from worker.cli.printing import print_document
from worker.cli.stores import open_for_run, open_to_write
from worker.pages.figures import counts, shown_cell, shown_time
from worker.pages.text_parts import Part, rows_table

SHOWN = 90
MB = 1e6
NO_PROCESS = {"guard": "`thinktwice guard questions` lists what it asks"}
KILLED = "the kill switch is on"


async def status(
    run: options.RunArgument = LATEST, db: options.Db = None, json: options.Json = False
) -> None:
    """Show how the process that trades a run is: alive or silent, safe mode, bars, positions, errors."""
    from worker.review.run_status import status_of

    async with open_for_run(db, run, guards=True) as (store, record):
        document = await status_of(store, record)
    print_document(document, json, _describe)


def _wait(count: int, name: str) -> str:
    return f"{count_noun(count, name)} {'waits' if count == 1 else 'wait'}"


def _describe(document: dict[str, Any]) -> Iterator[Part]:
    events, process = count_noun(document["events"], "event"), document["process"]
    yield f"run {document['run_id']} ({document['mode']}, {document['status']}): {events}"
    per_day = document["store_bytes_per_day"]
    more = "" if per_day is None else f", {per_day / MB:,.1f} MB more with each day of this run's bars"
    yield "size", f"the store has {document['store_bytes'] / MB:,.1f} MB{more}"
    if (early := document["ended_early"]) is not None:
        yield "ended", f"early: {early['message']}"
    if plans := document["plans_waiting"]:
        yield "plans", f"{_wait(plans, 'change plan')} for a decision: `thinktwice plans list`"
    if process is None:
        none = "no process has traded it: `thinktwice paper` makes and trades runs"
        yield NO_PROCESS.get(document["mode"], none)
        if document.get("kill_switch"):
            yield "", KILLED
        return
    signs, alive = process["signs"], process["alive"]
    reason = signs["reason"] if alive or signs["state"] == "stopping" else ""
    how = f"{signs['state'] if alive else 'not running'}{f' ({reason})' if reason else ''}"
    yield "process", f"{how}, last seen {process['seen_ms_ago'] / 1_000:,.1f} s ago, {process['owner']}"
    if not alive and document["status"] == "running":
        yield "", "it ended without a word: the same command goes on with the run"
    yield from _describe_signs(signs)
    if document["requests_waiting"]:
        yield "requests", f"{len(document['requests_waiting'])} wait for the next bar"


def _describe_signs(signs: dict[str, Any]) -> Iterator[Part]:
    bars = ", ".join(f"{symbol} {shown_time(label)}" for symbol, label in sorted(signs["last_bars"].items()))
    away = " is AWAY" if signs.get("feed_ok") is False else ""
    yield "feed", f"{signs['feed']}{away}: {bars or 'no bar yet'}"
    if shut := ", ".join(f"{symbol} ({why})" for symbol, why in signs.get("blocked", {}).items()):
        yield "blocked", f"{shut}: no entries, exits run on"
    store = "ok" if signs["store_ok"] else f"AWAY since {shown_time(signs['store_away_since'])}"
    yield "store", f"{store}, {_wait(signs['buffered_rows'], 'row')}"
    yield "policies", f"{shown_cell(signs['evaluations'])}; {signs['in_flight']} in flight"
    equity = "-" if signs["equity"] is None else f"{signs['equity']:,.2f}"
    held = signs["open_positions"]
    yield "account", f"equity {equity}; {shown_cell(held) if held else 'flat'}"
    if signs["kill_switch"]:
        yield "", KILLED
    latency = signs["tick_latency_ms"]
    if latency.get("p99") is not None:
        yield "latency", f"{latency['p50']:.2f} ms a row, p99 {latency['p99']:.2f} ms"
    if calls := signs.get("model_calls"):
        yield "models", counts(calls)
    for model, count in signs.get("models_failing", {}).items():
        last = count_noun(count, "call")
        yield "", f"{model} gave no usable reply to its last {last}: the rules decide instead"
    if silence := signs.get("model_silence"):
        yield "", silence
    yield "errors", str(signs["errors"])


async def kill(
    switch: Annotated[
        Literal["on", "off"],
        typer.Argument(metavar="on|off", help="on: close positions, enter no more; off: release."),
    ],
    run: options.RunOption = LATEST,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Ask the process that trades a run to turn its kill switch on or off; a guard heeds it at once."""
    from worker.review.run_requests import describe_request
    from worker.review.run_status import switch_guards, switch_run

    async with open_to_write(db, run, guards=True) as (store, record):
        if record.mode == "guard":
            chosen = None if run == LATEST else record
            found = await switch_guards(store, chosen, on=switch == "on", by=operator_name())
            print_document(found, json, _describe_switched)
            return
        request = await switch_run(store, record, on=switch == "on")
    print_document(request, json, lambda shown: [describe_request(shown)])


def _describe_switched(found: list[dict[str, Any]]) -> Iterator[Part]:
    is_on = found[0]["payload"]["on"]
    for switched in found:
        lets = "every entry is blocked, exits pass" if is_on else "entries pass again"
        if is_on and switched["mode"] == "shadow":
            lets = "entries are recorded as blocked, not refused: mode shadow"
        yield f"guard {switched['run_id']}: {lets}"
    yield f"{count_noun(len(found), 'guard')} switched {'on' if is_on else 'off'}"


async def requests(
    run: options.RunArgument = LATEST, db: options.Db = None, json: options.Json = False
) -> None:
    """List what was asked of the process that trades a run, and what it answered."""
    async with open_for_run(db, run) as (store, record):
        found = await store.operator.all(record.run_id)
    columns = {
        "request": "number",
        "kind": "kind",
        "asked for": lambda payload: _shorten(payload["payload"]),
        "state": "state",
        "result": lambda payload: _shorten(payload["result"] or {}),
    }
    print_document([vars(request) for request in found], json, lambda shown: [rows_table(shown, columns)])


def _shorten(values: dict[str, Any]) -> str:
    text = shown_cell({name: value for name, value in values.items() if value is not None})
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
