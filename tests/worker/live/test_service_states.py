"""Each service says its whole state: one that is restored decides on as the one that wrote it."""

import ast
import inspect
import json
import textwrap
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from schemas.state import PART, Stateful
from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.budget import Breaker
from services.policy_loop.background import LAST, PlanOutcomes
from services.slow_loop.loop_facts import LoopFacts
from tests.each_case import check_each
from tests.worker.live.paper_runs import rows_of
from tests.worker.live.test_paper_savepoints import PLAYBOOKS, bars
from tests.worker.live.test_savepoint_sessions import OWN, attributes_of, go_on
from tests.worker.shared_runs import losing_settings
from trading_core.trigger_engine import TriggerEngine
from worker.live.checkpoints import ENGINE, ResumePoint, SavepointWriter, restore
from worker.live.stepper import BarAxes, LiveStepper
from worker.session import Session

SERIES = bars()
MARKET = BarAxes(SERIES.symbols, SERIES.timeframe, SERIES.label)
ROWS = rows_of(SERIES)
END = 450

# What a class without state of its own fills as it works: a cache, or what wiring alone says.
WITHOUT_STATE: dict[str, set[str]] = {
    "Answers": {"known_at", "added", "summaries", "_last", "_outdated"},  # of one row's evaluations
    "PagePlanner": set(),
    "ClusterPlanner": set(),
    "HighLevelReflectionService": set(),
    "Due": {"events", "slots"},  # of the settings
    "EarlyReplies": {"turns", "_kept"},  # of one row's evaluations
    "LiveStep": set(),
    "MemoryView": {"_quotas"},
    "Models": {"texts"},
    "TextModels": {"models", "prompts"},
    "PlanExecutor": set(),
    "PlanRows": set(),
    "PlanSources": set(),
    "PolicyEvaluator": set(),
    "PolicyLevelReflectionService": set(),
    "ReflectingPlanProvider": set(),
    "RegistryReader": {"_rules"},
    "RuleStrategist": set(),
    "RunEvidence": set(),
    "SharedColumns": set(),
    "ShadowLedgers": {"_bare", "_searched"},
    "SnapshotBuilder": {"_first_rows", "_places", "_regime_seen"},
    "TickEventDecoder": set(),
}
MADE_AGAIN = frozenset(
    {"FeatureColumns", "GrowingBars", "RegimeColumns", "RegimeTracker", "RuleBank", "RuleColumns"}  # of bars
    | {"Populations", "TradeOutcomes"}  # of episodes
    | {"EvidenceEpochs"}  # of the playbook versions
    | {"CadenceFacts"}  # of the rows, at the next look
    | {"EvidenceBuffer"}  # of the rows, which savepoints hold beside the state
    | {"MemorySink", "ParkingJournal"}  # of the run
)
ENGINE_REBUILT = frozenset(
    {"bars", "guard", "parameters", "columns", "_block_edges", "_decoder"}  # wiring
    | {"_equity", "_gross", "_flags", "_known_rows"}  # rows, see `rows_from`
    | {"_events", "_count", "_trades", "_n_trades"}  # filled anew by each advance
)


def stepper() -> LiveStepper:
    journal = JournalWriter(MemorySink(), 10**9)
    return LiveStepper(
        losing_settings(), MARKET, journal, lock_step=True, ask=lambda evaluation: None, definitions=PLAYBOOKS
    )


def split(one: LiveStepper) -> LiveStepper:
    """A stepper that goes on from a savepoint of another."""
    point, _ = SavepointWriter("this program").write(one.session, ResumePoint(one.rows, dict(one.blocked)))
    again = stepper()
    found = restore(point, MARKET, losing_settings(), again.journal, PLAYBOOKS)
    again.resume(found.session, found.resume_point.rows, found.resume_point.blocked)
    return again


@cache
def unbroken() -> LiveStepper:
    one = stepper()
    go_on(one, 0, END, ROWS)
    return one


@settings(max_examples=4, deadline=None, phases=[Phase.generate])  # one example takes seconds
@given(rows=st.integers(min_value=1, max_value=END - 1))
def test_session_split_at_any_row_has_the_head_of_the_unbroken_run(rows: int) -> None:
    one = stepper()
    go_on(one, 0, rows, ROWS)
    again = split(one)
    go_on(again, rows, END, ROWS)
    assert again.journal.head_hash == unbroken().journal.head_hash
    assert decided(again.session) == decided(unbroken().session)


MEASURED = frozenset(
    {
        "latencies_ms",
        "latency_ms",
        "evaluation_ms",
        "reflection_ms",
        "run_ms",
        "seconds",
        "over_budget",
    }
)


