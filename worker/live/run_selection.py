"""Which run a paper process trades: the one that was left behind on the same feed, or a new one.

Of processes that start at the same time one decides after the other, so that the second finds what the first
made.
"""

import asyncio
import os
import platform
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from schemas.errors import StoreError
from schemas.settings import Settings
from schemas.timeframes import zone_entry
from services.feeds.port import MarketFeed
from services.store.failures import StoreDamaged
from worker.models import open_recording
from worker.runs.store_run import new_run

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from services.store.repository import Lease


MODE = "paper"
RESUMABLE = ("running", "interrupted")
DECIDING_MS = 30_000  # a process that freezes while it decides holds others up for so long
LOOK_S = 0.1


@runtime_checkable
class SymbolDiscovery(Protocol):
    """A feed that may have taken its symbols from its source, and can be given those of a run instead."""

    @property
    def symbols_found(self) -> tuple[str, ...] | None:
        """As they stand in the source; None where the operator named them."""
        ...

    def follow(self, symbols: tuple[str, ...]) -> None:
        """Make rows of these."""
        ...


def lease_name(run_id: str) -> str:
    """The lease under which a run is traded."""
    return f"trading/{run_id}"


def feed_fingerprint(feed: MarketFeed, settings: Settings) -> dict[str, Any]:
    """What the run row says of a feed; a run goes on only with one that fits."""
    path = settings.runtime.data
    found = _read_feed(feed)
    return {
        "source": "feed",
        "feed": feed.name,
        "lock_step": feed.lock_step,
        "path": None if path is None else os.path.abspath(path),
        "from": settings.runtime.start,
        "to": settings.runtime.end,
        "symbols": list(feed.symbols if found is None else found),
        "timeframe": feed.timeframe,
        "label": feed.label,
        **zone_entry(settings.data.zone),
    }


async def run_to_trade(
    store: "Store", settings: Settings, feed: MarketFeed, name: str, *, new: bool
) -> "RunRecord":
    """The newest run of the same configuration on the same feed that is not over, or a new one.

    An interrupted one is reopened by whoever gets its lease. A feed that took its symbols from its source
    follows those of the run: a source may have others by now, and a run keeps what it began with.

    Raises:
        ConfigError: a new run would record into a cassette that is there already.
        StoreDamaged: the ledger of trials is not as it was sealed; no run is stored.
    """
    async with _deciding(store, settings):
        left = None if new else fitting(await store.runs.all(), settings, feed)
        if left is not None:
            if isinstance(feed, SymbolDiscovery) and feed.symbols_found is not None:
                feed.follow(tuple(left.data["symbols"]))
            return left
        open_recording(settings)
        await store.trials.all()  # a ledger that is damaged refuses the run before it is stored
        return await store.runs.create(new_run(settings, name, MODE, feed_fingerprint(feed, settings)))


def fitting(records: "Iterable[RunRecord]", settings: Settings, feed: MarketFeed) -> "RunRecord | None":
    """The newest run that can go on with this configuration and feed.

    Raises:
        StoreDamaged: the row of one that is not over and may be it cannot be read.
    """
    here = feed_fingerprint(feed, settings)
    unfinished = [
        candidate for candidate in records if candidate.mode == MODE and candidate.status in RESUMABLE
    ]
    same = [candidate for candidate in reversed(unfinished) if candidate.config_hash == settings.config_hash]
    for record in same:
        if record.damage is not None:
            raise StoreDamaged(record.damage)
    return next((record for record in same if not misfits(record.data, here, feed)), None)


def misfits(stored: Mapping[str, Any], here: Mapping[str, Any], feed: MarketFeed) -> list[str]:
    """Names of what a run noted of its feed and is otherwise now."""
    names = [name for name in {**here, **stored} if stored.get(name) != here.get(name)]
    found = _read_feed(feed)
    if found is not None and "symbols" in names and set(found) & set(stored["symbols"]):
        names.remove("symbols")
    return names


def _read_feed(feed: MarketFeed) -> tuple[str, ...] | None:
    return feed.symbols_found if isinstance(feed, SymbolDiscovery) else None


@asynccontextmanager
async def _deciding(store: "Store", settings: Settings) -> AsyncIterator[None]:
    """Alone among the processes that start with this configuration."""
    name = f"starting/{settings.config_hash}"
    owner = f"{platform.node()}:{os.getpid()}:{secrets.token_hex(4)}"
    while (lease := await store.leases.take(name, owner, DECIDING_MS)) is None:
        await release_dead_lease(store, name)
        await asyncio.sleep(LOOK_S)
    try:
        yield
    finally:
        with suppress(StoreError):  # it runs out by itself
            await store.leases.release(lease)


async def release_dead_lease(store: "Store", name: str) -> None:
    """Release a lease whose owner was a process of this machine that is gone: none has to wait for it."""
    holder = await store.leases.holder(name)
    if holder is not None and _is_gone(holder):
        await store.leases.release(holder)


def _is_gone(holder: "Lease") -> bool:
    host, _, rest = holder.owner.rpartition(":")[0].rpartition(":")
    if host != platform.node() or not rest.isdigit():
        return False
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


SHOWN = 3


@dataclass(frozen=True)
class AbandonedRun:
    """A run that is not over, and why another one is traded instead."""

    run_id: str
    why: str

    def __str__(self) -> str:
        return (
            f"run {self.run_id} is not over and does not go on: {self.why}; a new run is traded. See "
            f"`thinktwice status {self.run_id}`"
        )

    @property
    def detail(self) -> dict[str, Any]:
        """For the log."""
        return {"run_id": self.run_id, "reason": self.why}


async def left_behind(
    store: "Store", settings: Settings, feed: MarketFeed, *, new: bool
) -> list[AbandonedRun]:
    """The newest runs that a process about to start leaves behind, the newest first; none if one goes on.

    Args:
        store: open.
        settings: of the process.
        feed: open.
        new: a new run is asked for, whatever could go on.
    """
    records = await store.runs.all()
    if not new and fitting(records, settings, feed) is not None:
        return []
    unfinished = [
        record for record in reversed(records) if record.mode == MODE and record.status in RESUMABLE
    ]
    found = [(record.run_id, _why(record, settings, feed)) for record in unfinished]
    return [AbandonedRun(run_id, why) for run_id, why in found if why is not None][:SHOWN]


def _why(record: "RunRecord", settings: Settings, feed: MarketFeed) -> str | None:
    """Why a run does not go on; None for one that has nothing to do with the new one."""
    here, stored = feed_fingerprint(feed, settings), record.data
    if record.config_hash != settings.config_hash:
        same_file = here["path"] is not None and stored.get("path") == here["path"]
        return f"it has another configuration on the same {here['path']!r}" if same_file else None
    names = misfits(stored, here, feed)
    if not names:
        return "--new was given"
    return ", ".join(f"{name} then {stored.get(name)!r}, now {here.get(name)!r}" for name in names)
