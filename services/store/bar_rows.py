"""Rows of bars that a run keeps in the store, because nothing else has them: with them it is played again.

Each holds a hash over the one before and itself; the row of the run counts them, so that the last one cannot
be deleted unseen.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, bindparam, func, select, update

from schemas.canonical import canonical_json
from services.journal.chain import GENESIS_HASH
from services.store.connections import AsyncConnection
from services.store.database_time import Dialect, insert_once
from services.store.seals import CHANGED, hash_values
from services.store.tables import paper_bars, runs

if TYPE_CHECKING:
    from services.feeds.port import BarRow

Reading = Callable[[Callable[[AsyncConnection], Coroutine[Any, Any, Any]]], Awaitable[Any]]
CheckedBars = tuple[Row[Any] | None, str | None]
PAGE_ROWS = 5_000
HASH = select(paper_bars.c.hash).where(
    paper_bars.c.run_id == bindparam("run"), paper_bars.c.number == bindparam("at")
)
PAGE = (
    select(paper_bars.c.number, paper_bars.c.label, paper_bars.c.bars, paper_bars.c.hash)
    .where(paper_bars.c.run_id == bindparam("run"), paper_bars.c.number >= bindparam("start"))
    .order_by(paper_bars.c.number)
    .limit(PAGE_ROWS)
)
COUNTED = update(runs).where(runs.c.run_id == bindparam("run")).values(bars=bindparam("count"))


async def store_bars(
    connection: AsyncConnection,
    dialect: Dialect,
    run_id: str,
    bars: "Sequence[tuple[int, BarRow]]",
) -> None:
    """Store numbered rows inside a transaction of the caller's; those that are there already stay."""
    before = await hash_before(connection, run_id, bars[0][0])
    values = []
    for number, row in bars:
        values.append(_columns(run_id, number, row, before or GENESIS_HASH))
        before = values[-1]["hash"]
    # Rows that are part of the statement would have it compiled each time.
    await connection.execute(insert_once(dialect, paper_bars), values)
    await connection.execute(COUNTED, {"run": run_id, "count": bars[-1][0] + 1})


async def hash_before(connection: AsyncConnection, run_id: str, number: int) -> str | None:
    """What row `number` of the bars of a run follows; None where that is not stored."""
    if not number:
        return GENESIS_HASH
    return await connection.scalar(HASH, {"run": run_id, "at": number - 1})


async def checked_bars(read: Reading, run_id: str, start: int = 0) -> AsyncIterator[CheckedBars]:
    """Rows of bars of a run from `start` on, each held against its hash, its place and the run's count.

    Args:
        read: has its argument work in a transaction.
        run_id: the run.
        start: number of the first row.

    Yields:
        A row with its label and its bars, and why it is not what the run took, None when it is; without a
        row where the last ones are missing.
    """
    expected = start
    before = await read(lambda connection: hash_before(connection, run_id, start))
    while True:
        page, count, last = await read(partial(_read_page, run_id=run_id, start=expected))
        for row in page:
            yield row, _misfit(row, expected, before, count)
            expected, before = row.number + 1, row.hash
        if len(page) < PAGE_ROWS:
            if count > last + 1:
                yield None, f"row {last + 1} of its bars is missing"
            return


async def _read_page(connection: AsyncConnection, run_id: str, start: int) -> tuple[Sequence[Any], int, int]:
    """The next rows as they lie there, how many the run has taken, and number of the last stored one."""
    page = (await connection.execute(PAGE, {"run": run_id, "start": start})).all()
    last = select(func.max(paper_bars.c.number)).where(paper_bars.c.run_id == run_id).scalar_subquery()
    counted = select(runs.c.bars, last).where(runs.c.run_id == run_id)
    count, newest = (await connection.execute(counted)).one_or_none() or (0, None)
    return page, count, -1 if newest is None else newest


def _misfit(row: Row[Any], expected: int, before: str | None, count: int) -> str | None:
    """Why a row cannot be row `expected` of `count` behind the hash `before`, where it is known; or None."""
    if row.number != expected:
        return f"row {expected} of its bars is missing"
    if row.number >= count:
        return f"row {row.number} of its bars was not taken by the run"
    if before is not None and row.hash != hash_values(before, row.number, row.label, row.bars):
        return f"row {row.number} of its bars is damaged: it {CHANGED}"
    return None


def _columns(run_id: str, number: int, row: "BarRow", before: str) -> dict[str, Any]:
    text = canonical_json(
        {"bars": {symbol: list(bar) for symbol, bar in row.bars.items()}, "blocked": dict(row.blocked)}
        | ({"history": True} if row.history else {})
        | ({"extra": {symbol: dict(named) for symbol, named in row.extra.items()}} if row.extra else {})
    )
    kept = {"run_id": run_id, "number": number, "label": row.label, "bars": text}
    return kept | {"hash": hash_values(before, number, row.label, text)}
