"""Tables of the pure rules: what is skipped, why a loop stops, what is accepted, applied and chosen."""

import time

import pytest

from schemas.deliberation import TextCandidate
from schemas.vocabulary import Severity
from services.deliberation.policies import (
    Acceptance,
    Round,
    aggregate,
    best_score,
    best_verified,
    brings_nothing_new,
    fails_no_more,
    latest,
    skip_reason,
)
from tests.each_case import check_each
from tests.services.deliberation.scripted import found, view

LONG = "The account earned a little in the window, and nothing has to change."
LONGEST = 51_200


def seen(number, *critiques):
    """A round with its critiques."""
    text = f"text {number}"
    return Round(
        TextCandidate(number=number, text=text, hash=text, author="model"), critiques, aggregate(critiques)
    )


def scored(number, overall, *codes, severity=Severity.MAJOR, verdict="accept"):
    """A round with a model's score and findings of a rule."""
    rule = view("accept", source="rule", findings=[found(code, severity) for code in codes])
    return seen(number, rule, view(verdict, overall=overall))


@check_each(
    ("text", "reason"),
    [
        (LONG, None),
        ("", "too_short"),
        ("   \n ", "too_short"),
        ("x" * 49, "too_short"),
        ("x" * 50, None),
        (" " * 60 + "x" * 49 + " " * 60, "too_short"),
        ("Error: the upstream did not answer, please try again later, or call somebody.", "error_message"),
        ("  [error] the upstream did not answer, please try again later.", "error_message"),
        ("Internal error: the upstream did not answer, please try again later.", "error_message"),
        ("Traceback (most recent call last):\n  File 'x.py', line 3, in <module>", "error_message"),
        ("Exception in thread main: the upstream did not answer, not even once.", "error_message"),
        ("Sorry, I cannot help with that request, for there is no report to speak of.", "error_message"),
        ("Sorry, an error has come up while the answer was written, so there is none.", "error_message"),
        ("An error of 0.3R in the estimate is what such a small sample has to be read with.", None),
        ("Error bars are wide here, so that nothing should be changed before the spring.", None),
        ("Errors of estimation are wide here, so that nothing should be changed before spring.", None),
        ('{"tool": "read_report", "arguments": {"report": "high_level", "window": "2012"}}', "tool_only"),
        ('[{"tool": "read_report", "arguments": {}}, {"tool": "read_gate", "arguments": {}}]', "tool_only"),
        ('```json\n{"tool": "read_report", "arguments": {"report": "high_level"}}\n```', "tool_only"),
        ('```tool_code\n{"tool": "read_report", "arguments": {"report": "high_level"}}\n```', "tool_only"),
        ('  ```\n[{"tool": "read_report", "arguments": {}}]\n```  \n', "tool_only"),
        ('I call {"tool": "read_report"} now, and then I say what it has said of the window.', None),
        ('{"tool": "read_report"} is what I call now, and then I say what it said of the window.', None),
    ],
)
def test_text_is_skipped_for_one_reason(text, reason):
    assert skip_reason(text, enabled=True, minimum=50) == reason


def test_reasons_to_skip_have_an_order():
    error = "Error: nothing"
    assert skip_reason(error, enabled=False, minimum=50, reviewed=True) == "disabled"
    assert skip_reason(error, enabled=True, minimum=50, reviewed=True) == "already_reviewed"
    assert skip_reason(error, enabled=True, minimum=50) == "error_message"
    assert skip_reason("{}", enabled=True, minimum=50) == "tool_only"
    assert skip_reason("x", enabled=True, minimum=0) is None


