"""Typed changes as actions of the contract, and what is refused of fields that do not fit their kind."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.change_reply import ActionReply
from schemas.errors import ConfigError
from schemas.judge import ACTION_FORMS, JudgeAction
from schemas.plan import CHANGE_FORMS, RollbackAction, fields_of
from schemas.settings import JudgeSettings
from services.plans.drafting import EmptyPlan, PlanFacts, draft
from services.plans.typed_changes import propose_change
from services.playbooks.loader import load_playbooks
from services.slow_loop.action_contract import lowers_exposure

BOOKS = {book.id: book for book in load_playbooks()}
JUDGE = JudgeSettings()
FACTS = PlanFacts(at=1, expires_at=2, definitions=BOOKS, next_versions=dict.fromkeys(BOOKS, 2), judge=JUDGE)
NAME = "channel_breakout"
BAN = {"playbook_id": NAME, "regime": "up/high", "eligible": False}
REWARD = {"playbook_id": NAME, "parameter": "reward", "value": 2.0}
GIVEN: dict[str, dict[str, Any]] = {
    "set_eligibility": BAN,
    "set_threshold": REWARD,
    "set_invalidation": {"playbook_id": NAME, "parameter": "failure_atr", "value": 0.5},
    "set_risk_fraction": {"playbook_id": NAME, "value": 0.0025},
    "replan": {},
    "open_experiment": REWARD,
    "rollback": {"playbook_id": NAME},
}


def propose(kind, fields=None):
    return propose_change(kind, GIVEN[kind] if fields is None else fields, BOOKS, JUDGE, "why")


@pytest.mark.parametrize("kind", CHANGE_FORMS)
def test_typed_change_of_every_kind_is_its_action_with_its_life_and_its_reason(kind):
    proposed = propose(kind)
    action = proposed.action
    assert (action.kind, action.reason, proposed.checkpoint, proposed.candidate) == (kind, "why", False, None)
    assert all(getattr(action, name) == value for name, value in GIVEN[kind].items())
    if isinstance(action, JudgeAction):
        assert action.lowers_exposure == lowers_exposure(action, BOOKS)
        lives = "life_blocks" in fields_of(kind)
        life = JUDGE.action_life_blocks if kind == "set_eligibility" else JUDGE.shadow_life_blocks
        assert action.life_blocks == (life if lives else None)
    else:
        assert isinstance(action, RollbackAction)


@pytest.mark.parametrize("kind", [kind for kind in CHANGE_FORMS if kind != "rollback"])
def test_typed_change_of_every_kind_becomes_a_step_of_a_plan(kind):
    plan = draft([propose(kind)], FACTS, "text", understanding="u")
    assert not isinstance(plan, EmptyPlan), plan
    assert [step.action.kind for step in plan.steps] == [kind]


def test_lifted_ban_lives_as_long_as_a_trial_and_a_given_life_stays():
    assert propose("set_eligibility", BAN | {"eligible": True}).action.life_blocks == JUDGE.shadow_life_blocks
    assert propose("set_eligibility", BAN | {"life_blocks": 3}).action.life_blocks == 3


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (
            "set_eligibility",
            {"playbook_id": NAME, "eligible": False},
            "set_eligibility needs regime: it takes",
        ),
        (
            "set_risk_fraction",
            GIVEN["set_risk_fraction"] | {"regime": "up/high"},
            "has no regime: it takes play",
        ),
        ("replan", {"playbook_id": NAME}, "replan has no playbook_id: it takes nothing"),
        ("rollback", {}, "rollback needs playbook_id"),
        ("rollback", BAN, "rollback has no regime, eligible"),
        ("set_eligibility", BAN | {"direction": "up"}, "set_eligibility: direction: literal error"),
        ("set_eligibility", BAN | {"life_blocks": 0}, "set_eligibility: life_blocks: greater than equal"),
    ],
)
def test_fields_that_do_not_fit_their_kind_are_refused_in_one_line_with_those_that_do(kind, fields, message):
    with pytest.raises(ConfigError) as caught:
        propose(kind, fields)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rollback_of_a_playbook_that_is_not_in_force_is_refused_with_the_nearest():
    plan = draft([propose("rollback", {"playbook_id": "chanel_breakout"})], FACTS, "text", understanding="u")
    assert isinstance(plan, EmptyPlan)
    assert [item.code for item in plan.refused] == ["unknown_playbook"]
    assert "Did you mean 'channel_breakout'?" in plan.refused[0].reason


@given(
    st.sampled_from(sorted(CHANGE_FORMS)), st.dictionaries(st.sampled_from(sorted(BAN | REWARD)), st.none())
)
def test_field_that_is_not_given_is_a_field_that_is_missing(kind, nothing):
    needed = [name for name in CHANGE_FORMS[kind].needed if name != "life_blocks"]
    if needed:
        with pytest.raises(ConfigError, match=f"{kind} needs {needed[0]}"):
            propose(kind, nothing)
    else:
        assert propose(kind, nothing).action.kind == kind


def test_forms_name_fields_of_the_contract_that_have_a_description_and_that_a_model_may_write():
    for kind in ACTION_FORMS:
        for name in fields_of(kind):
            assert JudgeAction.model_fields[name].description, name
            assert name in {*ActionReply.model_fields, "life_blocks"}
