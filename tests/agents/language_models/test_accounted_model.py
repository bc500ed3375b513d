import asyncio
import json

import pytest

from agents.language_models.accounted import AccountedModel, LiveSource, RecordedSource
from agents.language_models.cassette import Cassette, recorded_call
from schemas.errors import CassetteMiss, InvariantViolation, ModelError
from schemas.settings.llm import EventLimits, LlmSettings, ModelPrice
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.account import ModelAccount
from services.model_calls.asking import ask_at_once
from services.model_calls.language_model import ModelReply
from services.model_calls.record import LATE, Caller, RecordedCall
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard

CALLER = Caller("anthropic", "claude-test", "policy_level_reflection", "ab" * 32)
PRICE = ModelPrice(model="claude-test", input_usd=100.0, output_usd=1_000.0)
REPLY = ModelReply("fine", "claude-test-1", 10, 20, 1.0)


class Run:
    """One model of one run over a journal in memory."""

    def __init__(self, model=None, cassette=None, guard=None, **llm):
        self.sink = MemorySink()
        self.journal = JournalWriter(self.sink)
        settings = LlmSettings(prices=(PRICE,), **llm)
        self.account = ModelAccount(settings, self.journal, SimulatedClock(5))
        source = LiveSource(model) if cassette is None else RecordedSource(cassette)
        self.model = AccountedModel(CALLER, source, self.account, guard or TickGuard())

    async def ask(self, prompt="p", deadline_ms=1_000.0):
        try:
            return await self.model.complete(system="s", prompt=prompt, max_tokens=8, deadline_ms=deadline_ms)
        except ModelError as error:
            return error

    def rows(self, kind=None):
        asyncio.run(self.journal.flush())
        return [
            (json.loads(row.payload), json.loads(row.telemetry or "null"))
            for row in self.sink.rows
            if kind in (None, row.kind)
        ]

    def cassette(self):
        return Cassette("memory", [recorded_call(*row) for row in self.rows("model_call")])


class Scripted:
    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.seen = []

    async def complete(self, **request):
        self.seen.append(request)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is None:
            await asyncio.Event().wait()
        return outcome


OUTCOMES = (
    REPLY,
    ModelReply("no JSON \ud800", "claude-test-1", 1, 2, 1.0),
    ModelError("HTTP 529", retryable=True, kind="overloaded", raw="{}", requests=2),
    ModelError("stopped", kind="refusal", raw="I will not", usage=None),
    TimeoutError(),
)


async def read_requests(run, times):
    return [await run.ask() for _ in range(times)]


def read_shown(outcome):
    if isinstance(outcome, ModelError):
        return str(outcome), outcome.retryable, outcome.context
    return outcome


def test_accounted_replayed_run_hands_out_and_journals_the_same():
    live = Run(Scripted(*OUTCOMES))
    first = asyncio.run(read_requests(live, len(OUTCOMES)))
    again = Run(cassette=live.cassette())
    second = asyncio.run(read_requests(again, len(OUTCOMES)))
    assert [read_shown(item) for item in first] == [read_shown(item) for item in second]
    assert [payload for payload, _ in live.rows()] == [payload for payload, _ in again.rows()]
    assert live.journal.head_hash == again.journal.head_hash
    assert live.account.document() == again.account.document()


def test_accounted_reply_is_recorded_raw_before_anybody_reads_it():
    run = Run(Scripted(ModelReply("```json {broken \ud800", "claude-test-1", 10, 20, 1.0)))
    kept: list[RecordedCall] = []
    run.account.keep = kept.append
    reply = asyncio.run(run.ask())
    (payload, telemetry), *_ = run.rows("model_call")
    assert payload["call"]["text"] == reply.text == "```json {broken \\ud800"
    assert payload["call"]["outcome"] == "reply"
    assert payload["usd"] == pytest.approx((10 * 100 + 20 * 1_000) / 1e6)
    assert set(telemetry) == {"latency_ms"}
    assert kept[0].payload() == payload["call"]


