"""Closed replies about texts: what each form takes, what it brings to its bounds, and what it refuses."""

import json
import time
from typing import Any

import pytest

from schemas.claims import ValueClaim
from services.deliberation.forms import (
    CONTRACTS,
    LONGEST_REPLY,
    TEXT_FORMS,
    CorrectionReply,
    OutlineReply,
    QualityReply,
    ReviewReply,
    read_text_reply,
)
from services.model_calls.reply_text import MalformedReply
from tests.each_case import check_each
from tests.services.deliberation.scripted import (
    chunk,
    critique,
    improved,
    reviewed,
    rewritten,
    scored,
    section,
)

TRADE = ValueClaim(measure="trades").payload()
WRITTEN = section(TRADE)
GOOD: dict[str, dict[str, Any]] = {
    "text_critique": critique("PASS"),
    "text_correction": {"sections": [WRITTEN]},
    "text_quality": scored(80, issues=["one"]),
    "text_improvement": improved(WRITTEN),
    "text_quality_rewrite": rewritten(scored(60), WRITTEN),
    "text_review_rewrite": rewritten(reviewed(0.9)),
    "text_review": reviewed(0.7, "said", "more"),
    "text_outline": {"chunks": ["one", "two", "three"]},
    "text_section": chunk(TRADE),
    "text_reasons": {"because": [{"kind": "rule", "name": "setup"}], "comment": None},
    "text_claims": {"claims": [{"quote": "many trades", "claim": TRADE}]},
}


def with_raw(name, key, raw):
    """The good reply of a prompt as JSON, one of its values as it is written."""
    return json.dumps(GOOD[name] | {key: "@"}).replace('"@"', raw)


@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_good_reply_is_read_also_in_a_fence(name):
    text = json.dumps(GOOD[name])
    plain = read_text_reply(text, CONTRACTS[name])
    assert read_text_reply(f"```json\n{text}\n```", CONTRACTS[name]) == plain
    assert plain.model_dump(mode="json") == GOOD[name]
    assert TEXT_FORMS[name].reads(text)
    assert TEXT_FORMS[name].schema["additionalProperties"] is False


@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_reply_that_is_not_closed_is_refused(name):
    good = json.dumps(GOOD[name])
    first = next(iter(GOOD[name]))
    for text in (
        json.dumps(GOOD[name] | {"extra": 1}),
        good[:-1] + f', "{first}": {json.dumps(GOOD[name][first])}}}',
        good[:-1],
        good + "\nThat is all.",
        f"```json\n{good}\n```\n```json\n{good}\n```",
        f"[{good}]",
        "{}",
        "",
        "null",
        "[" * 5_000,
        good + " " * LONGEST_REPLY,
    ):
        with pytest.raises(MalformedReply):
            read_text_reply(text, CONTRACTS[name])


@pytest.mark.parametrize("name", sorted(set(CONTRACTS) - {"text_critique"}))
def test_form_reads_what_its_reader_reads(name):
    assert not TEXT_FORMS[name].reads("PASS")
    assert not TEXT_FORMS[name].reads("{}")


def test_form_of_the_critique_reads_words_that_say_one_thing():
    form = TEXT_FORMS["text_critique"]
    assert [form.reads(text) for text in ("PASS", "NEEDS CORRECTION", "PASS, NEEDS CORRECTION", "{}")] == [
        True, True, False, False,
    ]  # fmt: skip


SCORES = [
    ("text_review", "score", 1.0),
    ("text_quality", "accuracy", 100.0),
    ("text_critique", "confidence", 1.0),
]


@pytest.mark.parametrize(("name", "key", "most"), SCORES)
def test_score_out_of_bounds_is_brought_to_the_nearest(name, key, most):
    for raw, value in (
        ("-3", 0.0),
        ("-0.0", 0.0),
        ("1e6", most),
        ("1" + "0" * 400, most),
        ("0", 0.0),
        ("0.5", 0.5),
    ):
        assert getattr(read_text_reply(with_raw(name, key, raw), CONTRACTS[name]), key) == value


@check_each(("name", "key", "most"), SCORES)
@check_each("raw", ["NaN", "Infinity", "-Infinity", "1e999", "true", '"0.9"', "null", "[1]", "{}"])
def test_score_that_is_no_number_is_refused(name, key, most, raw):
    with pytest.raises(MalformedReply):
        read_text_reply(with_raw(name, key, raw), CONTRACTS[name])


@pytest.mark.parametrize(
    "written",
    [
        {"topic": "", "claims": [], "comment": None},
        {"topic": "window", "claims": [{"kind": "opinion", "text": "strong"}], "comment": None},
        {"topic": "window", "claims": [{"kind": "value", "measure": "luck"}], "comment": None},
        {"topic": "window", "claims": [TRADE | {"note": "and it will go on"}], "comment": None},
        {"topic": "window", "claims": [TRADE], "comment": None, "text": "All trades won."},
        {"topic": "window", "claims": [TRADE] * 41, "comment": None},
        "All trades won.",
    ],
)
def test_section_outside_the_closed_form_is_refused(written: Any):
    for name in ("text_correction", "text_improvement", "text_quality_rewrite"):
        with pytest.raises(MalformedReply):
            read_text_reply(json.dumps(GOOD[name] | {"sections": [written]}), CONTRACTS[name])


@pytest.mark.parametrize("raw", ["\\ud800", "\ud800"])
def test_half_a_surrogate_pair_is_refused(raw: str):
    good = json.dumps({"sections": [section(TRADE, comment="@")]})
    with pytest.raises(MalformedReply):
        read_text_reply(good.replace("@", raw), CorrectionReply)


def test_lists_are_bounded():
    with pytest.raises(MalformedReply):
        read_text_reply(json.dumps(scored(80, issues=["x"] * 21)), QualityReply)
    with pytest.raises(MalformedReply):
        read_text_reply(json.dumps(scored(80, issues=[""])), QualityReply)
    with pytest.raises(MalformedReply):
        read_text_reply(json.dumps(reviewed(0.5, "x" * 1_201)), ReviewReply)
    for chunks in ([], ["x"] * 11, ["x" * 101], [""], [1]):
        with pytest.raises(MalformedReply):
            read_text_reply(json.dumps({"chunks": chunks}), OutlineReply)


@pytest.mark.parametrize("piece", ["\n", "`", "```\n", '"', "x\n```\n"])
def test_longest_reply_is_read_at_once(piece: str):
    text = "```\n" + piece * (LONGEST_REPLY // len(piece))
    started = time.process_time()
    with pytest.raises(MalformedReply):
        read_text_reply(text + "x", CorrectionReply)
    assert time.process_time() - started < 1.5  # what is quadratic takes minutes
