"""Notifications: news goes into a short queue at once and leaves it beside the engine, if it can.

`Notifier.tell` never waits and never raises. What does not fit, what the receiver refuses and what is not
delivered in time is counted as dropped. The same news within a window is sent once; how often it was repeated
is said with the next. A topic that goes to and fro is heard a few times in a window, then it is left alone.

The receiver is one webhook: a POST of JSON with a signature, within a deadline, to one address and no other.
Redirects are not followed, the reply's body is not read, and no proxy or credentials of the machine are used,
so that a message goes to the address the operator gave or nowhere.
"""

import asyncio
import hashlib
import hmac
import json
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from schemas.errors import ConfigError
from schemas.settings.live import OperationsSettings
from services.model_calls.retry_after import Pause, pause_of
from worker.operations.alerts import Alert
from worker.operations.logs import logger
from worker.secrets.redaction import Redactor, is_address, masked_webhook
from worker.secrets.secrets import WEBHOOK_SECRET, WEBHOOK_URL, secret

if TYPE_CHECKING:
    import httpx2

QUEUE = 100
MOST_ATTEMPTS = 5
FIRST_WAIT_S = 1.0
DEADLINE_S = 60.0
MOST_REMEMBERED = 1_000
MOST_OF_A_TOPIC = 6
LONGEST_BODY = 16_384
LONGEST_TEXT = 500
SIGNATURE, REPEATABLE = "X-Thinktwice-Signature", "Idempotency-Key"
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
ATTEMPT_S = 5.0
LONGEST_WAIT_S = 30.0


@dataclass(frozen=True)
class Outcome:
    """What became of one attempt; `pause` is what the receiver asked for."""

    result: Literal["sent", "retry", "refused"]
    why: str
    pause: Pause = Pause(0.0)


def check_webhook(url: str) -> str:
    """The address of a webhook.

    Raises:
        ConfigError: it is none; the address is not shown, because it carries the key.
    """
    if not is_address(url):
        raise ConfigError(f"{WEBHOOK_URL} is no address of a webhook: give https://HOST/PATH")
    return url


def signature(secret: str, body: bytes, second: int) -> str:
    """What proves that a message is ours: `t=SECOND,v1=HMAC-SHA256(secret, "SECOND." + body)` in hex."""
    digest = hmac.new(secret.encode(), f"{second}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={second},v1={digest}"


class Webhook:
    """Sends to one address."""

    def __init__(
        self,
        url: str,
        secret: str | None = None,
        *,
        now: Callable[[], float] = time.time,
        attempt_s: float = ATTEMPT_S,
    ) -> None:
        self._url = check_webhook(url)
        self._secret = secret
        self._now = now
        self._attempt_s = attempt_s
        self._client: httpx2.AsyncClient | None = None
        self.shown = masked_webhook(url)  # the address as it may be printed

    def open(self) -> "httpx2.AsyncClient":
        """The client, made; loading its library takes longer than some deadlines."""
        import httpx2

        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(self._attempt_s), follow_redirects=False, trust_env=False
        )
        return self._client

    async def close(self) -> None:
        """Give back connections."""
        if self._client is not None:
            await self._client.aclose()

    async def send(self, body: bytes, key: str) -> Outcome:
        """One attempt, with the key of its message; raises nothing that a network or a receiver can bring."""
        import httpx2

        client = self._client or self.open()
        headers = {"Content-Type": "application/json", REPEATABLE: key}
        if self._secret is not None:
            headers[SIGNATURE] = signature(self._secret, body, int(self._now()))
        try:
            async with (
                asyncio.timeout(self._attempt_s),
                client.stream("POST", self._url, content=body, headers=headers) as reply,
            ):
                return _outcome(reply.status_code, pause_of(reply.headers, LONGEST_WAIT_S))
        except TimeoutError:
            return Outcome("retry", "no answer in time")
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            return Outcome("retry", type(error).__name__)


def _outcome(status: int, pause: Pause | None) -> Outcome:
    if 200 <= status < 300:
        return Outcome("sent", str(status))
    return Outcome(
        "retry" if status in TRY_AGAIN else "refused", f"status {status}", pause or Pause(0.0, LONGEST_WAIT_S)
    )


@dataclass
class _Topic:
    began: float
    at: float
    kind: str
    sent: int = 1
    repeated: int = 0


