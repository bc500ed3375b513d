"""Right plans pass, and each way to spoil one is found by its name, on plans held out too."""

from collections import Counter
from pathlib import Path

import pytest

from schemas.vocabulary import ReflectionStatus, Severity
from services.policy_checks.coherence import text_contradicts_direction
from services.policy_checks.plan_levels import read_levels
from tests.services.policy_checks import wordings_whole as whole
from tests.services.policy_checks.faults import FAULTS, worded_faults
from tests.services.policy_checks.plans import PLANS, codes
from tests.services.policy_checks.remedies_applied import remedied
from tests.services.policy_checks.right_plans import right_plans
from tests.services.policy_checks.wording_rates import (
    BANKS,
    WHOLE,
    contradicting,
    contradicting_whole,
    passing,
    rates,
    reflected,
)

TUNED, HELD_OUT = right_plans("tuned", BANKS["tuned"]), right_plans("held_out", BANKS["held_out"])
EVERY_PLAN = TUNED + HELD_OUT
SOME_PLANS = EVERY_PLAN[::11]
LEVELS = read_levels(TUNED[0].request)  # of any plan: the reading of texts has no use for levels
EVERY_FAULT = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
READ_BEFORE = pytest.mark.parametrize("name", ["tuned", "first", "second", "third"])
DOCS = Path(__file__).parents[3] / "docs"
# Measured by `wording_rates`; no word of the lexicon was chosen for this bank.
HELD_OUT_PASS, HELD_OUT_AGAINST, HELD_OUT_NEGATED = 71, 240, 60
# Whole rationales, for none of which anything in the reading was chosen.
WHOLE_PASS, WHOLE_AGAINST, WHOLE_AGAINST_AFTER_TERMS, WHOLE_DENIED = 36, 39, 30, 17
# What no change of the plan can satisfy: its moment, its account, its words.
BEYOND_THE_PLAN = {
    "kill_switch", "trading_halted", "symbol_not_allowed", "direction_not_allowed", "playbook_not_allowed",
    "playbook_disabled", "playbook_from_the_future", "direction_not_in_playbook",
    "entry_while_in_position", "exposure_cap_reached", "no_learn_zone_active", "no_learn_zone_cited",
    "stale_snapshot", "text_contradicts_direction", "rationale_misses_playbook", "timeframe_not_eligible",
    "regime_unknown", "playbook_not_eligible", "memory_contradicts",
}  # fmt: skip
# What the playbook does not have can only be left out, and a remedy sets a value.
NOT_IN_EVERY_PLAYBOOK = {
    "activation_blank", "activation_that_cannot_fire", "activation_that_is_always_true",
    "break_even_of_its_own", "break_even_behind_the_target", "scale_out_of_its_own",
    "scale_out_behind_the_target", "trail_of_its_own",
}  # fmt: skip


def found_in(requests):
    return [codes(result.findings) for result in reflected(requests)]


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


@READ_BEFORE
def test_right_plans_in_wordings_read_before_all_pass(name):
    plans = right_plans(name, BANKS[name])
    results = reflected([plan.request for plan in plans])
    told = {
        plan.name: result.requested_revisions
        for plan, result in zip(plans, results, strict=True)
        if result.status is not ReflectionStatus.PASS
    }
    assert told == {}


def test_right_plans_held_out_pass_but_for_the_reading_of_their_texts():
    results = reflected([plan.request for plan in HELD_OUT])
    assert sum(result.status is ReflectionStatus.PASS for result in results) >= HELD_OUT_PASS
    heavy = (Severity.MAJOR, Severity.BLOCKER)
    wrong = {found.code for result in results for found in result.findings if found.severity in heavy}
    assert wrong <= {"text_contradicts_direction"}


@EVERY_FAULT
def test_fault_is_found_with_its_code_in_every_right_plan(fault):
    spoiled = [(plan.name, fault.spoil(plan.request)) for plan in EVERY_PLAN]
    asked = [(name, request) for name, request in spoiled if request is not None]
    assert len(asked) >= len(EVERY_PLAN) / 3
    results = reflected([request for _, request in asked])
    missed = {
        name: codes(result.findings)
        for (name, _), result in zip(asked, results, strict=True)
        if not set(fault.codes) <= set(codes(result.findings)) or result.status is ReflectionStatus.PASS
    }
    assert missed == {}


