"""What ccxt raises, as one `FeedError` that says what failed, whether to try again, and when.

Only the class and a shortened text are taken over: never an address with a query, a header or a page of HTML.
"""

import re
from collections.abc import Mapping
from typing import Literal, NoReturn

from schemas.errors import FeedError
from services.model_calls.retry_after import pause_of

Failure = Literal["rate_limited", "timeout", "unavailable", "network", "malformed", "refused"]
MOST_TEXT = 160
_QUERY = re.compile(r"\?\S*")
_USER = re.compile(r"//[^/\s@]*@")
_MARKUP = re.compile(r"<[^>]*>?")
# By class, of which the nearest base counts. The built-in ones come from a deadline of ours, and from parsers
# that meet another shape than they expect.
_FAILURES: dict[str, Failure] = {
    "DDoSProtection": "rate_limited",
    "RateLimitExceeded": "rate_limited",
    "RequestTimeout": "timeout",
    "TimeoutError": "timeout",
    "ExchangeNotAvailable": "unavailable",
    "ExchangeError": "unavailable",
    "AuthenticationError": "refused",
    "BadRequest": "refused",
    "ArgumentsRequired": "refused",
    "NotSupported": "refused",
    "RestrictedLocation": "refused",
    "BadResponse": "malformed",
    "ValueError": "malformed",
    "LookupError": "malformed",
    "TypeError": "malformed",
    "AttributeError": "malformed",
    "ArithmeticError": "malformed",
}


def raise_feed_error(error: Exception, doing: str, headers: Mapping[str, str] | None = None) -> NoReturn:
    """Raise what an exchange did as a `FeedError`; the cause is left out, because it may hold a request.

    Args:
        error: as ccxt, asyncio or a parser raised it.
        doing: what was asked, for example `binance: bars of BTC/USDT`.
        headers: of the last answer; `Retry-After` is looked for.

    Raises:
        FeedError: always. In its context are `failure`, `retry_after_s` and `cut_short`: what to say of a
            pause that is not kept in full.
    """
    bases = [base.__name__ for base in type(error).__mro__]
    failure = next((_FAILURES[name] for name in bases if name in _FAILURES), "network")
    pause = pause_of(headers or {}) if failure == "rate_limited" else None
    told = None if pause is None else pause.told
    said = shortened(str(error))
    raise FeedError(
        f"{doing}: {failure.replace('_', ' ')} ({bases[0]}{': ' if said else ''}{said})"
        f"{'; ' if told else ''}{told or ''}",
        retryable=failure != "refused",
        failure=failure,
        retry_after_s=None if pause is None else pause.wait_s,
        cut_short=told,
    ) from None


def shortened(text: str) -> str:
    """One short line without queries, users or markup."""
    plain = _MARKUP.sub(" ", _USER.sub("//", _QUERY.sub("", text)))
    line = " ".join(plain.split())
    return line if len(line) <= MOST_TEXT else f"{line[:MOST_TEXT]}..."
