"""The coin: as often as asked, blind to the plan, bounded like a reflection, and out of reach of settings."""

import asyncio
import json
from typing import Any

import pytest

from schemas.errors import DataError, InvariantViolation
from schemas.settings import ReflectionSettings, Settings
from schemas.vocabulary import PlanKind
from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.ports import Plan, PlanEnd, PlanRound, RevisionBudget
from tests.worker.shared_runs import embedded_bars
from worker.models import Overrides
from worker.runs.backtest import run_backtest
from worker.studies.ablation.runner import KIND, RandomVeto, Veto, VetoRate, install_veto, veto_rates

OFF = Settings(reflection=ReflectionSettings(mode="off"))
SLICE = ("2003-01-01", "2003-12-31")
ALWAYS, NEVER = VetoRate(1.0, 0.0), VetoRate(0.0, 0.0)


class Quoted:
    """An answer or a snapshot, as far as a coin can see it."""

    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)


class Inner:
    """A provider whose plans always pass; it keeps what it was asked."""

    def __init__(self) -> None:
        self.requested: list[Any] = []

    async def provide(self, snapshot: Any, invariants: Any, budget: Any, revision: Any = None) -> Plan:
        self.requested.append(revision)
        proposal = Quoted(content_hash=f"plan {len(self.requested)}")
        answer: Any = Quoted(kind=PlanKind.PROPOSE, proposal=proposal, reason="")
        return Plan(PlanEnd.PASSED, (PlanRound(answer, None, Quoted(outcome="disabled")),), "passed")  # type: ignore[arg-type]

    def reflect_amendment(self, request: Any) -> Any:
        raise AssertionError("a veto is about proposals")


def provide(veto: Veto, budget: RevisionBudget, snapshot_hash: str = "s") -> tuple[Plan, Inner]:
    inner = Inner()
    snapshot: Any = Quoted(content_hash=snapshot_hash)
    invariants: Any = None
    return asyncio.run(RandomVeto(inner, veto).provide(snapshot, invariants, budget)), inner


def journalled(settings: Settings, prepare: Any = lambda session: None) -> tuple[Any, tuple[JournalRow, ...]]:
    sink = MemorySink()
    running = run_backtest(
        settings, embedded_bars(*SLICE), JournalWriter(sink), own=Overrides(prepare=prepare)
    )
    return asyncio.run(running).document("r", "m"), tuple(sink.rows)


def test_coin_refuses_as_often_as_it_is_told():
    veto = Veto((VetoRate(0.25, 0.10),), 3)
    ends = [veto.end(f"snapshot {k}", 0) for k in range(4_000)]
    assert ends.count(PlanEnd.STAND_DOWN) / 4_000 == pytest.approx(0.25, abs=0.025)
    assert ends.count(PlanEnd.BLOCKED) / 4_000 == pytest.approx(0.10, abs=0.02)


def test_coin_throws_anew_for_each_seed_snapshot_and_round():
    rates = (VetoRate(0.5, 0.0),) * 3
    throws = [
        [Veto(rates, seed).end(f"snapshot {k}", used) for k in range(64)]
        for seed in (0, 1)
        for used in (0, 1)
    ]
    assert all(len(set(throw)) == 2 for throw in throws)
    assert len({tuple(throw) for throw in throws}) == 4


def test_coin_of_a_later_round_uses_the_last_rate():
    veto = Veto((NEVER, ALWAYS), 0)
    assert [veto.end("s", used) for used in (0, 1, 2)] == ["passed", "stand_down", "stand_down"]


def test_random_veto_sends_back_with_the_reflections_own_bound_and_then_stands_down():
    plan, inner = provide(Veto((ALWAYS,), 0), RevisionBudget(2))
    assert plan.end is PlanEnd.STAND_DOWN
    assert [None if entry is None else entry.proposal.content_hash for entry in inner.requested] == [
        None,
        "plan 1",
        "plan 2",
    ]
    assert all(entry.findings == () for entry in inner.requested[1:])


def test_random_veto_leaves_no_record_with_which_a_refused_round_could_be_frozen():
    plan, _ = provide(Veto((VetoRate(0.0, 1.0),), 0), RevisionBudget(2))
    assert plan.end is PlanEnd.BLOCKED
    assert [entry.reflection for entry in plan.rounds] == [None]


def test_random_veto_lets_a_plan_pass_untouched():
    plan, inner = provide(Veto((NEVER,), 0), RevisionBudget(2))
    assert plan.end is PlanEnd.PASSED
    assert plan.last.reflection is not None
    assert len(inner.requested) == 1


def test_random_veto_of_everything_freezes_nothing_in_a_run():
    document, rows = journalled(OFF, install_veto(Veto((ALWAYS,), 0)))
    free, _ = journalled(OFF)
    assert free["policy_loop"]["frozen"] > 20
    assert document["policy_loop"]["frozen"] == document["performance"]["trades"] == document["errors"] == 0
    assert document["policy_loop"]["revisions"] > 20
    assert [json.loads(row.payload)["seed"] for row in rows if row.kind == KIND] == [0]


def test_random_veto_of_nothing_is_the_run_without_reflection_but_for_its_row():
    _, free = journalled(OFF)
    _, coin = journalled(OFF, install_veto(Veto((NEVER,), 0)))
    assert [row.payload for row in coin if row.kind != KIND] == [row.payload for row in free]
    assert len(coin) == len(free) + 1


def test_random_veto_refuses_a_run_that_reflects():
    with pytest.raises(InvariantViolation, match="random veto"):
        journalled(Settings(), install_veto(Veto((ALWAYS,), 0)))


def test_random_veto_is_reached_by_no_setting():
    assert "veto" not in json.dumps(Settings().payload())


def test_veto_is_read_back_from_its_row_and_from_nothing_else():
    veto = Veto((VetoRate(0.25, 0.0), ALWAYS), 7)
    assert Veto.of(json.loads(json.dumps(veto.payload()))) == veto
    with pytest.raises(DataError, match="holds no veto"):
        Veto.of({"seed": 7})


def test_veto_rates_are_those_of_the_journal_by_round():
    _, rows = journalled(Settings())

    async def stored() -> Any:
        for row in rows:
            if row.kind in ("policy_proposal", "policy_reflection"):
                yield row

    rates = asyncio.run(veto_rates(stored()))
    parsed = [(row.kind, json.loads(row.payload)) for row in rows]
    number, first = None, []
    for kind, payload in parsed:
        if kind == "policy_proposal":
            number = payload["round"]
            first += ["revise"] if payload["passed_over"] else []
            number += len(payload["passed_over"]) > 0
        elif kind == "policy_reflection" and number == 0:
            first.append(payload["result"]["status"])
    assert 0.0 < rates[0].revise < 1.0
    assert rates[0].revise == first.count("revise") / len(first)
    assert rates[0].block == first.count("block") / len(first)
