"""The forms in which a savepoint writes values, and the names of classes in them.

A value that JSON knows stands as it is; anything else is a list whose first item says which form it has.
Only classes of this program are named, and naming one runs none of its code: a savepoint is data.
"""

import sys
from enum import Enum
from functools import cache
from typing import Any, Final

import numpy as np
from pydantic import BaseModel

from schemas.errors import StoreError

SAME: Final = "="  # an object met before: its number
PART: Final = "#"  # an immutable one, stored once: its number
GIVEN: Final = "given"  # what whoever writes and whoever reads brings along, by its place there: a number
KEPT: Final = "kept"  # what the newly wired graph has in this place: a number
LIST, DICT, TUPLE, SET, FROZEN_SET = "list", "dict", "tuple", "set", "frozenset"
DEQUE, COUNTER, PROXY = "deque", "counter", "proxy"
ENUM, TIME, ARRAY, NUMBER, OBJECT, NAMED_TUPLE = "enum", "time", "array", "number", "object", "named"

OWN: Final = frozenset({"agents", "prompts", "schemas", "services", "trading_core", "worker"})
PYDANTIC: Final = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")


class NoSavepoint(StoreError):
    """A graph cannot be written, or what was written cannot be put back; nothing depends on savepoints."""


def is_own(cls: type) -> bool:
    """Whether a class belongs to this program."""
    return cls.__module__.partition(".")[0] in OWN


@cache
def name_of(cls: Any) -> str:
    """`module:Class`."""
    return f"{cls.__module__}:{cls.__qualname__}"


@cache
def class_of(name: str) -> type:
    """The class of a name.

    Raises:
        NoSavepoint: it is no class of this program, or its module is not loaded.
    """
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module) if module.partition(".")[0] in OWN else None
    for step in path.split("."):
        found = getattr(found, step, None)
    if not isinstance(found, type):
        raise NoSavepoint(f"the savepoint names {name!r}, which is no class of this program")
    return found


@cache
def slots_of(cls: Any) -> tuple[str, ...]:
    """Names of the attributes that do not stand in `__dict__`."""
    names: list[str] = []
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__", *PYDANTIC))


@cache
def is_model(cls: Any) -> bool:
    """Whether instances are pydantic models."""
    return issubclass(cls, BaseModel)


@cache
def is_value(cls: Any) -> bool:
    """Whether instances never change: frozen models and frozen dataclasses."""
    if is_model(cls):
        return bool(cls.model_config.get("frozen"))
    parameters = getattr(cls, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


@cache
def member(cls: str, name: str) -> Any:
    """The member of an enum.

    Raises:
        NoSavepoint: there is none of this name.
    """
    found = class_of(cls)
    if not issubclass(found, Enum) or name not in found.__members__:
        raise NoSavepoint(f"the savepoint names {cls}.{name}, which is no member of an enum")
    return found[name]


def kind_of(array: np.ndarray[Any, Any]) -> Any:
    """The type of an array's cells as JSON has it; records keep their fields."""
    return np.lib.format.dtype_to_descr(array.dtype)


def cells_of(kind: Any) -> np.dtype[Any]:
    """The type that `kind_of` described; lists of JSON are the tuples of numpy."""
    return np.lib.format.descr_to_dtype(_tupled(kind))


def _tupled(kind: Any) -> Any:
    if not isinstance(kind, list):
        return kind
    return [tuple(tuple(x) if isinstance(x, list) and all(isinstance(n, int) for n in x) else _tupled(x)
                  for x in field) for field in kind]  # fmt: skip
