"""What an order needs and what may still change it: levels, refinements, and the policy behind it.

Tables as in `test_kernel_entries.py`: row 3 is the first bar that the order meets.
"""

from typing import Any

import numpy as np
import pytest

from tests.each_case import check_each
from tests.trading_core.engine_bench import FLAT, NO_COSTS, WIDE, engine_on, install, play, run_all, story
from tests.trading_core.market import panel, series
from trading_core.kernel.records import REFUSALS

NAN = float("nan")
BOTH_SIDES = check_each("direction", [1, -1], ids=["long", "short"])
LIMIT: dict[str, Any] = {"entry_kind": "limit", "entry": 99.0, "window": 4}
STOP: dict[str, Any] = {"entry_kind": "stop", "entry": 102.0, "stop": 97.0}
BETTER: dict[str, Any] = {**LIMIT, "refines_entry": True}
QUIET = (100.0, 100.8, 99.2, 100.0)
NEAR = {"both_hit": "near"}
NO_ROOM = {"lot_size": 1e6}


ORDERS = {
    "target at the entry": ([], {}, {"target": 100.0}, ["2 refused wrong_side"]),
    "wrong side and no room": ([], NO_ROOM, {"target": 99.0}, ["2 refused wrong_side"]),
    "wrong side and no volatility": (
        [],
        {"sizing": "volatility"},
        {"target": 99.0, "volatility": NAN},
        ["2 refused wrong_side"],
    ),
    "better limit at half the distance": (
        [(100, 101, 97, 99)],
        {},
        {"refines_entry": True, "refinement": 97.5},
        ["2 refined entry 97.5", "3 entry 97.5"],
    ),
    "better limit for a stop entry is not looked for": (
        [(100, 102, 99, 101)],
        {},
        {**STOP, "refines_entry": True, "refinement": 99.0},
        ["3 entry 102"],
    ),
    "resting limit, refined to half the distance": (
        [QUIET, (100, 101, 97, 99)],
        {},
        {**BETTER, "refinement": [NAN, NAN, NAN, 97.5, NAN]},
        ["3 refined entry 97.5", "4 entry 97.5"],
    ),
    "resting limit, refined to less than half the distance": (
        [QUIET, (100, 101, 99, 99)],
        {},
        {**BETTER, "refinement": [NAN, NAN, NAN, 97.4, NAN]},
        ["4 entry 99"],
    ),
    "resting limit, refined to its own price": (
        [QUIET, (100, 101, 99, 99)],
        {},
        {**BETTER, "refinement": [NAN, NAN, NAN, 99.0, NAN]},
        ["4 entry 99"],
    ),
    "resting limit, refined twice": (
        [QUIET, QUIET, (100, 101, 97.9, 99)],
        {},
        {**BETTER, "refinement": [NAN, NAN, NAN, 98.5, 98.0, NAN]},
        ["3 refined entry 98.5", "4 refined entry 98", "5 entry 98"],
    ),
    "resting limit, refined on the grid": (
        [QUIET, (100, 101, 97, 99)],
        {"tick_size": 0.5},
        {**BETTER, "refinement": [NAN, NAN, NAN, 98.1, NAN]},
        ["3 refined entry 98", "4 entry 98"],
    ),
    "tighter stop while the planned one is at the close": (
        [FLAT, QUIET],
        {},
        {"activation": [3], "stop": [95, 95, 95, 100.0, 95], "refinement": [NAN, NAN, 96.0, 97.0, NAN]},
        ["2 refined stop 96", "4 entry 100"],
    ),
    "tighter stop of an earlier arming": (
        [QUIET, QUIET, QUIET, (100, 101, 95.5, 100)],
        {},
        {"setup": [1, 4], "activation": [5], "window": 1, "refinement": [NAN, NAN, 96.0, *[NAN] * 4]},
        ["2 refined stop 96", "3 expired", "6 entry 100"],
    ),
    "resting limit near its stop, refined": (
        [(100, 100.4, 99.7, 100), (100, 101, 99.2, 99.5)],
        {},
        {**BETTER, "entry": 99.5, "stop": 98.6, "refinement": [NAN, NAN, NAN, 99.4, NAN]},
        ["3 refined entry 99.4", "4 entry 99.4"],
    ),
    "resting limit of a policy that refines its stop": (
        [QUIET, (100, 101, 97.9, 99)],
        {},
        {**LIMIT, "refinement": [NAN, NAN, NAN, 98.0, NAN]},
        ["4 entry 99"],
    ),
    "resting limit of a policy that refines nothing": (
        [QUIET, (100, 101, 97.9, 99)],
        {},
        {**LIMIT, "trail": [NAN, NAN, NAN, 98.0, NAN]},
        ["4 entry 99"],
    ),
    "resting stop entry": (
        [QUIET, (100, 102, 98.9, 101)],
        {},
        {**STOP, "refines_entry": True, "refinement": [NAN, NAN, NAN, 99.0, NAN]},
        ["4 entry 102"],
    ),
    "stop entry over a small gap": ([(102.5, 103, 102, 103)], {}, STOP, ["3 entry 102.5"]),
    "volatility of less than one": (
        [FLAT],
        {"sizing": "volatility"},
        {"volatility": 0.5},
        ["2 clamped risk_cap", "3 entry 100"],
    ),
    "stop entry at the open, path known": (
        [(102, 111, 92, 105)],
        NEAR,
        STOP,
        ["3 entry 102", "3 exit target 110"],
    ),
    "stop entry at the open, only touched": (
        [(102, 111, 92, 105)],
        {**NEAR, "limit_fill": "through"},
        STOP,
        ["3 entry 102", "3 exit target 110"],
    ),
    "limit at the open, not through, path unknown": (
        [(99, 111, 97, 105)],
        {"limit_fill": "through"},
        LIMIT,
        ["3 entry 99"],
    ),
    "limit at the open, path known": (
        [(99, 111, 97, 105)],
        {},
        LIMIT,
        ["3 entry 99", "3 exit target 110"],
    ),
}


