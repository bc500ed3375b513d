"""The checks of an amendment: what lets a stop move, a policy stay, and nothing hold back a stand-down."""

import pytest

from schemas.errors import InvariantViolation
from schemas.regime import RegimeLabels, RegimeView
from schemas.settings import ReflectionSettings
from schemas.vocabulary import (
    AmendmentKind,
    CheckName,
    InvocationOutcome,
    ReflectionStatus,
    Structure,
    Trend,
    VolatilityBand,
)
from services.policy_checks.amendment import AMENDMENT_CHECKS, check_amendment
from services.policy_checks.findings import status_of
from services.policy_level_reflection_service import PolicyLevelReflectionService
from tests.services.policy_checks.amendments import amendment_request, policy_of
from tests.services.policy_checks.plans import codes

KIND, STATUS = AmendmentKind, ReflectionStatus
ELSEWHERE = RegimeView(
    labels=RegimeLabels(trend=Trend.DOWN, volatility=VolatilityBand.EXTREME, structure=Structure.NEUTRAL),
    fingerprint=(0.5,) * 5,
)


def checked(request):
    findings, checks = check_amendment(request)
    return codes(findings), status_of(findings), checks


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (amendment_request(KIND.TIGHTEN, held=True, stop=97.0), STATUS.PASS),
        (amendment_request(KIND.TIGHTEN, held=True, direction="short", stop=103.0), STATUS.PASS),
        (amendment_request(KIND.KEEP), STATUS.PASS),
        (amendment_request(KIND.KEEP, held=True), STATUS.PASS),
        (amendment_request(KIND.STAND_DOWN), STATUS.PASS),
    ],
)
def test_amendment_that_is_right_passes_with_both_checks(request_, status):
    assert checked(request_) == ([], status, AMENDMENT_CHECKS)


@pytest.mark.parametrize("direction", ["long", "short"])
@pytest.mark.parametrize(
    ("away", "code", "status"),
    [
        (5.0, "stop_loosens", STATUS.BLOCK),
        (6.0, "stop_loosens", STATUS.BLOCK),
        (0.0, "stop_beyond_price", STATUS.REVISE),
        (-1.0, "stop_beyond_price", STATUS.REVISE),
        (0.16, "stop_within_costs", STATUS.REVISE),
    ],
)
def test_amendment_stop_has_to_lie_between_stop_and_close_and_outside_the_costs(
    direction, away, code, status
):
    sign = 1.0 if direction == "long" else -1.0
    request = amendment_request(
        KIND.TIGHTEN, held=True, direction=direction, stop=100.0 - sign * away, invariants__spread_bps=10.0
    )
    found, reply, _ = checked(request)
    assert (found, reply) == ([code], status)


def test_amendment_stop_within_costs_counts_the_spread_and_one_side():
    within = amendment_request(KIND.TIGHTEN, held=True, stop=99.9, invariants__spread_bps=10.0)
    assert checked(within)[0] == ["stop_within_costs"]
    assert checked(amendment_request(KIND.TIGHTEN, held=True, stop=99.9))[0] == [], "seven basis points"
    assert checked(amendment_request(KIND.TIGHTEN, held=True, stop=99.94))[0] == ["stop_within_costs"]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (amendment_request(KIND.TIGHTEN, stop=97.0), "no_position"),
        (amendment_request(KIND.TIGHTEN, held=True), "stop_not_a_price"),
        (amendment_request(KIND.TIGHTEN, held=True, direction="short", stop=0.0), "stop_not_a_price"),
        (
            amendment_request(KIND.TIGHTEN, held=True, stop=97.0, snapshot__staleness_bars=3),
            "stale_snapshot",
        ),
        (
            amendment_request(KIND.TIGHTEN, held=True, stop=97.0, amendment__policy_id="f" * 16),
            "policy_mismatch",
        ),
        (amendment_request(KIND.TIGHTEN, held=True, stop=97.0, policy=None), "policy_mismatch"),
        (
            amendment_request(KIND.TIGHTEN, held=True, stop=97.0, amendment__symbol="BBB"),
            "amendment_symbol_mismatch",
        ),
    ],
)
def test_amendment_stop_move_that_breaks_an_invariant_is_blocked_at_once(request_, code):
    found, status, checks = checked(request_)
    assert code in found
    assert (status, checks) == (STATUS.BLOCK, (CheckName.INVARIANT,))


def test_amendment_stop_move_says_why():
    request = amendment_request(KIND.TIGHTEN, held=True, stop=97.0, reason="  ")
    assert checked(request)[:2] == (["reason_missing"], STATUS.REVISE)


NO_LONGER = [
    ({"snapshot__regime": ELSEWHERE}, "eligibility_lost"),
    ({"snapshot__regime": None}, "eligibility_lost"),
    ({"playbook": None}, "playbook_replaced"),
    ({"playbook__version": 2}, "playbook_replaced"),
    ({"invariants__kill_switch": True, "snapshot__risk__kill_switch": True}, "kill_switch"),
    ({"invariants__halted": True, "snapshot__risk__halted": True}, "trading_halted"),
    ({"playbook__enabled": False}, "playbook_disabled"),
    ({"snapshot__staleness_bars": 9}, "stale_snapshot"),
]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        *NO_LONGER,
        ({"invariants__allowed_playbooks": ("none_of_them",)}, "playbook_not_allowed"),
        ({"policy": None}, "policy_mismatch"),
        ({"snapshot__active_policy_id": "f" * 16}, "policy_mismatch"),
    ],
)
def test_amendment_keep_of_a_policy_in_force_needs_all_that_let_it_in(changes, code):
    found, status, _ = checked(amendment_request(KIND.KEEP, **changes))
    assert code in found
    assert status is STATUS.BLOCK


@pytest.mark.parametrize(("changes", "code"), NO_LONGER)
def test_amendment_keep_of_a_position_is_never_blocked_and_says_what_no_longer_holds(changes, code):
    found, status, checks = checked(amendment_request(KIND.KEEP, held=True, **changes))
    assert code in found
    assert (status, checks) == (STATUS.PASS, AMENDMENT_CHECKS)


@pytest.mark.parametrize(
    "changes", [{"reason": ""}, {"policy": None}, {"snapshot__active_policy_id": None}, {"playbook": None}]
)
def test_amendment_stand_down_is_never_blocked(changes):
    assert checked(amendment_request(KIND.STAND_DOWN, **changes))[1] is STATUS.PASS


def test_amendment_reflection_is_bound_to_its_hashes_and_asks_no_model():
    class NeverAsked:
        async def complete(self, **_):
            raise AssertionError("a model was asked about an amendment")

    settings = ReflectionSettings(mode="full")
    request = amendment_request(KIND.KEEP)
    service = PolicyLevelReflectionService(settings, model=NeverAsked())
    result = service.reflect_amendment(request, source="position_opened")
    assert result.status is STATUS.PASS
    assert result.snapshot_hash == request.snapshot.content_hash
    assert result.proposal_hash == request.amendment.content_hash
    assert result.playbook_hash == policy_of().playbook_hash
    assert (result.meta.outcome, result.meta.source) == (InvocationOutcome.RAN, "position_opened")
    with pytest.raises(InvariantViolation, match="off"):
        PolicyLevelReflectionService(ReflectionSettings(mode="off")).reflect_amendment(request, source="x")
