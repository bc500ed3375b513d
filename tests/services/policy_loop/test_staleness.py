"""When an answer is too old: by bars, by position, by state, by regime, by risk."""

from dataclasses import replace

import pytest

from schemas.vocabulary import PolicyState
from services.policy_loop.staleness import AccountState, why_stale

REQUESTED = AccountState(
    row=10, state=PolicyState.IDLE, position=None, regime="up/mid", halted=False, kill_switch=False
)
HELD = replace(REQUESTED, state=PolicyState.HOLD_LOCK, position=("long", 8, 2.0))


@pytest.mark.parametrize("most_bars", [0, 1, 5])
@pytest.mark.parametrize("requested", [REQUESTED, HELD])
def test_answer_within_its_bars_to_an_unchanged_standing_is_not_stale(requested, most_bars):
    assert why_stale(requested, requested, most_bars) is None
    assert why_stale(requested, replace(requested, row=10 + most_bars), most_bars) is None


@pytest.mark.parametrize("most_bars", [0, 1, 5])
def test_answer_one_bar_too_late_is_stale_and_says_by_how_much(most_bars):
    reason = why_stale(REQUESTED, replace(REQUESTED, row=11 + most_bars), most_bars)
    assert reason == f"{most_bars + 1} bars later than its snapshot, at most {most_bars} are allowed"


@pytest.mark.parametrize(
    ("requested", "change", "reason"),
    [
        (REQUESTED, {"position": ("long", 10, 2.0)}, "the position was none and is long 2.0"),
        (HELD, {"position": None}, "the position was long 2.0 and is none"),
        (HELD, {"position": ("long", 8, 1.0)}, "the position was long 2.0 and is long 1.0"),
        (HELD, {"position": ("long", 9, 2.0)}, "the position was long 2.0 and is long 2.0"),
        (REQUESTED, {"state": PolicyState.THESIS_ARMED}, "the state was IDLE and is THESIS_ARMED"),
        (HELD, {"state": PolicyState.INVALIDATED}, "the state was HOLD_LOCK and is INVALIDATED"),
        (REQUESTED, {"regime": "down/mid"}, "the regime was up/mid and is down/mid"),
        (REQUESTED, {"regime": None}, "the regime was up/mid and is None"),
        (REQUESTED, {"halted": True}, "entries were allowed and are halted"),
        (
            REQUESTED,
            {"halted": True, "kill_switch": True},
            "entries were allowed and are stopped by the kill switch",
        ),
    ],
)
def test_answer_about_another_world_is_stale_even_at_once(requested, change, reason):
    assert why_stale(requested, replace(requested, **change), 5) == reason


def test_answer_given_while_a_cooldown_ends_is_not_stale():
    cooling = replace(REQUESTED, state=PolicyState.COOLDOWN)
    assert why_stale(cooling, REQUESTED, 1) is None
    assert why_stale(REQUESTED, cooling, 1) is None