@BOTH_SIDES
@check_each(("rows", "execution", "policy", "story"), ORDERS.values(), ids=ORDERS)
def test_kernel_order_is_made_and_changed_as_its_policy_says(rows, execution, policy, story, direction):
    assert play([FLAT, *rows], direction, execution=execution, **policy).story() == story


@BOTH_SIDES
def test_kernel_refused_orders_are_counted_by_reason(direction):
    done = play([FLAT] * 4, direction, setup=[1, 3], activation=[2, 4], stop=NAN, never_ends=True)
    assert done.story() == ["2 refused level_unknown", "4 refused level_unknown"]
    counts = dict(zip(REFUSALS, done.engine.portfolio["refused"][0].tolist(), strict=False))
    assert {reason: count for reason, count in counts.items() if count} == {"level_unknown": 2}


@pytest.mark.parametrize(
    ("role", "level", "policy", "shown"),
    [
        ("refinement", [NAN, NAN, NAN, 98.0, 98.0, 98.0], BETTER, ["3 refined entry 98", "4 entry 98"]),
        ("target", 100.5, {}, ["3 entry 100", "3 exit target 100.5"]),
        ("stop", 97.0, {}, ["3 entry 100", "4 exit stop 97"]),
        ("refinement", 96.0, {"activation": [3]}, ["2 refined stop 96", "4 entry 100", "4 exit stop 96"]),
        ("entry", 99.0, {"entry_kind": "limit"}, ["4 entry 99"]),
        ("volatility", 5.0, {}, ["3 entry 100"]),
    ],
)
def test_kernel_first_price_column_may_have_any_role(role, level, policy, shown):
    sizing = NO_COSTS.model_copy(update={"sizing": "volatility" if role == "volatility" else "risk"})
    rows = [FLAT, FLAT, QUIET, QUIET, (100.0, 100.8, 96.0, 100.0), FLAT]
    engine = engine_on(series(rows), execution=sizing, envelope=WIDE)
    assert engine.columns.number((f"policy {role}", 0), np.broadcast_to(level, (6,)).copy()) == 0
    install(engine, **{"setup": [1], "activation": [2], **policy, role: level})
    assert [line.replace(" X ", " ", 1) for line in story(engine, run_all(engine))] == shown


@pytest.mark.parametrize(
    ("sizing", "shown"), [("risk", ["3 X entry 100"]), ("volatility", ["2 X refused level_unknown"])]
)
def test_kernel_policy_without_a_column_reads_none_of_a_full_table(sizing, shown):
    """Two columns are the policy's, the others have prices that it would act on."""
    settings = NO_COSTS.model_copy(update={"sizing": sizing})
    engine = engine_on(series([FLAT] * 7), execution=settings, envelope=WIDE)
    install(engine, setup=[1], activation=[2])
    columns = engine.columns.numbers.shape[0]
    for k in range(2, columns):
        engine.columns.number((f"column {k}", 0), np.full(7, 98.0))
    assert engine.columns.numbers.shape[0] == columns
    assert (engine.columns.numbers[-1] == 98.0).all()
    assert story(engine, run_all(engine)) == shown


@pytest.mark.parametrize(
    ("policy", "first"),
    [
        ({"activation": [], "invalidation": [2]}, "2 invalidated"),
        ({"activation": [2], "stop": NAN}, "2 refused level_unknown"),
        ({"activation": [2], "horizon": 3, "stop": 99.5}, "3 entry 100"),
    ],
    ids=["invalidated", "refused", "spent"],
)
def test_kernel_policy_that_is_out_of_force_arms_nothing(policy, first):
    """The setup stays true; another policy, whose setup never comes, is known to the engine too."""
    engine = engine_on(panel({"X": [FLAT] * 12, "Y": [FLAT] * 12}), envelope=WIDE)
    install(engine, s=1, setup=[], horizon=90)
    install(engine, **{"setup": range(1, 12), "name": "of X", **policy})
    events = [event for step in run_all(engine) for event in step.events]
    assert sum(event.kind == "thesis_armed" for event in events) == 1
    assert story(engine, events)[0] == first.replace(" ", " X ", 1)
    assert engine.tag(int(engine.state["policy"][1])).policy_id == "policy"


