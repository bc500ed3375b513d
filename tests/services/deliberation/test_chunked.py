"""Chunked writing: outlines, sections and what they carry, reviews of each and of all, and the retry."""

import asyncio
import json

import pytest

from schemas.errors import ModelError
from schemas.settings.deliberation import ChunkedSettings, DeliberationSettings, ReviewSettings
from services.deliberation.budget import Budget
from services.deliberation.fact_check import FactCritic
from services.deliberation.presets.chunked import (
    WRITTEN_SHOWN,
    as_count,
    assemble_chunks,
    is_long,
    result_fields,
)
from services.deliberation.presets.combined import calls_of, run_chunked, run_reviewed
from services.deliberation.refine import Task
from services.deliberation.text_models import TextModels
from tests.services.deliberation.recorded import recorded, recorded_report
from tests.services.deliberation.scripted import HANGS, AllAtOnce, failing, improved, reviewed, texts

LABELS = ["What happened", "What drifted", "What follows"]
OUTLINE = {"chunks": LABELS}
SECTIONS = [improved(f"Section of {label.lower()}.", f"thought of {label}") for label in LABELS]
WHOLE = "\n\n".join(section["text"] for section in SECTIONS)
TASK = Task("what happened, drifted, follows? section")
GIVEN = "A text that is there."


def settings(review=False, iterations=1, regenerations=1, **chunked):
    return DeliberationSettings(
        chunked=ChunkedSettings(enabled=True, **chunked),
        review=ReviewSettings(enabled=review, iterations=iterations, max_regenerations=regenerations),
    )


def ran(of=None, *, given="", budget=None, facts=None, task=TASK, **replies):
    of = of or settings()
    models, model = texts(**({"outline": OUTLINE, "section": SECTIONS} | replies))
    budget = budget or Budget(0, calls_of(of))
    done = asyncio.run(run_chunked(task, given, of, budget, models=models, facts=facts))
    assert done.preset == "chunked"
    assert done.usage == budget.used
    assert len(model.asked) <= calls_of(of)
    return done, model


def test_defaults_are_the_seeds():
    of = ChunkedSettings()
    assert (of.enabled, of.max_chunks, of.tokens_per_chunk, of.auto_threshold) == (False, 5, 1_024, 2_048)
    assert (of.auto_outline, of.outline_retries, of.outline_tokens) == (True, 2, 512)
    assert (of.strategy, of.retry) == ("final_only", True)


@pytest.mark.parametrize(
    ("enabled", "tokens", "long"), [(True, 2_048, True), (True, 2_047, False), (False, 9_999, False)]
)
def test_text_is_long_from_a_number_of_tokens_on(enabled, tokens, long):
    assert is_long(ChunkedSettings(enabled=enabled), tokens) is long


@pytest.mark.parametrize(
    ("most", "auto", "count"), [(5, True, "3 to 5"), (3, True, "3"), (1, True, "1"), (5, False, "5")]
)
def test_outline_is_asked_for_a_number_of_sections(most, auto, count):
    of = ChunkedSettings(max_chunks=most, auto_outline=auto)
    assert as_count(of) == count
    _, model = ran(settings(max_chunks=most, auto_outline=auto), outline={"chunks": list("abcde")})
    assert f"How many sections: {count}\n" in model.requests("text_outline")[0]


def test_sections_are_written_one_after_the_other_with_what_stands_before_them():
    done, model = ran(settings(at_once=False))
    assert (done.status, done.final) == ("accepted", WHOLE)
    assert [name for name, _ in model.asked] == ["text_outline", *["text_section"] * 3]
    first, second, third = model.requests("text_section")
    assert 'Written so far (JSON):\n""' in first
    assert json.dumps(SECTIONS[0]["text"]) in second
    assert json.dumps(WHOLE.rpartition("\n\n")[0]) in third
    for request, label in zip((first, second, third), LABELS, strict=True):
        assert request.endswith(f'Write this section (JSON):\n"{label}"')


def of_label(request):
    return json.dumps(
        next(s for label, s in zip(LABELS, SECTIONS, strict=True) if request.endswith(f'"{label}"'))
    )


@pytest.mark.parametrize(("at_once", "final", "calls"), [(True, WHOLE, 4), (False, GIVEN, 2)])
def test_sections_are_asked_for_at_once_each_from_the_outline_alone(at_once, final, calls):
    models, model = texts(outline=OUTLINE, section=of_label)
    together = AllAtOnce(model, len(LABELS))
    models = TextModels({"text_outline": model, "text_section": together}, models.prompts)
    budget = Budget(0, 9, deadline_ms=100.0)
    done = asyncio.run(run_chunked(TASK, GIVEN, settings(at_once=at_once), budget, models=models))
    assert (done.final, done.usage.calls) == (final, calls)
    requests = model.requests("text_section")
    assert all('Written so far (JSON):\n""' in request for request in requests)
    labels = [request.rpartition("Write this section (JSON):\n")[2] for request in requests]
    assert sorted(labels) == (sorted(map(json.dumps, LABELS)) if at_once else [])


