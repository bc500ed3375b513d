from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from online_fdr.e_values import e_bh as online_fdr_e_bh

from schemas.errors import DataError, InvariantViolation
from services.statistics.multiplicity import e_bh, e_bh_rows, register_family, share
from tests.each_case import check_each

E_VALUES = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=30)


def family_of(values, **more):
    names = [f"h{index:02d}" for index in range(len(values))]
    return register_family(names, 0.1, **more), dict(zip(names, np.log(values), strict=True))


@given(E_VALUES)
def test_e_bh_selects_what_the_definition_says(values):
    family, log_e = family_of(values)
    total = len(values)
    ranked = sorted(values, reverse=True)
    # The first epoch may spend half of q = 0.1, and each of the two claims of a member half of that.
    best = max((k for k in range(1, total + 1) if k * ranked[k - 1] / total >= 40 * (1 - 1e-9)), default=0)
    assert len(e_bh(family, log_e)) == best
    assert {round(np.exp(log_e[name]), 6) for name in e_bh(family, log_e)} <= {
        round(v, 6) for v in ranked[:best]
    }


@check_each("seed", range(40))
def test_weighted_selection_agrees_with_an_independent_implementation(seed):
    draw = np.random.default_rng(seed)
    names = [f"p{k}" if k % 3 else f"p{k}|up/mid" for k in range(int(draw.integers(1, 40)))]
    family = register_family(names, 0.1, epochs={"p1": int(draw.integers(0, 4))})
    log_e = dict(zip(names, draw.normal(4.0, 3.0, len(names)), strict=True))
    weighed = [
        len(family) * w * np.exp(log_e[n]) for n, w in zip(family.members, family.charged, strict=True)
    ]
    theirs = online_fdr_e_bh([float(value) for value in weighed], 0.1)
    assert e_bh(family, log_e) == tuple(n for n, taken in zip(family.members, theirs, strict=True) if taken)


@given(E_VALUES, st.randoms(use_true_random=False))
def test_selected_are_exactly_those_that_reach_their_level_at_the_number_selected(values, random):
    family, log_e = family_of(
        values, weights={f"h{k:02d}": random.random() + 0.1 for k in range(len(values))}
    )
    selected = e_bh(family, log_e)
    reaching = [n for n in family.members if log_e[n] >= -np.log(family.alpha(n, len(selected))) - 1e-9]
    assert list(selected) == (reaching if selected else [])


@given(E_VALUES, st.integers(0, 29), st.floats(0, 20))
def test_more_evidence_for_one_member_never_removes_a_selection(values, which, more):
    family, log_e = family_of(values)
    name = family.members[which % len(values)]
    assert set(e_bh(family, log_e)) <= set(e_bh(family, log_e | {name: log_e[name] + more}))


@given(E_VALUES)
def test_several_strong_members_need_less_evidence_each(values):
    family, log_e = family_of(values)
    alone = {name for name in log_e if log_e[name] >= -np.log(family.alpha(name))}
    assert alone <= set(e_bh(family, log_e))


def test_e_bh_keeps_the_false_share_over_dependent_nulls():
    # Twenty null e-values that move together: the worst dependence there is, exact mean one each.
    draw = np.random.default_rng(8)
    common = draw.standard_normal((4_000, 1)) * 2.0 - 2.0
    rows = np.broadcast_to(common, (4_000, 20)) + np.log(1 / 20)
    assert e_bh_rows(rows, 0.1).any(axis=1).mean() <= 0.1


def test_level_of_a_claim_at_equal_weights_is_a_quarter_of_q_over_k():
    family, _ = family_of([1.0] * 24)
    assert family.alpha("h00") == pytest.approx(0.025 / 24)
    assert e_bh(family, {"h00": np.log(960.0)}) == ("h00",)
    assert e_bh(family, {"h00": np.log(959.0)}) == ()
    assert e_bh(family, {"h00": np.log(480.0), "h01": np.log(480.0)}) == ("h00", "h01")


def test_heavier_member_needs_less_evidence_and_weights_sum_to_one():
    family = register_family(["child", "parent"], 0.1, weights={"child": 1.0, "parent": 3.0})
    assert family.weights == (0.25, 0.75)
    assert e_bh(family, {"parent": np.log(56.0), "child": np.log(56.0)}) == ("parent",)


def test_parents_weigh_more_than_their_children_and_grid_trials_least():
    names = ["a", "a|up/mid", "a|up/mid|1h", "grid|a|stretch|1.0"]
    family = register_family(names, 0.1)
    assert family.weights == (4 / 8, 2 / 8, 1 / 8, 1 / 8)
    assert sum(family.weights) == 1.0


def test_epochs_charge_what_they_begin_and_never_more_than_q():
    names = ["a", "a|up/mid", "b", "grid|a|stretch|1.0"]
    levels = [register_family(names, 0.1, epochs={"a": k}).alpha("a") for k in range(12)]
    assert levels[0] == pytest.approx(0.1 * 4 / 11 / 2 / 2)
    assert all(later == pytest.approx(first / 2) for first, later in pairwise(levels))
    assert sum(levels) <= 0.1 * 4 / 11
    later = register_family(names, 0.1, epochs={"a": 3})
    assert later.alpha("b") == register_family(names, 0.1).alpha("b")
    assert later.alpha("grid|a|stretch|1.0") == pytest.approx(0.1 / 11 / 16 / 2)


def test_share_of_all_epochs_stays_below_one_and_positive():
    shares = [share(epoch) for epoch in range(80)]
    assert sum(shares) <= 1.0
    assert min(shares) > 0.0


def test_family_id_tells_members_and_epochs_apart():
    ids = {
        register_family(members, 0.1, epochs={"a": epoch}).family_id
        for members, epoch in [(["a"], 0), (["a", "b"], 0), (["a"], 1)]
    }
    assert len(ids) == 3
    assert register_family(["b", "a"], 0.1).family_id == register_family(["a", "b"], 0.1).family_id


def test_unregistered_hypothesis_is_a_violation():
    family = register_family(["a"], 0.1)
    assert "b" not in family
    with pytest.raises(InvariantViolation, match="not registered"):
        e_bh(family, {"b": 99.0})


@pytest.mark.parametrize(("members", "weights"), [([], None), (["a", "a"], None), (["a", "b"], {"a": 1.0})])
def test_family_without_distinct_weighted_members_is_refused(members, weights):
    with pytest.raises(DataError):
        register_family(members, 0.1, weights=weights)


def test_configurations_before_share_the_level_of_every_member():
    """Twenty configurations together may spend what one alone may."""
    names = ["p1", "p1|up/mid", "p2"]
    alone = register_family(names, 0.1)
    shared = [register_family(names, 0.1, tried_before=k) for k in range(20)]
    assert [family.charged.sum() for family in shared] == pytest.approx(
        [alone.charged.sum() / (1 + k) for k in range(20)]
    )
    assert shared[0] == alone
    assert shared[0].family_id == alone.family_id != shared[1].family_id
    needed = 1.0 / alone.alpha("p1")
    assert e_bh(alone, {"p1": np.log(needed)}) == ("p1",)
    assert e_bh(shared[19], {"p1": np.log(needed * 19.9)}) == ()
    assert e_bh(shared[19], {"p1": np.log(needed * 20.0)}) == ("p1",)


def test_variants_count_the_hypotheses_of_earlier_configurations():
    assert register_family(["p1", "p2"], 0.1).variants == 2
    assert register_family(["p1", "p2"], 0.1, tried_before=3, hypotheses_before=40).variants == 42