@dataclass(eq=False)
class Notifier:
    """Tells one receiver about the news of one run."""

    receiver: Webhook | None
    settings: OperationsSettings
    run_id: str
    mode: str
    redactor: Redactor
    timer: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    queue: int = QUEUE
    deadline_s: float = DEADLINE_S
    first_wait_s: float = FIRST_WAIT_S
    counts: Counter[str] = field(default_factory=Counter)  # sent, suppressed, dropped, retried

    def __post_init__(self) -> None:
        self._waiting: asyncio.Queue[tuple[Alert, int]] = asyncio.Queue(self.queue)
        self._topics: OrderedDict[str, _Topic] = OrderedDict()
        self._delivering: asyncio.Task[None] | None = None
        self._log = logger("notifications", run_id=self.run_id)

    def tell(self, news: Alert | None) -> bool:
        """Whether the news will be delivered, if it can be; from the thread of the event loop, at once."""
        if news is None or self.receiver is None or news.kind not in self.settings.notify:
            return False
        repeated = self._repetitions(news)
        if repeated is None:
            self.counts["suppressed"] += 1
            return False
        try:
            self._waiting.put_nowait((news, repeated))
        except asyncio.QueueFull:
            self.counts["dropped"] += 1
            del self._topics[news.key]
            return False
        return True

    def start(self) -> None:
        """Deliver from now on; what was told before waits."""
        if self.receiver is not None and self._delivering is None:
            self._delivering = asyncio.create_task(self._deliver(self.receiver))

    async def close(self, grace_s: float = 5.0) -> None:
        """Deliver what can be delivered within the grace; the rest is dropped."""
        if self._delivering is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._waiting.join()
            self._delivering.cancel()
            await asyncio.gather(self._delivering, return_exceptions=True)
        self.counts["dropped"] += self._waiting.qsize()
        if self.receiver is not None:
            await self.receiver.close()

    def _repetitions(self, news: Alert) -> int | None:
        """How often it was repeated since it was last sent; None while it need not be sent again."""
        now, window = self.timer(), self.settings.notify_window_s
        topic = self._topics.get(news.key)
        if topic is None or now - topic.began >= window:
            before = 0 if topic is None else topic.repeated
            self._topics[news.key] = _Topic(now, now, news.kind)
            self._topics.move_to_end(news.key)
            if len(self._topics) > MOST_REMEMBERED:
                self._topics.popitem(last=False)
            return before
        if (news.kind == topic.kind and now - topic.at < window) or topic.sent >= MOST_OF_A_TOPIC:
            topic.repeated += 1
            return None
        before, topic.repeated = topic.repeated, 0
        topic.at, topic.kind, topic.sent = now, news.kind, topic.sent + 1
        return before

    async def _deliver(self, receiver: Webhook) -> None:
        while True:
            news, repeated = await self._waiting.get()
            try:
                await self._within_deadline(receiver, news, repeated)
            finally:
                self._waiting.task_done()

    async def _within_deadline(self, receiver: Webhook, news: Alert, repeated: int) -> None:
        outcome = Outcome("retry", "no attempt ended in time")
        try:
            async with asyncio.timeout(self.deadline_s):
                outcome = await self._try(receiver, self._body(news, repeated))
        except TimeoutError:
            pass
        except asyncio.CancelledError:
            self.counts["dropped"] += 1
            raise
        except Exception as error:  # noqa: BLE001 - news must not end whoever brings the next
            outcome = Outcome("refused", type(error).__name__)
        self.counts["sent" if outcome.result == "sent" else "dropped"] += 1
        if outcome.result != "sent":
            self._log.warning("notification_dropped", kind=news.kind, reason=outcome.why)

    async def _try(self, receiver: Webhook, body: bytes) -> Outcome:
        key = hashlib.sha256(body).hexdigest()[:32]
        wait = self.first_wait_s
        for attempt in range(MOST_ATTEMPTS):
            outcome = await receiver.send(body, key)
            if outcome.result != "retry" or attempt == MOST_ATTEMPTS - 1:
                break
            self.counts["retried"] += 1
            if outcome.pause.shown is not None:
                self._log.warning("pause_cut_short", reason=f"{outcome.why}: {outcome.pause.shown}")
            await self.sleep(max(wait, outcome.pause.wait_s))
            wait = min(2 * wait, LONGEST_WAIT_S)
        return outcome

    def _body(self, news: Alert, repeated: int) -> bytes:
        document = news.document(self.run_id, self.mode) | {"repeated": repeated}
        cleaned: dict[str, Any] = self.redactor.value(document)
        body = json.dumps(cleaned, ensure_ascii=True, default=str).encode()
        if len(body) <= LONGEST_BODY:
            return body
        short = {
            key: value[:LONGEST_TEXT] if isinstance(value, str) else value for key, value in cleaned.items()
        }
        return json.dumps(short | {"detail": {"left_out_bytes": len(body)}}, default=str).encode()


def configured_webhook(environment: Mapping[str, str]) -> Webhook | None:
    """The webhook that the environment names, with its library loaded; None without one.

    Raises:
        ConfigError: it is no address.
    """
    url = secret(WEBHOOK_URL, environment)
    if url is None:
        return None
    webhook = Webhook(url, secret(WEBHOOK_SECRET, environment))
    webhook.open()
    return webhook
