"""Rows of bars that a run keeps in the store, because nothing else has them: with them it is played again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy.ext.asyncio import AsyncConnection

from schemas.canonical import canonical_json
from services.store.database_time import Dialect, insert_once
from services.store.seals import seals_of_bars
from services.store.tables import paper_bars, seals

if TYPE_CHECKING:
    from services.feeds.port import BarRow


async def store_bars(
    connection: AsyncConnection,
    dialect: Dialect,
    run_id: str,
    bars: "Sequence[tuple[int, BarRow]]",
) -> None:
    """Store numbered rows inside a transaction of the caller's; those that are there already stay."""
    values = [_columns(run_id, number, row) for number, row in bars]
    # Rows that are part of the statement would have it compiled each time.
    await connection.execute(insert_once(dialect, paper_bars), values)
    await connection.execute(insert_once(dialect, seals), await seals_of_bars(connection, run_id, values))


def _columns(run_id: str, number: int, row: "BarRow") -> dict[str, Any]:
    text = canonical_json(
        {"bars": {symbol: list(bar) for symbol, bar in row.bars.items()}, "blocked": dict(row.blocked)}
        | ({"history": True} if row.history else {})
        | ({"extra": {symbol: dict(named) for symbol, named in row.extra.items()}} if row.extra else {})
    )
    return {"run_id": run_id, "number": number, "label": row.label, "bars": text}
