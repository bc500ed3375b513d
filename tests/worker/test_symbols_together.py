"""Symbols of one bar are asked together, and the run is the one that asks them one after the other."""

import asyncio
import json
from typing import Any

import pytest

from agents.language_models.cassette import KIND, Cassette, recorded_call
from agents.language_models.own_model import OwnModel
from agents.strategies.rule_strategist import RuleStrategist
from schemas.settings import Settings
from schemas.settings.llm import RunLimits
from schemas.snapshot import PolicySnapshot
from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.ports import Revision
from tests.agents.language_models.wire_server import WireServer, events, stream
from tests.worker.shared_runs import Run, fewer_bars
from tests.worker.strategist_wire import StrategistOnTheWire, first_plan, proposing
from tests.worker.test_strategist_recordings import uneven
from tests.worker.wire import wire
from worker.bootstrap import assemble
from worker.live.evaluations import EvaluationQueue
from worker.models import Models, Overrides
from worker.runs.backtest import run_backtest
from worker.session import Session, Timing

SLICE = ("2003-01-01", "2003-09-30")
SILENT = stream(events("no narrative"))


def alone(session: Session) -> None:
    """One symbol after the other."""
    session.models.account.early.ask = None


def run(settings: Settings, prepare: Any = lambda session: None, cassette: Cassette | None = None) -> Run:
    sink = MemorySink()
    bars, journal = fewer_bars(*SLICE), JournalWriter(sink)
    made = asyncio.run(
        run_backtest(settings, bars, journal, own=Overrides(cassette=cassette, prepare=prepare))
    )
    return Run(made.document("r", "memory"), tuple(sink.rows), made)


def asked_over_the_wire(
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    decide: Any = uneven,
    prepare: Any = lambda session: None,
) -> tuple[Run, WireServer]:
    strategist = StrategistOnTheWire(decide)
    with wire(monkeypatch, strategist, SILENT) as server:
        strategist.server = server
        return run(settings, prepare), server


def content(rows: tuple[JournalRow, ...]) -> list[tuple[Any, ...]]:
    return [(row.seq, row.hash, row.payload) for row in rows]


def bodies(server: WireServer) -> list[str]:
    """What was asked, whatever the order."""
    return sorted(json.dumps(body, sort_keys=True) for _, body in server.requests)


@pytest.mark.parametrize(
    "llm",
    [
        {},
        {"per_run": RunLimits(calls=25)},
        {"per_run": RunLimits(usd=0.04)},
        {"breaker_failures": 2, "breaker_pause": 3},
    ],
    ids=["unbounded", "calls", "dollars", "breaker"],
)
def test_run_that_asks_symbols_together_writes_the_journal_of_one_after_the_other(llm, monkeypatch):
    settings = proposing("full", attempts=1, **llm)
    together, request = asked_over_the_wire(monkeypatch, settings)
    in_turn, asked_in_turn = asked_over_the_wire(monkeypatch, settings, prepare=alone)
    assert content(together.rows) == content(in_turn.rows)
    assert together.document["journal"]["head_hash"] == in_turn.document["journal"]["head_hash"]
    unused = together.document["model"]["unused_early"]["calls"]
    assert len(request.requests) == len(asked_in_turn.requests) + unused
    if not llm:
        assert unused == 0
        assert bodies(request) == bodies(asked_in_turn)
    assert together.document["memory"]["reads"] == in_turn.document["memory"]["reads"]
    assert bool(together.of("model_budget")) is ("per_run" in llm), "the limit is reached"
    if "per_run" in llm and llm["per_run"].calls is not None:
        assert len(request.requests) <= llm["per_run"].calls


class BusySource:
    """Lets others go on before each question is asked, and counts how many are under way at most."""

    waits = True

    def __init__(self, session: Session) -> None:
        model: Any = session.models.accounted.strategist
        self._source, model.source = model.source, self
        self.under_way = self.most = 0

    async def ask(self, *questions: Any) -> Any:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        for _ in range(100):
            await asyncio.sleep(0)
        call = await self._source.ask(*questions)
        self.under_way -= 1
        return call


def test_symbols_of_one_bar_have_their_questions_under_way_at_once_and_replay_without_a_server(monkeypatch):
    sources = list[BusySource]()
    settings = proposing(attempts=1, at_once=2)

    def prepare(session: Session) -> None:
        sources.append(BusySource(session))

    made, _ = asked_over_the_wire(monkeypatch, settings, prepare=prepare)
    assert sources[0].most == 2, "llm.at_once is the bound"
    assert set(made.document["model"]["outcomes"]) == {"reply"}
    calls = [recorded_call(payload, None) for payload in made.of(KIND)]
    again = run(settings, cassette=Cassette("the run", calls))
    assert content(again.rows) == content(made.rows)


def test_answers_beside_a_live_feed_have_their_questions_under_way_at_once_and_arrive_in_order(monkeypatch):
    strategist, sink = StrategistOnTheWire(first_plan), MemorySink()

    async def live() -> tuple[Session, BusySource]:
        made = assemble(proposing(), fewer_bars(*SLICE), JournalWriter(sink), market_waits=False)
        made.begin()
        made.models.account.last_reply = made.clock.now  # before the first one symbols are asked in turn
        source, answers, opened = BusySource(made), EvaluationQueue(made, lambda: None), list[Any]()
        while len(opened) < 2:
            opened = [made.policy_loop.open(boundary) for boundary in made.validate(Timing()).boundaries]
            opened = [evaluation for evaluation in opened if evaluation is not None]
        for evaluation in opened:
            answers.ask(evaluation)
        await answers.settle()
        await answers.close()
        await made.models.live.close()
        await made.journal.flush()
        return made, source

    with wire(monkeypatch, strategist, SILENT) as strategist.server:
        made, source = asyncio.run(live())
    assert source.most > 1
    assert set(made.models.account.outcomes) == {"reply"}
    arrived = [row.symbol for row in sink.rows if row.kind == "answer_arrived"]
    assert arrived == [symbol for symbol in made.bars.symbols if symbol in arrived] != []


def test_model_of_the_caller_is_asked_for_one_symbol_at_a_time():
    bars, model = fewer_bars(*SLICE), OwnModel(None, "own")  # type: ignore[arg-type]
    handed_over = assemble(
        proposing("full"),
        bars,
        JournalWriter(MemorySink()),
        own=Overrides(models=Models(fast=model, strategist=model)),
    )
    assert handed_over.models.account.early.ask is None


def test_run_by_rules_alone_makes_each_plan_once(monkeypatch):
    made: list[str] = []
    answer = RuleStrategist.answer

    async def counted(self: RuleStrategist, snapshot: PolicySnapshot, revision: Revision | None) -> Any:
        made.append(snapshot.content_hash)
        return await answer(self, snapshot, revision)

    monkeypatch.setattr(RuleStrategist, "answer", counted)
    payload = run(Settings()).document["policy_loop"]
    assert len({*made}) == payload["evaluations"]
    assert len(made) == payload["evaluations"] + payload["revisions"]
