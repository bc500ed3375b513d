"""What ccxt raises, as one `FeedError` that says what failed, whether to try again, and when.

Only the class and a shortened text are taken over: never an address with a query, a header or a page of HTML.
"""

import re
from typing import Any, NoReturn

from schemas.errors import FeedError
from services.model_calls.retry_after import pause_of

MOST_TEXT = 160
_QUERY = re.compile(r"\?\S*")
_USER = re.compile(r"//[^/\s@]*@")
_MARKUP = re.compile(r"<[^>]*>?")
# What a parser of ours or of ccxt raises when an answer has another shape than it expects.
SHAPE_ERRORS = (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError)


class Failure:
    """Words for what went wrong; `FeedError.context["failure"]` is one of them."""

    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    NETWORK = "network"
    MALFORMED = "malformed"
    REFUSED = "refused"


# Name of a ccxt class, what it means, whether the same request may succeed later; the nearest base counts.
_MEANINGS: dict[str, tuple[str, bool]] = {
    "DDoSProtection": (Failure.RATE_LIMITED, True),
    "RateLimitExceeded": (Failure.RATE_LIMITED, True),
    "RequestTimeout": (Failure.TIMEOUT, True),
    "ExchangeNotAvailable": (Failure.UNAVAILABLE, True),
    "NetworkError": (Failure.NETWORK, True),
    "BadResponse": (Failure.MALFORMED, True),
    "OperationFailed": (Failure.NETWORK, True),
    "AuthenticationError": (Failure.REFUSED, False),
    "BadRequest": (Failure.REFUSED, False),
    "ArgumentsRequired": (Failure.REFUSED, False),
    "NotSupported": (Failure.REFUSED, False),
    "RestrictedLocation": (Failure.REFUSED, False),
    "ExchangeError": (Failure.UNAVAILABLE, True),
}


def raise_feed_error(error: BaseException, doing: str, headers: Any = None) -> NoReturn:
    """Raise what an exchange did as a `FeedError`.

    Args:
        error: as ccxt, asyncio or a parser raised it.
        doing: what was asked, for example `binance: bars of BTC/USDT`.
        headers: of the last answer; `Retry-After` is looked for.

    Raises:
        FeedError: always; `failure`, `retry_after_s` and `cut_short` (what to say of a pause that is not kept
            in full) are in its context. The cause is left out, because it may hold a request.
    """
    failure, retryable = meaning(error)
    pause = pause_of(headers or {}) if failure == Failure.RATE_LIMITED else None
    told = None if pause is None else pause.told
    said = shortened(str(error))
    raise FeedError(
        f"{doing}: {failure.replace('_', ' ')} ({type(error).__name__}{': ' if said else ''}{said})"
        f"{'; ' if told else ''}{told or ''}",
        retryable=retryable,
        failure=failure,
        retry_after_s=None if pause is None else pause.wait_s,
        cut_short=told,
    ) from None


def meaning(error: BaseException) -> tuple[str, bool]:
    """What kind of failure an exception is, and whether to try again."""
    for base in type(error).__mro__:
        if base.__name__ in _MEANINGS and base.__module__.startswith("ccxt."):
            return _MEANINGS[base.__name__]
    if isinstance(error, TimeoutError):
        return Failure.TIMEOUT, True
    if isinstance(error, SHAPE_ERRORS):
        return Failure.MALFORMED, True
    return Failure.NETWORK, True


def shortened(text: str) -> str:
    """One short line without queries, users or markup."""
    plain = _MARKUP.sub(" ", _USER.sub("//", _QUERY.sub("", text)))
    line = " ".join(plain.split())
    return line if len(line) <= MOST_TEXT else f"{line[:MOST_TEXT]}..."
