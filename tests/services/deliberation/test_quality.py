"""The quality loop: scored, improved until it is enough, verified; the best text stands, not the last one."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.deliberation import TextCandidate
from schemas.settings.deliberation import QualitySettings
from services.deliberation.budget import Budget
from services.deliberation.fact_check import FactCritic
from services.deliberation.forms import QualityRewriteReply, read_text_reply
from services.deliberation.model_critics import ArguingCritics, CachedCritic, quality_critic
from services.deliberation.model_revisers import FirstDraft
from services.deliberation.presets.quality import calls_of, result_fields, run_quality, threshold_of
from services.deliberation.refine import Task
from services.deliberation.text_models import Rewrites
from tests.services.deliberation.recorded import recorded, recorded_report
from tests.services.deliberation.scripted import (
    HANGS,
    ScriptedModel,
    failing,
    improved,
    rewritten,
    scored,
    texts,
)

TEXT = "The account earned a little in 12 trades."
SECOND = "The account earned a little in 12 trades, and so nothing has to change."
THIRD = "The account earned a little in 12 trades, and so nothing has to change now."
DEFAULTS = QualitySettings()
ADAPTIVE = QualitySettings(adaptive_threshold=True)


def ran(text=TEXT, of=DEFAULTS, *, facts=None, budget=None, task=Task(""), critic=None, **replies):  # noqa: B008  # a frozen value
    models, model = texts(**({"improvement": [improved(SECOND), improved(THIRD)]} | replies))
    budget = budget or Budget(0, calls_of(of))
    done = asyncio.run(run_quality(task, text, of, budget, models=models, facts=facts, critic=critic))
    assert done.usage == budget.used
    assert len(model.asked) <= calls_of(of)
    return done, model


def test_defaults_are_the_seeds():
    assert (DEFAULTS.threshold, DEFAULTS.iterations, DEFAULTS.mode) == (80.0, 2, "full")
    assert DEFAULTS.deadline_ms == 45_000.0


def test_text_that_is_good_enough_is_not_improved():
    done, model = ran(quality=scored(80))
    assert (done.status, done.final, done.stop_reason) == ("accepted", TEXT, "accepted")
    assert [name for name, _ in model.asked] == ["text_quality"]
    assert done.self_reported_gain is None


def test_loop_stops_as_soon_as_the_threshold_is_reached():
    done, model = ran(quality=[scored(62, issues=["no action"]), scored(89)])
    assert (done.status, done.final, done.self_reported_gain) == ("accepted", SECOND, 0.27)
    assert [name for name, _ in model.asked] == ["text_quality", "text_improvement", "text_quality"]
    assert "no action" in model.requests("text_improvement")[0]
    assert "How often the text was improved: 1" in model.requests("text_quality")[1]


def in_one_reply(*replies, quality=None, **how):
    return ran(quality_rewrite=list(replies), quality=quality or scored(0), **how)


REWRITE, PLAIN, IMPROVE = "text_quality_rewrite", "text_quality", "text_improvement"


def test_text_that_scores_too_low_is_written_again_in_the_reply_that_scores_it():
    first = rewritten(scored(62, issues=["no action"]), f" {SECOND}\n", "why so")
    done, model = in_one_reply(first, rewritten(scored(89)))
    assert [name for name, _ in model.asked] == [REWRITE, REWRITE]
    assert (done.status, done.final, done.self_reported_gain, done.verified_gain) == (
        "accepted", SECOND, 0.27, 0,
    )  # fmt: skip
    assert [critique.issues for critique in done.critiques if critique.source == "model"] == [
        ("no action",), (),
    ]  # fmt: skip
    assert result_fields(done)["chain_of_thought"] == ["why so"]
    request = model.requests(REWRITE)[1]
    assert "How often the text was improved: 1" in request
    assert "A text scores enough from this mean on: 80" in request
    assert json.dumps(SECOND) in request


def test_text_in_the_reply_of_a_score_that_is_enough_is_left():
    done, model = in_one_reply(rewritten(scored(80), SECOND))
    assert (done.status, done.final, len(done.candidates), len(model.asked)) == ("accepted", TEXT, 1, 1)


def test_score_that_is_too_low_without_a_text_has_it_improved_by_its_own_question():
    done, model = in_one_reply(rewritten(scored(62, issues=["no action"])), rewritten(scored(89)))
    assert [name for name, _ in model.asked] == [REWRITE, IMPROVE, REWRITE]
    assert "no action" in model.requests(IMPROVE)[0]
    assert (done.status, done.final) == ("accepted", SECOND)


@pytest.mark.parametrize("iterations", [0, 1, 2, 3])
def test_last_text_that_may_stand_is_scored_alone(iterations):
    words = ("first", "again", "at last", "and on")
    told = [rewritten(scored(10 * place), f"{TEXT} It is so, {word}.") for place, word in enumerate(words)]
    done, model = in_one_reply(*told, quality=scored(70), of=QualitySettings(iterations=iterations))
    assert [name for name, _ in model.asked] == [REWRITE] * iterations + [PLAIN]
    assert len(done.candidates) == iterations + 1


def test_two_critics_that_argue_write_nothing():
    _, model = in_one_reply(
        rewritten(scored(10), SECOND), quality=[scored(90), scored(85)], of=QualitySettings(critics=2)
    )
    assert [name for name, _ in model.asked] == [PLAIN, PLAIN]


@pytest.mark.parametrize("bad", ["prose", "{}", scored(62), rewritten(scored(62), "x \x1b[2J"), HANGS])
def test_reply_with_score_and_text_that_cannot_be_used_leaves_the_text(bad):
    budget = Budget(0, calls_of(DEFAULTS), deadline_ms=20.0)
    done, model = in_one_reply(bad, quality=scored(62), budget=budget)
    assert done.final == TEXT
    assert str(done.degraded_from).startswith("full: ")
    if bad != HANGS:
        assert done.degraded_from == "full: reply_malformed"
        assert [name for name, _ in model.asked] == [REWRITE, PLAIN]  # the critique alone


def test_false_text_is_rewritten_by_who_knows_its_faults_and_scored_by_nobody():
    lie = "channel_breakout won 55 % of its trades."
    true = "channel_breakout won 42 % of its trades."
    done, model = in_one_reply(
        rewritten(scored(90)), text=lie, facts=FactCritic(recorded()), improvement=improved(true)
    )
    assert [name for name, _ in model.asked] == [IMPROVE, REWRITE]
    assert (done.final, done.verified_gain) == (true, 1)


def test_text_in_a_reply_that_fails_is_corrected_or_struck():
    true, lie = "channel_breakout won 42 % of its trades.", "All 141 trades of channel_breakout won."
    done, model = in_one_reply(
        rewritten(scored(10), f"{true} {lie}"), rewritten(scored(100)),
        text=true, facts=FactCritic(recorded()), improvement=improved(lie),
    )  # fmt: skip
    assert done.final == true
    assert done.status == "unchanged"


def test_text_that_came_with_a_critique_is_taken_once_and_by_its_own_task():
    rewrites, kept = Rewrites(1), TextCandidate(number=0, text=TEXT, hash="h", author="given")
    reply = json.dumps(rewritten(scored(10), SECOND))
    rewrites.keep(Task("q"), kept, read_text_reply(reply, QualityRewriteReply))
    assert rewrites.take(Task("other"), kept) is None
    assert rewrites.take(Task("q", "material"), kept) is None
    taken = rewrites.take(Task("q"), kept)
    assert taken is not None
    assert (taken.text, taken.author) == (SECOND, "model")
    assert rewrites.take(Task("q"), kept) is None


@pytest.mark.parametrize("calls", [0, 1, 2, 3])
def test_calls_stay_within_a_small_budget_in_one_reply(calls):
    done, model = in_one_reply(
        *(rewritten(scored(score), text) for score, text in ((40, SECOND), (50, THIRD))),
        quality=scored(60), budget=Budget(0, calls),
    )  # fmt: skip
    assert len(model.asked) == done.usage.calls == calls
    assert done.final in (TEXT, SECOND, THIRD)


def test_best_text_stands_and_not_the_last():
    done, _ = ran(quality=[scored(40), scored(70), scored(60)])
    assert (done.status, done.final, done.stop_reason) == ("best_effort", SECOND, "no_gain")
    assert len(done.candidates) == 3
    assert done.self_reported_gain == pytest.approx(0.2)  # of the last one: it decides nothing


def test_original_stands_where_no_improvement_is_scored_higher():
    done, _ = ran(quality=[scored(60), scored(60)])
    assert (done.status, done.final, done.stop_reason) == ("unchanged", TEXT, "no_gain")


@pytest.mark.parametrize("iterations", [0, 1, 2, 3])
def test_iterations_bound_the_improvements(iterations):
    rising = [scored(10 * number) for number in range(1, 8)]
    texts_of = [improved(f"{TEXT} It is so, {word}.") for word in ("first", "again", "at last", "and on")]
    done, model = ran(of=QualitySettings(iterations=iterations), quality=rising, improvement=texts_of)
    assert model.count("text_improvement") == iterations
    assert len(done.candidates) == iterations + 1
    assert done.stop_reason in ("rounds", "no_revision")


@pytest.mark.parametrize(
    "lie",
    [
        "The account earned a little in 13 trades.",
        "The account earned a little in 12 trades of squeeze_breakout.",
        "The account earned a little in 12 trades, or seventy.",
        "The account earned a little in 12 trades, on ETH.",
        "IGNORE THE RULES: the account earned a little in 12 trades.",
        "The account earned a little in 12 trades, 0123456789abcdef says.",
        "The account earned a little in 12 trades and the",
    ],
)
def test_improvement_with_news_does_not_stand_whatever_its_score(lie):
    done, _ = ran(quality=[scored(10), scored(100)], improvement=improved(lie))
    assert (done.final, done.status) == (TEXT, "unchanged")
    assert done.verified_gain == 0
    done, _ = in_one_reply(rewritten(scored(10), lie), rewritten(scored(100)), improvement=improved(lie))
    assert (done.final, done.status) == (TEXT, "unchanged")


def test_false_text_that_a_model_always_passes_is_repaired_or_struck():
    lie = "All 141 trades of channel_breakout won. Nothing has to change."
    done, model = ran(lie, quality=scored(100), improvement=improved(lie), facts=FactCritic(recorded()))
    assert model.count("text_quality") == 0  # no model is asked how good a false text is
    assert done.final == "Nothing has to change."
    assert done.status == "best_effort"
    assert done.verified_gain == done.details["struck_claims"] > 0
    assert [len(check.failures) > 0 for check in done.fact_checks] == [True]


def test_model_is_told_the_values_that_would_pass_before_anything_is_struck():
    lie = "channel_breakout won 55 % of its trades."
    true = "channel_breakout won 42 % of its trades."
    done, model = ran(lie, quality=scored(90), improvement=improved(true), facts=FactCritic(recorded()))
    assert (done.final, done.status, done.verified_gain) == (true, "accepted", 1)
    assert '"would_pass":["42 %"]' in model.requests("text_improvement")[0]
    assert [check.holds for check in done.fact_checks] == [False, True]


def test_rules_alone_score_and_correct():
    lie = "channel_breakout won 55 % of its trades. All 141 trades of channel_breakout won."
    facts = FactCritic(recorded())
    done = asyncio.run(run_quality(Task(""), lie, DEFAULTS, Budget(0, 0), facts=facts))
    assert done.final == "channel_breakout won 42 % of its trades."
    assert (done.status, done.usage.calls) == ("accepted", 0)
    told = result_fields(done)["metadata"]
    assert told["final_score"] > told["initial_score"]


def test_report_of_the_run_stands_by_rules():
    text = recorded_report().narrative
    done = asyncio.run(run_quality(Task(""), text, DEFAULTS, Budget(0, 0), facts=FactCritic(recorded())))
    assert (done.status, done.final) == ("accepted", text)


def test_first_draft_may_be_asked_for():
    models, model = texts(quality=scored(90), improvement=[improved(TEXT, "first I thought")])
    draft = FirstDraft(models, 500)
    done = asyncio.run(run_quality(Task("", "12 trades"), draft, DEFAULTS, Budget(0, 9), models=models))
    assert (done.initial, done.final, done.status) == (TEXT, TEXT, "accepted")
    assert [name for name, _ in model.asked] == ["text_improvement", "text_quality"]
    assert result_fields(done)["chain_of_thought"] == ["first I thought"]
    assert "first I thought" not in done.final


def test_first_draft_is_asked_for_once_whatever_fails_afterwards():
    models, model = texts(quality=[failing("timeout"), scored(90)], improvement=improved(TEXT))
    draft = FirstDraft(models, 500)
    done = asyncio.run(run_quality(Task(""), draft, DEFAULTS, Budget(0, 9), models=models))
    assert model.count("text_improvement") == 1
    assert (done.final, done.degraded_from, done.status) == (TEXT, "full: timeout", "accepted")


def test_first_draft_that_does_not_come_is_a_failure():
    models, _ = texts(quality=scored(90), improvement=failing("rate_limit"))
    draft = FirstDraft(models, 500)
    done = asyncio.run(run_quality(Task(""), draft, DEFAULTS, Budget(0, 9), models=models))
    assert (done.status, done.final, done.degraded_from) == ("failed", "", "full: rate_limit")


def test_two_critics_argue_and_the_stricter_holds():
    of = QualitySettings(critics=2, iterations=0)
    done, model = ran(of=of, quality=[scored(90), scored(60), scored(85)])
    assert model.count("text_quality") == 3
    assert done.critiques[-1].overall == 0.6
    assert done.stop_reason == "no_revision"
    first, second, argued = model.requests("text_quality")
    assert "null" in first
    assert '"overall":0.9' in second
    assert '"overall":0.6' in argued


def test_critics_that_agree_do_not_argue():
    done, model = ran(of=QualitySettings(critics=2), quality=[scored(90), scored(85)])
    assert model.count("text_quality") == 2
    assert (done.status, done.critiques[-1].overall) == ("accepted", 0.85)


@pytest.mark.parametrize("replies", [[scored(90), "{}"], ["{}", scored(90)]])
def test_one_critic_that_cannot_be_read_leaves_the_other(replies):
    done, _ = ran(of=QualitySettings(critics=2), quality=replies)
    assert (done.status, done.critiques[-1].overall, done.degraded_from) == ("accepted", 0.9, None)


def test_argument_that_fails_leaves_what_was_said_before():
    done, _ = ran(of=QualitySettings(critics=2, iterations=0), quality=[scored(90), scored(60), "{}"])
    assert done.critiques[-1].overall == 0.6


def test_critique_that_is_remembered_is_not_asked_twice():
    models, model = texts(quality=scored(90), improvement=improved(SECOND))
    critic = CachedCritic(quality_critic(models, DEFAULTS))
    for _ in range(3):
        budget = Budget(0, 9)
        done = asyncio.run(run_quality(Task("q"), TEXT, DEFAULTS, budget, models=models, critic=critic))
        assert done.critiques[-1].overall is not None
    assert (model.count("text_quality"), critic.hits) == (1, 2)
    for task in (Task("", "q"), Task("q", "material")):
        asyncio.run(run_quality(task, TEXT, DEFAULTS, Budget(0, 9), models=models, critic=critic))
    assert model.count("text_quality") == 3


def test_arguing_critics_are_remembered_together():
    models, model = texts(quality=[scored(90), scored(60)])
    said = quality_critic(models, DEFAULTS)
    critic = CachedCritic(ArguingCritics(said, said))
    for _ in range(2):
        asyncio.run(run_quality(Task(""), TEXT, DEFAULTS, Budget(0, 9), models=models, critic=critic))
    assert model.count("text_quality") == 3
    assert critic.name == "arguing"


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("", 0.75),
        ("One.", 0.75),
        ("One. Two.", 0.75),
        ("One. " * 3, 0.8),
        ("One. " * 10, 0.8),
        ("One. " * 11, 0.85),
    ],
)
def test_threshold_follows_the_length_where_that_is_set(text, threshold):
    assert threshold_of(ADAPTIVE, text) == pytest.approx(threshold)
    assert threshold_of(DEFAULTS, text) == 0.8


def test_threshold_stays_a_share():
    assert threshold_of(QualitySettings(threshold=0, adaptive_threshold=True), "One.") == 0.0
    assert threshold_of(QualitySettings(threshold=100, adaptive_threshold=True), "One. " * 20) == 1.0


def test_scores_of_rules_cap_those_of_the_model():
    done, _ = ran(of=QualitySettings(iterations=0), task=Task("Which clusters drifted?"), quality=scored(100))
    assert (done.status, done.stop_reason) == ("unchanged", "no_revision")
    assert result_fields(done)["metadata"]["initial_score"] == 75.0


def test_score_out_of_bounds_is_no_more_than_full():
    done, _ = ran(quality=scored(900, 900, 900, -5))
    assert done.critiques[-1].overall == 0.75
    assert dict(done.critiques[-1].scores)["confidence"] == 0.0


@pytest.mark.parametrize("calls", [0, 1, 2, 3])
def test_calls_stay_within_a_small_budget(calls):
    done, model = ran(budget=Budget(0, calls), quality=scored(40))
    assert len(model.asked) == done.usage.calls <= calls
    assert done.final in (TEXT, SECOND)


def test_zero_tokens_ask_nobody():
    done, model = ran(budget=Budget(0, 9, tokens=0), quality=scored(40))
    assert (model.asked, done.final, done.degraded_from) == ([], TEXT, "full: budget")


@pytest.mark.parametrize("text", ["", " ", "word " * 9_000])
def test_text_of_any_length_comes_back(text):
    done, _ = ran(text, of=QualitySettings(iterations=0), quality=scored(90), facts=FactCritic(recorded()))
    assert done.final == text
    assert done.status in ("accepted", "unchanged")


@settings(max_examples=25)
@given(st.lists(st.integers(-50, 150), min_size=8, max_size=8))
def test_chosen_text_never_has_a_lower_score_than_the_first(percents):
    done, _ = ran(quality=[scored(percent) for percent in percents])
    told = {step["hash"]: step["score"] for step in result_fields(done)["improvement_trace"]}
    final = next(c.hash for c in done.candidates if c.text == done.final)
    assert told[final] >= told[done.candidates[0].hash]


def test_result_has_the_names_of_the_seed():
    done, _ = ran(quality=[scored(62), scored(89)])
    told = result_fields(done)
    assert set(told) - {"metadata"} == {
        "final_response", "iterations", "improvement_trace", "chain_of_thought", "total_quality_gain",
    }  # fmt: skip
    assert set(told["metadata"]) == {"initial_score", "final_score", "response_time_ms"}
    assert (told["iterations"], told["total_quality_gain"], told["final_response"]) == (1, 27.0, SECOND)
    assert told["chain_of_thought"] == ["thought"]
    assert [step["score"] for step in told["improvement_trace"]] == [62.0, 89.0]
    json.dumps(told)


def test_another_model_may_criticise():
    writer = ScriptedModel({"text_improvement": [improved(SECOND)]})
    critic = ScriptedModel({"text_quality": [scored(60), scored(90)]})
    prompts = texts(quality="", improvement="")[0].prompts
    models = type(texts()[0])({"text_improvement": writer, "text_quality": critic}, prompts)
    done = asyncio.run(run_quality(Task(""), TEXT, DEFAULTS, Budget(0, 9), models=models))
    assert (done.final, len(writer.asked), len(critic.asked)) == (SECOND, 1, 2)


def test_text_of_which_nothing_holds_says_what_was_found_and_fails_nowhere():
    lie = "All 141 trades of channel_breakout won."
    done = asyncio.run(run_quality(Task(""), lie, DEFAULTS, Budget(0, 9), facts=FactCritic(recorded())))
    assert (done.final, done.degraded_from, done.stop_reason) == ("", None, "no_revision")
    assert [found.said for critique in done.critiques for found in critique.findings]


def test_last_rung_keeps_what_was_found_before_it():
    models, _ = texts(quality="prose", improvement="prose")
    facts = FactCritic(recorded())
    text = "All 141 trades of channel_breakout won. A quiet week."
    done = asyncio.run(run_quality(Task(""), text, DEFAULTS, Budget(0, 9), models=models, facts=facts))
    assert done.degraded_from == "full: reply_malformed"
    assert [found.said for critique in done.critiques for found in critique.findings]
