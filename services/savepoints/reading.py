"""Put a written state back into a graph that has been wired anew.

Reading follows the places of writing. What the new graph has in a place keeps its identity and gets the
stored attributes; what it has not is made without running its constructor; wiring stays what it is.
"""

import base64
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime
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
    SAME,
    SET,
    TIME,
    TUPLE,
    NoSavepoint,
    cells_of,
    class_of,
    member,
)  # fmt: skip
from services.savepoints.writing import Parts

NOTHING = object()


class Reader:
    """Reads one graph once.

    Args:
        parts: takes every part that is read, under its number.
        remade: what attributes that are not state begin with, in objects that are new.
        kept: classes whose instances are wiring: none is read.
        given: as the writer had them; none of their classes is read.
    """

    def __init__(
        self,
        parts: Parts,
        remade: Mapping[type, Mapping[str, Any]],
        kept: Collection[type] = (),
        given: Sequence[Any] = (),
    ) -> None:
        self._parts = parts
        self._remade = remade
        self._given = given
        self._wiring = frozenset((*kept, *map(type, given)))
        self._nodes: dict[int, Any] = {}
        self._bound: set[int] = set()
        self._made: dict[int, Any] = {}

    def take_parts(self, stored: Iterable[tuple[int, Any]]) -> None:
        """Make immutable objects, in the order in which they were written."""
        for number, (name, attributes) in stored:
            inner: list[int] = []
            made = _bare(self._kind(name))
            for key, form in attributes.items():
                object.__setattr__(made, key, self._value(form, inner))
            self._made[number] = made
            self._parts.hold(number, made, inner)

    def _value(self, form: Any, inner: list[int]) -> Any:
        if type(form) is not list:
            return form
        tag = form[0]
        if tag == PART:
            inner.append(form[1])
            return self._part(form[1])
        if tag == GIVEN:
            return self._given[form[1]]
        if tag == TUPLE:
            return tuple([self._value(one, inner) for one in form[1]])
        if tag == ENUM:
            return member(form[1], form[2])
        if tag in (DICT, PROXY):
            pairs = {self._value(k, inner): self._value(v, inner) for k, v in form[2]}
            return pairs if tag == DICT else MappingProxyType(pairs)
        if tag == LIST:
            return [self._value(one, inner) for one in form[2]]
        if tag == SET:
            return {self._value(one, inner) for one in form[2]}
        if tag == FROZEN_SET:
            return frozenset([self._value(one, inner) for one in form[1]])
        if tag == TIME:
            return datetime.fromisoformat(form[1])
        raise NoSavepoint(f"a part of a savepoint has the form {tag!r}")

    def _part(self, number: int) -> Any:
        if number not in self._made:
            raise NoSavepoint(f"part {number} of the savepoint is missing")
        return self._made[number]

    def read(self, form: Any, there: Any = NOTHING) -> Any:
        """The value of a form.

        Args:
            form: as written.
            there: what the new graph has in this place.

        Raises:
            NoSavepoint: it does not fit the new graph.
        """
        if type(form) is not list:
            return form
        reading = _READ.get(form[0])
        if reading is None:
            raise NoSavepoint(f"a savepoint has the unknown form {form[0]!r}")
        return reading(self, form, there)

    def _bind(self, number: int, there: Any, made: Callable[[], Any], kind: type) -> Any:
        """What the graph has there if it is of the kind and not taken by another node, else a new one."""
        if type(there) is not kind or id(there) in self._bound:
            there = made()
        self._bound.add(id(there))
        self._nodes[number] = there
        return there

    def _same(self, form: Any, there: Any) -> Any:
        return self._nodes[form[1]]

    def _of_parts(self, form: Any, there: Any) -> Any:
        return self._part(form[1])

    def _of_given(self, form: Any, there: Any) -> Any:
        return self._given[form[1]]

    def _kind(self, name: str) -> type:
        kind = class_of(name)
        if kind in self._wiring:
            raise NoSavepoint(f"the savepoint brings a {name} of its own, which is no state")
        return kind

    def _keep(self, form: Any, there: Any) -> Any:
        if there is NOTHING:
            raise NoSavepoint("a savepoint relies on wiring that the new run does not have")
        self._nodes[form[1]] = there
        return there

    def _list(self, form: Any, there: Any) -> Any:
        found = self._bind(form[1], there, list, list)
        old = list(found)
        found[:] = [self.read(one, old[k] if k < len(old) else NOTHING) for k, one in enumerate(form[2])]
        return found

    def _pairs(self, pairs: Any, old: Mapping[Any, Any]) -> dict[Any, Any]:
        read = {}
        for written, one in pairs:
            key = self.read(written)
            read[key] = self.read(one, old.get(key, NOTHING))
        return read

    def _mapping(self, form: Any, there: Any) -> Any:
        kind: type = dict if form[0] == DICT else Counter
        found = self._bind(form[1], there, kind, kind)
        read = self._pairs(form[2], dict(found))
        found.clear()
        found.update(read)
        return found

    def _tuple(self, form: Any, there: Any) -> Any:
        old = there if type(there) is tuple else ()
        return tuple([self.read(one, old[k] if k < len(old) else NOTHING) for k, one in enumerate(form[1])])

    def _named_tuple(self, form: Any, there: Any) -> Any:
        return tuple.__new__(class_of(form[1]), [self.read(one) for one in form[2]])

    def _set(self, form: Any, there: Any) -> Any:
        found = self._bind(form[1], there, set, set)
        read = [self.read(one) for one in form[2]]
        found.clear()
        found.update(read)
        return found

    def _frozen_set(self, form: Any, there: Any) -> Any:
        return frozenset([self.read(one) for one in form[1]])

    def _deque(self, form: Any, there: Any) -> Any:
        longest = form[2]
        if type(there) is deque and there.maxlen != longest:
            there = NOTHING
        found = self._bind(form[1], there, lambda: deque(maxlen=longest), deque)
        read = [self.read(one) for one in form[3]]
        found.clear()
        found.extend(read)
        return found

    def _array(self, form: Any, there: Any) -> Any:
        _, number, kind, shape, text = form
        cells = np.frombuffer(base64.b64decode(text), dtype=cells_of(kind)).reshape(shape)
        if isinstance(there, np.ndarray) and (there.dtype != cells.dtype or there.shape != cells.shape):
            there = NOTHING
        found = self._bind(number, there, cells.copy, np.ndarray)
        found[...] = cells
        return found

    def _number(self, form: Any, there: Any) -> Any:
        return np.frombuffer(base64.b64decode(form[2]), dtype=cells_of(form[1]))[0]

    def _enum(self, form: Any, there: Any) -> Any:
        return member(form[1], form[2])

    def _time(self, form: Any, there: Any) -> Any:
        return datetime.fromisoformat(form[1])

    def _object(self, form: Any, there: Any) -> Any:
        _, number, name, attributes = form
        kind = self._kind(name)
        found = self._bind(number, there, lambda: self._new(kind), kind)
        no_state = self._remade.get(kind, {})
        for key, one in attributes.items():
            old = getattr(found, key, NOTHING)
            value = self.read(one, old)
            if key in no_state or (type(old) in self._wiring and value is not old):
                raise NoSavepoint(f"the savepoint changes {key!r} of {name}, which is no state")
            object.__setattr__(found, key, value)
        return found

    def _new(self, kind: type) -> Any:
        made = _bare(kind)
        for key, value in self._remade.get(kind, {}).items():
            object.__setattr__(made, key, copy(value))
        return made


def _bare(kind: type) -> Any:
    return object.__new__(kind)


_READ: dict[str, Callable[[Reader, Any, Any], Any]] = {
    SAME: Reader._same,
    PART: Reader._of_parts,
    KEPT: Reader._keep,
    GIVEN: Reader._of_given,
    LIST: Reader._list,
    DICT: Reader._mapping,
    COUNTER: Reader._mapping,
    TUPLE: Reader._tuple,
    NAMED_TUPLE: Reader._named_tuple,
    SET: Reader._set,
    FROZEN_SET: Reader._frozen_set,
    DEQUE: Reader._deque,
    ARRAY: Reader._array,
    NUMBER: Reader._number,
    ENUM: Reader._enum,
    TIME: Reader._time,
    OBJECT: Reader._object,
}