def test_sections_that_are_reviewed_follow_one_another():
    _, model = ran(settings(review=True, strategy="per_chunk"), review=reviewed(0.9), improvement="")
    assert [name for name, _ in model.asked[1:]] == ["text_section", "text_review"] * 3
    assert json.dumps(SECTIONS[0]["text"]) in model.requests("text_section")[1]


@pytest.mark.parametrize("calls", [0, 1, 2, 3, 4])
def test_sections_at_once_stay_within_the_calls_that_are_left(calls):
    done, model = ran(given=GIVEN, budget=Budget(0, calls))
    assert len(model.asked) == done.usage.calls == calls
    statuses = [event.fields["status"] for event in done.events if event.kind == "chunk_write"]
    assert statuses == (["ok"] * (calls - 1) + ["budget"] * (4 - calls) if calls else [])


def test_sections_are_asked_for_one_by_one_where_tokens_are_bounded():
    _, model = ran()
    of_one = sum(
        len(request) + len(json.dumps(SECTIONS[0])) for request in model.requests("text_section")[:1]
    )
    of_outline = len(model.requests("text_outline")[0]) + len(json.dumps(OUTLINE))
    done, model = ran(budget=Budget(0, 9, tokens=of_outline + of_one))
    assert model.count("text_section") == 1
    assert done.degraded_from == "chunked: budget"


def test_thoughts_are_kept_apart_from_the_text():
    done, _ = ran()
    assert "thought" not in done.final
    assert [chunk["reasoning"] for chunk in result_fields(done)["chunks"]] == [
        f"thought of {label}" for label in LABELS
    ]


def test_only_the_end_of_a_long_text_is_carried_on():
    long = "word " * 2_000
    _, model = ran(settings(at_once=False), section=[improved(f"begins {long}ends."), *SECTIONS[1:]])
    carried = model.requests("text_section")[1]
    assert "begins" not in carried
    assert "ends." in carried
    assert len(carried) < WRITTEN_SHOWN + 3_000


@pytest.mark.parametrize(
    "bad",
    [
        "prose",
        "{}",
        {"chunks": []},
        {"chunks": ["one", "two"]},
        {"chunks": ["one", "One", "two"]},
        {"chunks": ["one", " ", "two"]},
        {"chunks": ["x" * 101, "two", "three"]},
        {"chunks": [f"label {number}" for number in range(11)]},
    ],
)
def test_outline_that_cannot_be_used_is_asked_for_again(bad):
    done, model = ran(outline=[bad, OUTLINE])
    assert (done.status, done.final) == ("accepted", WHOLE)
    assert model.count("text_outline") == 2
    assert [event.fields["status"] for event in done.events[:2]] == ["reply_malformed", "ok"]
    done, model = ran(given=GIVEN, outline=bad)
    assert (done.status, done.final, done.degraded_from) == ("failed", GIVEN, "chunked: reply_malformed")
    assert (model.count("text_outline"), model.count("text_section")) == (2, 0)
    assert done.error


@pytest.mark.parametrize("tries", [1, 2, 3])
def test_outlines_are_bounded_by_their_setting(tries):
    _, model = ran(settings(outline_retries=tries), outline="prose")
    assert model.count("text_outline") == tries


def test_model_that_fails_is_not_asked_for_a_second_outline():
    done, model = ran(given=GIVEN, outline=failing("rate_limit"))
    assert model.count("text_outline") == 1
    assert (done.status, done.final, done.degraded_from) == ("failed", GIVEN, "chunked: rate_limit")


def test_labels_beyond_the_most_are_cut():
    done, model = ran(settings(max_chunks=3), outline={"chunks": [*LABELS, "one", "two"]})
    assert model.count("text_section") == 3
    assert result_fields(done)["outline"] == LABELS


def test_fixed_number_of_sections_takes_no_fewer():
    _, model = ran(settings(max_chunks=5, auto_outline=False), outline=OUTLINE)
    assert (model.count("text_outline"), model.count("text_section")) == (2, 0)


