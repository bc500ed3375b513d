import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import DataError, InvariantViolation
from services.statistics.multiplicity import e_bh, reaches, register_family

E_VALUES = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=30)


def family_of(values, **more):
    names = [f"h{index:02d}" for index in range(len(values))]
    return register_family(names, 0.1, **more), dict(zip(names, np.log(values), strict=True))


@given(E_VALUES)
def test_e_bh_selects_what_the_definition_says(values):
    family, log_e = family_of(values)
    total = len(values)
    ranked = sorted(values, reverse=True)
    best = max((k for k in range(1, total + 1) if k * ranked[k - 1] / total >= 10 * (1 - 1e-12)), default=0)
    assert len(e_bh(family, log_e)) == best
    assert {round(np.exp(log_e[name]), 6) for name in e_bh(family, log_e)} <= {
        round(v, 6) for v in ranked[:best]
    }


@given(E_VALUES)
def test_first_form_is_a_subset_of_e_bh(values):
    family, log_e = family_of(values)
    alone = {name for name in log_e if reaches(log_e[name], family.alpha(name))}
    assert alone <= set(e_bh(family, log_e))


def test_first_form_at_equal_weights_asks_for_k_over_q():
    family, _ = family_of([1.0] * 24)
    assert family.alpha("h00") == pytest.approx(0.1 / 24)
    assert reaches(np.log(240.0), family.alpha("h00"))
    assert not reaches(np.log(239.0), family.alpha("h00"))


def test_heavier_member_needs_less_evidence_and_weights_sum_to_one():
    family = register_family(["child", "parent"], 0.1, weights={"child": 1.0, "parent": 3.0})
    assert family.weights == (0.25, 0.75)
    assert e_bh(family, {"parent": np.log(14.0), "child": np.log(14.0)}) == ("parent",)


def test_family_id_tells_members_and_epochs_apart():
    ids = {
        register_family(members, 0.1, epoch=epoch).family_id
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
