"""The crash test of guards in small: the bank, the right orders, and ours on each kind once."""

import pytest

from benchmarks.guards.__main__ import OURS_TITLE, better, count, wilson
from benchmarks.guards.cases import Generator, bars_of, faults, faulty_cases, right_cases
from benchmarks.guards.others import FOLDER, OTHERS
from benchmarks.guards.ours import judge_all


@pytest.fixture(scope="module")
def generator():
    return Generator()


def test_bank_has_thirty_kinds_and_says_who_stops_each():
    kinds = [fault["name"] for fault in faults()]
    assert len(kinds) == len(set(kinds)) == 30
    assert {fault["stopper"] for fault in faults()} == {"rule", "account", "input", "once"}


def test_cases_of_one_seed_are_the_same(generator):
    again = Generator()
    assert list(right_cases(generator, 20)) == list(right_cases(again, 20))
    assert repr(list(faulty_cases(generator, 1))) == repr(list(faulty_cases(again, 1)))


def test_forged_close_is_that_of_the_last_bar_alone(generator):
    cases = {case["kind"]: case for case in faulty_cases(generator, 1)}
    case = cases["forged last price"]
    forged, right = (
        bars_of(case, generator.bars),
        bars_of({**case, "bars": {**case["bars"], "forged": None}}, generator.bars),
    )
    assert forged is not None
    assert right is not None
    assert forged.close[-1, 0] == pytest.approx(1.4 * right.close[-1, 0])
    assert (forged.close[:-1] == right.close[:-1]).all()


def test_ours_stops_every_kind_and_lets_right_orders_pass(generator):
    right, faulty = list(right_cases(generator, 20)), list(faulty_cases(generator, 1))
    reasons = judge_all([*right, *faulty], generator.bars)
    assert {case["kind"]: reasons[case["id"]] for case in right if reasons[case["id"]]} == {}
    assert [case["kind"] for case in faulty if not reasons[case["id"]]] == []


def test_every_other_guard_has_an_adapter_and_its_pinned_environment():
    for guard in OTHERS:
        assert (FOLDER / f"run_{guard.name}.py").is_file()
        assert "==" in (FOLDER / f"{guard.name}.txt").read_text("utf-8")


def test_guard_that_is_better_somewhere_is_named():
    faulty = [{"id": "a", "kind": "no stop"}, {"id": "b", "kind": "no stop"}]
    right = [{"id": "c", "kind": "exit"}]
    found = {OURS_TITLE: {"a": "x", "b": "", "c": "x"}, "Other": {"a": "x", "b": "x", "c": ""}}
    assert count(faulty, found["Other"], "no stop") == (2, 2)
    assert better(right, faulty, found) == (
        "2 of 2 faulty orders of 'no stop' stopped, ours 1 (Other); "
        "0 of 1 right orders of 'exit' stopped, ours 1 (Other)"
    )
    assert "no other stops" in better(right, faulty, {OURS_TITLE: found["Other"], "Other": found[OURS_TITLE]})


def test_wilson_interval_is_the_published_one():
    assert wilson(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
