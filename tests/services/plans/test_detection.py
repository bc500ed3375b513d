"""Which texts take two phases: every pattern with its weight, what is denied, and the thresholds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.settings import PlansSettings
from services.plans.detection import PATTERNS, WEIGHTS, DetectionContext, TwoPhase, detect_two_phase
from tests.each_case import check_each

ON_PAPER = DetectionContext()


def detected(text: str, context: DetectionContext = ON_PAPER, **changes: Any) -> TwoPhase:
    return detect_two_phase(text, context, PlansSettings(**changes))


def test_weights_and_thresholds_are_the_seeds():
    assert WEIGHTS == {"high_stakes": 0.4, "complex": 0.3, "plan_request": 0.5, "context": 0.2}
    assert (PlansSettings().threshold, PlansSettings().live_threshold) == (0.6, 0.4)


@check_each(
    ("text", "confidence"),
    [
        ("Deploy to production", 0.4),
        ("Refactor the authentication module for production", 0.8),
        ("a critical change", 0.4),
        ("rewrite it", 0.4),
        ("migrate it", 0.4),
        ("delete database", 0.4),
        ("drop table", 0.4),
        ("remove all", 0.4),
        ("change multiple files", 0.3),
        ("make a large change", 0.3),
        ("change the entire codebase", 0.3),
        ("update the whole system", 0.3),
        ("show me a plan", 0.5),
        ("what would you do", 0.5),
        ("explain your approach", 0.5),
        ("before you start", 0.5),
        ("a step-by-step plan", 0.5),
        ("show me a plan, explain your approach, what would you do before you start", 1.0),
    ],
)
def test_words_of_the_seed_add_the_weight_of_their_category(text, confidence):
    assert detected(text).confidence == confidence


@pytest.mark.parametrize(
    ("text", "pattern", "category"),
    [
        ("Go to live mode.", "live mode", "high_stakes"),
        ("Raise the risk cap.", "risk cap", "high_stakes"),
        ("Change the playbook definition.", "playbook definition", "high_stakes"),
        ("Change its eligibility.", "eligibility", "high_stakes"),
        ("Unban it and lift the ban there.", "eligibility", "high_stakes"),
        ("Delete all.", "delete or remove all", "high_stakes"),
        ("Set it on all symbols.", "all symbols", "complex"),
        ("Change several playbooks.", "several playbooks", "complex"),
    ],
)
def test_words_of_trading_are_found_with_their_category(text, pattern, category):
    assert (pattern, category) in {(match.pattern, match.category) for match in detected(text).matches}


def test_two_patterns_of_one_category_both_add_and_one_pattern_adds_once():
    once = detected("Deploy, deploy and deploy.")
    both = detected("Deploy it and migrate it.")
    assert (once.confidence, both.confidence) == (0.4, 0.8)
    assert [match.payload() for match in both.matches] == [
        {"pattern": "production or deploy", "category": "high_stakes", "weight": 0.4},
        {"pattern": "migrate", "category": "high_stakes", "weight": 0.4},
    ]
    assert both.reason == "confidence 0.80 reaches 0.60: production or deploy, migrate"


def test_no_single_match_reaches_the_threshold():
    assert max(WEIGHTS.values()) < PlansSettings().threshold
    assert all(pattern.category in WEIGHTS for pattern in PATTERNS)
    assert len({pattern.name for pattern in PATTERNS}) == len(PATTERNS)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Do not deploy it.", ()),
        ("Don't migrate the store and rewrite nothing.", ()),
        ("Don’t deploy it.", ()),
        ("Never delete all rows without a backup.", ()),
        ("No leverage, no production.", ()),
        ("Do not wait: go live.", ()),
        ("Do not wait, go live.", ("live mode",)),
        ("Do not deploy today. Migrate it tomorrow.", ("migrate",)),
        ("Deploy it, not the other one.", ("production or deploy",)),
        ("Another deploy.", ("production or deploy",)),
        ("Reproduction of the noted critique", ()),
    ],
)
def test_denied_match_adds_nothing_up_to_the_end_of_its_clause(text, names):
    assert tuple(match.pattern for match in detected(text).matches) == names


@pytest.mark.parametrize(
    "text", ["DEPLOY IT", "deploy-it", "ＤＥＰＬＯＹ it", "deploying", "a deployment\nof it", "re-deploy"]
)
def test_case_width_and_endings_do_not_hide_a_word(text):
    assert [match.pattern for match in detected(text).matches] == ["production or deploy"]


def test_words_of_one_phrase_may_have_an_article_or_a_mark_between_them():
    for text in ("delete the database", "step by step plan", "step-by-step plan", "risk-cap", "remove_all"):
        assert len(detected(text).matches) == 1, text


@given(st.text(max_size=300), st.booleans(), st.booleans())
def test_any_text_has_a_confidence_that_is_the_clamped_sum_of_its_matches(text, is_live, has_failed):
    context = DetectionContext(live=is_live, last_plan_failed=has_failed)
    found = detected(text, context)
    assert found.confidence == min(1.0, round(sum(match.weight for match in found.matches), 6))
    assert found.should_use == (found.confidence >= (0.4 if is_live else 0.6))
    assert len({match.pattern for match in found.matches}) == len(found.matches)
    assert found == detected(text, context)


def test_plan_that_failed_before_adds_its_weight_and_a_live_run_has_a_lower_threshold():
    text = "Raise the risk cap to 1 %."
    assert not detected(text).should_use
    assert detected(text, DetectionContext(last_plan_failed=True)).should_use
    assert detected(text, DetectionContext(live=True)).should_use
    assert not detected(text, DetectionContext(live=True), live_threshold=0.5).should_use
    assert detected(text, threshold=0.4).should_use


def test_detection_that_is_off_finds_nothing_and_what_is_forced_or_typed_takes_two_phases_all_the_same():
    text = "Delete all playbooks and rewrite them."
    assert detected(text).should_use
    off = detected(text, auto_detect=False)
    assert (off.should_use, off.confidence, off.matches) == (False, 0.0, ())
    assert detected("hello", DetectionContext(forced=True), auto_detect=False).should_use
    assert detected("replan", DetectionContext(typed=True), auto_detect=False).should_use
    assert "asked for" in detected("hello", DetectionContext(forced=True)).reason


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "part",
    [
        "delete ",
        "no ",
        "risk_cap ",
        "'a ",
        '"says ',
        "a1",
        "a.b.",
        "all the of ",
        "go to ",
        "x, ",
        "e\u0301-",
    ],
)
def test_text_of_any_length_is_read(part):
    assert 0.0 <= detected((part * 8_000)[:8_000]).confidence <= 1.0
