"""The quick way to canonical JSON writes the bytes of the one that rewrites every value first."""

import json
import math
from enum import Enum, StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.canonical import _plain, canonical_json


class Word(StrEnum):
    LONG = "long"


class Number(Enum):
    ONE = 1


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([-0.0, 0.0, -0.05, -0.00001, Word.LONG, Number.ONE, "-0.0", "x-0.0,"]),
    st.text(),
)
KEYS = st.one_of(st.text(), st.integers(), st.sampled_from([Word.LONG]))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(st.text(), inner),
        st.dictionaries(KEYS, inner),
    ),
)


@given(value=VALUES)
def test_canonical_json_of_anything_equals_that_of_the_rewritten_value(value):
    rewritten = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert canonical_json(value) == rewritten


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": -0.0, "b": [-0.05, -0.0]}, '{"a":0.0,"b":[-0.05,0.0]}'),
        ({10: 1, 9: 2}, '{"10":1,"9":2}'),
        ({"text": "-0.0"}, '{"text":"-0.0"}'),
        ((Word.LONG, {Word.LONG: 1}), '["long",{"long":1}]'),
        ([Number.ONE, frozenset({2, 1})], "[1,[1,2]]"),
    ],
)
def test_canonical_json_of_what_needs_rewriting_is_rewritten(value, text):
    assert canonical_json(value) == text


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_canonical_json_of_a_number_without_a_form_names_it(number):
    with pytest.raises(ValueError, match=f"non-finite number {number!r}"):
        canonical_json({"a": [1, {"b": number}]})
