"""An invalidation that is the only way out beside the stop may lie on either side of the entry."""

from dataclasses import replace

import pytest

from services.policy_checks.geometry import invalidation_is_misplaced
from services.policy_checks.plan_levels import read_levels
from tests.services.policy_checks.plans import changed, codes, right_request

WITH_THE_PLAN = "close > ema_20 + 3 * atr_14"


@pytest.mark.parametrize(
    ("has_target", "found"), [(True, ["invalidation_contradicts_direction"]), (False, [])]
)
def test_invalidation_on_the_winning_side_is_a_fault_only_beside_a_target(has_target, found):
    book = right_request().playbook
    rules = book.rules["long"].payload() | {"invalidation": WITH_THE_PLAN}
    kept = {role: text for role, text in rules.items() if has_target or role != "target"}
    playbook = changed(book, {"rules": {"long": kept}, "eligibility": {"long": book.eligibility["long"]}})
    request = changed(right_request(), {"playbook": playbook, "proposal.invalidation": WITH_THE_PLAN})
    levels = replace(read_levels(request), waits=False)
    assert codes(invalidation_is_misplaced(request, levels)) == found
