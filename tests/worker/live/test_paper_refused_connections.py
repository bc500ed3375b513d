"""A PostgreSQL that is up and lets nobody in: a live paper run trades on from memory until it does again."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tests.postgres.fixtures import read_text
from tests.worker.live.outages import LiveRun

DOWN_S = 0.8
CAME = """
CREATE ROLE {role} LOGIN PASSWORD 'x';
GRANT ALL ON SCHEMA public TO {role};
"""
LIMITED = "ALTER ROLE {role} CONNECTION LIMIT 0"
ENDED = "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE usename = '{role}'"
LIFTED = "ALTER ROLE {role} CONNECTION LIMIT -1"
WENT = """
DROP OWNED BY {role} CASCADE;
DROP ROLE {role};
"""


class Refused(LiveRun):
    """A live run whose role gets no connection for a while, having lost those it had."""

    def __init__(self, admin: str, role: str) -> None:
        nobody: Any = None  # no server is stopped
        super().__init__(nobody, "limit", DOWN_S)
        self._admin = admin
        self._role = role
        self.reasons: list[str] = []

    def _begin(self) -> None:
        for statement in (LIMITED, ENDED):  # each in a transaction of its own: the limit holds first
            asyncio.run(read_text(self._admin, statement.format(role=self._role)))

    def _end(self) -> None:
        asyncio.run(read_text(self._admin, LIFTED.format(role=self._role)))

    def _note(self, kind: str, detail: dict[str, Any]) -> None:
        super()._note(kind, detail)
        if kind in ("store_away", "store_back"):
            self.reasons.append(kind)


@contextmanager
def role_of(admin: str) -> Iterator[str]:
    """A role with rights on the tables of a database, and the limits of one that is no superuser."""
    role = f"trader_{urlsplit(admin).path.removeprefix('/')}"
    asyncio.run(read_text(admin, CAME.format(role=role)))
    try:
        yield role
    finally:
        asyncio.run(read_text(admin, WENT.format(role=role)))


def test_paper_live_run_whose_role_gets_no_connection_trades_on_without_entries_and_comes_back(
    postgres_url,
) -> None:
    parts = urlsplit(postgres_url)
    with role_of(postgres_url) as role:
        address = urlunsplit(parts._replace(netloc=f"{role}:x@{parts.hostname}:{parts.port}"))
        run = Refused(postgres_url, role)
        seen = asyncio.run(run.outage(address))
    assert run.reasons == ["store_away", "store_back"]
    assert seen.rows_meanwhile > 3, "bars are validated from memory"
    assert seen.blocked > 0, "nobody enters what cannot be kept"
    assert seen.acknowledged > 20
    assert (seen.lost, seen.problem) == (0, None)
