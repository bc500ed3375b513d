"""Write the state of a graph: mutable objects each time, immutable ones once.

Identity is kept: an object that is reached twice is written once and then referred to. Functions, connections
and whatever the caller names as kept are wiring: the graph that reads a savepoint brings its own.
"""

import base64
import json
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

from services.savepoints.forms import (
    ARRAY,
    COUNTER,
    DEQUE,
    DICT,
    ENUM,
    FROZEN_SET,
    GIVEN,
    KEPT,
    LIST,
    NAMED_TUPLE,
    NUMBER,
    OBJECT,
    PART,
    PROXY,
    PYDANTIC,
    SAME,
    SET,
    TIME,
    TUPLE,
    NoSavepoint,
    is_model,
    is_own,
    is_value,
    kind_of,
    name_of,
    slots_of,
)  # fmt: skip

PLAIN = frozenset({int, float, str, bool, type(None)})
NO_NODE = -1  # a container inside a value: nothing else refers to it
NO_ATTRIBUTES: Mapping[str, Any] = {}


class _NoValue(Exception):
    """Something within a value may change or is wiring: it is no value."""


class Parts:
    """Immutable objects that are stored already, by number; they are held so that their identity lasts.

    Attributes:
        new: texts of the parts that the last savepoint added.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._held: dict[int, Any] = {}
        self._inner: dict[int, list[int]] = {}
        self._next = 0
        self.new: list[tuple[int, Any]] = []

    def __len__(self) -> int:
        return len(self._held)

    @property
    def made(self) -> int:
        """Parts stored so far, needed or not."""
        return self._next

    def number(self, value: Any) -> int | None:
        """Number of an object that is a part already."""
        return self._numbers.get(id(value))

    def keep(self, value: Any, inner: list[int], form: Any) -> int:
        """Number of a new part."""
        number = self._next
        self.hold(number, value, inner)
        self.new.append((number, form))
        return number

    def hold(self, number: int, value: Any, inner: list[int]) -> None:
        """Take a part under its number, as stored or as read."""
        self._numbers[id(value)] = number
        self._held[number] = value
        self._inner[number] = inner
        self._next = max(self._next, number + 1)

    def drop_all_but(self, reached: Collection[int]) -> None:
        """Let go of parts that nothing refers to any more."""
        wanted, rest = set(reached), list(reached)
        while rest:
            for number in self._inner[rest.pop()]:
                if number not in wanted:
                    wanted.add(number)
                    rest.append(number)
        for number in self._held.keys() - wanted:
            del self._numbers[id(self._held.pop(number))], self._inner[number]


class Writer:
    """Writes one graph once.

    Args:
        parts: what is stored already.
        kept: classes whose instances are wiring.
        remade: attributes that are not state, by class.
        given: objects that the reader has, too; others of their classes cannot be written.
    """

    def __init__(
        self,
        parts: Parts,
        kept: Collection[type],
        remade: Mapping[type, Mapping[str, Any]],
        given: Sequence[Any] = (),
    ) -> None:
        self._parts = parts
        self._kept = frozenset(kept)
        self._remade = remade
        self._given = {id(one): number for number, one in enumerate(given)}
        self._of_given = frozenset(map(type, given))
        self._nodes: dict[int, int] = {}
        self._held: list[Any] = []
        self._values: dict[type, bool] = {}
        self.reached: set[int] = set()

    def form(self, value: Any) -> Any:
        """The form of a value and of all that it leads to.

        Raises:
            NoSavepoint: something in it has no form.
        """
        kind: Any = type(value)
        if kind in PLAIN:
            return value
        number = self._nodes.get(id(value))
        if number is not None:
            return [SAME, number]
        if kind in self._of_given:
            return self._given_form(value)
        known = self._parts.number(value)
        if known is not None:
            self.reached.add(known)
            return [PART, known]
        if kind in self._kept:
            return [KEPT, self._node(value)]
        if kind in _FORMS:
            return _FORMS[kind](self, value)
        return self._other(value, kind)

    def _given_form(self, value: Any) -> Any:
        number = self._given.get(id(value))
        if number is None:
            kind: Any = type(value)
            raise NoSavepoint(f"{name_of(kind)} in the state is not the one that was given")
        return [GIVEN, number]

    def _other(self, value: Any, kind: type) -> Any:
        if isinstance(value, Enum):
            return [ENUM, name_of(kind), value.name]
        if isinstance(value, np.generic):
            array = np.asarray(value)
            return [NUMBER, kind_of(array), _bytes(array)]
        if isinstance(value, tuple) and is_own(kind):
            return [NAMED_TUPLE, name_of(kind), [self.form(one) for one in value]]
        if not is_own(kind) or isinstance(value, type):
            if not callable(value) and kind is not MappingProxyType:
                raise NoSavepoint(f"{kind.__module__}.{kind.__qualname__} has no form in a savepoint")
            return [KEPT, self._node(value)]
        if self._values.get(kind, is_value(kind)):
            try:
                number = self._part(value)
            except _NoValue:
                self._values[kind] = False
            else:
                self.reached.add(number)
                return [PART, number]
        return self._object(value, kind)

    def _node(self, value: Any) -> int:
        self._held.append(value)
        self._nodes[id(value)] = len(self._nodes)
        return len(self._nodes) - 1

    def _object(self, value: Any, kind: type) -> Any:
        number, left_out = self._node(value), self._remade.get(kind, NO_ATTRIBUTES)
        attributes = {name: self.form(one) for name, one in attributes_of(value) if name not in left_out}
        return [OBJECT, number, name_of(kind), attributes]

    def _list(self, value: list[Any]) -> Any:
        return [LIST, self._node(value), [self.form(one) for one in value]]

    def _pairs(self, value: Mapping[Any, Any]) -> list[Any]:
        return [[self.form(key), self.form(one)] for key, one in value.items()]

    def _dict(self, value: dict[Any, Any]) -> Any:
        return [DICT, self._node(value), self._pairs(value)]

    def _counter(self, value: "Counter[Any]") -> Any:
        return [COUNTER, self._node(value), self._pairs(value)]

    def _tuple(self, value: tuple[Any, ...]) -> Any:
        return [TUPLE, [self.form(one) for one in value]]

    def _set(self, value: set[Any]) -> Any:
        return [SET, self._node(value), _ordered([self.form(one) for one in value])]

    def _frozen_set(self, value: frozenset[Any]) -> Any:
        return [FROZEN_SET, _ordered([self.form(one) for one in value])]

    def _deque(self, value: "deque[Any]") -> Any:
        return [DEQUE, self._node(value), value.maxlen, [self.form(one) for one in value]]

    def _array(self, value: np.ndarray[Any, Any]) -> Any:
        if value.dtype.hasobject:
            raise NoSavepoint("an array of objects has no form in a savepoint")
        return [ARRAY, self._node(value), kind_of(value), list(value.shape), _bytes(value)]

    def _time(self, value: datetime) -> Any:
        return [TIME, value.isoformat()]

    def _part(self, value: Any) -> int:
        """Number of an immutable object, written if it is new.

        Raises:
            _NoValue: something in it may change.
        """
        known = self._parts.number(value)
        if known is not None:
            return known
        inner: list[int] = []
        kind: Any = type(value)
        model = is_model(kind)
        attributes = {name: self._value(one, model, inner) for name, one in attributes_of(value)}
        return self._parts.keep(value, inner, [name_of(kind), attributes])

    def _value(self, value: Any, model: bool, inner: list[int]) -> Any:
        """The form of something inside an immutable object; within models containers are values, too."""
        kind: Any = type(value)
        if kind in PLAIN:
            return value
        if kind is tuple:
            return [TUPLE, [self._value(one, model, inner) for one in value]]
        if isinstance(value, Enum):
            return [ENUM, name_of(kind), value.name]
        if kind is datetime:
            return [TIME, value.isoformat()]
        if kind is frozenset:
            return [FROZEN_SET, _ordered([self._value(one, model, inner) for one in value])]
        if model and kind is set:
            return [SET, NO_NODE, _ordered([self._value(one, model, inner) for one in value])]
        if model and kind is list:
            return [LIST, NO_NODE, [self._value(one, model, inner) for one in value]]
        if model and kind in (dict, MappingProxyType):
            pairs = [[self._value(k, model, inner), self._value(v, model, inner)] for k, v in value.items()]
            return [DICT if kind is dict else PROXY, NO_NODE, pairs]
        if kind in self._of_given:
            return self._given_form(value)
        if kind in self._kept or not is_own(kind) or not self._values.get(kind, is_value(kind)):
            raise _NoValue
        number = self._part(value)
        inner.append(number)
        return [PART, number]


def attributes_of(value: Any) -> list[tuple[str, Any]]:
    """Name and value of every attribute of an object."""
    kind: Any = type(value)
    found = [(name, getattr(value, name)) for name in slots_of(kind) if hasattr(value, name)]
    found += list(getattr(value, "__dict__", NO_ATTRIBUTES).items())
    if is_model(kind):
        found += [(name, getattr(value, name)) for name in PYDANTIC]
    return found


def _ordered(forms: list[Any]) -> list[Any]:
    """The items of a set, which has no order, always in the same one."""
    return sorted(forms, key=lambda form: form if type(form) is str else json.dumps(form))


def _bytes(array: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


_FORMS: dict[type, Callable[[Writer, Any], Any]] = {
    list: Writer._list,
    dict: Writer._dict,
    tuple: Writer._tuple,
    set: Writer._set,
    frozenset: Writer._frozen_set,
    deque: Writer._deque,
    Counter: Writer._counter,
    np.ndarray: Writer._array,
    datetime: Writer._time,
}
