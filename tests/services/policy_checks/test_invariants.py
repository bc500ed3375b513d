from typing import Any

import pytest

from schemas.no_learn import NoLearnZone
from schemas.reflection import Remedy
from schemas.vocabulary import Severity
from services.policy_checks.invariants import check_invariants
from tests.each_case import check_each
from tests.services.policy_checks.plans import (
    DAY,
    NOW,
    PLAN_IDS,
    PLANS,
    account,
    changed,
    codes,
    held,
    right_request,
)

ZONE = NoLearnZone(start=NOW - 3 * DAY, end=NOW - 2 * DAY, reason="exchange halt")
AROUND_NOW = NoLearnZone(start=NOW - 1, end=NOW + DAY, reason="feed gap")
BROKEN: dict[str, dict[str, Any]] = {
    "kill_switch": account(kill_switch=True),
    "trading_halted": account(halted=True),
    "symbol_not_allowed": {"invariants.allowed_symbols": ("BBB",)},
    "direction_not_allowed": {"invariants.allowed_directions": ("short",)},
    "playbook_not_allowed": {"invariants.allowed_playbooks": ("mean_reversion",)},
    "playbook_mismatch": {"proposal.playbook_id": "mean_reversion"},
    "playbook_disabled": {"playbook.enabled": False},
    "playbook_from_the_future": {"playbook.known_at": NOW + 1},
    "entry_while_in_position": {},
    "exposure_cap_reached": account(gross_exposure=1.0),
    "no_learn_zone_active": {"invariants.no_learn_zones": (AROUND_NOW,)},
    "stale_snapshot": {"snapshot.staleness_bars": 3},
    "horizon_over_bound": {"proposal.horizon_bars": 251},
    "activation_window_over_bound": {"proposal.activation_window_bars": 11},
    "missing_entry": {"proposal.setup": "  "},
    "missing_stop": {"proposal.stop": ""},
    "missing_target": {"proposal.target": " "},
    "missing_invalidation": {"proposal.invalidation": "\n"},
}


@check_each(("playbook", "direction"), PLANS, ids=PLAN_IDS)
@check_each("code", BROKEN)
def test_invariants_broken_guardrail_is_found_with_its_own_code(code, playbook, direction):
    changes = dict(BROKEN[code])
    if code == "direction_not_allowed":
        changes = {"invariants.allowed_directions": tuple({"long", "short"} - {direction})}
    if code == "entry_while_in_position":
        changes = held(right_request(playbook, direction))
    if code == "playbook_not_allowed":
        changes = {"invariants.allowed_playbooks": ("another",)}
    if code == "playbook_mismatch":
        changes = {"proposal.playbook_id": "another"}
    findings = check_invariants(changed(right_request(playbook, direction), changes))
    assert codes(findings) == [code]
    assert findings[0].severity is Severity.BLOCKER
    assert findings[0].message


@pytest.mark.parametrize("text", ["As on 2009-12-25, sellers are gone.", "As on 2009-99-99 and 9999-12-31."])
def test_invariants_text_citing_another_day_finds_nothing(text):
    request = changed(right_request(), {"invariants.no_learn_zones": (ZONE,), "proposal.rationale": text})
    assert check_invariants(request) == ()


# NOW is 2010-01-01; the zone is the whole 2009-12-29 and ends as the next day begins.
@pytest.mark.parametrize(
    "day",
    [
        "2009-12-29T09:30:00Z", "2009-12-29t09:30", "2009-12-29 09:30", "2009/12/29", "2009.12.29",
        "29 December 2009",
        "29 Dec 2009", "29th of December, 2009", "29-Dec-2009", "December 29, 2009",
        "december 29th 2009", "Dec. 29, 2009", "Dec 29 2009",
    ],
)  # fmt: skip
def test_invariants_day_of_a_no_learn_zone_is_found_however_it_is_written(day):
    texts = {"proposal.rationale": f"An uptrend as on {day}, and a dip."}
    request = changed(right_request(), {"invariants.no_learn_zones": (ZONE,), **texts})
    (found,) = check_invariants(request)
    assert found.code == "no_learn_zone_cited"
    assert found.message.startswith(day[:10])


@pytest.mark.parametrize(
    "day",
    [
        "2009-12-28T23:59:59Z", "2009-12-30", "Dec 30 2009", "2009/12/31",
        "28 December 2009", "December 31, 2009", "31 Nov 2009",
        "29 December 2010", "29/12/2009", "12009-12-29", "2009-12-290", "2009-12/29", "29 Decade 2009",
    ],
)  # fmt: skip
def test_invariants_another_day_is_not_found_however_it_is_written(day):
    texts = {"proposal.rationale": f"An uptrend as on {day}, and a dip."}
    assert check_invariants(changed(right_request(), {"invariants.no_learn_zones": (ZONE,), **texts})) == ()


def test_invariants_risk_of_the_account_is_clamped_and_no_finding():
    assert check_invariants(changed(right_request(), {"snapshot.risk.risk_fraction": 0.02})) == ()


def test_invariants_playbook_known_at_the_snapshot_itself_finds_nothing():
    assert check_invariants(changed(right_request(), {"playbook.known_at": NOW})) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"proposal.horizon_bars": 250},
        {"proposal.activation_window_bars": 10},
        {"snapshot.staleness_bars": 2},
        {"playbook.risk_fraction": 0.01},
    ],
)
def test_invariants_value_exactly_at_its_bound_finds_nothing(changes):
    assert check_invariants(changed(right_request(), changes)) == ()


def test_invariants_zone_of_another_symbol_finds_nothing():
    zone = changed(AROUND_NOW, {"symbol": "BBB"})
    assert check_invariants(changed(right_request(), {"invariants.no_learn_zones": (zone,)})) == ()


def test_invariants_several_broken_are_all_found_in_a_fixed_order():
    request = changed(
        right_request(), account(kill_switch=True) | {"proposal.stop": "", "snapshot.staleness_bars": 9}
    )
    assert codes(check_invariants(request)) == ["kill_switch", "stale_snapshot", "missing_stop"]


def test_invariants_bound_broken_names_the_value_that_would_satisfy_it():
    found = check_invariants(changed(right_request(), {"proposal.horizon_bars": 400}))[0]
    assert found.remedy == Remedy(field="horizon_bars", op="at_most", value=250)


def test_invariants_risk_over_the_cap_is_a_note_because_orders_are_clamped():
    (found,) = check_invariants(changed(right_request(), {"playbook.risk_fraction": 0.02}))
    assert (found.code, found.severity) == ("risk_fraction_over_cap", Severity.MINOR)
