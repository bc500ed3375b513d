"""The loop: plan, call, look whether it is enough, plan once more; each step with its name."""

import asyncio
import logging

import pytest

from agents.planning.gathering import LONGEST_QUESTION, REPHRASE, gather
from agents.planning.rule_planner import RulePlanner
from schemas.errors import DataError, ModelError
from schemas.settings.planner import OWN, PlannerSettings
from schemas.tool import ToolReply
from services.ports import EvidenceQuestion
from tests.agents.planning.fakes import CONTEXT, ScriptedHost, ScriptedPlanner, gathered, own, plan

EPISODES = {"trades": [{"symbol": "IBM", "playbook_id": "mean_reversion", "fill_id": "ab12cd34"}]}
WHY_LAST = "why did the last trade lose?"


def steps(found):
    return [step.step for step in found.steps]


def test_complete_first_plan_makes_its_calls_and_no_second_plan():
    host, planner = (
        ScriptedHost(EPISODES),
        ScriptedPlanner(plan(own("trades"), own("reports"), reasoning="r")),
    )
    found = gathered("which trades lost, and what do reports say?", planner, {OWN: host})
    assert (found.status, found.complete, found.refined, found.iterations) == ("gathered", True, False, 1)
    assert [(call.id, call.method) for call in found.calls] == [("c1", "trades"), ("c2", "reports")]
    assert steps(found) == ["planner_reasoning", "planner_confidence", "planner_complete_first_pass"]
    assert len(planner.seen) == 1


def test_ids_that_the_question_needs_are_followed_by_a_second_plan():
    host = ScriptedHost(lambda name, given: EPISODES if name == "trades" else {"steps": []})
    found = gathered(WHY_LAST, RulePlanner(), {OWN: host})
    assert host.called == [("trades", {"limit": 1, "outcome": "lost"}), ("why", {"fill_id": "ab12cd34"})]
    assert (found.complete, found.refined, found.iterations) == (True, True, 2)
    assert [(call.id, call.iteration) for call in found.calls] == [("c1", 1), ("c2", 2)]
    assert "planner_attempting_refinement" in steps(found)
    assert "planner_refinement_reasoning" in steps(found)


def test_second_plan_sees_the_calls_of_the_first():
    planner = ScriptedPlanner(plan(own("runs")), plan(own("market")))
    found = gathered("what is the price of IBM?", planner, {OWN: ScriptedHost()})
    assert [call.method for call in planner.seen[1]] == ["runs"]
    assert found.complete


@pytest.mark.parametrize(("attended", "status"), [(True, "clarify"), (False, "abstained")])
def test_plan_below_the_threshold_is_asked_back_and_unattended_nothing(attended, status):
    host = ScriptedHost()
    planner = ScriptedPlanner(plan(own("trades"), confidence=0.69, clarification="Which one?"))
    found = gathered("trades", planner, {OWN: host}, attended=attended)
    assert (found.status, found.clarification, found.calls, host.called) == (status, "Which one?", (), [])
    assert steps(found)[-1] == "planner_requesting_clarification"
    assert not found.complete


def test_confidence_that_meets_the_threshold_exactly_is_enough():
    planner = ScriptedPlanner(plan(own("trades"), confidence=0.7))
    assert gathered("trades", planner, {OWN: ScriptedHost()}).status == "gathered"
    asked_back = gathered("trades", planner, {OWN: ScriptedHost()}, confidence_threshold=0.71)
    assert (asked_back.status, asked_back.clarification) == ("clarify", REPHRASE)


def test_refined_plan_is_followed_whatever_its_confidence():
    planner = ScriptedPlanner(plan(own("runs")), plan(own("market"), confidence=0.1))
    found = gathered("price of IBM?", planner, {OWN: ScriptedHost()})
    assert [call.method for call in found.calls] == ["runs", "market"]
    assert found.confidence == 1.0


def test_reflection_switched_off_is_one_plan_that_says_it_is_not_complete():
    host = ScriptedHost(EPISODES)
    found = gathered(WHY_LAST, RulePlanner(), {OWN: host}, enable_reflection=False, max_iterations=5)
    assert (found.iterations, found.complete, len(host.called)) == (1, False, 1)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_plans_end_at_the_most_iterations(most):
    plans = [plan(own("runs", limit=number)) for number in range(1, 10)]
    found = gathered("price of IBM?", ScriptedPlanner(*plans), {OWN: ScriptedHost()}, max_iterations=most)
    assert (found.iterations, len(found.calls), found.complete) == (most, most, False)


def test_calls_run_four_at_once_and_keep_the_order_of_the_plan():
    calls = [own("trades", limit=number) for number in range(1, 11)]
    host = ScriptedHost()
    found = gathered("trades", ScriptedPlanner(plan(*calls)), {OWN: host})
    assert host.most_at_once == 4
    assert [(call.id, call.params["limit"]) for call in found.calls] == [(f"c{n}", n) for n in range(1, 11)]


