import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import load_prompt
from schemas.reasons import PlanReason
from schemas.reflection import Finding
from schemas.vocabulary import CheckName, ReflectionStatus, Severity
from services.model_calls.budget import BYTES_PER_TOKEN
from services.policy_checks.consolidation import (
    FORM,
    LONGEST_REPLY,
    STRICTNESS,
    ConsolidationReply,
    ObjectionCode,
    consolidation_question,
    finding_ids,
    weigh_reply,
)
from services.policy_checks.findings import status_of
from services.policy_level_reflection_service import MAX_TOKENS, PROMPT
from tests.each_case import check_each
from tests.services.policy_checks.plans import changed, codes, expected, playbook_named, right_request

MINOR = Finding(
    check=CheckName.MEMORY, code="failure_pattern_recurs", severity=Severity.MINOR, message="2 are chop"
)
MAJOR = Finding(check=CheckName.EXPECTATION, code="over_confident", severity=Severity.MAJOR, message="0.9")


def reply(**changes) -> str:
    values = {"findings": [], "verdict": "pass", "comment": "Fine.", "deferred_needs": []}
    return json.dumps(values | changes)


def weigh(text, findings=(MINOR,)):
    return weigh_reply(text, right_request(), findings)


def status_after(text, findings=(MINOR,)):
    return status_of((*findings, *weigh(text, findings).findings))


def test_consolidation_agreeing_reply_adds_that_it_agrees_and_a_comment_that_no_finding_holds():
    weighed = weigh(reply(findings=["failure_pattern_recurs"]))
    assert codes(weighed.findings) == ["model_agrees"]
    assert (weighed.refused, weighed.comment) == (None, "Fine.")
    assert "Fine." not in weighed.findings[0].message
    assert status_after(reply()) is ReflectionStatus.PASS


def test_consolidation_reply_that_blocks_is_none():
    assert (
        weigh(reply(verdict="block", findings=["failure_pattern_recurs"])).refused == "model_reply_malformed"
    )


def test_consolidation_verdicts_of_the_form_are_those_of_the_prompt():
    text = load_prompt(PROMPT).system
    for verdict in FORM.schema["properties"]["verdict"]["enum"]:
        assert f'"{verdict}"' in text.partition("What you decide")[2].partition("How you reason")[0]
    assert '"verdict": "pass" | "revise"' in text
    assert FORM.schema["properties"]["verdict"]["enum"] == ["pass", "revise"]


def test_consolidation_stricter_reply_with_evidence_lowers_the_verdict():
    text = reply(verdict="revise", findings=["failure_pattern_recurs"])
    weighed = weigh(text)
    assert codes(weighed.findings) == ["model_lowered_verdict"]
    assert weighed.findings[0].evidence == ("failure_pattern_recurs",)
    assert status_after(text) is ReflectionStatus.REVISE


def test_consolidation_finding_that_only_informs_is_no_evidence():
    shown = Finding(
        check=CheckName.MEMORY, code="memory_insufficient", severity=Severity.INFO, message="0 cases"
    )
    text = reply(verdict="revise", findings=["memory_insufficient"])
    assert weigh(text, (shown,)).refused == "model_lowered_without_evidence"
    assert status_after(text, (shown,)) is ReflectionStatus.PASS


REASONS = (
    PlanReason(kind="case_rate", name="all"),
    PlanReason(kind="feature", name="atr_14"),
    PlanReason(kind="regime", name="trend"),
    PlanReason(kind="lesson", name="trend_pullback"),
    PlanReason(kind="rule", name="setup"),
)
ARMED = {"low": 98.0, "trend_strength_20_50": 1.0}  # the setup of the plan is true


def reasoned(**features):
    request = changed(right_request(), {"proposal.because": REASONS})
    return changed(request, {"snapshot.features": {**request.snapshot.features, **features}})


def object_to(*places, code="reason_against_direction", verdict="revise"):
    return reply(verdict=verdict, objections=[{"reason": place, "code": code} for place in places])


@pytest.mark.parametrize("code", get_args(ObjectionCode))
@pytest.mark.parametrize("place", [0, 3])
def test_consolidation_objection_to_a_reason_sends_a_plan_without_findings_back(place, code):
    weighed = weigh_reply(object_to(place, code=code), reasoned(), ())
    assert status_of(weighed.findings) is ReflectionStatus.REVISE
    assert codes(weighed.findings) == ["model_lowered_verdict", code]
    assert weighed.findings[1].evidence == (f"because[{place}]",)