def test_faults_are_many_and_most_have_a_place_in_every_plan():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 35
    everywhere = [f for f in FAULTS if all(f.spoil(plan.request) is not None for plan in EVERY_PLAN)]
    assert len(everywhere) >= 25
    assert len({code for fault in FAULTS for code in fault.codes}) >= 35


def test_some_plans_are_of_most_playbooks_and_both_directions():
    assert len({(one.request.playbook.id, one.request.proposal.direction) for one in SOME_PLANS}) >= 8


@pytest.mark.parametrize("fault", list(worded_faults(BANKS["tuned"])), ids=lambda fault: fault.name)
def test_fault_in_words_is_found_in_the_field_where_it_stands(fault):
    missed = []
    for plan in TUNED:
        spoiled = fault.spoil(plan.request)
        found = text_contradicts_direction(spoiled, LEVELS)
        if fault.evidence not in [finding.evidence for finding in found]:
            missed.append(plan.name)
    assert missed == []


def test_fault_in_words_is_found_after_any_list_of_the_playbooks_terms():
    assert contradicting(BANKS["tuned"].against, after_terms=True) == contradicting(BANKS["tuned"].against)


def test_fault_in_words_held_out_is_found_as_often_as_measured():
    bank = BANKS["held_out"]
    assert len(bank.against) >= 16
    assert contradicting(bank.against).found >= HELD_OUT_AGAINST
    assert contradicting(bank.against, after_terms=True).found >= HELD_OUT_AGAINST
    assert contradicting(bank.negated).found >= HELD_OUT_NEGATED


def test_whole_rationales_are_read_at_least_as_well_as_measured():
    texts = [
        text for bank in (whole.RIGHT, whole.AGAINST, whole.DENIED) for told in bank.values() for text in told
    ]
    assert len(texts) == len(set(texts))
    asked = {(playbook.id, direction) for playbook, direction in PLANS}
    assert set(whole.RIGHT) == set(whole.AGAINST) == set(whole.DENIED) == asked
    assert passing(WHOLE).found >= WHOLE_PASS
    assert contradicting_whole(whole.AGAINST).found >= WHOLE_AGAINST
    assert contradicting_whole(whole.AGAINST, after_terms=True).found >= WHOLE_AGAINST_AFTER_TERMS
    assert contradicting_whole(whole.DENIED).found >= WHOLE_DENIED


@EVERY_FAULT
def test_remedy_where_a_finding_has_one_removes_it(fault):
    spoiled = [fault.spoil(plan.request) for plan in SOME_PLANS]
    for request in [one for one in spoiled if one is not None]:
        (result,) = reflected([request])
        for finding in result.findings:
            if finding.remedy is None:
                continue
            (after,) = reflected([remedied(request, finding.remedy)])
            left = [(one.code, one.evidence) for one in after.findings]
            assert (finding.code, finding.evidence) not in left, finding


@pytest.mark.parametrize(
    "fault",
    [f for f in FAULTS if not set(f.codes) <= BEYOND_THE_PLAN and f.name not in NOT_IN_EVERY_PLAYBOOK],
    ids=lambda fault: fault.name,
)
def test_remedy_is_there_for_whatever_the_plan_can_satisfy(fault):
    for plan in SOME_PLANS:
        request = fault.spoil(plan.request)
        if request is None:
            continue
        (result,) = reflected([request])
        bare = [one for one in result.findings if one.code in fault.codes and one.remedy is None]
        assert [one for one in bare if one.code not in BEYOND_THE_PLAN] == []


def test_fault_codes_are_documented():
    page = (DOCS / "reference" / "findings.md").read_text("utf-8")
    assert {code for fault in FAULTS for code in fault.codes if f"| `{code}` |" not in page} == set()


@pytest.mark.parametrize("name", [*BANKS, WHOLE])
def test_rates_of_each_bank_are_the_documented_ones(name):
    page = (DOCS / "explanation" / "the-fast-reflection.md").read_text("utf-8")
    row = " | ".join([name.replace("_", " "), *(str(share) for share in rates(name).values())])
    assert f"| {row} |" in page
