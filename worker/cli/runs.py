"""`thinktwice runs`: what a store holds; nothing, and why on stderr, without a store or a run."""

from typing import TYPE_CHECKING, Any

from schemas.canonical import ns_to_datetime
from worker.cli.console import complain, print_json, stdout_console
from worker.cli.options import DbOption, JsonOption, store_address
from worker.figures import percent
from worker.interrupts import run_async

if TYPE_CHECKING:
    from services.store import RunRecord

SHOWN = 3


def runs(db: DbOption = None, json: JsonOption = False) -> None:
    """List the runs of a store, oldest first."""
    found = run_async(_stored(store_address(db)))
    if json:
        print_json([_plain(record) for record in found])
    elif found:
        _render(found)


async def _stored(address: str) -> "list[RunRecord]":
    from services.store import StoreMissing, open_store

    try:
        store = await open_store(address, create=False)
    except StoreMissing as error:
        complain(str(error))
        return []
    async with store:
        found = await store.runs.all()
    if not found:
        complain("the store holds no run yet: `thinktwice backtest` makes one")
    return found


def _plain(record: "RunRecord") -> dict[str, Any]:
    fields = ("run_id", "name", "created_at", "mode", "status", "config_hash", "data", "events", "head_hash")
    return {name: getattr(record, name) for name in (*fields, "environment")}


def _render(found: "list[RunRecord]") -> None:
    from rich.table import Table

    table = Table(
        "run", "status", "made", "name", "symbols", "bars", "return", "trades", "events", "head", box=None
    )
    for record in found:
        performance = (record.document or {}).get("performance", {})
        table.add_row(
            record.run_id,
            record.status,
            ns_to_datetime(record.created_at).strftime("%Y-%m-%d %H:%M"),
            record.name,
            _few(record.data["symbols"]),
            f"{record.data['timeframe']} {_bars(record)}",
            percent(performance.get("total_return")),
            _trades(record.document or {}),
            f"{record.events:,}",
            record.head_hash[:8],
        )
    stdout_console().print(table)


def _trades(document: dict[str, Any]) -> str:
    """Closed positions; a run without one that says why shows its first reason."""
    trades = str(document.get("performance", {}).get("trades", "-"))
    causes = document.get("why_no_trade")
    return f"{trades} ({causes[0]['reason']})" if causes else trades


def _bars(record: "RunRecord") -> str:
    """How many bars it was given; a paper run knows that when its feed has ended."""
    ended = (record.document or {}).get("data", {})
    bars = record.data.get("bars", ended.get("bars"))
    return "-" if bars is None else f"{bars:,}"


def _few(symbols: list[str]) -> str:
    rest = len(symbols) - SHOWN
    return " ".join(symbols[:SHOWN]) + (f" +{rest}" if rest > 0 else "")
