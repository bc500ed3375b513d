import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts import load_prompt
from schemas.reflection import Finding
from schemas.vocabulary import CheckName, ReflectionStatus, Severity
from services.model_calls.budget import BYTES_PER_TOKEN
from services.policy_checks.consolidation import (
    LONGEST_REPLY,
    STRICTNESS,
    ConsolidationReply,
    QuotationCode,
    consolidation_question,
    finding_ids,
    weigh_reply,
)
from services.policy_checks.findings import status_of
from services.policy_level_reflection_service import MAX_TOKENS, PROMPT
from tests.services.policy_checks.plans import changed, codes, expected, playbook_named, right_request

MINOR = Finding(
    check=CheckName.MEMORY, code="failure_pattern_recurs", severity=Severity.MINOR, message="2 are chop"
)
MAJOR = Finding(check=CheckName.EXPECTATION, code="over_confident", severity=Severity.MAJOR, message="0.9")


def reply(**changes) -> str:
    values = {"verdict": "pass", "summary": "Fine.", "findings": [], "deferred_needs": []}
    return json.dumps(values | changes)


def weigh(text, findings=(MINOR,)):
    return weigh_reply(text, right_request(), findings)


def status_after(text, findings=(MINOR,)):
    return status_of((*findings, *weigh(text, findings).findings))


def test_consolidation_agreeing_reply_adds_its_summary_only():
    weighed = weigh(reply(findings=["failure_pattern_recurs"]))
    assert codes(weighed.findings) == ["model_summary"]
    assert weighed.refused is None
    assert status_after(reply()) is ReflectionStatus.PASS


@pytest.mark.parametrize("verdict", ["revise", "block"])
def test_consolidation_stricter_reply_with_evidence_lowers_the_verdict(verdict):
    text = reply(verdict=verdict, summary="The failures repeat.", findings=["failure_pattern_recurs"])
    weighed = weigh(text)
    assert codes(weighed.findings) == ["model_lowered_verdict"]
    assert weighed.findings[0].evidence == ("failure_pattern_recurs",)
    assert status_after(text) is ReflectionStatus.REVISE, "to block is for the rules alone"


def test_consolidation_finding_that_only_informs_is_no_evidence():
    told = Finding(
        check=CheckName.MEMORY, code="memory_insufficient", severity=Severity.INFO, message="0 cases"
    )
    text = reply(verdict="block", findings=["memory_insufficient"])
    assert weigh(text, (told,)).refused == "model_lowered_without_evidence"
    assert status_after(text, (told,)) is ReflectionStatus.PASS


def objection(text, code="text_contradicts_direction", **changes):
    return reply(verdict="block", quotations=[{"text": text, "code": code}], **changes)


def status_of_text(rationale, text):
    request = changed(right_request(), {"proposal.rationale": rationale})
    weighed = weigh_reply(text, request, ())
    return status_of(weighed.findings), codes(weighed.findings)


@pytest.mark.parametrize("code", get_args(QuotationCode))
def test_consolidation_quotation_from_the_text_sends_a_plan_without_findings_back(code):
    rationale = "An uptrend and a dip, hardly worth buying."
    status, found = status_of_text(rationale, objection("hardly worth buying", code))
    assert status is ReflectionStatus.REVISE
    assert found == ["model_lowered_verdict", code]


def test_consolidation_objection_may_name_another_playbook_of_which_the_plans_text_speaks():
    """That a text is not about its plan can hardly be said without saying what it is about."""
    quoted = "a mean reversion lower is due"
    request = right_request()
    others = (expected(request.playbook), expected(playbook_named("mean_reversion")))
    texts = {"proposal.rationale": f"An uptrend and a dip, yet {quoted}."}
    request = changed(request, {"snapshot.expectations": others, **texts})
    said = {"text": quoted, "code": "text_not_about_this_plan"}
    summary = "The rationale argues for a mean reversion lower, not for this pullback."
    text = reply(verdict="revise", summary=summary, findings=[], quotations=[said])
    weighed = weigh_reply(text, request, ())
    assert weighed.refused is None
    assert "text_not_about_this_plan" in [found.code for found in weighed.findings]


