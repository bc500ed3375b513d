"""What a trading process is given."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.feeds.port import MarketFeed
from services.store import Store
from worker.live.monitor import Monitor
from worker.models import Models
from worker.slow_worker.ports import CrashPoints

LEASE_MS = 10_000
LOOK_S = 0.5


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


BY_DEFAULT = Pace()


async def never(run_id: str) -> bool:
    """No process before this one is counted."""
    return False


@dataclass(frozen=True)
class ProcessInputs:
    """What one process that trades is given.

    Attributes:
        settings: the resolved configuration.
        feed: where bars come from; the caller closes it.
        store: open, with every table.
        owner: unique among processes, `HOST:PID:TOKEN`.
        surroundings: where events go, who is told, and who can ask how the process is.
        definitions: playbooks; None loads the configured folder or the embedded ones.
        models: language models to ask; None makes the configured ones.
        points: told of every step; for tests.
        progress: called with rows recovered and rows taken.
        look_s: seconds between looks at the operator's requests and at reports.
        lease_ms: how long a process that has frozen keeps its run.
        crashed_too_often: asked with the run id once the run is held: whether the processes before this one
            died too often; then it starts in safe mode.
        pace: how often a savepoint is taken.
        fresh_ledger: a run that begins here starts as on a store in which nothing was tried.
    """

    settings: Settings
    feed: MarketFeed
    store: Store
    owner: str
    surroundings: Monitor
    definitions: Sequence[PlaybookDefinition] | None = None
    models: Models | None = None
    points: CrashPoints | None = None
    progress: Callable[[int, int], None] = lambda recovered, taken: None
    look_s: float = LOOK_S
    lease_ms: int = LEASE_MS
    crashed_too_often: Callable[[str], Awaitable[bool]] = never
    pace: Pace = BY_DEFAULT
    fresh_ledger: bool = False
