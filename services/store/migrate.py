"""Bring a store's tables to a revision, inside the transaction of the caller: all of it happens, or nothing.

Only this module loads the migration library. Its environment is global to a process, so that one process
upgrades one store at a time.
"""

from dataclasses import dataclass
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, func, select, table

from schemas.errors import InvariantViolation
from services.store.migrations import HEAD
from services.store.revision import MARK, revision_state
from services.store.tables import runs
from services.store.urls import StoreUrl

SCRIPTS = "services.store:migrations"


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
    content = _content(connection, found.tables)
    migrate(connection, HEAD)
    if _content(connection, found.tables) != content:
        raise InvariantViolation(
            f"upgrade of store {url.text} from {found.revision!r} changed runs or lost rows"
        )
    return Upgrade(found.state, found.revision, HEAD, pending(found.revision))


def migrate(connection: Connection, target: str) -> None:
    """Apply the revisions after the present one up to a target, and mark it."""
    config = _config()
    config.attributes |= {"connection": connection, "version_table": MARK}
    command.upgrade(config, target)


def pending(present: str | None) -> tuple[str, ...]:
    """Titles of the revisions after one, oldest first; of all of them after None."""
    later = ScriptDirectory.from_config(_config()).iterate_revisions(HEAD, present or "base")
    return tuple(f"{script.revision} {script.doc.rstrip('.')}" for script in reversed(list(later)))


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    config.set_main_option("path_separator", "os")
    return config


def _content(connection: Connection, tables: frozenset[str]) -> dict[str, Any]:
    rows = {name: connection.scalar(select(func.count()).select_from(table(name))) for name in sorted(tables)}
    heads = select(runs.c.run_id, runs.c.events, runs.c.head_hash).order_by(runs.c.number)
    return {"rows": rows, "heads": [tuple(head) for head in connection.execute(heads)] if tables else []}
