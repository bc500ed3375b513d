"""Both deadlines of every model that a decision waits for, measured in virtual time.

The model is told what is left of its caller's budget and should keep it. A model that keeps none is cut off
by its caller: `GRACE_MS` later, never when it pleases.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agents import judge_model
from agents.judge_agent_client import JudgeAgentClient
from agents.strategies.model_strategist import ModelStrategist, PlanReaders, PlanTerms
from agents.strategies.rule_strategist import RuleStrategist
from prompts import load_prompt
from schemas.errors import ModelError
from schemas.settings import JudgeSettings, LlmSettings, PolicyLoopSettings, ReflectionSettings, Settings
from services.evidence.run_facts import RunFacts
from services.high_level import narrator
from services.high_level.report_sections import rule_narrative
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.asking import GRACE_MS
from services.model_calls.language_model import ModelReply
from services.playbooks.registry import PlaybookRegistry
from services.policy_level_reflection_service import PolicyLevelReflectionService
from tests.agents.strategies.questions import propose, question
from tests.agents.test_judge_model import REPORT, RULES
from tests.services.policy_checks.plans import PLAYBOOKS, expected, noted_request, on_timeframe, right_request
from tests.worker.live.virtual_time import run_virtually
from tests.worker.shared_runs import embedded_bars
from trading_core.tick_guard import TickGuard
from worker.models import Models, Overrides
from worker.runs.backtest import run_backtest

pytestmark = pytest.mark.usefixtures("over_the_cap")  # a reader is asked where it may decide

BUDGET_MS = 200.0
LONG_S = 30.0
SNAPSHOT = right_request().snapshot.model_copy(
    update={"expectations": tuple(expected(playbook) for playbook in PLAYBOOKS)}
)
AGREES = json.dumps({"verdict": "pass", "comment": "Fine.", "findings": [], "deferred_needs": []})


def now_ns() -> int:
    """Virtual time, as the timers of the callers read it."""
    return round(asyncio.get_running_loop().time() * 1e9)


class Boundless:
    """A model that keeps no deadline: it thinks for so many seconds a reply, the last for ever again."""

    def __init__(self, *thinks_s: float, text: Callable[[str], str] = lambda prompt: AGREES) -> None:
        self.thinks_s = thinks_s or (LONG_S,)
        self.text = text
        self.deadlines_ms: list[float] = []
        self.waited_s: list[float] = []

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        self.deadlines_ms.append(deadline_ms)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            await asyncio.sleep(self.thinks_s[min(len(self.deadlines_ms), len(self.thinks_s)) - 1])
        finally:
            self.waited_s.append(loop.time() - begun)
        return ModelReply(self.text(prompt), "claude-test", 1, 1, 0.1)


class Keeping(Boundless):
    """A model that keeps the deadline it was told."""

    async def complete(self, **request: Any) -> ModelReply:
        try:
            async with asyncio.timeout(request["deadline_ms"] / 1_000):
                return await super().complete(**request)
        except TimeoutError as error:
            raise ModelError("too late", retryable=True, kind="timeout") from error


def timed(ask: Callable[[], Awaitable[Any]]) -> tuple[Any, float]:
    """What an answer is, and how many virtual seconds it took."""

    async def asking() -> tuple[Any, float]:
        reply = await ask()
        return reply, asyncio.get_running_loop().time()

    answer, seconds = run_virtually(asking())
    return answer, seconds


def consolidated(model: Boundless, timer: Callable[[], int] = now_ns, source: str = "regime_change") -> Any:
    settings = ReflectionSettings(mode="full", budget_event_ms=BUDGET_MS, budget_heartbeat_ms=2 * BUDGET_MS)
    service = PolicyLevelReflectionService(settings, model=model, timer=timer)
    return timed(lambda: service.reflect(on_timeframe("5m", noted_request()), source=source))


def proposed(model: Boundless, timer: Callable[[], int] = now_ns) -> Any:
    reader = PlaybookRegistry(PLAYBOOKS, TickGuard(), SNAPSHOT.known_at).reader()
    request = ModelStrategist(
        model,
        RuleStrategist(reader),
        PlanReaders(reader, lambda name: None),
        PlanTerms(BUDGET_MS),
        timer=timer,
    )
    return timed(lambda: request.answer(SNAPSHOT, None))


def judged(model: Boundless) -> Any:
    return timed(lambda: judge_model.weigh(RULES, REPORT, model, BUDGET_MS))


def test_consolidation_that_keeps_no_deadline_is_cut_off_at_the_budget_and_its_grace() -> None:
    model = Boundless()
    result, seconds = consolidated(model)
    assert result.meta.skip_reason == "llm_timeout"
    assert model.deadlines_ms == [pytest.approx(BUDGET_MS)]
    assert seconds == pytest.approx((BUDGET_MS + GRACE_MS) / 1_000)


def test_consolidation_of_a_heartbeat_has_the_budget_of_heartbeats() -> None:
    model = Boundless()
    _, seconds = consolidated(model, source="heartbeat")
    assert model.deadlines_ms == [pytest.approx(2 * BUDGET_MS)]
    assert seconds == pytest.approx((2 * BUDGET_MS + GRACE_MS) / 1_000)


def test_consolidation_model_that_keeps_its_deadline_ends_there_without_the_grace() -> None:
    result, seconds = consolidated(Keeping())
    assert result.meta.skip_reason == "llm_timeout"
    assert seconds == pytest.approx(BUDGET_MS / 1_000)


def test_consolidation_model_is_told_what_the_checks_left_of_the_budget() -> None:
    readings, model = iter(range(0, 10**12, 60_000_000)), Boundless()  # 60 ms from reading to reading
    _, seconds = consolidated(model, lambda: next(readings))
    assert model.deadlines_ms == [pytest.approx(BUDGET_MS - 60.0)]
    assert seconds == pytest.approx((BUDGET_MS - 60.0 + GRACE_MS) / 1_000)


def test_strategist_that_keeps_no_deadline_is_cut_off_at_it_and_its_grace() -> None:
    model = Boundless()
    answer, seconds = proposed(model)
    assert answer.fallback == "timeout"
    assert model.deadlines_ms == [pytest.approx(BUDGET_MS)]
    assert seconds == pytest.approx((BUDGET_MS + GRACE_MS) / 1_000)


def test_strategist_that_keeps_its_deadline_ends_there_without_the_grace() -> None:
    answer, seconds = proposed(Keeping())
    assert answer.fallback == "timeout"
    assert seconds == pytest.approx(BUDGET_MS / 1_000)


def test_strategist_correction_has_what_the_first_reply_left_of_the_one_deadline() -> None:
    model = Boundless(0.150, LONG_S, text=lambda prompt: "I would buy everything.")
    answer, seconds = proposed(model)
    assert answer.fallback == "timeout"
    assert model.deadlines_ms == [pytest.approx(BUDGET_MS), pytest.approx(BUDGET_MS - 150.0)]
    assert seconds == pytest.approx((BUDGET_MS + GRACE_MS) / 1_000)


def test_judge_that_keeps_no_deadline_is_cut_off_at_it_and_its_grace() -> None:
    model = Boundless()
    verdict, seconds = judged(model)
    assert verdict.fallback == "timeout"
    assert verdict.actions == RULES.actions
    assert model.deadlines_ms == [BUDGET_MS]
    assert seconds == pytest.approx((BUDGET_MS + GRACE_MS) / 1_000)


def test_judge_that_keeps_its_deadline_ends_there_without_the_grace() -> None:
    verdict, seconds = judged(Keeping())
    assert verdict.fallback == "timeout"
    assert seconds == pytest.approx(BUDGET_MS / 1_000)


REQUESTED = load_prompt("high_level_reflection")
FACTS = RunFacts.of_report(REPORT, (), ())


def test_narrative_of_a_model_that_keeps_no_deadline_is_cut_off_at_it_and_its_grace() -> None:
    model = Boundless(10 * narrator.DEADLINE_MS / 1_000)
    shown, seconds = timed(lambda: narrator.Narrator(REQUESTED, model).tell(REPORT, FACTS))
    assert (shown.text, shown.by_model) == (rule_narrative(REPORT, FACTS).text, False)
    assert shown.refused == "model failed: no answer within 60000 ms"
    assert model.deadlines_ms == [narrator.DEADLINE_MS]
    assert seconds == pytest.approx((narrator.DEADLINE_MS + GRACE_MS) / 1_000)


def test_narrative_of_a_model_that_keeps_its_deadline_ends_there_without_the_grace() -> None:
    model = Keeping(10 * narrator.DEADLINE_MS / 1_000)
    shown, seconds = timed(lambda: narrator.Narrator(REQUESTED, model).tell(REPORT, FACTS))
    assert shown.refused is not None
    assert seconds == pytest.approx(narrator.DEADLINE_MS / 1_000)


def test_judge_of_a_run_has_a_deadline_without_being_given_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.judge_agent_client.replan", lambda *_: RULES)
    model = Boundless(10 * judge_model.DEADLINE_MS / 1_000)
    client = JudgeAgentClient(JudgeSettings(replan="model"), model=model)
    verdict, seconds = timed(lambda: client.replan(REPORT, (), 0))
    assert verdict.fallback == "timeout"
    assert model.deadlines_ms == [judge_model.DEADLINE_MS]
    assert seconds == pytest.approx((judge_model.DEADLINE_MS + GRACE_MS) / 1_000)


RUN_MS = 60_000.0  # real milliseconds of thinking come off it, which may be many on a busy machine


def boundless_run(models: Models) -> tuple[Any, float]:
    """A run in virtual time whose models keep no deadline, and the real seconds that it took."""
    settings = Settings(
        reflection=ReflectionSettings(mode="full", budget_event_ms=RUN_MS, budget_heartbeat_ms=RUN_MS),
        policy_loop=PolicyLoopSettings(strategist="rules" if models.strategist is None else "model"),
        llm=LlmSettings(
            model="anthropic/claude-haiku-5-5", strategist_deadline_ms=RUN_MS, breaker_failures=1_000
        ),
    )
    begun = time.perf_counter()
    bars = embedded_bars("2003-01-01", "2003-09-30")
    made = run_backtest(settings, bars, JournalWriter(MemorySink()), own=Overrides(models=models))
    return run_virtually(made), time.perf_counter() - begun


def test_run_cuts_off_every_call_of_a_second_reader_that_keeps_no_deadline() -> None:
    model = Boundless(100 * RUN_MS)
    made, real_s = boundless_run(Models(fast=model))
    assert len(model.waited_s) > 10
    assert made.document("r", "memory")["policy_loop"]["reflections"]["degraded"] == len(model.waited_s)
    longest_s = (RUN_MS + GRACE_MS) / 1_000
    assert all(longest_s - real_s <= waited <= longest_s + 1e-9 for waited in model.waited_s)


def test_run_cuts_off_every_call_of_a_strategist_that_keeps_no_deadline() -> None:
    model, reader = Boundless(100 * RUN_MS), Boundless(0.0)
    made, real_s = boundless_run(Models(fast=reader, strategist=model))
    assert len(model.waited_s) > 10
    assert made.document("r", "memory")["strategist"]["fallbacks"] == {"timeout": len(model.waited_s)}
    longest_s = (RUN_MS + GRACE_MS) / 1_000
    assert all(longest_s - real_s <= waited <= longest_s + 1e-9 for waited in model.waited_s)


def test_strategist_within_its_deadline_is_heard() -> None:
    model = Boundless(0.150, text=lambda prompt: json.dumps(propose(question(prompt).base())))
    answer, seconds = proposed(model)
    assert (answer.fallback, answer.model) == (None, "claude-test")
    assert seconds == pytest.approx(0.150)
