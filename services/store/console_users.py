"""Who may log in to the console of a store, and what was decided there by whom."""

from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import delete, select

from schemas.errors import ConfigError
from services.store.database_time import now_ms
from services.store.repository import Repository
from services.store.tables import console_audit, console_users

Role = Literal["reader", "operator"]
MOST_ENTRIES = 500


@dataclass(frozen=True)
class ConsoleUser:
    """A user: `operator` decides, `reader` looks; the password as argon2 keeps it."""

    name: str
    role: Role
    password_hash: str


@dataclass(frozen=True)
class AuditEntry:
    """One decision: when (ms of the database's clock), who, what, on what, and what came of it."""

    number: int
    at_ms: int
    who: str
    action: str
    subject: str
    outcome: str


class ConsoleUsers(Repository):
    """The users of one store's console, and its audit."""

    async def all(self) -> list[ConsoleUser]:
        """Every user, by name."""
        query = select(console_users).order_by(console_users.c.name)
        rows = await self._select(query)
        return [ConsoleUser(row.name, row.role, row.password_hash) for row in rows]

    async def find(self, name: str) -> ConsoleUser | None:
        """The user of a name; None where there is none."""
        return next((user for user in await self.all() if user.name == name), None)

    async def put(self, user: ConsoleUser) -> None:
        """Add a user, or give one that is there another password and role."""
        row = vars(user) | {"added_ms": now_ms(self._url.dialect)}
        async with self._write() as connection:
            await connection.execute(delete(console_users).where(console_users.c.name == user.name))
            await connection.execute(console_users.insert().values(row))

    async def remove(self, name: str) -> None:
        """Let a user in no more.

        Raises:
            ConfigError: there is none of this name.
        """
        async with self._write() as connection:
            gone = await connection.execute(delete(console_users).where(console_users.c.name == name))
        if not gone.rowcount:
            raise ConfigError(f"no user {name!r}: `thinktwice console user list` has them")

    async def note(self, who: str, action: str, subject: str, outcome: str) -> None:
        """Keep who decided what; numbers ascend."""
        row: dict[str, Any] = {"who": who, "action": action, "subject": subject, "outcome": outcome}
        row |= {"at_ms": now_ms(self._url.dialect)}
        async with self._write() as connection:
            await connection.execute(console_audit.insert().values(row))

    async def audit(self) -> list[AuditEntry]:
        """The newest decisions, newest first, 500 at most."""
        query = select(console_audit).order_by(console_audit.c.number.desc()).limit(MOST_ENTRIES)
        rows = await self._select(query)
        return [AuditEntry(*row) for row in rows]