def test_accounted_call_that_is_cancelled_is_a_recorded_timeout():
    run = Run(Scripted(None))

    async def give_up():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await run.ask()

    asyncio.run(give_up())
    (payload, _), *_ = run.rows("model_call")
    assert (payload["call"]["outcome"], payload["estimated"]) == ("timeout", True)
    outcome = asyncio.run(Run(cassette=run.cassette()).ask())
    assert outcome.context["kind"] == "timeout"


def test_accounted_call_without_time_left_is_recorded_and_not_made():
    model = Scripted(REPLY)
    run = Run(model)
    outcome = asyncio.run(run.ask(deadline_ms=0.0))
    assert (outcome.context["kind"], model.seen) == (LATE, [])
    replayed = asyncio.run(Run(cassette=run.cassette()).ask(deadline_ms=1_000.0))
    assert replayed.context["kind"] == LATE
    assert run.account.document()["requests"] == 0
    assert run.account.cost == 0.0


def test_accounted_replay_ignores_the_deadline_and_suspends_nowhere():
    live = Run(Scripted(REPLY))
    asyncio.run(live.ask())
    replay = Run(cassette=live.cassette())
    step = replay.model.complete(system="s", prompt="p", max_tokens=8, deadline_ms=-5.0)
    with pytest.raises(StopIteration) as ended:
        step.send(None)
    assert ended.value.value.text == "fine"


def test_accounted_question_that_was_not_recorded_is_a_miss_and_leaves_no_row():
    live = Run(Scripted(REPLY))
    asyncio.run(live.ask("one"))
    replay = Run(cassette=live.cassette())
    with pytest.raises(CassetteMiss):
        asyncio.run(replay.ask("two"))
    assert replay.rows() == []


def test_accounted_call_over_a_limit_is_not_made_and_says_so():
    model = Scripted(REPLY, REPLY)
    run = Run(model, per_event=EventLimits(calls=1))
    asyncio.run(run.ask())
    outcome = asyncio.run(run.ask())
    assert outcome.context["kind"] == "budget"
    assert len(model.seen) == 1
    ((refusal, _),) = run.rows("model_budget")
    assert refusal == {
        "model": "claude-test", "prompt": "policy_level_reflection", "scope": "event", "limit": "calls",
        "allowed": 1, "used": 1, "needed": 1, "purse": "decision", "reserved": 0,
    }  # fmt: skip
    run.account.open_event()
    assert asyncio.run(run.ask()).text == "fine"
    assert run.account.document()["cut_overs"] == {"event_calls": 1}


def test_accounted_model_that_keeps_failing_is_left_alone_and_tried_again():
    down = [ModelError("down", retryable=True, kind="network") for _ in range(4)]
    model = Scripted(*down[:3], down[3], REPLY)
    run = Run(model, breaker_failures=3, breaker_pause=2)
    kinds = [read_shown(item)[2]["kind"] for item in asyncio.run(read_requests(run, 5))]
    assert kinds == ["network"] * 3 + ["breaker"] * 2
    kinds = [read_shown(item)[2]["kind"] for item in asyncio.run(read_requests(run, 3))]
    assert kinds == ["network", "breaker", "breaker"]
    assert asyncio.run(run.ask()).text == "fine"
    assert [row["change"] for row, _ in run.rows("model_breaker")] == ["opened", "closed"]
    document = run.account.document()
    assert (document["breaker_opened"], document["cut_overs"]) == (1, {"breaker": 4})


def test_accounted_call_inside_the_tick_path_error_and_nothing_is_recorded():
    guard = TickGuard()
    run = Run(Scripted(REPLY), guard=guard)
    with guard.tick_path(), pytest.raises(InvariantViolation, match="llm_calls"):
        asyncio.run(run.ask())
    assert run.rows() == []
    assert guard.attempts["llm_calls"] == 1


