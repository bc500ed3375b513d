"""Critiques in words: PASS, NEEDS CORRECTION or UNKNOWN, whatever else a model writes around them."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.deliberation.forms import UNSAID, clamp_share, parse_assessment, read_assessment
from tests.each_case import check_each

LONGEST = 100_000
WORDS = ["PASS", "not", "NEEDS", "CORRECTION", "confidence", "0.9", "%", ":", "```", "no", "n't", "x", "\n"]


@check_each(
    ("text", "verdict"),
    [
        ("PASS", "PASS"),
        ("**Assessment:** PASS\n**Confidence:** 0.9", "PASS"),
        ("PASS: nothing is wrong.", "PASS"),
        ("```\nPASS\n```", "PASS"),
        ("NEEDS CORRECTION", "NEEDS CORRECTION"),
        ("NEEDS_CORRECTION", "NEEDS CORRECTION"),
        ("NEEDS-CORRECTION, for the sign is wrong", "NEEDS CORRECTION"),
        ("", "UNKNOWN"),
        ("   ", "UNKNOWN"),
        ("I would rather not say.", "UNKNOWN"),
        ("The passage is passable: it passes, and needs no correction.", "UNKNOWN"),
        ("It does not pass.", "UNKNOWN"),
        ("BYPASS it, it PASSED", "UNKNOWN"),
        ("FAIL", "UNKNOWN"),
        ("{}", "UNKNOWN"),
        ("PASS. NEEDS CORRECTION.", "UNKNOWN"),
        ("PASS on the first point, NEEDS CORRECTION on the second.", "UNKNOWN"),
        ("El texto es correcto.", "UNKNOWN"),
        ("Der Text ist richtig. PASS, Konfidenz 0,9", "PASS"),
        ("Текст требует исправления: NEEDS CORRECTION", "NEEDS CORRECTION"),
        ("النص سليم — PASS", "PASS"),
    ],
)
def test_words_are_read_as_one_of_three(text, verdict):
    reply = parse_assessment(text)
    assert reply.verdict == verdict
    assert (reply.explanation is None) == (verdict == "PASS")


@check_each(
    ("text", "confidence"),
    [
        ("PASS", UNSAID),
        ("PASS confidence: 0.85", 0.85),
        ("Confidence = 1", 1.0),
        ("confidence 0", 0.0),
        ("Confidence: 85", 0.85),
        ("Confidence: 85 %", 0.85),
        ("Confidence: 85%", 0.85),
        ("Confidence: 0.5 %", 0.005),
        ("confidence of 70 percent", 0.7),
        ("confidence: 85/100", 0.85),
        ("confidence: 150 %", 1.0),
        ("confidence: 1.5", 1.0),
        ("confidence: -0.5", 0.0),
        ("confidence: -20 %", 0.0),
        ("confidence - 0.8", 0.8),
        ("**Confidence**: 0.7", 0.7),
        ('"confidence": 0.65', 0.65),
        ("confidence: high", UNSAID),
        ("confidence: NaN", UNSAID),
        ("confidence: ", UNSAID),
        ("confidence: ٠.٩", 0.9),
        ("confidence: " + "9" * 400, 1.0),
        ("confidence which nobody has ever measured so far 0.9", UNSAID),
    ],
)
def test_confidence_is_a_share(text, confidence):
    assert parse_assessment(text).confidence == pytest.approx(confidence)


def test_numbers_that_are_none_are_no_confidence():
    assert [clamp_share(value) for value in (float("nan"), float("inf"), -1.0, 0.3)] == [0.0, 1.0, 0.0, 0.3]


def test_explanation_is_all_of_a_critique_that_asks_for_a_change():
    text = "NEEDS CORRECTION\nConfidence: 0.9\nThe sign is wrong. "
    assert parse_assessment(text).explanation == text.strip()
    assert len(parse_assessment("NEEDS CORRECTION " + "x" * 900).explanation or "") == 600


def test_half_a_surrogate_pair_is_replaced_for_no_contract_takes_it():
    reply = parse_assessment("NEEDS CORRECTION: \ud800")
    assert reply.explanation is not None
    reply.explanation.encode()
    assert reply.verdict == "NEEDS CORRECTION"


@pytest.mark.parametrize(
    ("reply", "verdict", "confidence"),
    [
        ('{"assessment": "PASS", "confidence": 0.9, "explanation": "fine"}', "PASS", 0.9),
        ('{"assessment": "PASS", "confidence": 7, "explanation": ""}', "PASS", 1.0),
        ('{"assessment": "NEEDS CORRECTION", "confidence": -7, "explanation": ""}', "NEEDS CORRECTION", 0.0),
        # What is no closed reply is read as words, with the care that words get.
        ('{"assessment": "PASS", "confidence": "0.9", "explanation": ""}', "PASS", 0.9),
        (
            '{"assessment": "NEEDS CORRECTION", "confidence": NaN, "explanation": ""}',
            "NEEDS CORRECTION",
            UNSAID,
        ),
        ('{"assessment": "NEEDS CORRECTION", "conf', "NEEDS CORRECTION", UNSAID),
        ('{"assessment": "PASS", "assessment": "NEEDS CORRECTION", "confidence": 1}', "UNKNOWN", 1.0),
        ('{"assessment": "MAYBE", "confidence": 0.9, "explanation": ""}', "UNKNOWN", 0.9),
        ("{}", "UNKNOWN", UNSAID),
    ],
)
def test_closed_reply_is_read_before_words(reply, verdict, confidence):
    text = read_assessment(reply)
    assert text.verdict == verdict
    assert text.confidence == pytest.approx(confidence)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(WORDS)))
def test_any_mixture_of_words_is_read(parts):
    reply = read_assessment(" ".join(parts))
    assert 0.0 <= reply.confidence <= 1.0
    assert reply.verdict in ("PASS", "NEEDS CORRECTION", "UNKNOWN")


@pytest.mark.parametrize(
    "piece", ["not ", "x", "no ", " ", "not pass needs ", "confidence ", "``` ", "corrections ", "n't "]
)
def test_long_text_is_read_in_linear_time(piece):
    text = piece * (LONGEST // len(piece))
    started = time.process_time()
    read_assessment(text)
    assert time.process_time() - started < 1.5  # what is quadratic takes minutes
