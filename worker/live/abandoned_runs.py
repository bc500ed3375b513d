"""Runs that a new one leaves behind: they are not over, and have its configuration or its file.

Somebody may believe that they go on, and they may hold positions: it is said aloud which, and why not.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schemas.settings import Settings
from services.feeds.port import MarketFeed
from worker.live.run_selection import MODE, RESUMABLE, feed_fingerprint, fitting, misfits

if TYPE_CHECKING:
    from services.store import RunRecord, Store

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
    unfinished = [one for one in reversed(records) if one.mode == MODE and one.status in RESUMABLE]
    found = [(one.run_id, _why(one, settings, feed)) for one in unfinished]
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
