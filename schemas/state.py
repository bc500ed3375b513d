"""What a service carries from one row to the next, declared by name and type beside its fields.

State is plain data: a service writes it as JSON has it and takes it back into one that was wired anew.
Settings and wiring are never part of it.
"""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, Final, get_type_hints

from pydantic import TypeAdapter

PART: Final = object()  # a field that has state of its own


@dataclass(frozen=True)
class Pairs:
    """The type of a mapping whose keys JSON does not take."""

    key: Any
    value: Any


class Stateful:
    """A service that says its state; containers keep their identity when it is restored.

    Attributes:
        STATE: type of each field that is state: one that pydantic reads and writes, `Pairs`, or `PART`. A
            dataclass that declares none holds nothing but state.
        REBUILT: fields that are wiring, or that follow from the settings, the bars or the episodes.
    """

    __slots__ = ()
    STATE: ClassVar[Mapping[str, Any]] = {}
    REBUILT: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def state_fields(cls) -> Mapping[str, Any]:
        """Type of each field of the state, by name."""
        owner: Any = cls
        return _read_declared(owner)

    def state(self) -> dict[str, Any]:
        """Every field of the state as JSON has it."""
        return {name: _write(kind, getattr(self, name)) for name, kind in self.state_fields().items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Stand where the service stood that wrote this.

        Raises:
            ValueError: it has other fields, or a value is not of its type.
        """
        kinds = self.state_fields()
        demand_fields(type(self).__name__, state, kinds)
        for name, kind in kinds.items():
            there = getattr(self, name)
            if kind is PART:
                if (there is None) != (state[name] is None):
                    raise ValueError(f"{type(self).__name__}: {name!r} is there on one side only")
                if there is not None:
                    there.restore(state[name])
            else:
                _put(self, name, there, read_as(kind, state[name]))


def demand_fields(owner: str, state: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse a state with other fields.

    Raises:
        ValueError: names what is missing and what is unknown.
    """
    missing, unknown = sorted(wanted.keys() - state.keys()), sorted(state.keys() - wanted.keys())
    if missing or unknown:
        raise ValueError(f"the state of {owner} lacks {missing} and has unknown {unknown}")


def write_as(kind: Any, value: Any) -> Any:
    """A value of a type as JSON has it.

    Raises:
        ValueError: it is none of this type.
    """
    if isinstance(kind, Pairs):
        value = list(value.items())
    written = _adapter(kind).dump_python(value, mode="json", warnings="error")
    return sorted(written, key=json.dumps) if isinstance(value, set) else written


def read_as(kind: Any, written: Any) -> Any:
    """The value that `written_as` gave.

    Raises:
        ValueError: it is none of this type.
    """
    value = _adapter(kind).validate_python(written)
    return dict(value) if isinstance(kind, Pairs) else value


def _write(kind: Any, value: Any) -> Any:
    if kind is PART:
        return None if value is None else value.state()
    return write_as(kind, value)


def _put(owner: Any, name: str, there: Any, value: Any) -> None:
    if isinstance(there, dict | set):
        there.clear()
        there.update(value)
    elif isinstance(there, list | deque):
        there.clear()
        there.extend(value)
    else:
        setattr(owner, name, value)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(list[tuple[kind.key, kind.value]] if isinstance(kind, Pairs) else kind)


@cache
def _read_declared(cls: Any) -> Mapping[str, Any]:
    declared: Mapping[str, Any] = cls.STATE
    rebuilt: frozenset[str] = cls.REBUILT
    if declared or not is_dataclass(cls):
        return declared
    hints = get_type_hints(cls)
    return {declared.name: hints[declared.name] for declared in fields(cls) if declared.name not in rebuilt}
