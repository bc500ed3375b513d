"""The ladder: which failure leads to which rung, that every rung is reached, and what is said of it."""

import asyncio

import pytest

from schemas.deliberation import Deliberation
from schemas.errors import StoreError
from schemas.settings.deliberation import QualitySettings
from services.deliberation.budget import Budget
from services.deliberation.fact_check import FactCritic
from services.deliberation.presets.quality import (
    CRITIQUE_ONLY,
    FEWER,
    FULL,
    LADDER,
    NO_FACTS,
    ORIGINAL,
    climb_down,
    failure_of,
    run_quality,
)
from services.deliberation.refine import Task
from tests.services.deliberation.recorded import recorded
from tests.services.deliberation.scripted import HANGS, failing, improved, scored, texts

TEXT = "The account earned a little, and 12 trades were made."
BETTER = "The account earned a little, in 12 trades, and nothing has to change."
DEFAULTS = QualitySettings()
CUT = '{"completeness": 80, "accur'


def climbed(*kinds):
    """Names of the rungs that are tried where each attempt fails in its way, and the outcome."""
    tried, left = [], list(kinds)

    async def attempt(rung):
        tried.append(rung.name)
        kind = left.pop(0) if left else None
        return Deliberation(
            preset="t", status="unchanged", initial="", final=rung.name, error=kind and f"said {kind}",
            degraded_from=kind and f"full: {kind}",
        )  # fmt: skip

    return tried, asyncio.run(climb_down(LADDER, attempt, failure_of))


@pytest.mark.parametrize(
    ("kinds", "rungs"),
    [
        ([], [FULL]),
        (["timeout"], [FULL, FEWER]),
        (["budget_spent"], [FULL, FEWER]),
        (["budget"], [FULL, FEWER]),
        (["breaker"], [FULL, FEWER]),
        (["facts_failed"], [FULL, NO_FACTS]),
        (["reply_malformed"], [FULL, CRITIQUE_ONLY]),
        (["server"], [FULL, ORIGINAL]),
        (["rate_limit"], [FULL, ORIGINAL]),
        (["timeout", "facts_failed"], [FULL, FEWER, NO_FACTS]),
        (["timeout", "timeout"], [FULL, FEWER, ORIGINAL]),
        (["facts_failed", "timeout"], [FULL, NO_FACTS, ORIGINAL]),
        (["timeout", "facts_failed", "reply_malformed"], [FULL, FEWER, NO_FACTS, CRITIQUE_ONLY]),
        (
            ["timeout", "facts_failed", "reply_malformed", "server"],
            [FULL, FEWER, NO_FACTS, CRITIQUE_ONLY, ORIGINAL],
        ),
        (["server", "server", "server"], [FULL, ORIGINAL]),
    ],
)
def test_failure_leads_to_its_rung(kinds, rungs):
    tried, done = climbed(*kinds)
    assert tried == rungs
    assert done.final == rungs[-1]
    assert done.degraded_from == (f"full: {kinds[0]}" if kinds else None)
    last = kinds[min(len(kinds), len(rungs)) - 1] if kinds else None
    assert done.error == (f"said {last}" if last else None)


def ran(budget=None, facts=None, settings=DEFAULTS, text=TEXT, **replies):
    models, model = texts(**replies)
    budget = budget or Budget(0, 20)
    done = asyncio.run(run_quality(Task(""), text, settings, budget, models=models, facts=facts))
    assert done.usage == budget.used
    return done, model


def test_slow_critique_leads_to_fewer_iterations_and_a_lower_threshold():
    done, model = ran(quality=[failing("timeout"), scored(71)], improvement=improved(BETTER))
    assert (done.status, done.final, done.degraded_from) == ("accepted", TEXT, "full: timeout")
    assert (model.count("text_quality"), model.count("text_improvement")) == (2, 0)
    assert done.usage.calls == 2


def test_fewer_iterations_are_fewer():
    settings = QualitySettings(iterations=2)
    done, model = ran(
        settings=settings,
        quality=[failing("timeout"), scored(40), scored(50), scored(60)],
        improvement=[improved(BETTER), improved(TEXT + " It is so.")],
    )
    assert model.count("text_improvement") == 1
    assert done.final == BETTER


def test_hanging_model_ends_within_the_deadline_with_the_original():
    done, model = ran(Budget(0, 20, deadline_ms=5.0), quality=HANGS, improvement=HANGS)
    assert (done.final, done.status, done.degraded_from) == (TEXT, "unchanged", "full: timeout")
    assert model.count("text_quality") == 2
    assert done.elapsed_ms < 2_000.0
    assert done.error


def test_budget_that_is_spent_leads_down_to_the_original():
    done, model = ran(Budget(0, 1), quality=scored(40), improvement=improved(BETTER))
    assert (done.final, done.degraded_from, done.error) == (TEXT, "full: budget", "no call is left")
    assert model.count("text_improvement") == 0
    assert done.usage.calls == 1


@pytest.mark.parametrize("kind", ["budget", "breaker"])
def test_account_that_refuses_is_asked_once_more_with_less(kind):
    done, _ = ran(quality=[failing(kind), scored(75)], improvement=improved(BETTER))
    assert (done.status, done.degraded_from) == ("accepted", f"full: {kind}")


def test_facts_that_cannot_be_read_are_done_without():
    async def read():
        raise StoreError("the store is locked", retryable=True)

    done, _ = ran(facts=FactCritic(read), quality=scored(90), improvement=improved(BETTER))
    assert (done.status, done.final) == ("accepted", TEXT)
    assert (done.degraded_from, done.error) == ("full: facts_failed", "the store is locked")
    assert not any(said.critic == "facts" for said in done.critiques)
    assert done.usage.calls == 1  # the critique is remembered


@pytest.mark.parametrize("reply", ["It is fine, really.", "{}", CUT, "x" * 200_000, '{"a": 1}'])
def test_critique_that_cannot_be_read_leads_to_no_improvement(reply):
    done, model = ran(quality=[reply, scored(40)], improvement=improved(BETTER))
    assert (done.final, done.status, done.stop_reason) == (TEXT, "unchanged", "no_revision")
    assert done.degraded_from == "full: reply_malformed"
    assert model.count("text_improvement") == 0
    assert [said.critic for said in done.critiques if said.source == "model"] == ["text_quality"]


@pytest.mark.parametrize("reply", ["Here it is: better.", "{}", improved(" "), improved("x\x1b[2J"), CUT])
def test_improvement_that_cannot_be_read_leads_to_the_critique_alone(reply):
    done, model = ran(quality=scored(40), improvement=reply)
    assert (done.final, done.degraded_from) == (TEXT, "full: reply_malformed")
    assert done.stop_reason == "no_revision"
    assert (model.count("text_quality"), model.count("text_improvement")) == (1, 1)


def test_all_that_fails_leaves_the_original_with_its_error():
    done, model = ran(quality=failing("server"), improvement=failing("server"))
    assert (done.final, done.status) == (TEXT, "unchanged")
    assert {said.source for said in done.critiques} == {"rule"}
    assert (done.degraded_from, done.error) == ("full: server", "the model failed: server")
    assert model.count("text_quality") == 1


def test_lie_is_struck_on_every_rung():
    lie = "Nothing changes. All 141 trades of channel_breakout won."
    for reply in (failing("server"), failing("timeout"), "{}", scored(100)):
        facts = FactCritic(recorded())
        done, _ = ran(facts=facts, text=lie, quality=reply, improvement=reply)
        assert done.final == "Nothing changes."
        assert done.verified_gain is not None
        assert done.verified_gain > 0
        assert done.details["struck_claims"] > 0