@pytest.mark.parametrize("place", [1, 2, 4])
def test_consolidation_objection_to_a_reason_that_is_true_and_on_the_plans_side_does_not_count(place):
    weighed = weigh_reply(object_to(place), reasoned(**ARMED), ())
    assert (codes(weighed.findings), weighed.refused) == (
        ["model_lowered_without_evidence", "objection_overruled"], "model_lowered_without_evidence",
    )  # fmt: skip
    other = weigh_reply(object_to(place, 0), reasoned(**ARMED), ())
    assert codes(other.findings) == [
        "model_lowered_verdict", "reason_against_direction", "objection_overruled",
    ]  # fmt: skip
    overruled = other.findings[-1]
    assert (overruled.severity, overruled.evidence) == (Severity.INFO, (f"because[{place}]",))
    assert status_of(weighed.findings) is ReflectionStatus.PASS


def test_consolidation_objection_to_a_rule_that_is_not_true_counts():
    weighed = weigh_reply(object_to(4), reasoned(low=99.9, trend_strength_20_50=0.0), ())
    assert status_of(weighed.findings) is ReflectionStatus.REVISE


@pytest.mark.parametrize("place", [-1, 5, 10**30])
def test_consolidation_objection_to_a_reason_that_is_not_there_makes_the_reply_void(place):
    weighed = weigh_reply(object_to(0, place), reasoned(), ())
    assert weighed.refused == "model_objected_to_no_reason"
    assert status_of(weighed.findings) is ReflectionStatus.PASS


@pytest.mark.parametrize(
    "objection",
    [
        {"reason": 0, "code": "i_do_not_like_it"},
        {"reason": "0", "code": "reason_too_weak"},
        {"reason": 0, "code": "reason_too_weak", "text": "the dip"},
        {"code": "reason_too_weak"},
    ],
)
def test_consolidation_objection_has_a_place_and_a_code_of_the_closed_list_alone(objection):
    weighed = weigh_reply(reply(verdict="revise", objections=[objection]), reasoned(), ())
    assert status_of(weighed.findings) is ReflectionStatus.PASS
    assert weighed.refused in ("model_reply_malformed", "model_scope_refused")


def test_consolidation_question_shows_each_reason_with_its_place_its_words_and_what_code_finds():
    question = consolidation_question(load_prompt(PROMPT), reasoned(**ARMED), ())
    (line,) = (line for line in question.split("\n") if line.startswith('[{"holds"'))
    payload = json.loads(line)
    assert [(shown["reason"], shown["kind"], shown["holds"]) for shown in payload] == [
        (0, "case_rate", None), (1, "feature", True), (2, "regime", True), (3, "lesson", None),
        (4, "rule", True),
    ]  # fmt: skip
    assert payload[1]["words"] == "atr_14 is 2"


@pytest.mark.parametrize(
    ("comment", "kept"),
    [
        ("The last days look tired.", "The last days look tired."),
        ("It wins 9 of 10.", None),
        ("Better than mean_reversion.", None),
        ("AAA is weak.", None),
        ("Move stop_atr up.", None),
        ("NVDA does the same.", None),
        ("x" * 301, None),
        ("", None),
        (None, None),
    ],
)
def test_consolidation_comment_is_kept_apart_without_figure_and_name_of_the_run(comment, kept):
    others = (expected(right_request().playbook), expected(playbook_named("mean_reversion")))
    request = changed(right_request(), {"snapshot.expectations": others})
    weighed = weigh_reply(reply(comment=comment), request, (), ("NVDA",))
    assert (weighed.refused, weighed.comment) == (None, kept)


def test_consolidation_stricter_reply_without_evidence_is_refused():
    text = reply(verdict="revise")
    assert weigh(text).refused == "model_lowered_without_evidence"
    assert status_after(text) is ReflectionStatus.PASS


def test_consolidation_reply_citing_a_finding_that_does_not_exist_is_refused():
    text = reply(verdict="revise", findings=["failure_pattern_recurs", "insider_knowledge"])
    assert weigh(text).refused == "model_cited_unknown_finding"
    assert status_after(text) is ReflectionStatus.PASS


def test_consolidation_findings_that_share_a_code_are_told_apart_by_id():
    twice = (MINOR, MAJOR, MINOR)
    assert finding_ids(twice) == ("failure_pattern_recurs#1", "over_confident", "failure_pattern_recurs#2")
    question = consolidation_question(load_prompt(PROMPT), right_request(), twice)
    (line,) = (line for line in question.split("\n") if line.startswith("[{"))
    assert [found["id"] for found in json.loads(line)] == list(finding_ids(twice))


