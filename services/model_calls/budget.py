"""The budget ledger: what calls of models have used, per event, per day of bar time and per run.

A call that might break a limit is not made. Decisions have a purse of their own in every limit: texts leave
to them what it still holds, and room for one more call as large as any so far, in whatever order they come;
in the limits of a day and of the run the models of policy events leave as much to the judge of reports.
Before a call its use is estimated from above; afterwards the provider's count is charged, or the estimate
where the provider told none, because a call that timed out may be billed. Of calls at once the estimates are
kept back until each is answered. Pure: time is given, nothing is read or written.

Circuit breaker of one model at one prompt: after failures in a row it is left alone for a number of calls.

Counted in calls, not in seconds, so that a replay opens and closes it at the same places. A pure state; the
account journals what it says.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from enum import StrEnum
from math import ceil, inf
from typing import ClassVar, Literal

from schemas.settings.llm import LlmSettings, ModelLimits, ModelPrice
from schemas.state import PART, Stateful
from services.model_calls.record import UNTOLD, Purse, Question, RecordedCall, Usage

DAY_NS = 86_400_000_000_000
MILLION = 1_000_000
# English text and JSON hold 3 to 4 bytes a token; 2 leaves room for numbers and hashes.
BYTES_PER_TOKEN = 2

Scope = Literal["event", "day", "run"]
LIMITS: tuple[Literal["calls", "tokens", "usd", "seconds"], ...] = ("calls", "tokens", "usd", "seconds")
# Times turned away for good until a model is lost: in a row, or among so many; each third answer is no help.
LOST_AFTER, LOST_OF, LOST_AMONG = 3, 6, 10
# A reply came that its caller could not read.
UNUSABLE = "unusable"
# No answer of use, and it is paid for each time. A call that was not made shows nothing.
FAILURES = frozenset(
    {
        "timeout", "network", "throttled", "overloaded", "conflict", "server", "rejected", "malformed",
        "wrong_model", "cut", "refusal", UNUSABLE,
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


Uses = Sequence[tuple[Purse, Spent]]


@dataclass(frozen=True)
class Due:
    """The purses from which models may be asked in policy events, and in slots of the slow loop.

    Each with the calls that it makes there at most; infinity where that is not known before.
    """

    events: Mapping[Purse, float] = field(default_factory=dict)
    slots: Mapping[Purse, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """The limit that a call would break; `reserved` is what it leaves to the purses above its own."""

    scope: Scope
    limit: Literal["calls", "tokens", "usd", "seconds"]
    allowed: float
    used: float
    needed: float
    reserved: float = 0.0


def price_of(usage: Usage, price: ModelPrice) -> float:
    """US dollars of some tokens."""
    write = price.input_usd if price.cache_write_usd is None else price.cache_write_usd
    read = price.input_usd if price.cache_read_usd is None else price.cache_read_usd
    hour = 2.0 * price.input_usd if price.cache_hour_usd is None else price.cache_hour_usd
    dollars = usage.input_tokens * price.input_usd + usage.output_tokens * price.output_usd
    dollars += usage.cache_hour_tokens * hour
    return (dollars + usage.cache_write_tokens * write + usage.cache_read_tokens * read) / MILLION


def estimate(question: Question) -> Usage:
    """Tokens that a call uses at most, by the size of its input and the bound of its reply and thoughts."""
    output = question.max_tokens + question.caller.thought_tokens
    return Usage(input_tokens=-(-question.size // BYTES_PER_TOKEN), output_tokens=output)


def estimate_use(question: Question, price: ModelPrice) -> Spent:
    """What a call uses at most, as far as that is known before its answer."""
    usage = estimate(question)
    return Spent(1, usage.total, price_of(usage, price))


def measure_use(call: RecordedCall, question: Question, price: ModelPrice) -> tuple[Spent, bool]:
    """What a call used, and whether its tokens are estimated.

    A call that never left (the ledger, the clock or a refused connection ended it: no request was sent), or
    that the provider turned away with a status, has no tokens to pay. Requests that were lost before the last
    one are charged as it is, and so is a reply without a count.
    """
    shown = call.usage or Usage(input_tokens=0, output_tokens=0)
    last = call.usage is None and bool(call.requests) and call.outcome in UNTOLD
    untold, guess = call.lost + last, estimate(question)
    tokens = shown.total + untold * guess.total
    usd = price_of(shown, price) + untold * price_of(guess, price)
    return Spent(1, tokens, usd, call.latency_ms / 1e3), untold > 0


@dataclass
class Ledger(Stateful):
    """Ledger of one run.

    Attributes:
        due: which purses are used at all; a purse that nobody uses reserves nothing.
        in_slot: whether the present event is a slot of the slow loop.
        by_purse: what was used within a scope from each purse, by both names.
        largest: estimate of the largest call so far.
    """

    STATE: ClassVar = {
        "run": PART, "event": PART, "day": PART, "_day_number": int | None, "in_slot": bool,
        "by_purse": dict[str, Spent], "largest": PART,
    }  # fmt: skip
    REBUILT = frozenset({"settings", "due"})

    settings: LlmSettings
    due: Due = field(default_factory=Due)
    run: Spent = field(default_factory=Spent)
    event: Spent = field(default_factory=Spent)
    day: Spent = field(default_factory=Spent)
    _day_number: int | None = None
    in_slot: bool = True
    by_purse: dict[str, Spent] = field(default_factory=dict)
    largest: Spent = field(default_factory=Spent)

    def open_event(self, *, in_slot: bool = True) -> None:
        """A new policy event or slot begins."""
        self.event, self.in_slot = Spent(), in_slot
        self._empty("event")

    def refusal(
        self, question: Question, price: ModelPrice, now: int, kept_back: Uses = (), elsewhere: Uses = (),
        *, early: bool = False,
    ) -> Refusal | None:  # fmt: skip
        """The first limit that this call might break, narrowest scope first; None: it may be made.

        `kept_back` is what calls of the event that are not answered yet may come to use, `elsewhere` the same
        of other events, each with its purse. `early`: the event has not begun, and is none of the slow loop.
        """
        self._turn_page(now)
        needed, purse = estimate_use(question, price), question.caller.purse
        self.largest = Spent(*map(max, astuple(self.largest), astuple(needed)))
        events, slots = self.due.events, self.due.slots
        ever = dict.fromkeys((*events, *slots), inf)
        scopes: tuple[tuple[Scope, ModelLimits, Mapping[Purse, float]], ...] = (
            ("event", self.settings.per_event, slots if self.in_slot and not early else events),
            ("day", self.settings.per_day, ever),
            ("run", self.settings.per_run, ever),
        )
        for scope, limits, due in scopes:
            begins = early and scope == "event"
            spent = [Spent() if begins else replace(self._of(scope, payer)) for payer in Purse]
            for other, use in kept_back if scope == "event" else (*kept_back, *elsewhere):
                spent[other].add(use)
            found = self._broken(scope, limits, purse, spent, needed, due)
            if found is not None:
                return found
        return None

    def charge(self, spent: Spent, now: int, purse: Purse = Purse.DECISION) -> None:
        """Enter what a call used."""
        self._turn_page(now)
        scopes: tuple[tuple[Scope, Spent], ...] = (
            ("event", self.event),
            ("day", self.day),
            ("run", self.run),
        )
        for scope, total in scopes:
            total.add(spent)
            self._of(scope, purse).add(spent)

    def _of(self, scope: Scope, purse: Purse) -> Spent:
        return self.by_purse.setdefault(f"{scope} {purse}", Spent())

    def _empty(self, scope: Scope) -> None:
        for name in [name for name in self.by_purse if name.startswith(f"{scope} ")]:
            del self.by_purse[name]

    def _turn_page(self, now: int) -> None:
        if now // DAY_NS != self._day_number:
            self._day_number, self.day = now // DAY_NS, Spent()
            self._empty("day")

    def _broken(
        self, scope: Scope, limits: ModelLimits, purse: Purse, spent: Sequence[Spent], needed: Spent,
        due: Mapping[Purse, float],
    ) -> Refusal | None:  # fmt: skip
        """The first limit of a scope that leaves no room, neither in the whole nor in the call's own purse.

        A call that came to more than its estimate may have used what was reserved: the purse holds it still.
        A purse that is not `due` takes no share of the limit.
        """
        calls_above = sum(calls for other, calls in due.items() if other > purse)
        steps = sorted({Purse.TEXT, purse, *due})
        own = steps[: steps.index(purse) + 1]
        for limit in LIMITS:
            allowed = getattr(limits, limit)
            if allowed is None:
                continue
            sizes = [allowed * self.settings.decision_share**depth for depth in range(len(steps) + 1)]
            sizes = [*map(ceil, sizes)] if limit == "calls" else sizes
            used, need = [getattr(use, limit) for use in spent], getattr(needed, limit)
            left = above = sum(used[purse + 1 :])
            if limit == "calls" and 0 < calls_above < inf:
                left = max(above, min(sizes[len(own)], int(calls_above)))
            elif calls_above:
                left = max(sizes[len(own)], above + getattr(self.largest, limit))
            rooms = (
                (sum(used[step : purse + 1]) + left, size) for step, size in zip(own, sizes, strict=False)
            )
            # How long a call takes is known behind it.
            if not any(taken < size if limit == "seconds" else taken + need <= size for taken, size in rooms):
                return Refusal(scope, limit, allowed, sum(used), need, left - above)
        return None


class BreakerChange(StrEnum):
    """What an outcome did to the breaker."""

    LOST = "lost"
    OPENED = "opened"
    CLOSED = "closed"


@dataclass
class Breaker(Stateful):
    """`limit` failures in a row open it for `pause` calls; then one call tries, and decides.

    Attributes:
        failures: in a row.
        waiting: calls still to be refused; 0 while closed or trying.
        open: whether the last word was a failure at the limit.
        turned_away: of the last calls, the newest last: 1 for each that no later question will mend, else 0.
        reason: what was said of the last call, if it brought no usable reply.
        questions: to this model at this prompt, those that were not asked included.
        answered: of them with a usable reply.
        last_reply: bar time of the last of those, ns.
        unanswered: the others by what came between: how a call ended, or the limit that refused it.
        words: what was said of the last of each.
        failed_as: how the last call ended that brought no usable reply; what is not asked since counts to it.
        limited: questions that a limit refused.
    """

    REBUILT = frozenset({"limit", "pause"})

    limit: int
    pause: int
    failures: int = 0
    waiting: int = 0
    open: bool = False
    turned_away: str = ""
    reason: str | None = None
    questions: int = 0
    answered: int = 0
    last_reply: int | None = None
    unanswered: Counter[str] = field(default_factory=Counter)
    words: dict[str, str] = field(default_factory=dict)
    failed_as: str | None = None
    limited: int = 0

    @property
    def why(self) -> str | None:
        """What was said of the reason that took most of the unanswered questions; None: all were answered."""
        most = max(sorted(self.unanswered), key=self.unanswered.__getitem__, default=None)
        return None if most is None else self.words[most]

    def note_unanswered(self, reason: str, words: str) -> None:
        """Count a question without an answer."""
        self.unanswered[reason] += 1
        self.words[reason] = words

    @property
    def is_lost(self) -> bool:
        """Whether it is not asked any more."""
        return self.turned_away.endswith("1" * LOST_AFTER) or self.turned_away.count("1") >= LOST_OF

    def note_turn(self, *, turned_away: bool) -> None:
        """Take in whether a call was turned away for good."""
        self.turned_away = f"{self.turned_away}{turned_away:d}"[-LOST_AMONG:]

    def expect_one_more(self) -> None:
        """Ask once more; one call that is turned away, and it is lost again."""
        self.turned_away, self.waiting = "1" * (LOST_AFTER - 1), 0

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