@pytest.mark.parametrize(
    "text",
    [
        " " * LONGEST + "x",
        "{]" + " " * LONGEST + "x",
        "[" * LONGEST,
        "{" + "}" * LONGEST + "x",
        "```tool" + "l" * LONGEST,
        "]\n" * (LONGEST // 2),
    ],
    ids=["blanks", "closed and blanks", "opened", "closed", "fence", "lines"],
)
def test_longest_text_is_told_from_a_tool_call_at_once(text):
    started = time.process_time()
    skip_reason(text, enabled=True, minimum=50)
    assert time.process_time() - started < 0.5  # what is quadratic takes minutes


REJECTED = view("reject", source="rule")
REVISED = view("revise", confidence=0.9)
UNSURE = view("revise", confidence=0.5)
UNKNOWN = view("unknown", confidence=0.5)


@pytest.mark.parametrize(
    ("critiques", "reason"),
    [
        ([REJECTED, view("accept", overall=1.0)], "blocker"),
        ([view("accept", findings=[found(severity=Severity.BLOCKER)])], "blocker"),
        ([view("accept", overall=0.8)], "accepted"),
        ([view("accept", overall=0.79)], "rounds"),
        ([view("accept")], "accepted"),
        ([UNKNOWN], "low_confidence"),
        ([], "low_confidence"),
        ([view("accept", source="rule"), UNKNOWN], "low_confidence"),
        ([view("revise", source="rule"), UNKNOWN], "rounds"),
        ([UNSURE], "low_confidence"),
        ([REVISED], "rounds"),
        ([UNSURE.model_copy(update={"overall": 0.1})], "rounds"),
        ([view("accept", overall=0.9, scores={"accuracy": 0.9}), REVISED], "rounds"),
        ([view("accept", source="rule", findings=[found()]), view("accept", overall=1.0)], "rounds"),
    ],
)
def test_loop_stops_for_one_reason(critiques, reason):
    acceptance = Acceptance(threshold=0.8, min_confidence=0.6)
    assert acceptance.stop([seen(0, *critiques)], 0) == reason
    assert acceptance.stop([seen(0, *critiques)], 1) == (None if reason == "rounds" else reason)


def test_reasons_to_stop_have_an_order():
    acceptance = Acceptance(0.8, patience=1, min_confidence=0.6)
    before = scored(0, 0.5)
    assert acceptance.stop([before, seen(1, REJECTED)], 1) == "blocker"
    assert acceptance.stop([before, scored(1, 0.9)], 1) == "accepted"
    assert acceptance.stop([before, seen(1, UNKNOWN)], 1) == "low_confidence"
    assert acceptance.stop([before, scored(1, 0.5)], 1) == "no_gain"
    assert acceptance.stop([before, scored(1, 0.6)], 1) == "rounds"
    assert acceptance.stop([before, scored(1, 0.6)], 2) is None


@pytest.mark.parametrize(
    ("scores", "patience", "stops"),
    [
        ([0.5, 0.5], None, False),
        ([0.5], 1, False),
        ([0.5, 0.5], 1, True),
        ([0.5, 0.4], 1, True),
        ([0.5, 0.6], 1, False),
        ([0.5, 0.4], 2, False),
        ([0.5, 0.4, 0.6], 2, False),
        ([0.5, 0.4, 0.5], 2, True),
        ([None, None], 1, False),
    ],
)
def test_patience_counts_rounds_without_gain(scores, patience, stops):
    rounds = [scored(number, score) for number, score in enumerate(scores)]
    reason = Acceptance(0.9, patience=patience).stop(rounds, 9)
    assert (reason == "no_gain") == (stops and scores[0] is not None)


def test_patience_does_not_count_a_round_that_fails():
    rounds = [scored(0, 0.5), scored(1, 0.4, "fault")]
    assert Acceptance(0.9, patience=1).stop(rounds, 9) is None


def test_verdict_alone_decides_without_a_threshold():
    assert Acceptance().accepts(scored(0, 0.0))
    assert not Acceptance().wants_more(scored(0, 0.0))
    assert Acceptance(0.1).wants_more(scored(0, 0.0))


@pytest.mark.parametrize(
    ("first", "later", "applied"),
    [
        ([], [], True),
        (["a"], [], True),
        (["a"], ["a"], True),
        ([], ["a"], False),
        (["a"], ["b"], False),
        (["a", "b"], ["b"], True),
        (["a", "b"], ["c"], False),
    ],
)
def test_later_text_stands_only_without_a_new_fault_of_weight(first, later, applied):
    assert brings_nothing_new(scored(0, 0.1, *first), scored(1, 1.0, *later)) is applied


def test_small_fault_may_be_new_where_one_of_weight_has_gone():
    small = scored(1, 1.0, "small", severity=Severity.MINOR)
    assert brings_nothing_new(scored(0, 0.1, "a"), small)
    assert not brings_nothing_new(scored(0, 0.1), small)
    assert brings_nothing_new(scored(0, 0.1), scored(1, 1.0, "told", severity=Severity.INFO))


def test_models_own_findings_are_no_faults():
    later = seen(1, view("revise", findings=[found()]))
    assert later.failures == 0
    assert brings_nothing_new(seen(0, view("accept")), later)


def test_fewer_faults_of_any_kind_are_enough_where_that_is_the_rule():
    assert fails_no_more(scored(0, 0.1, "a"), scored(1, 0.1, "b"))
    assert not fails_no_more(scored(0, 0.1, "a"), scored(1, 0.1, "b", "c"))


def test_best_is_the_earlier_of_equals():
    rounds = [scored(0, 0.5), scored(1, 0.7), scored(2, 0.7)]
    assert [choose(rounds).candidate.number for choose in (latest, best_score, best_verified)] == [2, 1, 1]


def test_what_is_verified_beats_what_is_scored():
    rounds = [scored(0, 1.0, "fault"), scored(1, 0.1)]
    assert [choose(rounds).candidate.number for choose in (best_score, best_verified)] == [1, 1]
    small = [scored(0, 1.0, "small", severity=Severity.MINOR), scored(1, 0.1)]
    assert [choose(small).candidate.number for choose in (best_score, best_verified)] == [0, 1]


def test_score_beats_none():
    assert best_score([scored(0, None), scored(1, 0.0)]).candidate.number == 1


def test_score_of_several_critics_is_capped_by_rules_and_by_plain_scores():
    rule = view(source="rule", scores={"accuracy": 0.5})
    first, second = view(scores={"accuracy": 0.9, "clarity": 0.8}), view(scores={"clarity": 0.4})
    assert aggregate([first]).overall == pytest.approx(0.85)
    assert aggregate([rule, first, second]).overall == pytest.approx((0.5 + 0.6) / 2)
    assert aggregate([rule, view(overall=0.9)]).overall == pytest.approx(0.5)
    assert aggregate([rule, view(overall=0.3)]).overall == pytest.approx(0.3)
    assert aggregate([view(overall=0.3), view(overall=0.5)]).overall == pytest.approx(0.4)
    assert aggregate([view("unknown", overall=1.0)]).overall is None


def test_confidence_is_that_of_the_strictest():
    lines = [view("accept", confidence=1.0), view("revise", confidence=0.4), view("revise", confidence=0.7)]
    assert aggregate(lines).confidence == 0.7
    assert aggregate([]).confidence == 0.0
