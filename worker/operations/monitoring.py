"""What surrounds a process while it runs: endpoint and notifications, opened and closed together.

`prepare` refuses everything that is wrong with the settings and the secrets before anything is made;
`operated` then holds both open. Whoever runs gives its status and tells its news, and knows nothing else.
"""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from schemas.settings.live import OperationsSettings
from worker.operations.endpoint_access import guard_of
from worker.operations.logs import logger
from worker.operations.notifications import Notifier, configured_webhook
from worker.operations.status import ProcessStatus, VitalSource
from worker.operations.webhook import Webhook
from worker.secrets.redaction import Redactor

if TYPE_CHECKING:
    from worker.operations.endpoint import Endpoint, OrderDoor


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
