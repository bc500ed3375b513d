"""The database's own clock: what decides whether a lease has run out, whatever the hosts' clocks say."""

from functools import cache
from typing import TYPE_CHECKING, Literal

from sqlalchemy import BigInteger, ColumnElement, Insert, Table, literal_column

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

Dialect = Literal["sqlite", "postgresql"]
NOW_MS: dict[Dialect, str] = {
    "sqlite": "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)",
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
}


def now_ms(dialect: Dialect) -> ColumnElement[int]:
    """Milliseconds since 1970 as the database sees them."""
    return literal_column(NOW_MS[dialect], BigInteger)


def insert_into(dialect: Dialect, table: Table) -> "postgresql.Insert | sqlite.Insert":
    """An insert that may say what becomes of a row that is there already; no other dialect is loaded."""
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


@cache
def insert_once(dialect: Dialect, table: Table) -> Insert:
    """An insert that leaves a row that is there already alone; of one row `rowcount` says which it was."""
    return insert_into(dialect, table).on_conflict_do_nothing()
