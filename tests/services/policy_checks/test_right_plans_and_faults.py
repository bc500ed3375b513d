"""Right plans pass, and each way to spoil one is found by its name, on plans held out too."""

import asyncio
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from schemas.settings import ReflectionSettings
from schemas.vocabulary import ReflectionStatus
from services.policy_level_reflection_service import PolicyLevelReflectionService
from tests.each_case import check_each
from tests.services.policy_checks.faults import FAULTS
from tests.services.policy_checks.plans import PLANS, codes
from tests.services.policy_checks.remedies_applied import remedied
from tests.services.policy_checks.right_plans import right_plans

TUNED, HELD_OUT = right_plans("tuned"), right_plans("held_out")
EVERY_PLAN = TUNED + HELD_OUT
SOME_PLANS = EVERY_PLAN[::11]
EVERY_FAULT = check_each("fault", FAULTS, ids=lambda fault: fault.name)
DOCS = Path(__file__).parents[3] / "docs"
# What no change of the plan can satisfy: its moment, its account, its words.
BEYOND_THE_PLAN = {
    "kill_switch", "trading_halted", "symbol_not_allowed", "direction_not_allowed", "playbook_not_allowed",
    "playbook_disabled", "playbook_from_the_future", "direction_not_in_playbook",
    "entry_while_in_position", "exposure_cap_reached", "no_learn_zone_active", "no_learn_zone_cited",
    "stale_snapshot", "text_contradicts_direction", "rationale_misses_playbook", "reason_not_so",
    "timeframe_not_eligible", "regime_unknown", "playbook_not_eligible", "memory_contradicts",
}  # fmt: skip
# What the playbook does not have can only be left out, and a remedy sets a value.
NOT_IN_EVERY_PLAYBOOK = {
    "activation_blank", "activation_that_cannot_fire", "activation_that_is_always_true",
    "break_even_of_its_own", "break_even_behind_the_target", "scale_out_of_its_own",
    "scale_out_behind_the_target", "trail_of_its_own",
}  # fmt: skip


def reflected(requests):
    service = PolicyLevelReflectionService(ReflectionSettings())

    async def all_of_them():
        return [await service.reflect(request, source="heartbeat") for request in requests]

    return asyncio.run(all_of_them())


@cache
def judged(fault):
    """{plan: what was found in it with the fault}, and some of the requests with theirs."""
    spoiled = ((plan.name, fault.spoil(plan.request)) for plan in EVERY_PLAN)
    requests = {name: request for name, request in spoiled if request is not None}
    results = dict(zip(requests, reflected(requests.values()), strict=True))
    return results, [(requests[p.name], results[p.name]) for p in SOME_PLANS if p.name in requests]


def test_right_plans_cover_every_playbook_direction_price_and_memory():
    for plans in (TUNED, HELD_OUT):
        assert len(plans) >= 60
        kinds = Counter((plan.request.playbook.id, plan.request.proposal.direction) for plan in plans)
        assert set(kinds) == {(playbook.id, direction) for playbook, direction in PLANS}
        closes = [plan.request.snapshot.close for plan in plans]
        assert min(closes) < 0.06
        assert max(closes) > 50_000
        assert len({plan.request.memory and plan.request.memory.base_rates for plan in plans}) > 4
        regimes = [plan.request.snapshot.regime for plan in plans]
        assert len({regime.labels for regime in regimes if regime is not None}) > 15
        assert len({plan.request.proposal.rationale for plan in plans}) > 0.9 * len(plans)


@pytest.mark.parametrize("plans", [TUNED, HELD_OUT], ids=["tuned", "held_out"])
def test_right_plans_with_the_reasons_of_their_rules_all_pass(plans):
    results = reflected([plan.request for plan in plans])
    payload = {
        plan.name: result.requested_revisions
        for plan, result in zip(plans, results, strict=True)
        if result.status is not ReflectionStatus.PASS
    }
    assert payload == {}


@EVERY_FAULT
def test_fault_is_found_with_its_code_in_every_right_plan(fault):
    results, _ = judged(fault)
    assert len(results) >= len(EVERY_PLAN) / 3
    missed = {
        name: codes(result.findings)
        for name, result in results.items()
        if not set(fault.codes) <= set(codes(result.findings)) or result.status is ReflectionStatus.PASS
    }
    assert missed == {}


def test_faults_are_many_and_most_have_a_place_in_every_plan():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 35
    everywhere = [fault for fault in FAULTS if len(judged(fault)[0]) == len(EVERY_PLAN)]
    assert len(everywhere) >= 25
    assert len({code for fault in FAULTS for code in fault.codes}) >= 35


def test_some_plans_are_of_most_playbooks_and_both_directions():
    assert len({(plan.request.playbook.id, plan.request.proposal.direction) for plan in SOME_PLANS}) >= 8


@EVERY_FAULT
def test_remedy_where_a_finding_has_one_removes_it(fault):
    for request, result in judged(fault)[1]:
        for finding in result.findings:
            if finding.remedy is None:
                continue
            (after,) = reflected([remedied(request, finding.remedy)])
            left = [(entry.code, entry.evidence) for entry in after.findings]
            assert (finding.code, finding.evidence) not in left, finding


@check_each(
    "fault",
    [f for f in FAULTS if not set(f.codes) <= BEYOND_THE_PLAN and f.name not in NOT_IN_EVERY_PLAYBOOK],
    ids=lambda fault: fault.name,
)
def test_remedy_is_there_for_whatever_the_plan_can_satisfy(fault):
    for _, result in judged(fault)[1]:
        bare = [
            finding for finding in result.findings if finding.code in fault.codes and finding.remedy is None
        ]
        assert [finding for finding in bare if finding.code not in BEYOND_THE_PLAN] == []


def test_fault_codes_are_documented():
    page = (DOCS / "reference" / "findings.md").read_text("utf-8")
    assert {code for fault in FAULTS for code in fault.codes if f"| `{code}` |" not in page} == set()
