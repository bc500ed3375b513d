"""Canonical JSON has the bytes of the standard encoder on the value in plain types; texts of times."""

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum, StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.canonical import canonical_json, datetime_to_ns, ns_to_datetime, text_to_ns
from schemas.contract import Contract, FrozenMap


class Word(StrEnum):
    LONG = "long"


class Number(Enum):
    ONE = 1


def rewritten(value):
    """The value in plain types, for an encoder that knows no rule of ours."""
    if isinstance(value, Enum):
        return rewritten(value.value)
    if isinstance(value, float):
        return 0.0 if value == 0.0 else value
    if isinstance(value, datetime):
        return datetime_to_ns(value)
    if isinstance(value, Mapping):
        return {str(key): rewritten(item) for key, item in value.items()}
    return [rewritten(item) for item in value] if isinstance(value, (list, tuple)) else value


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([-0.0, 0.0, -0.05, -0.00001, Word.LONG, Number.ONE, "-0.0", "x-0.0,"]),
    st.text(),
    st.datetimes(timezones=st.just(UTC)),
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


def standard(value):
    return json.dumps(rewritten(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@given(value=VALUES)
def test_canonical_json_of_anything_equals_that_of_the_rewritten_value(value):
    assert canonical_json(value) == standard(value)


class Inner(Contract):
    telemetry_fields = frozenset({"measured"})
    keeps_its_text = True

    word: str
    number: float | None
    measured: float = 0.0


class Sparse(Contract):
    sparse_fields = frozenset({"note", "size"})

    word: str
    note: str | None = None
    size: float = 1.0


class Outer(Contract):
    inner: Inner
    many: tuple[Inner, ...]
    values: FrozenMap[str, float | None]
    moment: datetime
    kind: Word


class Renamed(Inner):
    def payload(self):
        return {"said": self.word}


NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.text(st.characters(codec="utf-8"))
INNER = st.builds(Inner, word=WORDS, number=NUMBERS) | st.builds(Renamed, word=WORDS, number=NUMBERS)
OUTER = st.builds(
    Outer,
    inner=INNER,
    many=st.lists(INNER, max_size=3).map(tuple),
    values=st.dictionaries(WORDS, NUMBERS, max_size=4),
    moment=st.datetimes(timezones=st.just(UTC)),
    kind=st.just(Word.LONG),
)


SPARSE = st.builds(Sparse, word=WORDS, note=st.none() | WORDS, size=st.sampled_from((1.0, 2.0)))


@given(contract=INNER | OUTER | SPARSE)
def test_canonical_json_of_a_contract_equals_that_of_its_payload(contract):
    text = standard(contract.payload())
    assert canonical_json({"at": [contract]}) == f'{{"at":[{text}]}}'
    assert contract.content_hash == hashlib.sha256(text.encode()).hexdigest()
    assert [contract.canonical_text() for _ in range(2)] == [text, text]


def test_canonical_json_leaves_out_a_sparse_field_at_its_default_alone():
    assert Sparse(word="a").canonical_text() == '{"word":"a"}'
    assert Sparse(word="a", note="", size=2.0).canonical_text() == '{"note":"","size":2.0,"word":"a"}'


def test_canonical_json_of_a_changed_copy_is_its_own():
    inner = Inner(word="a", number=1.0)
    assert inner.content_hash != inner.model_copy(update={"word": "b"}).content_hash
    assert inner.model_copy(update={"word": "b"}).canonical_text() == '{"number":1.0,"word":"b"}'


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


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2012-01-31", "2012-01-31T00:00:00+00:00"),
        (" 2012-01-31 16:00 ", "2012-01-31T16:00:00+00:00"),
        ("2012-01-31T23:59:58Z", "2012-01-31T23:59:58+00:00"),
        ("2012-01-31T23:59:59Z", "2012-02-01T00:00:00+00:00"),
        ("2012-12-31T23:59:59.5+01:00", "2012-12-31T23:00:00+00:00"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59+00:00"),
    ],
)
def test_last_second_of_a_day_is_its_end_and_every_other_time_itself(text, moment):
    assert ns_to_datetime(text_to_ns(text)).isoformat() == moment


@pytest.mark.parametrize("text", ["soon", "", "2012-02-30", "2012-01-31T24:30"])
def test_text_that_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match=r"isoformat|month|hour|day"):
        text_to_ns(text)
