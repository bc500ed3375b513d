"""Counters of texts: each figure from outcomes that are known, and the document of none."""

import asyncio

import pytest

from schemas.deliberation import CallUsage, Deliberation, DeliberationEvent
from schemas.settings.deliberation import PassSettings, QualitySettings, ReviewSettings
from services.deliberation.budget import Budget
from services.deliberation.counters import TextCounters, texts_document
from services.deliberation.presets.quality import run_quality
from services.deliberation.presets.reflection_pass import run_pass
from services.deliberation.presets.review import TextParts, run_review
from services.deliberation.refine import Task
from tests.services.deliberation.claim_texts import BETTER, DRAFT, LIE, MEAN, draft_of, writer
from tests.services.deliberation.scripted import critique, improved, reviewed, scored, section, texts


def done_with(**fields):
    return Deliberation(preset="t", initial="a", final="a", **({"status": "accepted"} | fields))


def counted(*outcomes):
    counters = TextCounters()
    for done in outcomes:
        counters.count(done)
    return texts_document([counters])


def test_nothing_is_counted_of_nothing():
    document = texts_document([])
    assert document == texts_document([TextCounters()])
    assert (document["total_requests"], document["avg_quality_gain"], document["share_reviewed"]) == (
        0,
        None,
        None,
    )
    assert not any(document["statuses"].values())
    assert not any(document["skips"].values())


def test_skipped_texts_are_counted_by_reason_and_are_no_requests():
    models, _ = texts(critique=critique("PASS"), correction={"sections": [BETTER]})
    skipped = [
        asyncio.run(run_pass(Task(""), text, PassSettings(), Budget(0, 2), models=models))
        for text in ("short", "also short", "Error: the upstream did not answer, so there is nothing.")
    ]
    document = counted(*skipped)
    assert document["total_requests"] == 0
    assert {reason: count for reason, count in document["skips"].items() if count} == {
        "error_message": 1, "too_short": 2,
    }  # fmt: skip


def test_figures_are_those_of_the_outcomes():
    models, _ = texts(quality=[scored(60), scored(90)], improvement=improved(BETTER))
    work = run_quality(Task(""), DRAFT, QualitySettings(), Budget(0, 9), models=models, facts=writer())
    gained = asyncio.run(work)
    models, _ = texts(quality=scored(50), improvement="prose")
    work = run_quality(Task(""), DRAFT, QualitySettings(), Budget(0, 9), models=models, facts=writer())
    kept = asyncio.run(work)
    document = counted(gained, kept)
    assert document["total_requests"] == 2
    assert {status: count for status, count in document["statuses"].items() if count} == {
        "accepted": 1, "unchanged": 1,
    }  # fmt: skip
    assert document["avg_quality_gain"] == pytest.approx(0.3)
    assert document["avg_final_score"] == pytest.approx((0.9 + 0.5) / 2)
    assert document["threshold_met_early"] == 1
    assert document["share_regenerated"] == 0.5
    assert document["calls"] == gained.usage.calls + kept.usage.calls
    assert document["tokens"] == gained.usage.tokens + kept.usage.tokens


def test_facts_are_those_of_the_text_before_it_is_struck():
    lie = draft_of(section(MEAN, LIE))
    models, _ = texts(quality=scored(90), improvement="prose")
    work = run_quality(Task(""), lie, QualitySettings(), Budget(0, 9), models=models, facts=writer())
    done = asyncio.run(work)
    document = counted(done)
    checked = done.fact_checks[-1]
    assert document["fact_checks_failed"] == document["struck_claims"] == len(checked.failures) > 0
    assert document["fact_checks_passed"] == checked.count("verified") > 0


def test_reviews_and_sections_are_told_by_their_events():
    models, _ = texts(review=reviewed(0.9), improvement=improved(BETTER))
    review = asyncio.run(run_review(Task(""), DRAFT, ReviewSettings(), Budget(0, 9), TextParts(models)))
    events = (DeliberationEvent(kind="chunk_outline"), *[DeliberationEvent(kind="chunk_write")] * 3)
    document = counted(review, done_with(events=events), done_with(), done_with())
    assert (document["share_reviewed"], document["share_chunked"], document["sections"]) == (0.25, 0.25, 3)


def test_counters_of_several_loops_are_added_up():
    one, other = TextCounters(), TextCounters()
    one.count(done_with(usage=CallUsage(calls=2, input_tokens=7, output_tokens=3), elapsed_ms=10.0))
    other.count(done_with(usage=CallUsage(calls=1, input_tokens=1, output_tokens=1), elapsed_ms=30.0))
    document = texts_document([one, other])
    assert (document["total_requests"], document["calls"], document["tokens"]) == (2, 3, 12)
    assert document["statuses"]["accepted"] == 2
    assert document["response_time_ms"]["p50"] == pytest.approx(20.0)
