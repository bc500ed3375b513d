"""What the pages and the API of the console work on: one open store, and what is computed over it."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from schemas.errors import ConfigError
from services.journal.kinds import JOURNAL_KINDS
from services.journal.lineage import trace_named
from services.journal.sparse_index import read_sparsely
from worker.console.people import People
from worker.console.reflections import document_of_row

if TYPE_CHECKING:
    from schemas.settings import Settings
    from services.store import RunRecord, Store
    from services.store.plan_records import StoredPlan
    from worker.console.backtests import Backtests


@dataclass(frozen=True)
class Desk:
    """One console.

    Attributes:
        store: open, with every table.
        settings: of models and folders: what a question in words is asked with.
        people: who may ask.
        backtests: that were started here.
        environment: of keys.
        ending: set when the console ends: streams end with it.
    """

    store: "Store"
    settings: "Settings"
    people: People
    backtests: "Backtests"
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    ending: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def end(self) -> None:
        """End every stream."""
        self.ending.set()

    async def run(self, name: str) -> "RunRecord":
        """The run of an id or a prefix of one.

        Raises:
            HTTPException: there is none: 404.
        """
        try:
            return await self.store.runs.find(name)
        except ConfigError as error:
            raise HTTPException(404, str(error)) from error

    async def plan(self, plan_id: str, run: str | None, now: int) -> "StoredPlan":
        """The change plan of an id.

        Raises:
            HTTPException: there is none: 404.
        """
        try:
            return await self.store.plans.find(plan_id, run, now=now)
        except ConfigError as error:
            raise HTTPException(404, str(error)) from error

    async def rows(
        self, record: "RunRecord", kinds: list[str] | None, after: int
    ) -> AsyncIterator[dict[str, Any]]:
        """Rows of the journal behind a sequence number, as `journal --jsonl` prints them.

        Raises:
            HTTPException: there is no such kind of row: 422.
        """
        for kind in kinds or ():
            if kind not in JOURNAL_KINDS:
                raise HTTPException(422, f"no row is of kind {kind[:64]!r}")
        async for row in self.store.journal.rows(
            record.run_id, kinds=None if not kinds else set(kinds), after=after
        ):
            yield document_of_row(row)

    async def decide(self, who: str, action: str, subject: str, deciding: Awaitable[Any]) -> Any:
        """What a decision of somebody gives; the audit has it either way.

        Raises:
            HTTPException: it is refused, as it was decided meanwhile or cannot be: 409.
        """
        try:
            done = await deciding
        except ConfigError as error:
            await self.store.console.note(who, action, subject, f"refused: {error}")
            raise HTTPException(409, str(error)) from error
        await self.store.console.note(who, action, subject, "done")
        return done

    async def why(self, record: "RunRecord", fill: str) -> Any:
        """The chain from a fill back, or the fills that it may be.

        Raises:
            HTTPException: there is no such fill: 404.
        """
        root = await read_sparsely(
            lambda sought: self.store.journal.rows(record.run_id, sought=sought),
            lambda index: trace_named(index, fill),
        )
        if isinstance(root, list):
            raise HTTPException(404, f"no single fill {fill[:64]!r} in run {record.run_id}")
        return root


def desk_of(request: Request) -> Desk:
    """The console that a request is asked of."""
    desk: Desk = request.app.state.desk
    return desk
