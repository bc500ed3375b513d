"""One webhook: a POST of JSON with a signature, within a deadline, to one address and no other.

Redirects are not followed, the answer's body is not read, and no proxy or credentials of the machine are
used, so that a message goes to the address the operator gave or nowhere.
"""

import asyncio
import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from schemas.errors import ConfigError
from services.model_calls.retry_after import Pause, pause_of
from worker.secrets.redaction import is_address, masked_webhook
from worker.secrets.secrets import WEBHOOK_URL

if TYPE_CHECKING:
    import httpx2

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
    """Sends to one address.

    Attributes:
        shown: the address as it may be printed.
    """

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
        self.shown = masked_webhook(url)

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
        """One attempt; raises nothing that a network or a receiver can bring about.

        Args:
            body: JSON.
            key: the same for every attempt at the same message.
        """
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
