"""Self-review: modes, passes and regenerations, the best text kept, every candidate scored, its rows."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.settings.deliberation import QUESTIONS, ReviewSettings
from services.deliberation.budget import Budget
from services.deliberation.fact_check import FactCritic
from services.deliberation.presets.review import (
    TextTraits,
    calls_of,
    result_fields,
    review_skip,
    run_review,
)
from services.deliberation.refine import Task
from tests.services.deliberation.recorded import recorded
from tests.services.deliberation.scripted import HANGS, failing, improved, reviewed, rewritten, texts

TEXT = "The account earned a little in 12 trades."
ON = ReviewSettings(enabled=True)
WORDS = ("first", "again", "well", "more", "on", "still", "yet", "last")


def version(number):
    return TEXT if number == 0 else f"{TEXT} It is so, {WORDS[number - 1]}."


def ran(scores=None, of=ON, *, text=TEXT, budget=None, facts=None, task=Task(""), **how):  # noqa: B008  # a frozen value
    versions = [improved(version(number)) for number in range(1, len(WORDS) + 1)]
    replies = {"improvement": versions} | how.pop("replies", {})
    if scores is not None:
        replies["review"] = [reviewed(score, f"scored {score}", "add more") for score in scores]
    models, model = texts(**replies)
    budget = budget or Budget(0, calls_of(of))
    done = asyncio.run(run_review(task, text, of, budget, models=models, facts=facts, **how))
    assert len(model.asked) == budget.used.calls <= calls_of(of)
    return done, model


def test_defaults_are_the_seeds():
    of = ReviewSettings()
    assert (of.enabled, of.mode, of.iterations, of.threshold) == (False, "always", 3, 0.7)
    assert (of.max_regenerations, of.eval_tokens) == (2, 512)
    assert len(QUESTIONS) == 5
    assert calls_of(of) == 13


@pytest.mark.parametrize(
    ("mode", "text", "traits", "skips"),
    [
        ("always", TEXT, TextTraits(), False),
        ("never", TEXT, TextTraits(True, 99, 99), True),
        ("on_error", TEXT, TextTraits(), True),
        ("on_error", TEXT, TextTraits(failed=True), False),
        ("on_incomplete", TEXT, TextTraits(), True),
        ("on_incomplete", TEXT + " And so the", TextTraits(), False),
        ("on_complex", TEXT, TextTraits(clusters=5, actions=2), True),
        ("on_complex", TEXT, TextTraits(clusters=6), False),
        ("on_complex", TEXT, TextTraits(actions=3), False),
    ],
)
def test_mode_says_which_texts_are_reviewed(mode, text, traits, skips):
    of = ReviewSettings(mode=mode)
    assert review_skip(of, text, traits) == (f"mode_{mode}" if skips else None)
    done, model = ran([0.9], of, text=text, traits=traits)
    assert (done.status == "skipped") == skips
    if skips:
        assert (done.skip_reason, done.final, done.events, model.asked) == (f"mode_{mode}", text, (), [])


def test_text_above_the_threshold_is_accepted_at_once():
    done, model = ran([0.7])
    assert (done.status, done.final) == ("accepted", TEXT)
    assert [name for name, _ in model.asked] == ["text_review"]
    request = model.requests("text_review")[0]
    assert "from this score on: 0.7" in request
    assert all(question in request for question in QUESTIONS)


def test_text_is_written_again_with_the_critique():
    done, model = ran([0.4, 0.85])
    assert (done.status, done.final) == ("accepted", version(1))
    assert "scored 0.4" in model.requests("text_improvement")[0]
    assert "add more" in model.requests("text_improvement")[0]
    assert done.self_reported_gain == pytest.approx(0.45)


def in_one_reply(scores, of=ON, *, last=0.0, **how):
    told = [rewritten(reviewed(score), version(number)) for number, score in enumerate(scores, 1)]
    return ran([last], of, replies={"review_rewrite": told}, **how)


def test_text_is_written_again_in_the_reply_that_reviews_it():
    done, model = in_one_reply([0.4, 0.85])
    assert [name for name, _ in model.asked] == ["text_review_rewrite"] * 2
    assert (done.status, done.final) == ("accepted", version(1))
    assert done.self_reported_gain == pytest.approx(0.45)
    request = model.requests("text_review_rewrite")[0]
    assert "from this score on: 0.7" in request
    assert all(question in request for question in QUESTIONS)


def test_pass_has_its_last_text_reviewed_alone_and_no_text_of_a_reply_twice():
    of = ReviewSettings(iterations=2, max_regenerations=1)
    done, model = in_one_reply([0.3], of, last=0.6)
    asked = ["text_review_rewrite", "text_review", "text_improvement"]
    # The second pass begins with what was reviewed alone: its text is asked for by itself.
    assert [name for name, _ in model.asked] == asked
    assert [c.text for c in done.candidates] == [TEXT, version(1), version(1)]
    _, model = in_one_reply([0.3], ReviewSettings(max_regenerations=0), last=0.3)
    assert [name for name, _ in model.asked] == ["text_review"]


def test_best_text_is_kept_even_below_the_threshold_and_every_candidate_is_scored():
    done, model = ran([0.3, 0.6, 0.5, 0.4, 0.2])
    assert (done.status, done.final) == ("best_effort", version(1))
    scored = {said.candidate for said in done.critiques if said.source == "model"}
    assert scored == {candidate.number for candidate in done.candidates}
    assert [c.text for c in done.candidates] == [version(number) for number in range(len(done.candidates))]


def test_later_pass_goes_on_from_the_best_text():
    done, model = ran([0.3, 0.6, 0.5, 0.65, 0.6, 0.66, 0.68])
    best = 1  # of the first pass, whose last one is worse
    parents = {c.number: c.parent for c in done.candidates}
    assert parents == {0: None, 1: 0, 2: 1, 3: best, 4: 3, 5: 3, 6: 5}
    assert [c.round for c in done.candidates] == [0, 0, 0, 1, 1, 2, 2]
    assert done.final == version(6)
    assert done.self_reported_gain == pytest.approx(0.38)
    assert f'"{version(best)}"' in model.requests("text_improvement")[2]


@pytest.mark.parametrize("iterations", [1, 2, 3])
@pytest.mark.parametrize("regenerations", [0, 1, 2])
def test_passes_times_regenerations_bound_the_calls(iterations, regenerations):
    of = ReviewSettings(iterations=iterations, max_regenerations=regenerations)
    rising = [0.01 * number for number in range(1, 20)]
    done, model = ran(rising, of)
    regenerated = iterations * regenerations
    assert model.count("text_improvement") == regenerated
    assert model.count("text_review") == regenerated + 1
    assert len(model.asked) == calls_of(of)
    assert len(done.candidates) == regenerated + 1
    assert len(result_fields(done)["passes"]) == (iterations if regenerations else 1)


def test_pass_that_gains_nothing_is_the_last():
    done, model = ran([0.5, 0.4, 0.3])
    assert (done.status, done.final) == ("unchanged", TEXT)
    assert len(result_fields(done)["passes"]) == 1


@settings(max_examples=25)
@given(st.lists(st.floats(-1, 2), min_size=8, max_size=8))
def test_chosen_text_never_has_a_lower_score_than_the_first(scores):
    done, _ = ran(scores)
    overall = {said.candidate: said.overall for said in done.critiques if said.source == "model"}
    final = next(c.number for c in done.candidates if c.text == done.final)
    assert overall[final] == max(overall.values())
    assert (done.status == "accepted") == (overall[final] >= 0.7)
    assert [c.number for c in done.candidates] == list(range(len(done.candidates)))


def test_regeneration_with_news_does_not_stand():
    done, _ = ran([0.1, 0.9], replies={"improvement": improved(TEXT.replace("12", "21"))})
    assert (done.final, done.status) == (TEXT, "unchanged")


@pytest.mark.parametrize(
    ("replies", "kind"),
    [
        ({"review": "prose"}, "reply_malformed"),
        ({"review": "{}"}, "reply_malformed"),
        ({"review": failing("rate_limit")}, "rate_limit"),
        ({"review": HANGS}, "timeout"),
        ({"review": reviewed(0.1), "improvement": "prose"}, "reply_malformed"),
        ({"review": reviewed(0.1), "improvement": HANGS}, "timeout"),
    ],
)
def test_model_that_fails_leaves_the_text_and_its_reason(replies, kind):
    done, _ = ran(replies=replies, budget=Budget(0, 13, deadline_ms=5.0))
    assert (done.final, done.status, done.degraded_from) == (TEXT, "unchanged", f"full: {kind}")
    assert done.events[-1].fields["status"] == f"full: {kind}"


def test_failure_after_a_gain_keeps_the_gain():
    done, _ = ran(replies={"review": [reviewed(0.3), reviewed(0.6), failing("server")]})
    assert (done.final, done.status, done.degraded_from) == (version(1), "best_effort", "full: server")


def test_budget_that_is_spent_keeps_the_best():
    done, model = ran([0.3, 0.6, 0.65], budget=Budget(0, 4))
    assert (done.final, done.status, done.degraded_from) == (version(1), "best_effort", "full: budget")
    assert len(model.asked) == 4


def test_lie_is_not_accepted_whatever_the_model_scores():
    lie = "All 141 trades of channel_breakout won."
    done, model = ran([1.0], text=lie, facts=FactCritic(recorded()), replies={"improvement": improved(lie)})
    assert done.status == "unchanged"
    assert model.count("text_review") == 0


def test_rules_alone_review():
    lie = "channel_breakout won 55 % of its trades."
    facts = FactCritic(recorded())
    done = asyncio.run(run_review(Task(""), lie, ON, Budget(0, 0), facts=facts))
    assert (done.final, done.status) == ("channel_breakout won 42 % of its trades.", "accepted")
    assert done.verified_gain == 1
    assert done.usage.calls == 0


def test_questions_are_those_of_the_settings():
    _, model = ran([0.9], ReviewSettings(questions=("Is it short?",)))
    assert '["Is it short?"]' in model.requests("text_review")[0]


def test_events_have_the_names_of_the_seed():
    done, _ = ran([0.4, 0.85])
    assert [event.kind for event in done.events] == ["review_cycle"]
    assert dict(done.events[0].fields) == {
        "iter": 1, "name": "self_review", "status": "ok", "review_pass": 1, "quality_score": 0.85,
        "threshold": 0.7, "critique": "scored 0.85", "accepted": True, "regenerations": 1,
    }  # fmt: skip
    assert result_fields(done) == {
        "passes": [
            {
                "review_pass": 1, "quality_score": 0.85, "threshold": 0.7, "critique": "scored 0.85",
                "accepted": True, "regenerations": 1,
            }
        ]
    }  # fmt: skip


def test_same_replies_give_the_same_bytes():
    assert ran([0.3, 0.6, 0.5])[0].content_hash == ran([0.3, 0.6, 0.5])[0].content_hash
