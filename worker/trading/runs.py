"""Which run a paper process trades: the one that it left behind, or a new one."""

import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.config import Settings
from services.market_feed import MarketFeed
from services.store import NewRun, masked
from worker.environment import environment
from worker.models import check_recording

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from services.store.leases import Lease

MODE = "paper"
GOES_ON = ("running", "interrupted")


def lease_name(run_id: str) -> str:
    """The lease under which a run is traded."""
    return f"trading/{run_id}"


def described(feed: MarketFeed, settings: Settings) -> dict[str, Any]:
    """What the run row says of a feed; a run goes on only with the same one."""
    path = settings.runtime.data
    return {
        "source": "feed",
        "feed": feed.name,
        "lock_step": feed.lock_step,
        "path": None if path is None else str(Path(path).resolve()),
        "from": settings.runtime.start,
        "to": settings.runtime.end,
        "symbols": list(feed.symbols),
        "timeframe": feed.timeframe,
        "label": feed.label,
    }


async def run_to_trade(
    store: "Store", settings: Settings, feed: MarketFeed, name: str, *, new: bool
) -> "RunRecord":
    """The newest run of the same configuration on the same feed that is not over, or a new one.

    An interrupted one is reopened by whoever gets its lease.

    Raises:
        ConfigError: a new run would record into a cassette that is there already.
    """
    data = described(feed, settings)
    if not new:
        for record in reversed(await store.runs.all()):
            same = record.mode == MODE and record.config_hash == settings.config_hash
            if same and record.status in GOES_ON and record.data == data:
                return record
    check_recording(settings)
    config = settings.payload()
    config["runtime"]["db"] = masked(settings.runtime.db)
    return await store.runs.create(
        NewRun(
            name=name,
            created_at=time.time_ns(),
            mode=MODE,
            config_hash=settings.config_hash,
            config=config,
            data=data,
            environment=environment(),
        )
    )


async def free_the_dead(store: "Store", name: str) -> None:
    """Release a lease whose owner was a process of this machine that is gone: nobody has to wait for it."""
    holder = await store.leases.holder(name)
    if holder is not None and _gone(holder):
        await store.leases.release(holder)


def _gone(holder: "Lease") -> bool:
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