@pytest.mark.parametrize(
    "bad", ["prose", "{}", improved(" "), improved("x \x1b[2J"), failing("server")],
    ids=["prose", "empty", "blank", "control", "fails"],
)  # fmt: skip
def test_section_that_does_not_come_is_left_out_and_said_so(bad):
    done, model = ran(section=[SECTIONS[0], bad, SECTIONS[2]])
    assert done.final == f"{SECTIONS[0]['text']}\n\n{SECTIONS[2]['text']}"
    assert done.status == "best_effort"
    assert str(done.degraded_from).startswith("chunked: ")
    statuses = [event.fields["status"] for event in done.events if event.kind == "chunk_write"]
    assert (statuses[0], statuses[1] != "ok", statuses[2]) == ("ok", True, "ok")
    assert model.count("text_section") == 3


def test_given_text_stands_where_no_section_comes():
    done, _ = ran(given=GIVEN, section=failing("server"))
    assert (done.status, done.final, done.degraded_from) == ("failed", GIVEN, "chunked: server")


def test_error_of_a_model_is_told_in_characters_that_every_store_takes():
    done, _ = ran(given=GIVEN, outline=ModelError("bad \ud800", kind="server"))
    assert done.error == "bad \\ud800"
    assert done.content_hash


def test_false_text_is_struck_even_where_no_section_comes():
    lie = "Nothing changes. All 141 trades of channel_breakout won."
    done, _ = ran(given=lie, facts=FactCritic(recorded()), section=failing("server"))
    assert (done.status, done.final) == ("failed", "Nothing changes.")


@pytest.mark.parametrize("prompt", ["outline", "section"])
def test_hanging_model_ends_within_the_deadline(prompt):
    of = settings()
    done, _ = ran(of, given=GIVEN, budget=Budget(0, calls_of(of), deadline_ms=5.0), **{prompt: HANGS})
    assert (done.status, done.final, done.degraded_from) == ("failed", GIVEN, "chunked: timeout")
    assert done.elapsed_ms < 3_000.0


@pytest.mark.parametrize("calls", [0, 1, 2, 3, 4])
def test_budget_that_is_spent_leaves_what_was_written(calls):
    done, model = ran(given=GIVEN, budget=Budget(0, calls))
    assert len(model.asked) == calls
    written = "\n\n".join(section["text"] for section in SECTIONS[: max(0, calls - 1)])
    assert done.final == (written or GIVEN)
    assert done.degraded_from == (None if calls == 4 else "chunked: budget")


def test_sections_know_the_text_that_is_given():
    _, model = ran(given=GIVEN, task=Task("q", "material"))
    assert json.dumps(f"{GIVEN}\nmaterial") in model.requests("text_outline")[0]
    assert json.dumps(f"{GIVEN}\nmaterial") in model.requests("text_section")[0]


@pytest.mark.parametrize("lie", ["It earned 99 %.", "It was squeeze_breakout.", "It was seventy of them."])
def test_sections_with_news_leave_the_given_text(lie):
    done, _ = ran(given=GIVEN, section=[improved(lie), *SECTIONS[1:]])
    assert (done.status, done.final, done.degraded_from) == ("unchanged", GIVEN, "chunked: news")


def test_false_section_is_struck():
    lie = "All 141 trades of channel_breakout won."
    done, _ = ran(facts=FactCritic(recorded()), section=[SECTIONS[0], improved(lie), SECTIONS[2]])
    assert lie not in done.final
    assert SECTIONS[0]["text"] in done.final
    assert done.details["struck_claims"] > 0


@pytest.mark.parametrize(("strategy", "reviews"), [("per_chunk", 3), ("final_only", 1), ("both", 4)])
def test_strategy_says_what_is_reviewed(strategy, reviews):
    replies = {"review": reviewed(0.9), "improvement": improved("x y")}
    done, model = ran(settings(review=True, strategy=strategy), **replies)
    assert model.count("text_review") == reviews
    assert sum(event.kind == "review_cycle" for event in done.events) == reviews
    assert (done.status, done.final) == ("accepted", WHOLE)
    _, model = ran(settings(review=False, strategy=strategy), **replies)
    assert model.count("text_review") == 0


def test_section_is_reviewed_before_the_next_one_is_written():
    better = "Section of what happened, and why it happened."
    done, model = ran(
        settings(review=True, strategy="per_chunk"),
        review=[reviewed(0.2), reviewed(0.9)], improvement=improved(better),
    )  # fmt: skip
    assert [name for name, _ in model.asked[:5]] == [
        "text_outline", "text_section", "text_review", "text_improvement", "text_review",
    ]  # fmt: skip
    assert json.dumps(better) in model.requests("text_section")[1]
    assert done.final.startswith(better)


def test_whole_text_is_written_again_where_its_review_is_low():
    better = WHOLE + "\n\nAnd that is all."
    done, _ = ran(settings(review=True), review=[reviewed(0.2), reviewed(0.9)], improvement=improved(better))
    assert (done.status, done.final) == ("accepted", better)


