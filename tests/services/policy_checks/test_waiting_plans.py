"""A plan is judged where it can act: at the close at which its setup is true, before that symbolically."""

import pytest

from schemas.settings import ReflectionSettings
from services.policy_checks.coherence import check_coherence
from services.policy_checks.expectation import check_expectation
from services.policy_checks.plan_levels import read_levels
from tests.services.policy_checks.plans import CLOSE, acting, changed, codes, right_request

PLACES = ("stop_on_wrong_side", "target_on_wrong_side", "invalidation_already_true", "reward_to_risk_too_low")


def found(request):
    levels = read_levels(request)
    coherence = check_coherence(request, levels)
    return codes(coherence + check_expectation(request, levels, ReflectionSettings()))


def written(**rules):
    """A right request whose playbook and plan both have these rules; the fast average lies below the slow."""
    request = right_request()
    own = changed(request.playbook.rules["long"], rules)
    request = changed(request, {f"proposal.{role}": text for role, text in rules.items()})
    features = dict(request.snapshot.features) | {"sma_20": 98.0, "sma_50": 99.0, "atr_14": 2.0}
    return changed(
        request,
        {"playbook.rules": dict(request.playbook.rules) | {"long": own}, "snapshot.features": features},
    )


CROSS = {"setup": "crosses_above(sma_20, sma_50)", "stop": "close * 0.9", "target": "close * 1.2"}
REVERSION = {"setup": "close < sma_50 - 3 * atr_14", "stop": "close - 2 * atr_14", "target": "sma_50"}


def test_cross_whose_invalidation_holds_until_the_cross_waits_and_is_not_sent_back():
    request = written(**CROSS, invalidation="sma_20 < sma_50")
    assert read_levels(request).waits
    assert not set(PLACES) & set(found(request))


def test_reversion_whose_target_lies_below_the_close_until_its_setup_is_not_sent_back():
    request = written(**REVERSION, invalidation="close < sma_50 - 6 * atr_14")
    assert not set(PLACES) & set(found(request))
    assert "target_on_wrong_side" in found(acting(request))


def test_plan_whose_setup_is_true_is_judged_at_its_close():
    request = written(
        setup="sma_20 < sma_50", stop="close * 0.9", target="close * 1.2", invalidation="close < 200"
    )
    assert not read_levels(request).waits
    assert "invalidation_already_true" in found(request)


def test_setup_that_is_unknown_on_the_snapshot_is_judged_at_its_close():
    request = written(**CROSS | {"setup": "close > ema_77"}, invalidation="close < 200")
    assert not read_levels(request).waits


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        (CROSS | {"setup": "rsi_14 > 99", "invalidation": "rsi_14 > 90"}, "invalidation_already_true"),
        (CROSS | {"stop": "close + atr_14", "invalidation": "close < sma_50"}, "stop_on_wrong_side"),
        (CROSS | {"target": "close - atr_14", "invalidation": "close < sma_50"}, "target_on_wrong_side"),
        (CROSS | {"target": "close * 1.05", "invalidation": "close < sma_50"}, "reward_to_risk_too_low"),
        (CROSS | {"target": "close * 2", "invalidation": "close < sma_50"}, "target_beyond_mfe"),
    ],
)
def test_what_no_market_can_make_right_is_found_while_the_plan_waits(rules, code):
    request = written(**rules)
    request = changed(request, {"snapshot.features": dict(request.snapshot.features) | {"rsi_14": 50.0}})
    assert read_levels(request).waits
    assert code in found(request)


def test_what_a_strategist_changed_is_measured_against_the_playbook_while_the_plan_waits():
    request = right_request()
    assert read_levels(request).waits
    nearer = changed(request, {"proposal.stop": "close - 0.1 * atr_14"})
    assert "stop_inside_winner_mae" in found(nearer)
    farther = changed(request, {"proposal.target": f"{10 * CLOSE}"})
    assert "target_beyond_mfe" in found(farther)
    assert not {"stop_inside_winner_mae", "target_beyond_mfe"} & set(found(request))
