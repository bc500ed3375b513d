"""`thinktwice runs`: what a store holds; nothing, and why on stderr, without a store or a run.

A run whose row is damaged is listed as damaged beside the others. In a narrow terminal the least important
columns are left out: a run id is always whole.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from schemas.canonical import ns_to_datetime
from services.model_calls.quoting import count_noun
from worker.cli.console import print_json, stdout_console
from worker.cli.options import DbOption, JsonOption, listed_runs
from worker.pages.figures import percent
from worker.pages.tables import made_table

if TYPE_CHECKING:
    from rich.table import Table

    from services.store import RunRecord

SHOWN = 3
DAMAGED = "damaged"
COLUMNS = ("run", "status", "made", "name", "symbols", "bars", "return", "trades", "events", "head")
LEAVES_FIRST = ("head", "events", "bars", "symbols", "name", "made", "trades", "return", "status")
UNLIMITED = 10_000


async def runs(db: DbOption = None, json: JsonOption = False) -> None:
    """List the runs of a store, oldest first; exit 2 when one of them is damaged."""
    async with listed_runs(db) as (_, records):
        found = [_examine(record) for record in records]
    if json:
        print_json([_plain(record) for record, _ in found])
    elif found:
        _render([cells for _, cells in found])
    damages = [record.damage for record, _ in found if record.damage is not None]
    if damages:
        from services.store.failures import StoreDamaged

        raise StoreDamaged("; ".join(damages))


def _examine(record: "RunRecord") -> "tuple[RunRecord, list[str]]":
    """A run with its cells; figures of another shape than the program writes are damage, too."""
    from services.store.failures import MEND

    damaged = [record.run_id, DAMAGED, *["-"] * (len(COLUMNS) - 2)]
    try:
        return record, _cells(record) if record.damage is None else damaged
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        damage = f"the row of run {record.run_id} is damaged ({what}): {MEND}"
        return replace(record, damage=damage), damaged


def _plain(record: "RunRecord") -> dict[str, Any]:
    fields = ("run_id", "name", "created_at", "mode", "status", "config_hash", "data", "events", "head_hash")
    doubts = ((record.document or {}).get("data") or {}).get("doubts", [])
    named = {name: getattr(record, name) for name in (*fields, "environment", "damage")}
    return named | {"doubts": doubts, "ended_early": (record.ended_early or {}).get("reason")}


def _cells(record: "RunRecord") -> list[str]:
    performance = (record.document or {}).get("performance", {})
    return [
        record.run_id,
        record.status if record.ended_early is None else f"{record.status} ({record.ended_early['reason']})",
        ns_to_datetime(record.created_at).strftime("%Y-%m-%d %H:%M"),
        record.name,
        few(record.data["symbols"]),
        f"{record.data['timeframe']} {_bars(record)}",
        percent(performance.get("total_return")),
        _trades(record.document or {}),
        f"{record.events:,}",
        record.head_hash[:8],
    ]


def _render(found: list[list[str]]) -> None:
    from rich.measure import Measurement

    console = stdout_console()
    table, left = _table(found, COLUMNS), list(COLUMNS)
    for name in LEAVES_FIRST:
        needed = Measurement.get(console, console.options.update(max_width=UNLIMITED), table).minimum
        if needed <= console.width:
            break
        left.remove(name)
        table = _table(found, left)
    console.print(table)


def _table(found: list[list[str]], names: Sequence[str]) -> "Table":
    shown = [COLUMNS.index(name) for name in names]
    return made_table(names, ([cells[place] for place in shown] for cells in found))


def _trades(document: dict[str, Any]) -> str:
    """Closed positions; a run without one that says why shows its first reason."""
    trades = str(document.get("performance", {}).get("trades", "-"))
    causes = document.get("why_no_trade")
    return f"{trades} ({causes[0]['reason']})" if causes else trades


def _bars(record: "RunRecord") -> str:
    """How many bars it was given; a paper run knows that when its feed has ended."""
    ended = (record.document or {}).get("data", {})
    bars = record.data.get("bars", ended.get("bars"))
    doubts = f" ({count_noun(len(ended['doubts']), 'doubt')})" if ended.get("doubts") else ""
    return "-" if bars is None else f"{bars:,}{doubts}"


def few(symbols: list[str]) -> str:
    """The first symbols, and how many more there are."""
    rest = len(symbols) - SHOWN
    return " ".join(symbols[:SHOWN]) + (f" +{rest}" if rest > 0 else "")
