"""What surrounds a process while it runs: endpoint and notifications, and the watch on its store.

`prepare` refuses everything that is wrong with the settings and the secrets before anything is made;
`operate` then holds both open. Whoever runs gives its status and its news, and knows nothing else. Between
two polls of a slow loop, which may lie half a minute apart, `watch_store` asks the store itself.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from schemas.errors import StoreError
from schemas.settings.live import OperationsSettings
from worker.operations.endpoint_access import guard_of
from worker.operations.logs import EventSink, logger
from worker.operations.notifications import Notifier, Webhook, configured_webhook
from worker.operations.status import ProcessStatus, VitalSource
from worker.secrets.redaction import Redactor

if TYPE_CHECKING:
    from worker.operations.endpoint import Endpoint, OrderDoor

STORE_KINDS = frozenset({"store_away", "store_back"})
POLL_S = 0.5
PATIENCE_S = 5.0  # a store that says nothing for so long is away; one that answers for so long is back


@dataclass(frozen=True)
class Prepared:
    """Settings and secrets of the operation, checked."""

    settings: OperationsSettings
    token: str | None
    webhook: Webhook | None
    redactor: Redactor


@dataclass(frozen=True)
class Operations:
    """What is open: the notifier to tell news to, and the endpoint, None where none is wanted."""

    notifier: Notifier
    endpoint: "Endpoint | None"


@dataclass(frozen=True)
class _WithNotifications:
    source: VitalSource
    notifier: Notifier

    def status(self) -> ProcessStatus:
        return replace(self.source.status(), notifications=dict(self.notifier.counts))


def prepare(
    settings: OperationsSettings, redactor: Redactor, environment: Mapping[str, str] | None = None
) -> Prepared:
    """The checked operation.

    Raises:
        ConfigError: the endpoint is not guarded as its address demands, or the webhook is no address.
    """
    given = os.environ if environment is None else environment
    token = guard_of(settings, given) if settings.port is not None else None
    return Prepared(settings, token, configured_webhook(given), redactor)


@asynccontextmanager
async def operate(
    prepared: Prepared,
    source: VitalSource,
    run_id: str,
    mode: str,
    check: "OrderDoor | None" = None,
) -> AsyncIterator[Operations]:
    """Endpoint and notifier, open while the block runs; what waits is delivered at its end, within seconds.

    `check` answers what is posted to `/check`; None: nothing is taken there.

    Raises:
        ConfigError: the address of the endpoint cannot be had.
    """
    settings = prepared.settings
    notifier = Notifier(prepared.webhook, settings, run_id, mode, prepared.redactor)
    async with AsyncExitStack() as opened:
        opened.push_async_callback(notifier.close)
        endpoint = None
        if settings.port is not None:
            from worker.operations.endpoint import Endpoint

            seen = _WithNotifications(source, notifier)
            endpoint = Endpoint(seen, settings, prepared.token, prepared.redactor, check=check)
            await opened.enter_async_context(endpoint)
            logger("operations", run_id=run_id).info("endpoint_open", host=settings.host, port=endpoint.port)
        if prepared.webhook is not None:
            logger("operations", run_id=run_id).info("notifying", webhook=prepared.webhook.shown)
        notifier.start()
        yield Operations(notifier, endpoint)


@dataclass
class OutageLog:
    """Passes events on; of several words about one outage the first, and of its end the last."""

    note: EventSink
    shown: bool = False
    decided: bool = False

    def hear(self, kind: str, detail: dict[str, Any]) -> None:
        """An event of whoever sees a store that is away and may see it late."""
        if kind in STORE_KINDS:
            away = kind == "store_away"
            if away == self.shown or (self.decided and not away):
                return
            self.shown = away
        self.note(kind, detail)

    def decide(self, kind: str, detail: dict[str, Any]) -> None:
        """An event of whoever looks all the time: no other caller ends an outage that it sees."""
        if kind in STORE_KINDS:
            self.decided = kind == "store_away"
        self.hear(kind, detail)


async def watch_store(
    probe: Callable[[], Awaitable[None]], note: EventSink, away_since: Callable[[], int | None]
) -> None:
    """Ask the store every half second until cancelled; `note` hears of each failure, and of its end."""
    asking: asyncio.Future[None] | None = None
    answers_since: float | None = None
    now = asyncio.get_running_loop().time
    try:
        while True:
            # One that hangs is waited for further: a question that is cut off may keep a lock.
            asking = asking or asyncio.ensure_future(probe())
            await asyncio.wait({asking}, timeout=PATIENCE_S)
            if not asking.done():
                answers_since = None
                note("store_away", {"reason": f"the store has not answered for {PATIENCE_S:g} s"})
                continue
            try:
                asking.result()
            except StoreError as error:
                answers_since = None
                note("store_away", {"reason": str(error)})
            else:
                answers_since = now() if answers_since is None else answers_since
                if now() - answers_since >= PATIENCE_S:
                    note("store_back", {"away_since": away_since()})
            asking = None
            await asyncio.sleep(POLL_S)
    finally:
        if asking is not None:
            asking.cancel()
            await asyncio.wait({asking})
