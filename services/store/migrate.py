"""Bring a store's tables to a revision, inside the transaction of the caller: all of it happens, or nothing.

A store that was made before there were revisions is compared with each of them and marked with the one
whose tables it has; a store that has the tables of none is refused and left alone. Only this module loads
the migration library. It drives the library's parts directly, since its environment files and its `op`
module are global to a process and two upgrades in one event loop would meet there.

Shapes of tables are read as the database reports them, comparable between the dialects.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, func, inspect, select, table
from sqlalchemy.types import TypeEngine

from schemas.errors import InvariantViolation, StoreError
from services.store import migrations
from services.store.migrations import HEAD, REVISIONS
from services.store.revision import MARK, RevisionState, ahead_error, make_tables, mark, revision_state
from services.store.tables import metadata, runs
from services.store.urls import StoreUrl

Shape = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Upgrade:
    """What an upgrade did.

    Attributes:
        state: how the store stood before.
        before: its revision, found by comparison when it was unmarked; None when it was empty.
        after: its revision now.
        applied: titles of the revisions that were applied, oldest first.
    """

    state: str
    before: str | None
    after: str
    applied: tuple[str, ...]


def upgrade(connection: Connection, url: StoreUrl) -> Upgrade:
    """Make or upgrade the tables of a store; nothing is done to one that is current.

    The connection's transaction must hold off other writers.

    Raises:
        StoreError: the store is another program's, of a newer program, or of no known revision.
        InvariantViolation: a revision lost rows; roll the transaction back.
    """
    found = revision_state(connection, url)
    if found.state == "empty":
        make_tables(connection)
        return Upgrade("empty", None, HEAD, tuple(title(revision) for revision in REVISIONS))
    before = revision_of(connection, url, found)
    if found.state == "unmarked":
        mark(connection, before)
    kept = _content(connection, found.tables)
    migrate(connection, HEAD)
    if _content(connection, found.tables) != kept:
        raise InvariantViolation(f"upgrade of store {url.text} from {before!r} changed runs or lost rows")
    return Upgrade(found.state, before, HEAD, tuple(title(revision) for revision in pending(before)))


def revision_of(connection: Connection, url: StoreUrl, found: RevisionState) -> str:
    """The revision of a store that is not empty: its mark, or the newest whose tables it has.

    Raises:
        StoreError: the store is of a newer program, or its tables are those of no revision.
    """
    if found.state == "ahead":
        raise ahead_error(url, found.revision)
    if found.revision is not None:
        return found.revision
    shape = shape_of(connection, set(metadata.tables))
    for revision in reversed(REVISIONS):
        if shape == shape_at(revision):
            return revision
    where = first_difference(shape, shape_at(HEAD))
    raise StoreError(
        f"store {url.text} has no revision, and its tables are those of none ({where}): it was made by "
        "another version; give another --db"
    )


def migrate(connection: Connection, target: str) -> None:
    """Apply the revisions between a store's mark and a target, each with its mark."""
    scripts = _scripts()

    def steps(present: Any, _context: MigrationContext) -> Any:
        return scripts._upgrade_revs(target, present)

    context = MigrationContext.configure(connection, opts={"fn": steps, "version_table": MARK})
    context.run_migrations(operations=Operations(context))


def pending(revision: str | None) -> tuple[str, ...]:
    """Revisions after one, oldest first; all of them after None."""
    return REVISIONS if revision is None else REVISIONS[REVISIONS.index(revision) + 1 :]


def title(revision: str) -> str:
    """A revision with what it brings, for people."""
    return f"{revision} {_scripts().get_revision(revision).doc.rstrip('.')}"


@cache
def shape_at(revision: str) -> Shape:
    """The shape of every table at a revision."""
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            migrate(connection, revision)
            return shape_of(connection, set(metadata.tables))
    finally:
        engine.dispose()


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(Path(migrations.__file__).parent))


def _content(connection: Connection, tables: frozenset[str]) -> dict[str, Any]:
    rows = {name: connection.scalar(select(func.count()).select_from(table(name))) for name in sorted(tables)}
    heads = select(runs.c.run_id, runs.c.events, runs.c.head_hash).order_by(runs.c.number)
    return {"rows": rows, "heads": [tuple(head) for head in connection.execute(heads)]}


def shape_of(connection: Connection, tables: set[str]) -> Shape:
    """Columns, keys, constraints and indexes of some tables, by name; absent tables are left out."""
    inspector = inspect(connection)
    return {
        name: {
            "columns": {c["name"]: (_generic(c["type"]), c["nullable"]) for c in inspector.get_columns(name)},
            "primary key": inspector.get_pk_constraint(name)["constrained_columns"],
            "foreign keys": sorted(
                (fk["constrained_columns"], fk["referred_table"], fk["referred_columns"])
                for fk in inspector.get_foreign_keys(name)
            ),
            "unique": sorted(unique["column_names"] for unique in inspector.get_unique_constraints(name)),
            "indexes": sorted(
                (index["column_names"], bool(index["unique"]))
                for index in inspector.get_indexes(name)
                if "duplicates_constraint" not in index
            ),
        }
        for name in sorted(tables & set(inspector.get_table_names()))
    }


def _generic(kind: TypeEngine[Any]) -> str:
    """A type by the name that it has in every dialect: bytes are BYTEA in one and BLOB in another."""
    return str(kind.as_generic())


def first_difference(found: Shape, wanted: Shape) -> str | None:
    """Where two shapes part, for a message; None when they are equal."""
    for name in sorted(found.keys() | wanted.keys()):
        if name not in found or name not in wanted:
            return f"table {name!r} is {'missing' if name in wanted else 'not known'}"
        for aspect, value in wanted[name].items():
            if found[name][aspect] != value:
                return f"{aspect} of table {name!r}"
    return None