def test_accounted_bug_in_a_model_error_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        asyncio.run(Run(Scripted(ZeroDivisionError())).ask())


PROMPTS = ("one", "two", "three")


class LastFirst:
    """Answers no question before the one that came after it."""

    def __init__(self, most):
        self.answered = [asyncio.Event() for _ in range(most)]
        self.seen = []

    async def complete(self, *, prompt, **request):
        place = len(self.seen)
        self.seen.append(prompt)
        if place + 1 < len(self.answered):
            await self.answered[place + 1].wait()
        self.answered[place].set()
        return ModelReply(f"to {prompt}", "claude-test-1", 10, 20, 1.0)


def at_once(run, deadline_ms=1_000.0, prompts=PROMPTS):
    return ask_at_once(run.model, system="s", prompts=prompts, max_tokens=8, deadline_ms=deadline_ms)


def told_of_all(replies):
    return [reply.text if isinstance(reply, ModelReply) else reply.kind for reply in replies]


def test_accounted_calls_at_once_are_settled_in_the_order_of_the_questions():
    run = Run(LastFirst(3))
    kept: list[RecordedCall] = []
    run.account.keep = kept.append
    replies = asyncio.run(at_once(run))
    assert told_of_all(replies) == ["to one", "to two", "to three"]
    texts = [payload["call"]["text"] for payload, _ in run.rows("model_call")]
    assert texts == [call.text for call in kept] == ["to one", "to two", "to three"]


def test_accounted_calls_at_once_are_played_back_row_by_row_and_suspend_nowhere():
    live = Run(LastFirst(2), per_event=EventLimits(calls=2))
    expected = ["to one", "to two", "budget"]
    assert told_of_all(asyncio.run(at_once(live))) == expected
    replay = Run(cassette=live.cassette(), per_event=EventLimits(calls=2))

    async def in_one_step():
        with pytest.raises(StopIteration) as ended:
            at_once(replay, deadline_ms=-5.0).send(None)
        return ended.value.value

    assert told_of_all(asyncio.run(in_one_step())) == expected
    assert [payload for payload, _ in live.rows()] == [payload for payload, _ in replay.rows()]
    assert live.journal.head_hash == replay.journal.head_hash


def test_accounted_calls_at_once_keep_their_price_back_until_they_are_answered():
    # An estimate is 2 tokens of input and 8 of output; what is told is 1 and 1.
    replies = [ModelReply("fine", "claude-test-1", 1, 1, 1.0) for _ in range(6)]
    run = Run(Scripted(*replies), per_event=EventLimits(tokens=20))
    assert told_of_all(asyncio.run(at_once(run))) == ["fine", "fine", "budget"]
    ((refusal, _),) = run.rows("model_budget")
    assert (refusal["limit"], refusal["used"], refusal["allowed"]) == ("tokens", 20, 20)
    assert [run.account.ledger.event.calls, run.account.ledger.event.tokens] == [2, 4]
    assert told_of_all([asyncio.run(run.ask("one"))]) == ["fine"]  # what was kept back is free again


def test_accounted_question_that_was_never_answered_holds_up_no_other():
    live = Run(Scripted(REPLY))
    asyncio.run(live.ask("three"))
    replay = Run(cassette=live.cassette())
    with pytest.raises(CassetteMiss):
        asyncio.run(at_once(replay, prompts=("one", "two")))
    asyncio.run(replay.ask("three"))
    assert [payload["call"]["text"] for payload, _ in replay.rows("model_call")] == ["fine"]


def test_accounted_calls_at_once_raise_what_is_no_reply_once_all_are_over():
    error = InvariantViolation("broken")
    run = Run(Scripted(REPLY, error, REPLY))
    with pytest.raises(InvariantViolation, match="broken"):
        asyncio.run(at_once(run))
    assert [payload["call"]["text"] for payload, _ in run.rows("model_call")] == ["fine", "fine"]