@pytest.mark.parametrize(
    ("rationale", "quoted"),
    [
        ("It’s  “hardly”\nworth buying", 'It\'s "hardly" worth buying'),
        ("A dip — hardly WORTH buying", "dip - hardly worth"),
        ("ﬁrmly in the sellers' hands", "firmly in the sellers' hands"),
        ("sell\u200bers are in\u00a0charge", "sellers are in charge"),
        ("Ａ ｄｉｐ that fails", "a dip that fails"),
    ],
)
def test_consolidation_quotation_is_found_however_its_characters_are_written(rationale, quoted):
    assert status_of_text(rationale, objection(quoted))[0] is ReflectionStatus.REVISE


@pytest.mark.parametrize(
    ("quoted", "refused"),
    [
        ("sellers rule", "model_quoted_what_is_not_there"),
        ("uptrend and a di", "model_quoted_what_is_not_there"),
        ("uptrend", "model_quoted_too_little"),
        ("An uptrend ... worth buying", "model_quoted_what_is_not_there"),
        ("...", "model_quoted_too_little"),
        ("\u200b\u200b", "model_quoted_too_little"),
    ],
)
def test_consolidation_quotation_that_is_not_in_the_text_makes_the_reply_void(quoted, refused):
    status, found = status_of_text("An uptrend and a dip, hardly worth buying.", objection(quoted))
    assert status is ReflectionStatus.PASS
    assert found == [refused]


def test_consolidation_one_false_quotation_makes_a_true_one_void():
    quotations = [
        {"text": "An uptrend and a dip", "code": "text_not_about_this_plan"},
        {"text": "sellers rule", "code": "text_contradicts_direction"},
    ]
    text = reply(verdict="revise", quotations=quotations)
    assert status_of_text("An uptrend and a dip.", text)[0] is ReflectionStatus.PASS


def test_consolidation_quotation_of_a_rule_is_none_of_the_text():
    stop = right_request().proposal.stop
    assert status_of_text("An uptrend and a dip.", objection(stop))[0] is ReflectionStatus.PASS


def test_consolidation_quotation_has_a_reason_of_the_closed_list():
    status, found = status_of_text("An uptrend.", objection("An uptrend", "i_do_not_like_it"))
    assert (status, found) == (ReflectionStatus.PASS, ["model_reply_malformed"])


def test_consolidation_milder_reply_leaves_the_verdict_and_is_recorded():
    text = reply(verdict="pass", findings=["over_confident"])
    assert codes(weigh(text, (MAJOR,)).findings) == ["model_raised_verdict", "model_summary"]
    assert status_after(text, (MAJOR,)) is ReflectionStatus.REVISE


def test_consolidation_stricter_reply_without_evidence_is_refused():
    text = reply(verdict="block")
    assert weigh(text).refused == "model_lowered_without_evidence"
    assert status_after(text) is ReflectionStatus.PASS


def test_consolidation_reply_citing_a_finding_that_does_not_exist_is_refused():
    text = reply(verdict="block", findings=["failure_pattern_recurs", "insider_knowledge"])
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
    weighed = weigh(reply(verdict="block", findings=[cited]), (MINOR, MAJOR, MINOR))
    assert weighed.refused == refused
    if refused is None:
        assert weighed.findings[0].evidence == (cited,)


