"""The database's own clock: what decides whether a lease has run out, whatever the hosts' clocks say."""

from functools import cache
from typing import Literal

from sqlalchemy import BigInteger, ColumnElement, Insert, Table, literal_column
from sqlalchemy.dialects import postgresql, sqlite

Dialect = Literal["sqlite", "postgresql"]
NOW_MS: dict[Dialect, str] = {
    "sqlite": "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)",
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
}


def now_ms(dialect: Dialect) -> ColumnElement[int]:
    """Milliseconds since 1970 as the database sees them."""
    return literal_column(NOW_MS[dialect], BigInteger)


@cache
def insert_once(dialect: Dialect, table: Table) -> Insert:
    """An insert that leaves a row that is there already alone; of one row `rowcount` says which it was."""
    if dialect == "postgresql":
        return postgresql.insert(table).on_conflict_do_nothing()
    return sqlite.insert(table).on_conflict_do_nothing()