def test_calls_of_every_strategy_stay_within_their_bound():
    low = {"review": [reviewed(0.01 * number) for number in range(90)]}
    better = {"improvement": [improved(f"Section better {'so ' * number}.") for number in range(90)]}
    for strategy in ("per_chunk", "final_only", "both"):
        of = settings(review=True, iterations=3, regenerations=2, strategy=strategy)
        _, model = ran(of, budget=Budget(0, 10_000), **low, **better)
        assert 0 < len(model.asked) <= calls_of(of)


def reviewed_again(scores, *, requested=4_000, given=GIVEN, of=None, **replies):
    of = of or settings(review=True, strategy="final_only")
    models, model = texts(**(
        {"outline": OUTLINE, "section": SECTIONS, "review": [reviewed(score) for score in scores],
         "improvement": "prose"} | replies
    ))  # fmt: skip
    budget = Budget(0, 99)
    work = run_reviewed(Task(""), given, of, budget, models=models, requested_tokens=requested)
    return asyncio.run(work), model


def test_long_text_whose_review_fails_is_written_in_sections():
    done, model = reviewed_again([0.1, 0.9])
    assert (done.preset, done.status, done.final) == ("review", "accepted", WHOLE)
    assert model.count("text_section") == 3
    assert [event.kind for event in done.events] == [
        "review_cycle", "chunk_outline", *["chunk_write"] * 3, "review_cycle",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("scores", "how"),
    [
        ([0.9], {}),
        ([0.1], {"requested": 2_000}),
        ([0.1], {"of": settings(review=True, retry=False)}),
    ],
)
def test_text_that_passes_or_is_short_is_not_written_in_sections(scores, how):
    done, model = reviewed_again(scores, **how)
    assert model.count("text_outline") == 0
    assert done.final == GIVEN


@pytest.mark.parametrize(
    "replies",
    [
        {"review": reviewed(0.1)},
        {"outline": "prose"},
        {"section": failing("server")},
        {"section": [improved("It earned 99 %."), *SECTIONS[1:]]},
        {"section": [SECTIONS[0], "prose", SECTIONS[2]]},
    ],
    ids=["low", "no outline", "no section", "news", "missing"],
)
def test_sections_that_are_no_better_leave_the_text(replies):
    done, _ = reviewed_again([0.1, 0.9], **replies)
    assert (done.preset, done.final) == ("review", GIVEN)
    assert done.status == "unchanged"


def test_rules_alone_work_through_the_sections_of_the_text():
    lie = "channel_breakout had 141 trades.\n\nIt won 41.8 % of its trades.\n\nAll of them won. And"
    facts = FactCritic(recorded())
    done = asyncio.run(run_chunked(Task(""), lie, settings(), Budget(0, 0), facts=facts))
    assert done.final == "channel_breakout had 141 trades.\n\nIt won 41.8 % of its trades."
    assert (done.initial, done.changed, done.usage.calls) == (lie, True, 0)
    assert result_fields(done)["chunk_count"] == 2


@pytest.mark.parametrize("most", [1, 2, 3, 10])
def test_rules_alone_leave_a_text_that_holds(most):
    text = recorded_report().narrative
    done = asyncio.run(
        run_chunked(Task(""), text, settings(max_chunks=most), Budget(0, 0), facts=FactCritic(recorded()))
    )
    assert "".join(done.final.split()) == "".join(text.split())
    assert result_fields(done)["chunk_count"] <= most


@pytest.mark.parametrize("text", ["", "\n\n\n", "The clusters:\n\n- one\n- two", "word " * 9_000])
def test_rules_alone_take_a_text_of_any_shape(text):
    done = asyncio.run(run_chunked(Task(""), text, settings(review=True), Budget(0, 0)))
    assert done.final.split() == text.split()


def test_sections_are_put_together_with_a_blank_line():
    assert assemble_chunks(["a\n", "", " ", "\nb"]) == "a\n\nb"
    assert assemble_chunks([]) == ""


def test_events_have_the_names_of_the_seed():
    done, _ = ran()
    outline, first = dict(done.events[0].fields), dict(done.events[1].fields)
    assert outline == {
        "iter": 0, "name": "generate_outline", "status": "ok", "chunk_count": 3, "outline": LABELS,
    }  # fmt: skip
    assert set(first) == {
        "iter", "name", "status", "chunk_index", "chunk_label", "reasoning_tokens", "content_tokens",
    }  # fmt: skip
    assert (first["iter"], first["name"], first["chunk_index"]) == (1, "write_chunk", 0)
    assert first["reasoning_tokens"] + first["content_tokens"] == len(json.dumps(SECTIONS[0]))
    assert first["reasoning_tokens"] > 0


def test_same_replies_give_the_same_bytes():
    assert ran()[0].content_hash == ran()[0].content_hash
