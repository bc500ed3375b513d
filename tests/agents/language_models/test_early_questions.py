"""Questions asked before their turn: how many at once, what they may use, and when they are asked again."""

import asyncio
import json
from typing import Any

import pytest

from agents.language_models.accounted import AccountedModel, EarlyModel, LiveSource, RecordedSource
from agents.language_models.cassette import Cassette, recorded_call
from schemas.errors import ModelError
from schemas.settings.llm import LlmSettings, ModelPrice
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.account import ModelAccount
from services.model_calls.language_model import ModelReply
from services.model_calls.record import Caller, Purse
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard

CALLER = Caller("own", "m", "strategist", "ab" * 32, purse=Purse.EVENT)
PRICE = ModelPrice(model="m", input_usd=0.0, output_usd=1e6)  # a dollar each: a reply is one token
Prompts = dict[str, list[str]]


class Server:
    """Answers or fails, and counts how many questions are under way."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.failing = False
        self.under_way = self.most = 0

    async def complete(self, *, prompt: str, **request: Any) -> ModelReply:
        self.requested.append(prompt)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(20):
            await asyncio.sleep(0)
        self.under_way -= 1
        if self.failing:
            raise ModelError("down", kind="server")
        return ModelReply("fine", "m", 0, 1, 1.0)


class Desk:
    """A run that asks for the symbols of a bar together, and then for one after the other."""

    def __init__(self, cassette: Cassette | None = None, **llm: Any) -> None:
        self.server, self.sink = Server(), MemorySink()
        self.journal = JournalWriter(self.sink)
        limits = {"per_run": {"usd": None}} | llm
        settings = LlmSettings.model_validate({"prices": (PRICE,), **limits})
        self.account = ModelAccount(settings, self.journal, SimulatedClock(5))
        source = LiveSource(self.server) if cassette is None else RecordedSource(cassette)
        self.model = AccountedModel(CALLER, source, self.account, TickGuard())

    async def _bar(self, turns: Prompts, early: Prompts) -> dict[str, str]:
        model, ends = EarlyModel(self.model), dict[str, str]()

        async def ask(symbol: str) -> None:
            for prompt in early[symbol]:
                await model.complete(system="s", prompt=prompt, max_tokens=1, deadline_ms=1_000.0)

        self.account.early.ask = ask
        async with self.account.early.asking(list(turns)) as wait_for:
            for symbol, prompts in turns.items():
                await wait_for(symbol)
                self.account.open_event(symbol)
                for prompt in prompts:
                    ends[prompt] = await self._end(prompt)
        return ends

    async def _end(self, prompt: str) -> str:
        try:
            await self.model.complete(system="s", prompt=prompt, max_tokens=1, deadline_ms=1_000.0)
        except ModelError as error:
            return str(error.context["kind"])
        return "reply"

    def bar(self, turns: Prompts, early: Prompts | None = None) -> dict[str, str]:
        """How the questions of the turns end; `early` are those that are asked before, by symbol."""
        return asyncio.run(self._bar(turns, turns if early is None else early))

    def payloads(self) -> list[Any]:
        asyncio.run(self.journal.flush())
        return [(row.kind, json.loads(row.payload)) for row in self.sink.rows]


def each(*names: str) -> Prompts:
    return {name: [name] for name in names}


@pytest.mark.parametrize("at_once", [1, 2, 3, 10])
def test_evaluations_of_one_bar_are_asked_at_once_as_far_as_the_setting_lets_them(at_once):
    desk = Desk(at_once=at_once)
    desk.bar(each("first"))
    assert set(desk.bar(each(*"abcde")).values()) == {"reply"}
    assert desk.server.most == min(at_once, 5)
    assert sorted(desk.server.requested) == ["a", "b", "c", "d", "e", "first"]


def test_symbols_are_asked_together_again_behind_the_first_reply_of_a_run_and_behind_a_failure():
    desk = Desk()
    desk.bar(each(*"abcd"))
    assert desk.server.most == 3, "the first alone, then the others together"
    desk.server.failing = True
    assert desk.bar(each("e")) == {"e": "server"}
    desk.server.failing, desk.server.most = False, 0
    desk.bar(each(*"fghi"))
    assert desk.server.most == 3, "one of them shows that the model answers again"
    desk.bar(each(*"jklm"))
    assert desk.server.most == 4
    assert len(desk.server.requested) == 13, "nothing is asked twice"


def test_symbols_of_a_model_that_fails_on_are_asked_in_turn():
    desk = Desk(breaker_failures=100)
    desk.bar(each("a"))
    desk.server.failing = True
    desk.bar(each("b"))
    desk.server.most = 0
    assert set(desk.bar(each(*"cdef")).values()) == {"server"}
    assert desk.server.most == 1


@pytest.mark.parametrize("limits", [{"per_run": {"calls": 4}}, {"per_day": {"usd": 4.0}}])
def test_question_asked_early_and_in_vain_counts_for_the_limits_of_what_comes_after(limits):
    desk = Desk(**{"decision_share": 1.0, **limits})
    desk.bar(each("first"))
    assert desk.bar({"A": ["a"], "B": ["other"]}, each("a", "b") | {"A": ["a"], "B": ["b"]}) == {
        "a": "reply",
        "other": "reply",
    }
    assert desk.server.requested == ["first", "a", "b", "other"]
    assert desk.account.document()["unused_early"] == {"calls": 1, "usd": 1.0}
    assert desk.bar(each("c")) == {"c": "budget"}
    assert len(desk.server.requested) == 4, "the limit holds whatever was asked in vain"
    tape = Cassette("it", [recorded_call(row, None) for kind, row in desk.payloads() if kind == "model_call"])
    again = Desk(tape, **{"decision_share": 1.0, **limits})
    for bar in (each("first"), {"A": ["a"], "B": ["other"]}, each("c")):
        again.bar(bar)
    assert again.payloads() == desk.payloads(), "a replay knows of it by the record of what was not asked"


def test_question_at_its_turn_leaves_what_others_were_asked_early():
    desk = Desk(per_run={"calls": 3}, decision_share=1.0)
    desk.bar(each("first"))
    ends = desk.bar({"A": ["a", "more"], "B": ["b"]}, {"A": ["a"], "B": ["b"]})
    assert ends == {"a": "reply", "more": "budget", "b": "reply"}
    assert desk.server.requested == ["first", "a", "b"]
    document = desk.account.document()
    assert (document["calls"], document["cut_overs"], document["refused"]["event"]) == (3, {"budget": 1}, 1)


def test_account_restored_remembers_what_was_asked_in_vain():
    desk = Desk(per_run={"calls": 3}, decision_share=1.0)
    desk.bar(each("first"))
    desk.bar({"A": ["a"], "B": []}, {"A": ["a"], "B": ["b"]})
    again = Desk(per_run={"calls": 3}, decision_share=1.0)
    again.account.restore(json.loads(json.dumps(desk.account.state())))
    assert again.account.document()["unused_early"]["calls"] == 1
    assert again.bar(each("c")) == {"c": "budget"}
    assert again.server.requested == []


def test_symbols_are_asked_early_only_as_far_as_the_limits_of_the_run_have_room_for_all():
    desk = Desk(per_run={"calls": 3}, decision_share=1.0)
    desk.bar(each("first"))
    assert desk.bar(each(*"abcd")) == {"a": "reply", "b": "reply", "c": "budget", "d": "budget"}
    assert desk.server.requested == ["first", "a", "b"]
    assert desk.account.document()["unused_early"] == {"calls": 0, "usd": 0.0}
