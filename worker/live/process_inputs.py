"""What a trading process is given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.feeds.port import MarketFeed
from services.store import Store
from worker.live.monitor import Monitor
from worker.models import Models
from worker.slow_worker.ports import CrashPoints


@dataclass(frozen=True)
class Pace:
    """How much a process may have to play again.

    Attributes:
        events, rows: journal rows or rows of bars after which the next savepoint is due.
        share: of the time, at most one part in so many goes into savepoints.
    """

    events: int = 600
    rows: int = 500
    share: float = 10.0


@dataclass(frozen=True)
class ProcessInputs:
    """Settings, feed, store and surroundings of one process; see `PaperProcess`."""

    settings: Settings
    feed: MarketFeed
    store: Store
    owner: str
    surroundings: Monitor
    definitions: Sequence[PlaybookDefinition] | None
    models: Models | None
    points: CrashPoints | None
    progress: Callable[[int, int], None]
    look_s: float
    pace: Pace
    fresh_ledger: bool
