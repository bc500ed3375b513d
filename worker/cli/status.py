"""`thinktwice status`: how the process that trades a run is, as it last said of itself."""

import time
from collections.abc import Iterator
from typing import Any

from services.model_calls.quoting import count_noun
from worker.cli.console import print_document, stdout_console
from worker.cli.options import LATEST, DbOption, JsonOption, RunArgument, open_for_run
from worker.pages.figures import shown_time

SILENT_MS = 10_000


async def status(run: RunArgument = LATEST, db: DbOption = None, json: JsonOption = False) -> None:
    """Show how the process that trades a run is: alive or silent, safe mode, bars, positions, errors."""
    async with open_for_run(db, run, guards=True) as (store, record):
        seen = await store.trading.last_seen(record.run_id)
        plans = await store.plans.waiting(record.run_id, now=time.time_ns())
        waiting = await store.operator.waiting(record.run_id)
    document = {
        "run_id": record.run_id,
        "mode": record.mode,
        "status": record.status,
        "ended_early": record.ended_early,
        "events": record.events,
        "head_hash": record.head_hash,
        "process": None
        if seen is None
        else {
            "owner": seen.owner,
            "alive": record.status == "running" and seen.age_ms < SILENT_MS,
            "seen_ms_ago": seen.age_ms,
            "signs": seen.signs,
        },
        "requests_waiting": [request.number for request in waiting],
        "plans_waiting": plans,
    }
    print_document(document, json, _render)


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"


def _render(document: dict[str, Any]) -> None:
    console = stdout_console()
    events = count_noun(document["events"], "event")
    console.print(f"run {document['run_id']} ({document['mode']}, {document['status']}): {events}")
    if (early := document["ended_early"]) is not None:
        console.print(f"ended      early: {early['message']}", soft_wrap=True)
    if document["plans_waiting"]:
        count = count_noun(document["plans_waiting"], "change plan")
        console.print(
            f"plans      {count} {_wait(document['plans_waiting'])} for a decision: `thinktwice plans list`"
        )
    process = document["process"]
    if process is None:
        made = (
            "`thinktwice guard questions` lists what it asks"
            if document["mode"] == "guard"
            else ("no process has traded it: `thinktwice paper` makes and trades runs")
        )
        console.print(made)
        return
    signs, ago = process["signs"], process["seen_ms_ago"] / 1_000
    how = signs["state"] if process["alive"] else "not running"
    told = signs["reason"] if process["alive"] or signs["state"] == "stopping" else ""
    reason = f" ({told})" if told else ""
    console.print(f"process    {how}{reason}, last seen {ago:,.1f} s ago, {process['owner']}", soft_wrap=True)
    if not process["alive"] and document["status"] == "running":
        console.print("           it ended without a word: the same command goes on with the run")
    for line in _lines(signs):
        console.print(line, soft_wrap=True)
    if document["requests_waiting"]:
        console.print(f"requests   {len(document['requests_waiting'])} wait for the next bar")


def _lines(signs: dict[str, Any]) -> Iterator[str]:
    """What a process last said of its feed, its store, its models and the account."""
    bars = ", ".join(f"{symbol} {shown_time(label)}" for symbol, label in sorted(signs["last_bars"].items()))
    away = " is AWAY" if signs.get("feed_ok") is False else ""
    yield f"feed       {signs['feed']}{away}: {bars or 'no bar yet'}"
    shut = ", ".join(f"{symbol} ({why})" for symbol, why in signs.get("blocked", {}).items())
    if shut:
        yield f"blocked    {shut}: no entries, exits run on"
    store = "ok" if signs["store_ok"] else f"AWAY since {shown_time(signs['store_away_since'])}"
    waiting = signs["buffered_rows"]
    yield f"store      {store}, {count_noun(waiting, 'row')} {_wait(waiting)}"
    counts = ", ".join(f"{name} {count}" for name, count in signs["evaluations"].items())
    yield f"policies   {counts or 'none yet'}; {signs['in_flight']} in flight"
    positions = ", ".join(f"{symbol} {amount:g}" for symbol, amount in signs["open_positions"].items())
    equity = "-" if signs["equity"] is None else f"{signs['equity']:,.2f}"
    yield f"account    equity {equity}; {positions or 'flat'}"
    if signs["kill_switch"]:
        yield "           the kill switch is on"
    latency = signs["tick_latency_ms"]
    if latency.get("p99") is not None:
        yield f"latency    {latency['p50']:.2f} ms a row, p99 {latency['p99']:.2f} ms"
    if calls := signs.get("model_calls"):
        yield f"models     {', '.join(f'{outcome} {count}' for outcome, count in calls.items())}"
    for model, count in signs.get("models_failing", {}).items():
        last = count_noun(count, "call")
        yield f"           {model} gave no usable reply to its last {last}: the rules decide instead"
    if silence := signs.get("model_silence"):
        yield f"           {silence}"
    yield f"errors     {signs['errors']}"
