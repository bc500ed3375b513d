"""A graph that is written and read back is the same graph: values, kinds, order and identity."""

import json
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.regime import RegimeLabels
from schemas.vocabulary import Structure, Trend, VolatilityBand
from services.savepoints import forms
from services.savepoints.forms import NoSavepoint
from services.savepoints.reading import Reader
from services.savepoints.writing import Parts, Writer
from trading_core.tick_events import PolicyTag


@pytest.fixture(autouse=True)
def _tests_are_ours(monkeypatch):
    monkeypatch.setattr(forms, "OWN", forms.OWN | {"tests"})


class Tag(NamedTuple):
    name: str
    weight: float


@dataclass
class Holder:
    """Anything that changes."""

    one: Any = None
    two: Any = None
    scratch: list[int] = field(default_factory=list)


class Wire:
    """A connection: never written."""


def there_and_back(value: Any, fresh: Any = None, kept: Any = (Wire,), remade: Any = None) -> Any:
    parts, writer = Parts(), None
    writer = Writer(parts, kept, remade or {})
    form = json.loads(json.dumps(writer.form(value)))
    new = json.loads(json.dumps(parts.new))
    reader = Reader(Parts(), remade or {})
    reader.take_parts(new)
    return reader.read(form, fresh if fresh is not None else Holder())


tags = st.builds(PolicyTag, st.text(), st.text())
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(list(Trend))
    | st.datetimes(timezones=st.just(UTC))
    | tags
    | st.builds(Tag, st.text(), st.floats(allow_nan=False))
)
keys = st.integers() | st.text() | st.tuples(st.text(), st.integers()) | tags
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(keys, inner)
        | st.lists(inner).map(tuple)
        | st.sets(keys)
        | st.frozensets(keys)
        | st.lists(inner).map(lambda items: deque(items, maxlen=9))
        | st.dictionaries(st.text(), st.integers()).map(Counter)
        | st.builds(Holder, inner, inner)
    ),
    max_leaves=20,
)


@given(values)
def test_graph_of_any_values_comes_back_equal_and_of_the_same_kinds(value) -> None:
    found = there_and_back(Holder(value))
    assert found.one == value
    assert type(found.one) is type(value)
    if isinstance(value, dict):
        assert list(found.one) == list(value), "order is state"


@given(st.floats(allow_subnormal=True))
def test_graph_keeps_every_bit_of_a_float(value) -> None:
    found = there_and_back(Holder(value, np.float64(value)))
    assert np.float64(found.one).tobytes() == np.float64(value).tobytes() or np.isnan(value)
    assert type(found.two) is np.float64


def test_graph_keeps_arrays_records_and_what_two_objects_share() -> None:
    record = np.zeros(3, dtype=[("t", np.int64), ("x", np.float64, (6,)), ("on", np.uint8)])
    record["x"][1] = np.nan, -0.0, np.inf, 1, 2, 3
    shared = [1]
    value = Holder(record, [shared, shared, np.arange(6, dtype=np.float32).reshape(2, 3)])
    found = there_and_back(value)
    assert found.one.dtype == record.dtype
    assert found.one.tobytes() == record.tobytes()
    first, second, table = found.two
    assert first is second, "they are one list"
    assert (table.dtype, table.tolist()) == (np.float32, [[0, 1, 2], [3, 4, 5]])
    first.append(2)
    assert second == [1, 2]


def test_graph_that_leads_back_to_itself_does_so_again() -> None:
    value = Holder()
    value.one = value
    value.two = {"me": value}
    found = there_and_back(value)
    assert found.one is found
    assert found.two["me"] is found


def test_graph_models_are_the_same_without_being_validated_again() -> None:
    band, structure = next(iter(VolatilityBand)), next(iter(Structure))
    labels = RegimeLabels(trend=Trend.UP, volatility=band, structure=structure)
    found = there_and_back(Holder(labels, {labels.key: labels}))
    assert found.one == labels
    assert found.one.key == labels.key
    assert found.two[labels.key] is found.one


def test_graph_brings_its_own_wiring_and_keeps_the_objects_that_it_has() -> None:
    mine = Wire()
    inner = Holder(1)
    fresh = Holder(Holder(0, mine), inner)
    kept = fresh.one
    found = there_and_back(Holder(Holder(7, Wire()), Holder(2)), fresh)
    assert found is fresh
    assert found.one is kept
    assert (kept.one, kept.two) == (7, mine)
    assert found.two is inner
    assert inner.one == 2


def test_graph_that_needs_wiring_which_is_not_there_is_refused() -> None:
    with pytest.raises(NoSavepoint, match="wiring that the new run does not have"):
        there_and_back(Holder([Wire()]))


def test_graph_leaves_out_what_is_made_again() -> None:
    remade: dict[type, dict[str, Any]] = {Holder: {"scratch": []}}
    fresh = Holder(scratch=[1, 2, 3])
    found = there_and_back(Holder([Holder(scratch=[9])], scratch=[9]), fresh, remade=remade)
    assert found.scratch == [1, 2, 3], "it stays as it is where there is one"
    assert found.one[0].scratch == [], "and begins anew where there is none"


@pytest.mark.parametrize("value", [b"bytes", 1j, np.array([object()], dtype=object)])
def test_graph_with_a_value_that_has_no_form_is_refused(value) -> None:
    with pytest.raises(NoSavepoint, match="has no form"):
        there_and_back(Holder(value))


@pytest.mark.parametrize(
    "name", ["os:system", "builtins:eval", "schemas.errors:nothing", "schemas.nowhere:X", "tests"]
)
def test_graph_that_names_anything_but_a_class_of_the_program_is_refused(name) -> None:
    with pytest.raises(NoSavepoint, match="no class of this program"):
        Reader(Parts(), {}).read(["object", 0, name, {}])


def test_parts_are_written_once_and_let_go_when_nothing_refers_to_them() -> None:
    parts, tags = Parts(), [PolicyTag("a", "x"), PolicyTag("b", "x")]
    first = Writer(parts, (), {})
    first.form(tags)
    assert [number for number, _ in parts.new] == [0, 1]
    parts.new.clear()
    second = Writer(parts, (), {})
    assert second.form([tags[1], tags[1]]) == ["list", 0, [["#", 1], ["#", 1]]]
    assert parts.new == [], "it is stored already"
    parts.drop_all_but(second.reached)
    assert (len(parts), parts.made) == (1, 2)
    assert parts.number(tags[0]) is None