def decided(session: Session) -> Any:
    """The state of a session without what a clock measured."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(item) for key, item in value.items() if key not in MEASURED}
        return [without(item) for item in value] if isinstance(value, list) else value

    experience = session.experience.expectations.state()
    return without(session.state() | {"experience": experience})


def stateful(session: Session) -> dict[str, Stateful]:
    """Each stateful service of a session, by its class."""
    found: dict[str, Stateful] = {}
    for value in reachable(session):
        if isinstance(value, Stateful):
            found.setdefault(type(value).__name__, value)
    return found


SERVICES = (
    "BackgroundBuilder", "Breaker", "DriftWindow", "EpisodeMemory", "ExpectationBook", "Experience",
    "JournalWriter", "JudgeAgentClient", "Ledger", "LoopFacts", "MemoryTelemetry", "ModelAccount",
    "OpenPositions", "PastRuns", "PlanCounters", "PlanOutcomes", "PlaybookLifecycle",
    "PlaybookRegistry", "PolicyCounters", "PolicyLoopService",
    "PromotionLevels", "RunModels", "RunPlans", "RunPlaybooks", "RunState", "Session",
    "ShadowLedger", "ShadowTrials", "SignalLog", "SimulatedClock", "SlowCounters", "SlowLoopService", "Spent",
    "TickGuard", "UntradedSignals",
)  # fmt: skip
ASKING = frozenset({"BackgroundBuilder", "Breaker", "PlanOutcomes"})  # there is none where no model is asked


@check_each("name", [name for name in SERVICES if name not in ASKING])
def test_service_restored_has_the_state_that_it_wrote(name: str) -> None:
    one, again = stateful(unbroken().session)[name], stateful(twin().session)[name]
    assert again is not one
    assert again.state() == one.state()
    assert json.loads(json.dumps(one.state())) == one.state(), "it is plain data"


def test_facts_restored_know_a_symbol_whose_last_answer_had_no_plan() -> None:
    """A strategist that holds proposes nothing; the row of its proposal says so."""
    one, again = LoopFacts(losing_settings()), LoopFacts(losing_settings())
    one.add(JournalRow(7, 1, 1, "policy_proposal", "W00", '{"proposal":null}', None, "", ""))
    again.restore(json.loads(json.dumps(one.state())))
    assert again.state() == one.state()
    assert again.state()["_proposals"] == {"W00": None}


def test_state_that_is_not_of_its_type_is_refused_where_it_is_written() -> None:
    class Counts(Stateful):
        STATE: ClassVar = {"seen": dict[str, int]}

        def __init__(self) -> None:
            self.seen: Any = {"a": "many"}

    with pytest.raises(ValueError, match="Expected `int`"):
        Counts().state()


def test_breaker_restored_is_as_open_as_it_was_and_has_its_own_limits() -> None:
    one, again = Breaker(limit=2, pause=5), Breaker(limit=3, pause=7)
    one.note("timeout")
    one.note("timeout")
    again.restore(one.state())
    assert (
        (again.open, again.failures, again.waiting) == (one.open, one.failures, one.waiting) == (True, 2, 5)
    )
    assert (again.limit, again.pause) == (3, 7)


def test_background_restored_tells_the_last_plans_and_keeps_no_more_of_them() -> None:
    plans, again = PlanOutcomes(), PlanOutcomes()
    held = unbroken().session.policy_loop.policies.values()
    policies = [policy.model_copy(update={"frozen_at": at}) for at in range(2 * LAST) for policy in held]
    assert len(policies) >= 6 * LAST
    for number, policy in enumerate(policies[: 4 * LAST]):
        plans.frozen(policy, number)
    again.restore(plans.state())
    assert again.state() == plans.state()
    for number, policy in enumerate(policies[4 * LAST : 6 * LAST]):
        plans.frozen(policy, number)
        again.frozen(policy, number)
    assert again.state() == plans.state()


@cache
def twin() -> LiveStepper:
    return split(unbroken())


def test_service_with_state_is_tested_by_name() -> None:
    assert stateful(unbroken().session).keys() == set(SERVICES) - ASKING


def reachable(root: Any) -> Iterator[Any]:
    """Every object of this program that an attribute or a container leads to, values left out."""
    seen: set[int] = set()
    rest = [root]
    while rest:
        value = rest.pop()
        if id(value) in seen or isinstance(value, type | Enum | BaseModel):
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, list | tuple | set | frozenset | deque):
            rest += value
        elif type(value).__module__.partition(".")[0] in OWN and not inspect.isroutine(value):
            yield value
            if type(value).__name__ not in MADE_AGAIN:
                rest += [item for name, item in attributes_of(value) if not holds_values(value, name)]


def holds_values(owner: Any, name: str) -> bool:
    """Whether a field is written with all that it holds."""
    return isinstance(owner, Stateful) and owner.state_fields().get(name, PART) is not PART


def forgotten(value: Any) -> list[str]:
    """Attributes of an object that may change and that nothing declares."""
    cls: Any = type(value)
    names = {name for name, _ in attributes_of(value)}
    if isinstance(value, TriggerEngine):
        kept = {"_" + name for name in ENGINE} | ENGINE.keys()
        return sorted(names - kept - ENGINE_REBUILT)
    if isinstance(value, Stateful):
        custom = {*getattr(cls, "LEDGERS", ()), *getattr(cls, "IN_FORCE", ()), *getattr(cls, "BREAKERS", ())}
        return sorted(names - value.state_fields().keys() - cls.REBUILT - custom)
    if cls.__name__ in MADE_AGAIN:
        return []
    frozen = is_dataclass(cls) and vars(cls)["__dataclass_params__"].frozen
    if cls.__name__ not in WITHOUT_STATE and not frozen:
        return ["the class itself"]
    filled = {name for name, item in attributes_of(value) if is_container(item)}
    return sorted((filled | (written_later(cls) & names)) - WITHOUT_STATE.get(cls.__name__, set()))


def is_container(value: Any) -> bool:
    return isinstance(value, list | dict | set | deque | Counter | np.ndarray)


@cache
def written_later(cls: Any) -> set[str]:
    """Attributes that a method other than the first one sets."""
    found: set[str] = set()
    for method in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(cls)))):
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.name != "__init__":
            found |= {
                node.attr
                for node in ast.walk(method)
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                and isinstance(node.value, ast.Name) and node.value.id == "self"
            }  # fmt: skip
    return found


def test_session_has_no_attribute_that_is_neither_state_nor_made_again() -> None:
    found = {type(value).__name__: forgotten(value) for value in reachable(unbroken().session)}
    assert {name: names for name, names in found.items() if names} == {}
    assert len(found) > 40


def test_session_with_a_field_that_nobody_declared_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbroken().session.slow_loop, "_new", 0, raising=False)
    assert forgotten(unbroken().session.slow_loop) == ["_new"]
