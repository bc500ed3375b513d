"""Levels are read on the grid on which they trade, so that what is reflected on is what is ordered."""

import pytest

from schemas.settings import ExecutionSettings, Settings
from services.policy_checks.coherence import check_coherence
from services.policy_checks.plan_levels import is_true, on_grid, price_of, read_levels
from tests.services.policy_checks.plans import PLAN_IDS, PLANS, acting, changed, right_request
from tests.worker.test_session_wires import finished, session

LEVELS = ("entry", "stop", "target", "playbook_entry", "playbook_stop")


@pytest.mark.parametrize(("playbook", "direction"), PLANS, ids=PLAN_IDS)
def test_levels_of_a_plan_are_those_of_its_rules_on_the_grid(playbook, direction):
    request = right_request(playbook, direction)
    plain, levels = read_levels(request), read_levels(changed(request, {"invariants.tick_size": 0.25}))
    for name in LEVELS:
        at_market = name.endswith("entry") and getattr(plain, name) == plain.close
        assert getattr(levels, name) == (plain.close if at_market else on_grid(getattr(plain, name), 0.25))


def test_price_of_a_bar_is_read_to_its_last_digit_though_it_is_no_sum_of_the_close():
    close, high = 884.89, 1935.05
    assert close + (high - close) != high
    snapshot = changed(right_request().snapshot, {"close": close, "features": {"close": close, "high": high}})
    assert price_of("high", snapshot, 0.0) == high
    assert is_true("high >= 1935.05", snapshot) is True


def test_plan_whose_stop_falls_on_its_entry_is_sent_back():
    request = changed(acting(right_request()), {"invariants.tick_size": 50.0})
    codes = {found.code for found in check_coherence(request, read_levels(request))}
    assert "stop_on_wrong_side" in codes


def test_session_on_a_coarse_grid_offers_no_plan_whose_stop_falls_on_its_entry():
    made = session(Settings(execution=ExecutionSettings(tick_size=40.0)), ("2003-01-01", "2003-09-30"))
    finished(made)
    assert made.policy_loop.counters.passed_over["stop_on_wrong_side"] > 0
    assert made.policy_loop.counters.errors == 0


@pytest.mark.parametrize("level", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("tick", [0.0, 0.25])
def test_on_grid_of_what_is_no_number_is_unknown(level, tick):
    assert on_grid(level, tick) is None


@pytest.mark.parametrize(
    ("level", "tick", "found"), [(97.3, 0.0, 97.3), (97.3, 0.5, 97.5), (54.551, 0.01, 54.55)]
)
def test_on_grid_is_the_nearest_level(level, tick, found):
    assert on_grid(level, tick) == found
    assert on_grid(found, tick) == found