def test_without_a_deadline_one_call_follows_the_other():
    host = ScriptedHost()
    calls = [own("trades", limit=number) for number in range(1, 6)]
    found = gathered("trades", ScriptedPlanner(plan(*calls)), {OWN: host}, deadline_s=None)
    assert (host.most_at_once, len(found.calls), found.complete) == (1, 5, True)


def test_reply_that_cannot_be_read_is_a_step_and_a_question_back(caplog):
    with caplog.at_level(logging.INFO, "thinktwice.planner"):
        planner = ScriptedPlanner(plan(confidence=0.0, failure="no JSON", reasoning="hm"))
        found = gathered("trades", planner, {OWN: ScriptedHost()})
    assert (found.status, found.clarification) == ("clarify", REPHRASE)
    assert found.steps[0].step == "planner_invalid_json"
    assert dict(found.steps[0].facts) == {"failure": "no JSON", "reasoning": "hm"}
    logged = {record.message: record for record in caplog.records}
    assert set(steps(found)) <= set(logged)
    assert logged["planner_confidence"].confidence == 0.0


def test_second_reply_that_cannot_be_read_leaves_the_first_results():
    planner = ScriptedPlanner(plan(own("runs")), plan(confidence=0.0, failure="no JSON"))
    found = gathered("price of IBM?", planner, {OWN: ScriptedHost()})
    assert (found.status, len(found.calls), found.complete) == ("gathered", 1, False)
    assert steps(found)[-1] == "planner_refinement_invalid_json"


class FailingPlanner(ScriptedPlanner):
    """Fails from a number of plans on."""

    def __init__(self, *plans, after):
        super().__init__(*plans)
        self._after = after

    async def plan(self, question, tools, earlier=()):
        if len(self.seen) >= self._after:
            raise ModelError("the model is away")
        return await super().plan(question, tools, earlier)


def test_model_that_fails_at_the_second_plan_leaves_the_first_results():
    planner = FailingPlanner(plan(own("runs")), after=1)
    found = gathered("price of IBM?", planner, {OWN: ScriptedHost()})
    assert (found.status, len(found.calls), found.complete) == ("gathered", 1, False)
    with pytest.raises(ModelError):
        gathered("price of IBM?", FailingPlanner(after=0), {OWN: ScriptedHost()})


@pytest.mark.parametrize("text", ["", "  \n", "x" * (LONGEST_QUESTION + 1)])
def test_empty_and_huge_questions_are_refused_before_anything_is_called(text):
    planner = ScriptedPlanner(plan(own("trades")))
    with pytest.raises(DataError, match=r"the question .* (empty|characters): ask"):
        gathered(text, planner, {OWN: ScriptedHost()})
    assert planner.seen == []


def test_cancelling_ends_every_call_and_is_passed_on():
    host, planner = ScriptedHost("hang"), ScriptedPlanner(plan(own("trades"), own("reports")))

    async def scenario():
        request = EvidenceQuestion("trades", CONTEXT)
        task = asyncio.create_task(gather(request, planner, {OWN: host}, PlannerSettings(), attended=True))
        await host.two_at_once.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert (host.at_once, host.cancelled) == (0, 2)


def test_two_gatherings_at_once_keep_their_calls_apart():
    host = ScriptedHost(lambda name, given: {"trades": [{"symbol": given["symbol"]}]})

    async def scenario():
        questions = [EvidenceQuestion(f"trades of {symbol}", CONTEXT) for symbol in ("IBM", "MSFT")]
        work = [
            gather(question, RulePlanner(), {OWN: host}, PlannerSettings(), attended=True)
            for question in questions
        ]
        return await asyncio.gather(*work)

    for symbol, found in zip(("IBM", "MSFT"), asyncio.run(scenario()), strict=True):
        assert [dict(call.params) for call in found.calls] == [{"symbol": symbol}]
        assert found.calls[0].reply.content == {"trades": [{"symbol": symbol}]}


def test_what_is_hashed_has_no_latency():
    found = [gathered("trades", RulePlanner(), {OWN: ScriptedHost(EPISODES)}) for _ in range(2)]
    assert found[0].content_hash == found[1].content_hash
    assert "latency_ms" not in found[0].canonical_text()
    assert found[0].calls[0].latency_ms >= 0


def test_failed_call_is_retried_by_no_repetition_but_by_another_call():
    host = ScriptedHost(
        lambda name, given: {"trades": []} if given.get("limit") == 5 else ToolReply(text="no", is_error=True)
    )
    planner = ScriptedPlanner(plan(own("trades")), plan(own("trades", limit=20), own("trades", limit=5)))
    found = gathered("trades", planner, {OWN: host})
    assert host.called == [("trades", {}), ("trades", {"limit": 5})]  # 20 is what was left out before
    assert found.complete