@pytest.mark.parametrize(
    ("cited", "refused"),
    [
        ("failure_pattern_recurs#2", None),
        ("over_confident", None),
        ("failure_pattern_recurs", "model_cited_unknown_finding"),
        ("failure_pattern_recurs#3", "model_cited_unknown_finding"),
        ("over_confident#1", "model_cited_unknown_finding"),
    ],
)
def test_consolidation_citation_counts_only_as_the_whole_id_of_one_finding(cited, refused):
    weighed = weigh(reply(verdict="revise", findings=[cited]), (MINOR, MAJOR, MINOR))
    assert weighed.refused == refused
    if refused is None:
        assert weighed.findings[0].evidence == (cited,)


def test_consolidation_longest_legal_reply_fits_into_the_bound_of_tokens():
    ids = [f"{'x' * 36}#{i:02}" for i in range(20)]
    longest = reply(
        verdict="revise",
        comment="s" * 300,
        findings=ids,
        objections=[{"reason": 7, "code": "reason_not_about_this_plan"}] * 8,
        deferred_needs=["n" * 300 for _ in range(5)],
    )
    assert ConsolidationReply.model_validate_json(longest).findings == tuple(ids)
    assert len(longest) <= MAX_TOKENS * BYTES_PER_TOKEN <= LONGEST_REPLY


@pytest.mark.parametrize(
    "extra",
    [
        {"new_trigger": "rsi_14 < 30"},
        {"features": ["rsi_14"]},
        {"playbook_id": "mean_reversion"},
        {"hypothesis": "gaps close"},
    ],
)
def test_consolidation_reply_with_a_place_for_something_new_is_refused(extra):
    weighed = weigh(reply(verdict="revise", findings=["failure_pattern_recurs"], **extra))
    assert weighed.refused == "model_scope_refused"
    assert "the reply brings 1 field of its own" in weighed.findings[0].message
    assert next(iter(extra)) not in weighed.findings[0].message, "the name is the model's own word"
    assert weighed.deferred == ()


def test_consolidation_need_for_something_new_is_deferred():
    need = "A volume feature such as obv_20 would tell exhaustion from a pause."
    weighed = weigh(reply(deferred_needs=[need]))
    assert weighed.deferred == (need,)
    assert weighed.refused is None


@check_each(
    "text",
    [
        "",
        "PASS",
        ("```json\n" + reply() + "\n```\n") * 2,
        reply()[:-5],
        "[]",
        "null",
        reply(verdict="approve"),
        reply(verdict=None),
        reply(comment="x" * 1_001),
        reply(findings="failure_pattern_recurs"),
        reply(deferred_needs=["x"] * 6),
        reply(deferred_needs=[""]),
        '{"verdict": "pass"}',
        '{"verdict": "block", "verdict": "pass", "comment": "", "findings": [], "deferred_needs": []}',
        reply() + " " + reply(verdict="revise"),
        "[" * 5_000,
        " " * 9_000,
        reply(comment="\ud800"),
    ],
)
def test_consolidation_malformed_reply_error_leaves_the_verdict(text):
    assert weigh(text).refused == "model_reply_malformed"
    assert status_after(text) is ReflectionStatus.PASS


def test_consolidation_reply_of_the_longest_length_is_still_read():
    assert weigh(reply().ljust(LONGEST_REPLY)).refused is None
    assert weigh(reply().ljust(LONGEST_REPLY + 1)).refused == "model_reply_malformed"


def test_consolidation_repeated_key_is_refused_without_a_word_of_the_reply():
    text = '{"comment": "", "verdict": "block", "verdict": "pass", "findings": []}'
    assert weigh(text).findings[0].message == "a key stands twice"


@given(
    verdict=st.sampled_from(["pass", "revise"]),
    comment=st.text(max_size=80),
    cited=st.lists(st.sampled_from(["failure_pattern_recurs", "over_confident", "made_up"]), max_size=3),
    findings=st.sampled_from([(), (MINOR,), (MAJOR,), (MINOR, MAJOR)]),
)
def test_consolidation_any_reply_never_raises_the_verdict(verdict, comment, cited, findings):
    text = reply(verdict=verdict, comment=comment, findings=cited)
    assert STRICTNESS[status_after(text, findings)] >= STRICTNESS[status_of(findings)]


@given(st.text(max_size=200))
def test_consolidation_any_text_gives_findings_and_no_exception(text):
    assert weigh(text).findings
