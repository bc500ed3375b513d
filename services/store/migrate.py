"""Which revision a store's tables have, and how they are brought to another.

A mark in a table of its own names the revision; it is read without the migration library, whose environment
is global to a process: one process upgrades one store at a time. All of an upgrade happens, inside the
transaction of the caller, or nothing.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import (  # fmt: skip
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    func,
    inspect,
    select,
    table,
)

from schemas.errors import InvariantViolation, StoreError
from services.store.failures import MEND, StoreDamaged
from services.store.migrations import HEAD, REVISIONS
from services.store.tables import CORE, metadata, runs
from services.store.urls import StoreUrl

if TYPE_CHECKING:
    from alembic.config import Config

SCRIPTS = "services.store:migrations"
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


def make_tables(connection: Connection) -> None:
    """Make every table of the newest revision in an empty store, and mark it."""
    metadata.create_all(connection)
    _mark.create(connection, checkfirst=True)
    connection.execute(_mark.delete())
    connection.execute(_mark.insert().values(version_num=HEAD))


@dataclass(frozen=True)
class Upgrade:
    """What an upgrade did: how the store stood, its revisions, and titles of those applied, oldest first."""

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
    from alembic import command

    command.upgrade(_config(connection=connection, version_table=MARK), target)


def pending(present: str | None) -> tuple[str, ...]:
    """Titles of the revisions after one, oldest first; of all of them after None."""
    from alembic.script import ScriptDirectory

    later = ScriptDirectory.from_config(_config()).iterate_revisions(HEAD, present or "base")
    return tuple(f"{script.revision} {script.doc.rstrip('.')}" for script in reversed(list(later)))


def _config(**attributes: Any) -> "Config":
    from alembic.config import Config

    config = Config(attributes=attributes)
    config.set_main_option("script_location", SCRIPTS)
    config.set_main_option("path_separator", "os")
    return config


def _content(connection: Connection, tables: frozenset[str]) -> dict[str, Any]:
    rows = {name: connection.scalar(select(func.count()).select_from(table(name))) for name in sorted(tables)}
    heads = select(runs.c.run_id, runs.c.events, runs.c.head_hash).order_by(runs.c.number)
    return {"rows": rows, "heads": [tuple(head) for head in connection.execute(heads)] if tables else []}
