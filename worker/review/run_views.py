"""Runs of a store as of a moment, for the evidence tools: each row is read once, later rows are added behind.

A clock binds every view: no argument reaches a row that was known later. The store is only read.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agents.tool_hosts.in_process import untold
from schemas.canonical import datetime_to_ns
from schemas.errors import ConfigError, StoreError, ToolRefused, nearest
from schemas.settings import Settings
from services.evidence.tool_arguments import LATEST
from services.evidence.tools import quote_value
from services.evidence_tools.run_view import RunRows, RunView, iso
from services.ports import ToolProgress
from worker.runs.garbage import much_was_read
from worker.runs.stored_settings import SettingsOfAnotherVersion, stored_settings

if TYPE_CHECKING:
    from services.store import RunRecord, Store

LOG = logging.getLogger("thinktwice.tools")
TOLD_EACH = 20_000  # rows: about a second
MOST_VIEWS = 16
MOST_RUNS = 4
SHOWN = 5
Key = tuple[str, int, int | None]


class RunViews:
    """Views of the runs of one store.

    Args:
        store: open; nothing is written to it.
        run: the only run that may be asked about; None for all.
        at: the clock, ns; None: what the store holds.
    """

    def __init__(self, store: "Store", *, run: str | None = None, at: int | None = None) -> None:
        self._store, self.run, self.at = store, run, at
        self._rows: OrderedDict[str, RunRows] = OrderedDict()
        self._views: OrderedDict[Key, RunView] = OrderedDict()
        self._settings: dict[str, Settings | None] = {}
        self._reading = asyncio.Lock()

    async def records(self) -> "list[RunRecord]":
        """Readable runs that may be asked about and had begun by the clock, oldest first; a guard is none."""
        stored = await self._store.runs.all()
        found = [record for record in stored if record.damage is None and record.mode != "guard"]
        return [record for record in found if self.run in (None, record.run_id) and self._had_begun(record)]

    def _had_begun(self, record: "RunRecord") -> bool:
        """Whether the first bar lies before the clock; a run that does not say is told of."""
        start = record.data.get("start")
        return self.at is None or start is None or datetime_to_ns(datetime.fromisoformat(start)) <= self.at

    async def newest(self, records: "Sequence[RunRecord]") -> int | None:
        """The moment that a list of runs is as of, ns: of the clock, or of their newest row."""
        if self.at is not None:
            return self.at
        return await self._store.journal.newest([record.run_id for record in records])

    async def record(self, name: str) -> "RunRecord":
        """The run of a name, a unique prefix of one, or the newest.

        Raises:
            ToolRefused: there is none.
        """
        if self.run is not None and name not in (LATEST, self.run):
            raise ToolRefused(f"this server answers for run {self.run} alone: leave run out")
        if self.run is None and self.at is not None and name == LATEST and (begun := await self.records()):
            return begun[-1]
        try:
            found = await self._store.runs.find(self.run or name)
            if found.mode == "guard":
                raise ConfigError(f"run {found.run_id} is a guard, which holds no bars")
            return found
        except ConfigError as error:
            known = [record.run_id for record in await self.records()]
            some = ", ".join(known[-SHOWN:]) or "none yet"
            raise ToolRefused(
                f"no single run {quote_value(name)}: the newest are {some}.{nearest(name, known)}"
            ) from error

    async def view(self, name: str, at: int | None, progress: ToolProgress = untold) -> RunView:
        """A run as of `at`, ns, of the clock, or of its newest row.

        Args:
            name: of the run, a unique prefix of one, or `latest`.
            at: the moment, ns; None: the clock's.
            progress: told how far the reading of many rows is.

        Raises:
            ToolRefused: there is no such run, it had not begun, or `at` lies after the clock.
            StoreError: a row cannot be read.
        """
        if at is not None and self.at is not None and at > self.at:
            raise ToolRefused(f"at lies after the clock of this server: give a time up to {iso(self.at)}")
        record = await self.record(name)
        moment = self.at if at is None else at
        async with self._reading:
            rows = await self._read(record, progress)
            key = record.run_id, len(rows.index.events), moment
            if key not in self._views:
                index = rows.until(moment)
                known_at = rows.known_at if moment is None else min(moment, rows.known_at)
                view = RunView(record.run_id, index, known_at, self._settings_of(record))
                self._views[key] = view
                _forget(self._views, MOST_VIEWS)
            self._views.move_to_end(key)
            return self._views[key]

    async def _read(self, record: "RunRecord", progress: ToolProgress) -> RunRows:
        """The rows of a run, those that were written since the last time included; many are told of."""
        rows = self._rows.setdefault(record.run_id, RunRows())
        self._rows.move_to_end(record.run_id)
        _forget(self._rows, MOST_RUNS)
        read = rows.index.events
        have = read[-1].row.seq + 1 if read else 0
        if have < record.events:
            many = record.events - have > TOLD_EACH
            if many:
                LOG.info("reading_rows", extra={"run_id": record.run_id, "rows": record.events - have})
            async for row in self._store.journal.rows(record.run_id, after=have - 1):
                try:
                    rows.add_stored(row)
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise StoreError(f"row {row.seq} ({row.kind}) is not what was written") from error
                if many and row.seq % TOLD_EACH == 0:
                    await progress(row.seq, record.events, f"reading the rows of {record.run_id}")
            if many:
                await progress(record.events, record.events, f"read the rows of {record.run_id}")
                LOG.info("rows_read", extra={"run_id": record.run_id, "rows": len(rows.index.events)})
            much_was_read(record.events - have)
        return rows

    def _settings_of(self, record: "RunRecord") -> Settings | None:
        if record.run_id not in self._settings:
            try:
                self._settings[record.run_id] = stored_settings(record)
            except (SettingsOfAnotherVersion, ConfigError):
                self._settings[record.run_id] = None
        return self._settings[record.run_id]


def _forget(kept: "OrderedDict[Any, Any]", most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


async def open_views(store: "Store", run: str | None, at: int | None) -> RunViews:
    """Views of the store's runs, bound to one of them and to a clock.

    Raises:
        ConfigError: there is no such run, or the newest one had begun at no bar by then.
    """
    bound = None if run is None else (await store.runs.find(run)).run_id
    if at is not None:
        record = await store.runs.find(bound or "latest")
        first: Any = None
        async for row in store.journal.rows(record.run_id, kinds={"genesis"}):
            first = row.known_at
        if first is None or first > at:
            raise ConfigError(f"run {record.run_id} had begun at no bar by that time: give a later --at")
    return RunViews(store, run=bound, at=at)
