"""Closed replies about texts: what each form takes, what it brings to its bounds, and what it refuses."""

import json
import time
from typing import Any

import pytest

from services.deliberation.forms import (
    CONTRACTS,
    LONGEST_REPLY,
    MOST_CHARACTERS,
    TEXT_FORMS,
    CorrectionReply,
    ImprovementReply,
    OutlineReply,
    QualityReply,
    ReviewReply,
    read_corrected,
    read_text_reply,
)
from services.model_calls.reply_text import MalformedReply
from tests.services.deliberation.scripted import critique, improved, reviewed, rewritten, scored

GOOD: dict[str, dict[str, Any]] = {
    "text_critique": critique("PASS"),
    "text_correction": {"text": "Corrected."},
    "text_quality": scored(80, issues=["one"]),
    "text_improvement": improved("Improved."),
    "text_quality_rewrite": rewritten(scored(60), "Improved."),
    "text_review_rewrite": rewritten(reviewed(0.9)),
    "text_review": reviewed(0.7, "said", "more"),
    "text_outline": {"chunks": ["one", "two", "three"]},
    "text_section": improved("A section."),
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


@pytest.mark.parametrize(("name", "key", "most"), SCORES)
@pytest.mark.parametrize(
    "raw", ["NaN", "Infinity", "-Infinity", "1e999", "true", '"0.9"', "null", "[1]", "{}"]
)
def test_score_that_is_no_number_is_refused(name, key, most, raw):
    with pytest.raises(MalformedReply):
        read_text_reply(with_raw(name, key, raw), CONTRACTS[name])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "too short"),
        (" \n\t", "no words"),
        ("...", "no words"),
        ("\u200b\u200b", "no words"),
        ("a red \x1b[31mtext", "control characters"),
        ("a \x00 text", "control characters"),
        ("a text that \u202eturns", "control characters"),
        ("x" * (MOST_CHARACTERS + 1), "too long"),
    ],
)
@pytest.mark.parametrize("contract", [CorrectionReply, ImprovementReply])
def test_text_that_nobody_can_read_is_refused(contract, text, reason):
    with pytest.raises(MalformedReply, match=reason):
        read_text_reply(
            json.dumps({"text": text} | ({"reasoning": ""} if contract is ImprovementReply else {})), contract
        )


def test_text_of_any_script_is_taken():
    for text in ("市场上涨。", "نصّ قصير", "a\tb\r\nc", "80 %", "👩‍🚀 said so", "x" * MOST_CHARACTERS):
        assert read_text_reply(json.dumps({"text": text}), CorrectionReply).text == text


@pytest.mark.parametrize("raw", ['{"text": "\\ud800 x"}', '{"text": "\ud800 x"}', "```\n\ud800 words\n```"])
def test_half_a_surrogate_pair_is_refused(raw):
    with pytest.raises(MalformedReply):
        read_corrected(raw)


NO_CORRECTION = (
    "As it should be.",
    "```\n{}\n```",
    '```json\n["x"]\n```',
    "```\n \n```",
    "```\nx",
    "``` x ```",
    f"```\n{'x' * (MOST_CHARACTERS + 1)}\n```",
    "```\na \x1b[0m text\n```",
)


def test_correction_may_come_in_a_fence_alone():
    assert read_corrected('{"text": "As it should be."}') == "As it should be."
    assert read_corrected("```\nAs it should be.\n```") == "As it should be."
    assert read_corrected("```text\n As it should be. \n```\n") == "As it should be."
    for raw in NO_CORRECTION:
        with pytest.raises(MalformedReply):
            read_corrected(raw)


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
def test_longest_reply_is_read_at_once(piece):
    text = "```\n" + piece * (LONGEST_REPLY // len(piece))
    started = time.process_time()
    with pytest.raises(MalformedReply):
        read_corrected(text + "x")
    assert time.process_time() - started < 1.5  # what is quadratic takes minutes
