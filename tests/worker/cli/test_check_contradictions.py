"""No request that contradicts itself gets a verdict, and every request that a run made gets one."""

import copy
import json
import math
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.errors import DataError
from schemas.reflection import PolicyLevelReflectionRequest
from schemas.snapshot import PolicySnapshot
from tests.each_case import check_each
from tests.worker.cli.checking import HELD, complaint, edited, unedited
from tests.worker.cli.recorded_requests import requests_of
from tests.worker.shared_runs import embedded_run, losing_run, slice_run
from worker.studies.plan_check.check_request import parse_request

HOUR = 3_600 * 10**9
LATER = st.integers(1, 10**18)
FEWER = st.integers(-(10**6), -1)
BELOW_ZERO = st.floats(-1e12, -1e-9)
ABOVE_ONE = st.floats(1.0, 1e12, exclude_min=True)
# Where a number cannot be, in any request: the place in the message, and which numbers.
IMPOSSIBLE: dict[str, st.SearchStrategy[Any]] = {
    "snapshot.close": BELOW_ZERO | st.just(0.0),
    "snapshot.staleness_bars": FEWER,
    "snapshot.risk.equity": BELOW_ZERO | st.just(0.0),
    "snapshot.risk.gross_exposure": BELOW_ZERO,
    "snapshot.risk.drawdown": BELOW_ZERO | ABOVE_ONE,
    "snapshot.risk.daily_loss": BELOW_ZERO | ABOVE_ONE,
    "snapshot.risk.risk_fraction": BELOW_ZERO | ABOVE_ONE,
    "snapshot.base_rates.population": FEWER,
    "snapshot.base_rates.winners": FEWER,
    "snapshot.data_window.bars": FEWER | st.just(0),
    "snapshot.expectations[0].n": FEWER,
    "snapshot.expectations[0].playbook_version": FEWER | st.just(0),
    "snapshot.expectations[0].hit_rate": BELOW_ZERO | ABOVE_ONE,
    "snapshot.expectations[0].hold_p50_bars": BELOW_ZERO | st.just(0.0),
    "snapshot.expectations[0].mfe_p50_r": BELOW_ZERO,
    "snapshot.expectations[0].winner_mae_p80_r": st.floats(1e-9, 1e12),
    "snapshot.regime.fingerprint[2]": BELOW_ZERO | ABOVE_ONE,
    "snapshot.events[0]": st.sampled_from(["hearbeat", "", "HEARTBEAT", "none"]),
    "snapshot.features.atr_14": BELOW_ZERO,
    "memory.winners[0].distance": BELOW_ZERO,
    "memory.insufficient[0]": st.sampled_from(["failure", "", "Winners"]),
    "memory.base_rates.losers": FEWER,
    "invariants.gross_exposure": BELOW_ZERO,
    "invariants.max_risk_fraction": BELOW_ZERO | st.just(0.0) | ABOVE_ONE,
    "invariants.max_gross_exposure": BELOW_ZERO | st.just(0.0),
    "invariants.max_horizon_bars": FEWER | st.just(0),
    "invariants.max_activation_window_bars": FEWER | st.just(0),
    "invariants.max_staleness_bars": FEWER,
    "invariants.min_reward_to_risk": BELOW_ZERO,
    "proposal.conviction": BELOW_ZERO | ABOVE_ONE,
    "proposal.horizon_bars": FEWER | st.just(0),
    "playbook.expectation.hit_rate": BELOW_ZERO | ABOVE_ONE,
    "playbook.version": FEWER | st.just(0),
}


def steps_of(place: str) -> list[str | int]:
    return [
        int(step) if step.isdigit() else step for step in place.replace("]", "").replace("[", ".").split(".")
    ]


def at(request: Any, place: str) -> Any:
    for step in steps_of(place):
        request = request[step]
    return request


def put(request: Any, place: str, value: Any) -> Any:
    *way, last = steps_of(place)
    for step in way:
        request = request[step]
    request[last] = value
    return request


@st.composite
def far_from(draw: st.DrawFn, value: float) -> float:
    """Another number, and not by rounding."""
    drift = draw(st.floats(1e-3, 1e3)) * draw(st.sampled_from([-1, 1]))
    return value + drift * max(1.0, abs(value))


