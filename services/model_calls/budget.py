"""The budget ledger: what calls of models have used, per event, per day of bar time and per run.

A call that might break a limit is not made. Before a call its use is estimated from above; afterwards the
provider's count is charged, or the estimate where the provider told none, because a call that timed out may
be billed. Of calls at once the estimates are kept back until each is answered. Pure: time is given, nothing
is read or written.

Circuit breaker of one model at one prompt: after failures in a row it is left alone for a number of calls.

Counted in calls, not in seconds, so that a replay opens and closes it at the same places. A pure state; the
account journals what it says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar, Literal

from schemas.settings.llm import LlmSettings, ModelLimits, ModelPrice
from schemas.state import PART, Stateful
from services.model_calls.record import UNTOLD, Question, RecordedCall, Usage

DAY_NS = 86_400_000_000_000
MILLION = 1_000_000
# English text and JSON hold 3 to 4 bytes a token; 2 leaves room for numbers and hashes.
BYTES_PER_TOKEN = 2

Scope = Literal["event", "day", "run"]
# A reply came that its caller could not read.
UNUSABLE = "unusable"
# The machine failed. A refusal or a cut reply is an answer, and a call that was not made shows nothing.
FAILURES = frozenset(
    {
        "timeout", "network", "throttled", "overloaded", "conflict", "server", "rejected", "malformed",
        "wrong_model", UNUSABLE,
    }
)  # fmt: skip


@dataclass
class Spent(Stateful):
    """What was used within a scope."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0

    def add(self, other: "Spent") -> None:
        """Add what one call used."""
        self.calls += other.calls
        self.tokens += other.tokens
        self.usd += other.usd
        self.seconds += other.seconds


@dataclass(frozen=True)
class Refusal:
    """The limit that a call would break."""

    scope: Scope
    limit: Literal["calls", "tokens", "usd", "seconds"]
    allowed: float
    used: float
    needed: float


def price_of(usage: Usage, price: ModelPrice) -> float:
    """US dollars of some tokens."""
    write = price.input_usd if price.cache_write_usd is None else price.cache_write_usd
    read = price.input_usd if price.cache_read_usd is None else price.cache_read_usd
    dollars = usage.input_tokens * price.input_usd + usage.output_tokens * price.output_usd
    return (dollars + usage.cache_write_tokens * write + usage.cache_read_tokens * read) / MILLION


def estimate(question: Question) -> Usage:
    """Tokens that a call uses at most, by the size of its input and the bound of its reply."""
    return Usage(input_tokens=-(-question.size // BYTES_PER_TOKEN), output_tokens=question.max_tokens)


def estimate_use(question: Question, price: ModelPrice) -> Spent:
    """What a call uses at most, as far as that is known before its answer."""
    usage = estimate(question)
    return Spent(1, usage.total, price_of(usage, price))


def measure_use(call: RecordedCall, question: Question, price: ModelPrice) -> tuple[Spent, bool]:
    """What a call used, and whether its tokens are estimated.

    A call that never left (the ledger, the clock or a refused connection ended it: no request was sent), or
    that the provider turned away with a status, has no tokens to pay. Requests that were lost before the last
    one are charged as it is.
    """
    told = call.usage or Usage(input_tokens=0, output_tokens=0)
    last = call.usage is None and bool(call.requests) and call.outcome in UNTOLD
    untold, guess = call.lost + last, estimate(question)
    tokens = told.total + untold * guess.total
    usd = price_of(told, price) + untold * price_of(guess, price)
    return Spent(1, tokens, usd, call.latency_ms / 1e3), untold > 0


@dataclass
class Ledger(Stateful):
    """Ledger of one run."""

    STATE: ClassVar = {"run": PART, "event": PART, "day": PART, "_day_number": int | None}
    REBUILT = frozenset({"settings"})

    settings: LlmSettings
    run: Spent = field(default_factory=Spent)
    event: Spent = field(default_factory=Spent)
    day: Spent = field(default_factory=Spent)
    _day_number: int | None = None

    def open_event(self) -> None:
        """A new policy event or slot begins."""
        self.event = Spent()

    def refusal(
        self, question: Question, price: ModelPrice, now: int, kept_back: Sequence[Spent] = ()
    ) -> Refusal | None:
        """The first limit that this call might break, narrowest scope first; None: it may be made.

        `kept_back` is what calls that are not answered yet may come to use.
        """
        self._turn_page(now)
        needed = estimate_use(question, price)
        scopes: tuple[tuple[Scope, Spent, ModelLimits], ...] = (
            ("event", self.event, self.settings.per_event),
            ("day", self.day, self.settings.per_day),
            ("run", self.run, self.settings.per_run),
        )
        for scope, spent, limits in scopes:
            taken = replace(spent)
            for other in kept_back:
                taken.add(other)
            found = _broken(scope, taken, needed, limits)
            if found is not None:
                return found
        return None

    def charge(self, spent: Spent, now: int) -> None:
        """Enter what a call used."""
        self._turn_page(now)
        for scope in (self.event, self.day, self.run):
            scope.add(replace(spent))

    def _turn_page(self, now: int) -> None:
        if now // DAY_NS != self._day_number:
            self._day_number, self.day = now // DAY_NS, Spent()


def _broken(scope: Scope, spent: Spent, needed: Spent, limits: ModelLimits) -> Refusal | None:
    if limits.calls is not None and spent.calls + needed.calls > limits.calls:
        return Refusal(scope, "calls", limits.calls, spent.calls, needed.calls)
    if limits.tokens is not None and spent.tokens + needed.tokens > limits.tokens:
        return Refusal(scope, "tokens", limits.tokens, spent.tokens, needed.tokens)
    if limits.usd is not None and spent.usd + needed.usd > limits.usd:
        return Refusal(scope, "usd", limits.usd, spent.usd, needed.usd)
    if limits.seconds is not None and spent.seconds >= limits.seconds:
        return Refusal(scope, "seconds", limits.seconds, spent.seconds, needed.seconds)
    return None


class BreakerChange(StrEnum):
    """What an outcome did to the breaker."""

    OPENED = "opened"
    CLOSED = "closed"


@dataclass
class Breaker(Stateful):
    """`limit` failures in a row open it for `pause` calls; then one call tries, and decides.

    Attributes:
        failures: in a row.
        waiting: calls still to be refused; 0 while closed or trying.
        open: whether the last word was a failure at the limit.
    """

    REBUILT = frozenset({"limit", "pause"})

    limit: int
    pause: int
    failures: int = 0
    waiting: int = 0
    open: bool = False

    def admit(self) -> bool:
        """Whether the next call may be made; a refused one counts towards the pause."""
        if self.waiting == 0:
            return True
        self.waiting -= 1
        return False

    def note(self, outcome: str) -> BreakerChange | None:
        """Take in the outcome of a call that was made."""
        if outcome not in FAILURES:
            was_open, self.open, self.failures = self.open, False, 0
            return BreakerChange.CLOSED if was_open else None
        self.failures += 1
        if self.failures < self.limit:
            return None
        first, self.open, self.waiting = not self.open, True, self.pause
        return BreakerChange.OPENED if first else None
