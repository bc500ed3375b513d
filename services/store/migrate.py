"""Bring a store's tables to a revision, inside the transaction of the caller: all of it happens, or nothing.

Only this module loads the migration library. It hands each file its operations, since the library's
environment files and its `op` module are global to a process and two upgrades in one event loop would meet
there.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import Script, ScriptDirectory
from sqlalchemy import Connection, func, select, table

from schemas.errors import InvariantViolation
from services.store import migrations
from services.store.migrations import HEAD
from services.store.revision import make_tables, mark, revision_state
from services.store.tables import runs
from services.store.urls import StoreUrl


@dataclass(frozen=True)
class Upgrade:
    """What an upgrade did.

    Attributes:
        state: how the store stood before.
        before: its revision; None when it was empty.
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
        StoreError: the store is another program's, or of another version.
        InvariantViolation: a revision lost rows; roll the transaction back.
    """
    found = revision_state(connection, url)
    applied = pending(found.revision)
    if found.state == "empty":
        make_tables(connection)
        return Upgrade("empty", None, HEAD, applied)
    kept = _content(connection, found.tables)
    migrate(connection, found.revision, HEAD)
    if _content(connection, found.tables) != kept:
        raise InvariantViolation(
            f"upgrade of store {url.text} from {found.revision!r} changed runs or lost rows"
        )
    return Upgrade(found.state, found.revision, HEAD, applied)


def migrate(connection: Connection, present: str | None, target: str) -> None:
    """Apply the revisions after the present one (None: there are no tables) up to a target, and mark it."""
    operations = Operations(MigrationContext.configure(connection))
    for script in _between(present, target):
        script.module.upgrade(operations)
    mark(connection, target)


def pending(present: str | None) -> tuple[str, ...]:
    """Titles of the revisions after one, oldest first; of all of them after None."""
    return tuple(f"{script.revision} {script.doc.rstrip('.')}" for script in _between(present, HEAD))


def _between(present: str | None, target: str) -> Iterator[Script]:
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    return reversed(list(scripts.iterate_revisions(target, present or "base")))


def _content(connection: Connection, tables: frozenset[str]) -> dict[str, Any]:
    rows = {name: connection.scalar(select(func.count()).select_from(table(name))) for name in sorted(tables)}
    heads = select(runs.c.run_id, runs.c.events, runs.c.head_hash).order_by(runs.c.number)
    return {"rows": rows, "heads": [tuple(head) for head in connection.execute(heads)]}