@cache
def agreeing() -> tuple[dict[str, Any], ...]:
    """The example, and requests of a run: without a position and memory of nothing, up to the full ones."""
    full = [found for found in requests_of(slice_run()) if found["memory"] and found["memory"]["winners"]]
    return (unedited(), *full[:: max(1, len(full) // 12)])


# What two places say of one thing: a request, and a draw, make the place that the message names, and what
# it must hold. The first place is changed, the second one left as it is.
def shown_twice(request: dict[str, Any], data: st.DataObject, one: str, other: str) -> str:
    value = at(request, other)
    changed = (not value) if isinstance(value, bool) else data.draw(far_from(value))
    put(request, one, abs(changed) if one.endswith("exposure") else changed)
    return repr(at(request, one))


SAME = [
    ("snapshot.features.close", "snapshot.close"),
    ("invariants.kill_switch", "snapshot.risk.kill_switch"),
    ("snapshot.risk.kill_switch", "invariants.kill_switch"),
    ("invariants.halted", "snapshot.risk.halted"),
    ("invariants.gross_exposure", "snapshot.risk.gross_exposure"),
]
# place, and how far it may be moved from itself: always too far
MOVED: dict[str, st.SearchStrategy[int]] = {
    "snapshot.known_at": LATER | LATER.map(lambda ns: -ns),
    "snapshot.ts_event": LATER | LATER.map(lambda ns: -ns),
    "snapshot.bar_label": st.integers(1, HOUR) | st.integers(-HOUR, -1),
    "snapshot.data_window.last_label": LATER | LATER.map(lambda ns: -ns),
    "snapshot.data_window.first_label": st.integers(10**18, 4 * 10**18),
    "memory.known_at": LATER,
    "memory.winners[0].known_at": st.integers(10**18, 4 * 10**18),
    "playbook.version": st.integers(1, 50),
}


def refused(request: dict[str, Any]) -> str:
    with pytest.raises(DataError) as caught:
        parse_request(json.dumps(request).encode(), "plan.json")
    text = str(caught.value)
    assert "See `thinktwice schema PolicyLevelReflectionRequest`" in text
    return text


def last_of(place: str) -> str:
    return place.rpartition(".")[2]


@given(data=st.data(), place=st.sampled_from(sorted(IMPOSSIBLE)))
def test_check_number_that_cannot_be_is_refused_with_value_and_place(data, place):
    request = copy.deepcopy(data.draw(st.sampled_from(agreeing())))
    value = data.draw(IMPOSSIBLE[place])
    put(request, place, value) if not place.endswith("[0]") else put_first(request, place, value)
    reply = refused(request)
    assert place.partition("[")[0] in reply
    assert json.dumps(value) in reply or repr(value) in reply


def put_first(request: dict[str, Any], place: str, value: Any) -> None:
    """A first element, also of a list that has none."""
    put(request, place.removesuffix("[0]"), [value])


@given(data=st.data(), places=st.sampled_from(SAME))
def test_check_two_places_that_disagree_are_refused_with_value_and_place(data, places):
    request = copy.deepcopy(data.draw(st.sampled_from(agreeing())))
    shown = shown_twice(request, data, *places)
    reply = refused(request)
    assert shown in reply
    assert last_of(places[0]) in reply


@given(data=st.data(), place=st.sampled_from(sorted(MOVED)))
def test_check_moment_or_version_that_does_not_fit_is_refused_with_value_and_place(data, place):
    request = copy.deepcopy(data.draw(st.sampled_from(agreeing())))
    moved = put_moved(request, place, data.draw(MOVED[place]))
    reply = refused(request)
    assert str(moved) in reply
    assert last_of(place) in reply


def put_moved(request: dict[str, Any], place: str, distance: int) -> int:
    moved: int = at(request, place) + distance
    put(request, place, moved)
    return moved


@given(data=st.data())
def test_check_prices_that_are_no_bar_are_refused_with_value_and_place(data):
    request = copy.deepcopy(data.draw(st.sampled_from(agreeing())))
    close, far = request["snapshot"]["close"], data.draw(st.floats(1e-6, 1e3))
    name, value = data.draw(st.sampled_from([("low", close * (1 + far)), ("high", close / (1 + far))]))
    request["snapshot"]["features"][name] = value
    reply = refused(request)
    assert f"features.{name} {value!r}" in reply


@given(data=st.data())
def test_check_account_that_does_not_add_up_is_refused_with_value_and_place(data):
    request = copy.deepcopy(data.draw(st.sampled_from(agreeing())))
    risk = request["snapshot"]["risk"]
    risk["equity"] = data.draw(st.floats(1e-3, 0.5)) * min(risk["cash"], risk["equity"])
    reply = refused(request)
    assert f"equity {risk['equity']!r} and cash {risk['cash']!r}" in reply


@given(data=st.data())
def test_check_memory_of_another_playbook_or_a_larger_world_is_refused(data):
    request = copy.deepcopy(data.draw(st.sampled_from(agreeing())))
    if data.draw(st.booleans()):
        for bucket in ("winners", "losers", "failures"):
            for case in request["memory"][bucket]:
                case["playbook_id"] = "another_one"
        assert "playbook_id 'another_one' is not playbook.id" in refused(request)
        return
    more = request["snapshot"]["base_rates"]["population"] + data.draw(st.integers(1, 10**6))
    request["memory"]["base_rates"]["population"] = more
    assert f"memory.base_rates.population {more} is more than" in refused(request)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"state": "COOLDOWN"}, "state COOLDOWN is not snapshot.state IDLE"),
        ({"state": "HOLD_LOCK", "snapshot__state": "HOLD_LOCK"}, "state HOLD_LOCK has a position, but none"),
        (HELD | {"snapshot__position__r_now": -0.1}, "position.r_now -0.1 does not fit close 184.5 of a"),
        (HELD | {"snapshot__position__quantity": 900.0}, "position.quantity 900.0 at close 184.5 is worth"),
        (HELD | {"snapshot__position__entry_label": 5}, "position.entry_label 5 lies before data_window"),
        (HELD | {"snapshot__position__bars_held": 501}, "position.bars_held 501 is more than data_window"),
        ({"snapshot__features__volume": -1.0}, "features.volume -1.0 is below zero"),
        ({"snapshot__features__rsi_14": 101.0}, "snapshot.features.rsi_14: 101.0 lies outside 0 to 100"),
        ({"snapshot__features__atr_41x": 1.0}, "snapshot.features.atr_41x: unknown feature 'atr_41x'"),
        ({"snapshot__features__sma_20_1h": 1.0}, "snapshot.features.sma_20_1h: "),
        ({"snapshot__regime__fingerprint": [0.5] * 4}, "snapshot.regime.fingerprint: "),
        ({"playbook__known_at": 2 * 10**18}, "playbook.known_at: 2000000000000000000 lies after snapshot"),
        ({"playbook__expectation__hit_rate": 0.5}, "snapshot.expectations[0].prior is not playbook"),
        ({"memory__insufficient": ["failures", "failures"]}, "insufficient holds 'failures' twice"),
    ],
)  # fmt: skip
def test_check_fields_that_cannot_both_be_are_refused_with_value_and_place(changes, part):
    assert part in complaint(json.dumps(edited(**changes)))


@check_each("number", [math.nan, math.inf, -math.inf])
@check_each(
    "place",
    ["snapshot.close", "snapshot.features.atr_14", "snapshot.risk.cash",
     "snapshot.expectations.0.expectancy_r", "memory.winners.0.r", "memory.winners.0.distance",
     "invariants.spread_bps"],
)  # fmt: skip
def test_request_contract_refuses_numbers_that_are_none(place, number):
    request = edited()
    put(request, place, number)
    with pytest.raises(ValidationError):
        PolicyLevelReflectionRequest.model_validate(request)


def test_snapshot_of_a_position_is_taken_where_everything_agrees():
    assert PolicySnapshot.model_validate(edited(**HELD)["snapshot"]).position is not None


def test_check_takes_every_request_of_the_embedded_run():
    """In volume: what a run made agrees with itself, so nothing of it may be refused."""
    made = [request for run in (embedded_run, losing_run) for request in requests_of(run())]
    assert len(made) > 2_000
    for request in made:
        parse_request(json.dumps(request).encode(), "plan.json")
    assert any(request["memory"] and request["memory"]["winners"] for request in made)
