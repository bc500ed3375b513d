from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.judge import JudgeAction
from schemas.settings import JudgeSettings
from services.slow_loop.action_contract import (
    ContractState,
    check_action,
    eligible_playbooks,
    lowers_exposure,
)
from tests.each_case import check_each
from tests.services.high_level.builders import playbook

FIRST, SECOND = playbook("first"), playbook("second")
BOOKS = {"first": FIRST, "second": SECOND}


FIELDS: dict[str, dict[str, Any]] = {
    "set_eligibility": {"regime": "up/mid", "eligible": False, "life_blocks": 26},
    "set_threshold": {"parameter": "stretch", "value": 1.1},
    "set_invalidation": {"parameter": "exit_below", "value": 20.0},
    "set_risk_fraction": {"value": 0.0025},
    "open_experiment": {"parameter": "stretch", "value": 0.9, "life_blocks": 80},
    "replan": {},
}


def action(kind="set_eligibility", **changes):
    fields: dict[str, Any] = {"kind": kind, "playbook_id": "first", "reason": "test"}
    return JudgeAction(**(fields | FIELDS[kind] | changes))


def state(definitions=None, open_experiments=0, accepted=()):
    return ContractState(definitions or BOOKS, JudgeSettings(), open_experiments, accepted)


@pytest.mark.parametrize("kind", sorted(FIELDS))
def test_action_within_bounds_is_accepted(kind):
    assert check_action(action(kind), state()) is None


@check_each(
    ("kind", "changes", "code"),
    [
        ("set_eligibility", {"playbook_id": "frist"}, "unknown_playbook"),
        ("set_eligibility", {"regime": "up/high"}, "not_eligible"),
        ("set_eligibility", {"regime": "moon"}, "not_eligible"),
        ("set_eligibility", {"direction": "short"}, "unknown_direction"),
        ("set_eligibility", {"eligible": True}, "already_set"),
        ("set_eligibility", {"life_blocks": 27}, "life_too_long"),
        ("set_threshold", {"parameter": "strech"}, "unknown_parameter"),
        ("set_threshold", {"value": 1.05}, "off_grid"),
        ("set_threshold", {"value": 1.0}, "unchanged"),
        ("set_threshold", {"parameter": "exit_below", "value": 20.0}, "wrong_role"),
        ("set_invalidation", {"parameter": "stretch", "value": 1.1}, "wrong_role"),
        ("set_threshold", {"life_blocks": 81}, "life_too_long"),
        ("set_risk_fraction", {"life_blocks": 27}, "life_too_long"),
        ("set_risk_fraction", {"value": 0.01, "life_blocks": 81}, "life_too_long"),
        ("set_risk_fraction", {"value": 0.0}, "risk_out_of_bounds"),
        ("set_risk_fraction", {"value": 0.011}, "risk_out_of_bounds"),
        ("set_risk_fraction", {"value": 0.005}, "unchanged"),
        ("open_experiment", {"value": 7.0}, "off_grid"),
        ("open_experiment", {"life_blocks": 81}, "life_too_long"),
        ("set_risk_fraction", {"value": 0.01, "lowers_exposure": True}, "claims_lower_exposure"),
        ("set_threshold", {"value": 0.9, "lowers_exposure": True}, "claims_lower_exposure"),
        ("replan", {"lowers_exposure": True}, "claims_lower_exposure"),
    ],
)
def test_action_outside_its_bound_is_refused_with_its_code(kind, changes, code):
    refused = check_action(action(kind, **changes), state())
    assert refused is not None
    assert refused.code == code
    assert refused.reason


@pytest.mark.parametrize(("eligible", "most"), [(False, 26), (True, 80)])
def test_ban_may_live_as_long_as_a_measure_and_the_trial_of_its_end_as_long_as_a_trial(eligible, most):
    cells = {
        side: rules.model_copy(update={"banned": () if not eligible else ("up/mid",)})
        for side, rules in FIRST.eligibility.items()
    }
    books = {**BOOKS, "first": playbook("first", eligibility=cells)}
    assert check_action(action(eligible=eligible, life_blocks=most), state(books)) is None
    refused = check_action(action(eligible=eligible, life_blocks=most + 1), state(books))
    assert refused is not None
    assert (refused.code, str(most) in refused.reason) == ("life_too_long", True)


def test_refusal_of_a_misspelt_name_gives_the_nearest():
    refused = check_action(action(playbook_id="frist"), state())
    assert refused is not None
    assert "Did you mean 'first'?" in refused.reason


def test_disabled_playbook_is_not_changed():
    refused = check_action(action(), state({**BOOKS, "first": playbook("first", enabled=False)}))
    assert refused is not None
    assert refused.code == "playbook_disabled"


def test_same_target_twice_in_one_verdict_is_refused():
    refused = check_action(action(), state(accepted=(action(),)))
    assert refused is not None
    assert refused.code == "already_decided"
    assert check_action(action(regime="up/low"), state(accepted=(action(),))) is None


@pytest.mark.parametrize(("running", "accepted"), [(3, 0), (2, 1), (0, 3)])
def test_experiments_over_the_limit_are_refused(running, accepted):
    others = tuple(
        action("open_experiment", playbook_id="second", value=v) for v in (0.9, 1.1, 0.9)[:accepted]
    )
    refused = check_action(action("open_experiment"), state(open_experiments=running, accepted=others))
    assert refused is not None
    assert refused.code == "too_many_experiments"


def test_ban_lifted_by_a_lesson_is_a_change_and_never_lowers_exposure():
    long = FIRST.eligibility["long"].model_copy(update={"banned": ("up/mid",)})
    books = {**BOOKS, "first": playbook("first", eligibility={"long": long})}
    assert check_action(action(eligible=True), state(books)) is None
    assert not lowers_exposure(action(eligible=True), books)
    refused = check_action(action(), state(books))
    assert refused is not None
    assert refused.code == "already_set"


@given(st.permutations(range(8)), st.integers(1, 8))
def test_no_sequence_of_accepted_bans_leaves_fewer_playbooks_than_the_floor(order, count):
    cells = [(name, cell) for name in BOOKS for cell in ("up/low", "up/mid", "sideways/low", "sideways/mid")]
    accepted: tuple[JudgeAction, ...] = ()
    for name, cell in (cells[index] for index in order[:count]):
        candidate = action(playbook_id=name, regime=cell)
        if check_action(candidate, state(accepted=accepted)) is None:
            accepted = (*accepted, candidate)
    assert eligible_playbooks(BOOKS, accepted) == ("first", "second")
    assert count - len(accepted) <= 2  # only the last open cell of each playbook is refused


def test_floor_already_broken_by_the_files_does_not_forbid_other_bans():
    alone = {"first": FIRST}
    assert check_action(action(), state(alone)) is None
    others = tuple(action(regime=cell) for cell in ("up/low", "sideways/low", "sideways/mid"))
    refused = check_action(action(), state(alone, accepted=others))
    assert refused is not None
    assert refused.code == "floor"


@pytest.mark.parametrize(
    ("changed", "lowers"),
    [
        (action(), True),
        (action("set_risk_fraction"), True),
        (action("set_risk_fraction", value=0.006), False),
        (action("set_threshold", value=1.1), True),
        (action("set_threshold", value=0.9), False),
        (action("set_invalidation"), False),
        (action("open_experiment"), False),
        (action("replan"), False),
    ],
)
def test_lowers_exposure_follows_the_file_not_the_claim(changed, lowers):
    assert lowers_exposure(changed, BOOKS) is lowers