@pytest.mark.parametrize("ends", [{"activation": [], "invalidation": [2]}, {"activation": [2], "stop": NAN}])
def test_kernel_policy_that_stands_arms_again(ends):
    engine = engine_on(series([FLAT] * 9), envelope=WIDE)
    install(engine, setup=[1, 5], never_ends=True, **ends)
    events = [event for step in run_all(engine) for event in step.events]
    assert [e.bar_label for e in events if e.kind == "thesis_armed"] == engine.bars.times[[1, 5]].tolist()


@BOTH_SIDES
@check_each(("never_ends", "shown"), [(True, []), (False, ["policy_expired"])])
def test_kernel_policy_ends_at_its_horizon_unless_it_never_ends(never_ends, shown, direction):
    """Installed before the first bar for three bars; the fourth is one too many."""
    done = play([FLAT] * 6, direction, setup=[], horizon=3, never_ends=never_ends)
    events = [event for step in done.steps for event in step.events]
    assert [event.kind for event in events] == shown
    assert [event.bar_label for event in events] == [int(done.engine.bars.times[3]) for _ in shown]
    assert done.engine.state["policy"][0] == (0 if never_ends else -1)


@BOTH_SIDES
def test_kernel_horizon_of_zero_is_no_time_stop(direction):
    done = play([FLAT] * 9, direction, horizon=0, never_ends=True)
    assert done.story() == ["3 entry 100"]


@pytest.mark.parametrize(
    ("row", "shown"),
    [(2, ["2 X invalidated"]), (5, ["3 X entry 100", "5 X invalidated", "6 X exit invalidation 100"])],
    ids=["armed", "held"],
)
def test_kernel_invalidation_may_be_the_first_column(row, shown):
    """Row 5 is the third bar of the position: nothing else is looked at by then."""
    engine = engine_on(series([FLAT] * 8), envelope=WIDE)
    column = np.zeros(8, dtype=np.int8)
    column[row] = 1
    assert engine.columns.truth(("policy invalidation", 0), column) == 0
    install(engine, setup=[1], activation=[2], invalidation=[row])
    assert story(engine, run_all(engine)) == shown


@BOTH_SIDES
@check_each(("close", "shown"), [(101.0, []), (101.5, ["5 entry 100"])])
def test_kernel_thesis_without_activation_rule_waits_for_a_close_beyond_the_setup_bar(
    close, shown, direction
):
    """The first bar of the market has wider extremes than the setup bar, whose favourable one is 101."""
    rows = [FLAT, (100, 102, 98, 100), (100, 102, 98, close), FLAT]
    done = play(rows, direction, setup=[1], activation=None, window=9)
    assert done.story() == shown


def test_kernel_emergency_takes_a_limit_back_without_refining_it():
    """While the switch is on nothing fills, so the market may stand at the stop of a resting limit."""
    rows = [FLAT, FLAT, FLAT, QUIET, (96.0, 97.0, 94.0, 95.0), FLAT]
    engine = engine_on(series(rows), envelope=WIDE)
    install(engine, setup=[1], activation=[2], refinement=[*[NAN] * 4, 98.0, NAN], **BETTER)
    events = [event for step in run_all(engine, 4) for event in step.events]
    engine.set_kill_switch(True)
    events += [event for step in run_all(engine) for event in step.events]
    assert story(engine, events) == ["4 breach kill_switch", "4 X refused envelope"]


REQUESTED: dict[str, float] = {"least_reward": 0.8, "side_cost": 0.001}
REWARDS: dict[
    str, tuple[dict[str, Any], bool]
] = {  # a stop at 95, so 5 at risk and 0.2 of costs: 4.36 pays for 0.8 of the risk after costs
    "just enough": ({"target": 104.37}, False),
    "just too little": ({"target": 104.35}, True),
    "enough but for a share that is scaled out": (
        {"target": 104.37, "scale_outs": ((0.5, 0.5),)},
        True,
    ),
    "scaled out beyond the target, which ends it": (
        {"target": 104.37, "scale_outs": ((3.0, 0.5),)},
        False,
    ),
}


@BOTH_SIDES
@check_each("name", REWARDS)
def test_kernel_orders_refuse_an_entry_whose_reward_is_too_little_after_costs(name, direction):
    terms, refused = REWARDS[name]
    shown = play([FLAT, FLAT], direction, rewards=REQUESTED, **terms)
    assert ("2 refused reward_to_risk" in shown.story()) is refused
    assert "reward_to_risk" not in " ".join(play([FLAT, FLAT], direction, **terms).story())


@BOTH_SIDES
def test_kernel_orders_setup_that_is_over_at_its_close_arms_nothing_until_it_is_not(direction):
    shown = play([FLAT] * 5, direction, setup=[1, 3], activation=[4], invalidation=[1])
    assert shown.story() == ["5 entry 100"]
    armed = [event.bar_label for step in shown.steps for event in step.events if event.kind == "thesis_armed"]
    assert armed == [int(shown.engine.bars.times[3])]
