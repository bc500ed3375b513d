"""The account of one run with its models: who may ask, what was recorded, what it cost.

It joins ledger, breakers and journal; the calls themselves are made elsewhere. Every refusal is a
`ModelError`, so whoever asked falls back to the deterministic tier, and an event, so the run says so. Calls
at once are settled in the order in which they were admitted, whichever is answered first.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from schemas.canonical import ns_to_datetime
from schemas.errors import ModelError
from schemas.settings.llm import LlmSettings, ModelPrice
from schemas.state import PART, Pairs, Stateful
from schemas.tool import Tools
from services.model_calls.budget import (
    UNUSABLE,
    Breaker,
    BreakerChange,
    Due,
    Ledger,
    Refusal,
    Spent,
    estimate_use,
    measure_use,
)
from services.model_calls.early_replies import TURN, EarlyReplies
from services.model_calls.record import (
    Caller,
    Purse,
    Question,
    RecordedCall,
    question_key,
    record_refusal,
)
from services.ports import Clock, EventJournal
from services.statistics.quantiles import quantiles

BUDGET, BREAKER, LOST = "budget", "breaker", "lost"
# A key, a model or an account that no later question will find right; None: an error where a reply belongs.
WRONG_SETTINGS = (400, 401, 402, 403, 404, 429, None)
REJECTED, THROTTLED = "rejected", "throttled"
DECIDING = (Purse.EVENT, Purse.DECISION)  # without the seats that these pay for, a run is another one
UNREAD = "its reply could not be read"
FAILING = 5  # calls in a row without a usable reply; fewer where a breaker left the model alone earlier


@dataclass
class _PendingCall:
    """A call that was admitted: what is kept back for it, and its record once it is answered."""

    question: Question
    kept_back: Spent
    call: RecordedCall | None = None


class ModelAccount(Stateful):
    """One account for all models of a run.

    Attributes:
        ledger: what was used.
        paid: the same with what was asked early and in vain. A question has to leave room for that too, or
            it is recorded as not made: only the run that asked knows of it.
        keep: told every record before anybody reads the reply; a cassette that is being recorded.
        answered: models that gave at least one reply.
        unusable: replies that no caller could read.
        refused: calls that a limit did not admit, by the purse that they would have been paid from.
        unpriced: models that were asked and whose price nobody names.
        lost: what the server said last where it turned a seat that decides away for good; nothing is asked
            any more. A text's seat is left alone then, and the others go on.
        last_reply: bar time of the last reply of use, ns.
        last_failure: what was said of the last call without one.
        early: replies that wait for their turn.
        forecast: what the run was found to take, once; None before, and where that cannot be known.
    """

    STATE: ClassVar = {
        "_requested": Counter[str],
        "_symbol": str | None,
        "ledger": PART,
        "paid": PART,
        "_breakers": Pairs(tuple[str, str], Breaker),
        "outcomes": Counter[str],
        "answered": set[str],
        "unpriced": set[str],
        "unusable": int,
        "cut_overs": Counter[str],
        "refused": Counter[str],
        "requests": int,
        "estimated": int,
        "opened": int,
        "tokens": Counter[str],
        "latencies_ms": list[float],
        "lost": str | None,
        "last_reply": int | None,
        "last_failure": str | None,
    }
    REBUILT = frozenset({"_settings", "_journal", "_clock", "_pending", "keep", "early", "forecast"})

    def __init__(
        self, settings: LlmSettings, journal: EventJournal, clock: Clock, due: Due | None = None
    ) -> None:
        self._settings = settings
        self._journal = journal
        self._clock = clock
        self._breakers: dict[tuple[str, str], Breaker] = {}
        self._requested: Counter[str] = Counter()
        self._symbol: str | None = None
        self._pending: list[_PendingCall] = []
        self.ledger = Ledger(settings, due or Due())
        self.paid = Ledger(settings, self.ledger.due)
        self.early = EarlyReplies(
            settings.at_once, lambda purse, spent: self.paid.charge(spent, clock.now, purse)
        )
        self.forecast: dict[str, Any] | None = None
        self.keep: Callable[[RecordedCall], None] = lambda call: None
        self.outcomes: Counter[str] = Counter()
        self.answered: set[str] = set()
        self.unpriced: set[str] = set()
        self.unusable = 0
        self.cut_overs: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.requests = 0
        self.estimated = 0
        self.opened = 0
        self.tokens: Counter[str] = Counter()
        self.latencies_ms: list[float] = []
        self.lost: str | None = None
        self.last_reply: int | None = None
        self.last_failure: str | None = None

    def open_event(self, symbol: str | None = None) -> None:
        """A policy event of a symbol, or a slot of the slow loop, begins."""
        self._symbol = symbol
        for ledger in (self.ledger, self.paid):
            ledger.open_event(in_slot=symbol is None)

    def admit(self, caller: Caller, system: str, prompt: str, max_tokens: int, tools: Tools = ()) -> Question:
        """The question to ask.

        Raises:
            ModelError: kind `lost`, `breaker` or `budget`; nothing may be asked.
        """
        breaker = self._breaker(caller.model, caller.prompt)
        breaker.questions += 1
        if self.lost is not None or breaker.is_lost:
            self.cut_overs[LOST] += 1
            why = self.lost or f"at prompt {caller.prompt!r}: {breaker.reason}"
            if breaker.is_lost:
                self._note_skipped(breaker, LOST)
            else:
                breaker.note_unanswered(LOST, why)
            raise ModelError(f"model {caller.model!r} is not asked any more: {why}", kind=LOST)
        if not breaker.admit():
            self.cut_overs[BREAKER] += 1
            self._note_skipped(breaker, BREAKER)
            raise ModelError(
                f"model {caller.model!r} failed {self._settings.breaker_failures} times in a row at prompt "
                f"{caller.prompt!r} and is left alone for now",
                retryable=True,
                kind=BREAKER,
            )
        key = question_key(caller, system, prompt, max_tokens, tools)
        question = Question(
            caller, system, prompt, max_tokens, self._requested[key] + 1, not self.requests, tuple(tools)
        )
        price = self._price(caller)
        refusal = self.ledger.refusal(question, price, self._clock.now, self._list_pending())
        if refusal is not None:
            self._refuse(caller, refusal)
        self._requested[key] += 1
        self._pending.append(_PendingCall(question, estimate_use(question, price)))
        return question

    def _note_skipped(self, breaker: Breaker, reason: str) -> None:
        """A question that is not asked because of failures of its seat counts as these do."""
        failed = breaker.failed_as or reason
        breaker.note_unanswered(failed, breaker.words.get(failed, reason))

    def _price(self, caller: Caller) -> ModelPrice:
        return self._settings.price(caller.provider, caller.model)

    def _list_pending(self) -> list[tuple[Purse, Spent]]:
        return [(request.question.caller.purse, request.kept_back) for request in self._pending]

    def record_crowded_out(self, question: Question) -> RecordedCall | None:
        """The record of an admitted question for which what was asked early leaves no room; None: it does."""
        others = self.early.uses_beside(None)
        if not others and self.paid.run == self.ledger.run:
            return None
        price, self.paid.largest = self._price(question.caller), self.ledger.largest
        kept_back = self._list_pending()[:-1]  # the last is this question's own
        refusal = self.paid.refusal(question, price, self._clock.now, kept_back, others)
        if refusal is None:
            return None
        return record_refusal(question, BUDGET, _describe_refusal(question.caller, refusal))

    def admit_early(
        self, caller: Caller, system: str, prompt: str, max_tokens: int, tools: Tools = ()
    ) -> Question | None:
        """The question as its turn will ask it; None where a limit or a failing model may prevent that.

        What is asked early for the other symbols counts as used. Before the first reply of a run symbols are
        asked in turn: a wrong key is told once.
        """
        failing = self.last_reply is None or self._breaker(caller.model, caller.prompt).failures
        if failing or self.lost is not None:
            return None
        turn, price = TURN.get(), self._price(caller)
        key = question_key(caller, system, prompt, max_tokens, tools)
        repeat = self._requested[key] + turn.requested[key] + 1
        question = Question(caller, system, prompt, max_tokens, repeat, tools=tuple(tools))
        others = [*self._list_pending(), *self.early.uses_beside(turn)]
        if self.paid.refusal(question, price, self._clock.now, [*turn.uses.values()], others, early=True):
            return None
        turn.requested[key] += 1
        turn.uses[key, repeat] = caller.purse, estimate_use(question, price)
        return question

    def keep_early(self, question: Question, call: RecordedCall) -> None:
        """Keep an outcome for the turn of its question."""
        spent, _ = measure_use(call, question, self._price(question.caller))
        self.early.keep(question, call, spent)

    def settle(self, call: RecordedCall, question: Question) -> None:
        """Record a call and charge it, once every call that was admitted before it is."""
        for request in self._pending:
            if request.question is question:
                request.call = call
        self._settle_in_order()

    def release(self, question: Question) -> None:
        """Hold nothing back any more for a call that was never settled."""
        self._pending = [
            request
            for request in self._pending
            if request.question is not question or request.call is not None
        ]
        self._settle_in_order()

    def _settle_in_order(self) -> None:
        while self._pending and (call := self._pending[0].call) is not None:
            self._settle(call, self._pending.pop(0).question)

    def _settle(self, call: RecordedCall, question: Question) -> None:
        self.keep(call)
        spent, guessed = measure_use(call, question, self._price(question.caller))
        payload = {"call": call.payload(), "usd": spent.usd, "estimated": guessed}
        self._event("model_call", payload, call.telemetry())
        if call.outcome == BUDGET and not call.requests:
            self.cut_overs[BUDGET] += 1
            self.refused[question.caller.purse.name.lower()] += 1
            self._note_limit(question.caller, BUDGET, call.message or BUDGET)
            return
        for ledger in (self.ledger, self.paid):
            ledger.charge(spent, self._clock.now, question.caller.purse)
        self._count(call, guessed)
        outcome = _weigh(call, question)
        self.unusable += outcome == UNUSABLE
        change = self._breaker(call.model, call.prompt).note(outcome)
        if change is not None:
            self._note_breaker(call, change, outcome)
        self._note_answer(call, question.caller.purse, outcome)

    def _note_limit(self, caller: Caller, reason: str, words: str) -> None:
        breaker = self._breaker(caller.model, caller.prompt)
        breaker.note_unanswered(reason, words)
        breaker.limited += 1

    def _note_answer(self, call: RecordedCall, purse: Purse, outcome: str) -> None:
        """When the last answer came; after some that say that none will come, the model is lost.

        They are counted for each model and prompt: another seat may be answered meanwhile.
        """
        breaker, why = self._breaker(call.model, call.prompt), " ".join((call.message or UNREAD).split())
        was_lost, is_same = breaker.is_lost, breaker.reason in (None, why)
        breaker.note_turn(turned_away=is_turned_away(call) or (is_same and is_still_throttled(call)))
        if call.replied and outcome != UNUSABLE:
            breaker.answered, breaker.reason, breaker.failed_as = breaker.answered + 1, None, None
            self.last_reply = breaker.last_reply = self._clock.now
            self.early.answers += 1
            return
        self.last_failure = breaker.reason = why
        breaker.failed_as = outcome if call.status is None else f"{outcome} {call.status}"
        breaker.note_unanswered(breaker.failed_as, why)
        if breaker.is_lost and not was_lost:
            if purse in DECIDING:
                self.lost = self.last_failure
            self._note_breaker(call, BreakerChange.LOST, call.outcome)

    def retry_lost(self) -> list[str]:
        """Let each model that is not asked any more be asked once; their names. Its answer decides."""
        found = []
        for (model, prompt), breaker in sorted(self._breakers.items()):
            if breaker.is_lost:
                breaker.expect_one_more()
                found.append(f"{model} ({prompt})")
        self.lost = None
        return found

    def document(self) -> dict[str, Any]:
        """The `model` part of the JSON document; zeros without a model."""
        run = self.ledger.run
        return {
            "calls": run.calls,
            "requests": self.requests,
            "outcomes": dict(sorted(self.outcomes.items())),
            "unusable": self.unusable,
            "last_failure": self.last_failure,
            "last_reply": _iso(self.last_reply),
            "seats": [
                {"model": model, "prompt": prompt, "questions": seat.questions, "answered": seat.answered}
                | {"last_reply": _iso(seat.last_reply), "unanswered": dict(sorted(seat.unanswered.items()))}
                | {"limited": seat.limited, "why": seat.why}
                for (model, prompt), seat in sorted(self._breakers.items())
            ],
            "lost": self.lost is not None,
            "cut_overs": dict(sorted(self.cut_overs.items())),
            "refused": {purse.name.lower(): self.refused[purse.name.lower()] for purse in Purse},
            "breaker_opened": self.opened,
            "tokens": {name: self.tokens[name] for name in ("input", "output", "cache_write", "cache_read")},
            "estimated_calls": self.estimated,
            "unpriced": sorted(self.unpriced),
            "usd": run.usd,
            "cost": self.cost,
            "unused_early": {"calls": self.paid.run.calls - run.calls, "usd": self.paid.run.usd - run.usd},
            "forecast": self.forecast,
            "latency_ms": quantiles(self.latencies_ms),
        }

    def failing(self) -> dict[str, Breaker]:
        """What came of the last calls, by model and prompt: of those where no usable reply is the rule."""
        return {
            f"{model} ({prompt})": breaker
            for (model, prompt), breaker in sorted(self._breakers.items())
            if breaker.open
            or breaker.failures >= FAILING
            or breaker.is_lost
            or (self.lost and breaker.failures)
        }

    @property
    def cost(self) -> float:
        """What the models cost, in the account's currency."""
        return self.ledger.run.usd * self._settings.quote_per_usd

    def _refuse(self, caller: Caller, refusal: Refusal) -> None:
        purse = caller.purse.name.lower()
        self.cut_overs[f"{refusal.scope}_{refusal.limit}"] += 1
        self.refused[purse] += 1
        left = f", {refusal.reserved:g} of it left to decisions" if refusal.reserved else ""
        words = f"llm.per_{refusal.scope}.{refusal.limit} = {refusal.allowed:g}{left}"
        self._note_limit(caller, f"{refusal.scope}_{refusal.limit}", words)
        request = {"model": caller.model, "prompt": caller.prompt, "purse": purse}
        self._event("model_budget", {**request, **asdict(refusal)})
        raise ModelError(_describe_refusal(caller, refusal), kind=BUDGET)

    def _note_breaker(self, call: RecordedCall, change: BreakerChange, outcome: str) -> None:
        self.opened += change is BreakerChange.OPENED
        breaker = self._breaker(call.model, call.prompt)
        about = {"model": call.model, "prompt": call.prompt, "change": change, "outcome": outcome}
        self._event("model_breaker", about | {"failures": breaker.failures, "pause": breaker.waiting})

    def _breaker(self, model: str, prompt: str) -> Breaker:
        fresh = Breaker(self._settings.breaker_failures, self._settings.breaker_pause)
        return self._breakers.setdefault((model, prompt), fresh)

    def _count(self, call: RecordedCall, guessed: bool) -> None:
        self.outcomes[call.outcome] += 1
        if call.replied:
            self.answered.add(call.model)
        if self._settings.known_price(call.provider, call.model) is None:
            self.unpriced.add(call.model)
        self.requests += call.requests
        self.estimated += guessed
        self.latencies_ms.append(call.latency_ms)
        if call.usage is not None:
            usage = call.usage
            self.tokens.update(
                input=usage.input_tokens,
                output=usage.output_tokens,
                cache_write=usage.cache_write_tokens + usage.cache_hour_tokens,
                cache_read=usage.cache_read_tokens,
            )

    def _event(self, kind: str, payload: dict[str, Any], telemetry: dict[str, Any] | None = None) -> None:
        now = self._clock.now
        self._journal.append(
            kind, ts_event=now, known_at=now, symbol=self._symbol, payload=payload, telemetry=telemetry
        )


def _describe_refusal(caller: Caller, refusal: Refusal) -> str:
    left = f" and {refusal.reserved:g} left to decisions" if refusal.reserved else ""
    return (
        f"model {caller.model!r} was not asked: {refusal.needed:g} {refusal.limit} on top of "
        f"{refusal.used:g}{left} would pass the {refusal.allowed:g} allowed per {refusal.scope}"
    )


def is_turned_away(call: RecordedCall) -> bool:
    """Whether a server said what it will say to every later question, too."""
    return call.outcome == REJECTED and call.status in WRONG_SETTINGS


def is_still_throttled(call: RecordedCall) -> bool:
    """Whether a server throttled every try alike and named no pause that would mend it."""
    return call.outcome == THROTTLED and not call.retryable


def _weigh(call: RecordedCall, question: Question) -> str:
    """The outcome as the breaker takes it: a reply that its caller cannot read shows a machine that fails."""
    reads = question.caller.reads
    unread = call.replied and not call.uses and reads is not None and not reads(call.text)
    return UNUSABLE if unread else call.outcome


def _iso(ns: int | None) -> str | None:
    return None if ns is None else ns_to_datetime(ns).isoformat()
