"""Which revision a store's tables have: a mark in a table of its own, read without the migration library."""

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, inspect, select

from schemas.errors import StoreError
from services.store.failures import MEND, StoreDamaged
from services.store.migrations import HEAD, REVISIONS
from services.store.tables import CORE, metadata
from services.store.urls import StoreUrl

MARK = "thinktwice_revision"
_mark = Table(
    MARK,
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{MARK}_pkc"),
)


@dataclass(frozen=True)
class RevisionState:
    """How the tables at an address relate to those that this program works with.

    Attributes:
        state: empty, behind or current.
        revision: the stored mark; None where nothing is.
        tables: ours that are there.
    """

    state: Literal["empty", "behind", "current"]
    revision: str | None
    tables: frozenset[str]


def revision_state(connection: Connection, url: StoreUrl) -> RevisionState:
    """How a store stands.

    Raises:
        StoreError: the tables there are another program's, or of another version of this one.
        StoreDamaged: a table of the marked revision is missing.
    """
    present = set(inspect(connection).get_table_names())
    ours = frozenset(present & set(metadata.tables))
    revision = connection.scalar(select(_mark.c.version_num)) if MARK in present else None
    if revision == HEAD and (gone := sorted(set(metadata.tables) - present)):
        what = f"table {gone[0]!r} is" if len(gone) == 1 else f"tables {', '.join(map(repr, gone))} are"
        raise StoreDamaged(f"store {url.text} is damaged: {what} missing: {MEND}")
    if not present >= CORE:
        if ours or MARK in present or (present and url.dialect == "sqlite"):
            others = ", ".join(sorted(present)[:3])
            raise StoreError(f"store {url.text} holds other tables ({others}), not ours: give another --db")
        return RevisionState("empty", None, ours)
    if revision not in REVISIONS:
        raise StoreError(
            f"store {url.text} was made by another version (revision {revision!r}, this program knows "
            f"{HEAD!r}): give another --db"
        )
    return RevisionState("current" if revision == HEAD else "behind", revision, ours)


def mark(connection: Connection, revision: str) -> None:
    """Note that the tables of a store are those of a revision."""
    _mark.create(connection, checkfirst=True)
    connection.execute(_mark.delete())
    connection.execute(_mark.insert().values(version_num=revision))


def make_tables(connection: Connection) -> None:
    """Make every table of the newest revision in an empty store."""
    metadata.create_all(connection)
    mark(connection, HEAD)


def behind_error(url: StoreUrl, revision: str | None) -> StoreError:
    """What to say of a store that has to be upgraded first."""
    return StoreError(
        f"store {url.text} is at revision {revision!r}, this program works with {HEAD!r}: run "
        "`thinktwice db upgrade --db URL`"
    )