def test_consolidation_longest_legal_reply_fits_into_the_bound_of_tokens():
    ids = [f"{'x' * 36}#{i:02}" for i in range(20)]
    longest = reply(
        verdict="revise", summary="s" * 600, findings=ids, deferred_needs=["n" * 300 for _ in range(5)]
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
    weighed = weigh(reply(verdict="block", findings=["failure_pattern_recurs"], **extra))
    assert weighed.refused == "model_scope_refused"
    assert next(iter(extra)) in weighed.findings[0].message
    assert weighed.deferred == ()


@pytest.mark.parametrize(
    "summary",
    [
        "Add rsi_14 < 30 as a second trigger.",
        "The RSI is missing.",
        "Wait for adx above 20.",
        "Require close > 105 first.",
        "Use the mean_reversion playbook.",
        "This is a mean reversion trade.",
        "The order_imbalance is against it.",
    ],
)
def test_consolidation_summary_that_brings_something_new_is_refused(summary):
    request = right_request()
    others = (expected(request.playbook), expected(playbook_named("mean_reversion")))
    request = changed(request, {"snapshot.expectations": others})
    text = reply(verdict="revise", summary=summary, findings=["failure_pattern_recurs"])
    weighed = weigh_reply(text, request, (MINOR,))
    assert weighed.refused == "model_scope_refused"
    assert weighed.findings[0].severity is Severity.MINOR


@pytest.mark.parametrize(
    "summary",
    [
        "The trend_pullback plan repeats failure_pattern_recurs.",
        "The stop uses ema_20 and atr_14 as the playbook does; the atr is plausible.",
        "Conviction and horizon_bars fit.",
        "The highest close came late.",
    ],
)
def test_consolidation_summary_about_what_the_request_holds_is_accepted(summary):
    request = right_request()
    others = (expected(request.playbook), expected(playbook_named("mean_reversion")))
    request = changed(request, {"snapshot.expectations": others})
    assert weigh_reply(reply(summary=summary), request, (MINOR,)).refused is None


def test_consolidation_need_for_something_new_is_deferred():
    need = "A volume feature such as obv_20 would tell exhaustion from a pause."
    weighed = weigh(reply(deferred_needs=[need]))
    assert weighed.deferred == (need,)
    assert weighed.refused is None


@pytest.mark.parametrize(
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
        reply(summary="x" * 601),
        reply(findings="failure_pattern_recurs"),
        reply(deferred_needs=["x"] * 6),
        reply(deferred_needs=[""]),
        '{"verdict": "pass"}',
        '{"verdict": "block", "verdict": "pass", "summary": "", "findings": [], "deferred_needs": []}',
        reply() + " " + reply(verdict="block"),
        "[" * 5_000,
        " " * 9_000,
        reply(summary="\ud800"),
    ],
)
def test_consolidation_malformed_reply_error_leaves_the_verdict(text):
    assert weigh(text).refused == "model_reply_malformed"
    assert status_after(text) is ReflectionStatus.PASS


def test_consolidation_reply_of_the_longest_length_is_still_read():
    assert weigh(reply().ljust(LONGEST_REPLY)).refused is None
    assert weigh(reply().ljust(LONGEST_REPLY + 1)).refused == "model_reply_malformed"


def test_consolidation_repeated_key_error_names_it():
    text = '{"summary": "", "verdict": "block", "verdict": "pass", "findings": []}'
    assert weigh(text).findings[0].message == "the key 'verdict' stands twice"


@given(
    verdict=st.sampled_from(["pass", "revise", "block"]),
    summary=st.text(max_size=80),
    cited=st.lists(st.sampled_from(["failure_pattern_recurs", "over_confident", "made_up"]), max_size=3),
    findings=st.sampled_from([(), (MINOR,), (MAJOR,), (MINOR, MAJOR)]),
)
def test_consolidation_any_reply_never_raises_the_verdict(verdict, summary, cited, findings):
    text = reply(verdict=verdict, summary=summary, findings=cited)
    assert STRICTNESS[status_after(text, findings)] >= STRICTNESS[status_of(findings)]


@given(st.text(max_size=200))
def test_consolidation_any_text_gives_findings_and_no_exception(text):
    assert weigh(text).findings
