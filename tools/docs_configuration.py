"""The configuration reference from `schemas.settings`: every setting with type, default, limits and meaning.

A meaning is the field's own description; a setting without one is an error, so none can stay undocumented.
"""

import json
import re
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from schemas.contract import Contract
from schemas.errors import ConfigError
from schemas.settings import HEARTBEAT_BARS, Settings
from tools.docs_pages import table
from worker.settings import FIELDS, SECTIONS

_LIMITS = {"ge": ">= {}", "gt": "> {}", "le": "<= {}", "lt": "< {}"}


def configuration() -> str:
    """One table a section, in the order of the tree."""
    parts = [_section("seed", [key for key in FIELDS if "." not in key])]
    for section in [name for name in Settings.model_fields if name in SECTIONS]:
        keys = [key for key in FIELDS if key.startswith(f"{section}.")]
        model = Settings.model_fields[section].annotation
        text = " ".join((model.__doc__ or "").split()).replace("None:", "Unset:")
        parts.append(f"## [{section}]\n\n{text}\n\n{_rows(keys)}")
    return "\n\n".join(parts)


def _section(title: str, keys: list[str]) -> str:
    return f"## Top level: {title}\n\n{_rows(keys)}"


def _rows(keys: list[str]) -> str:
    rows = [
        (
            f"`{key.partition('.')[2] or key}`",
            type_text(FIELDS[key].annotation),
            _default(FIELDS[key]),
            meaning(key),
        )
        for key in keys
    ]
    return table(("key", "type", "default", "meaning"), rows)


def meaning(key: str) -> str:
    """What a setting means, and its limits.

    Raises:
        ConfigError: it is not said.
    """
    field = FIELDS[key]
    text = field.description
    if text is None:
        raise ConfigError(f"setting {key!r} has no description in schemas/settings")
    limits = [
        form.format(f"{getattr(bound, name):g}")
        for bound in field.metadata
        for name, form in _LIMITS.items()
        if hasattr(bound, name)
    ]
    text = re.sub(r"^None: ", "unset: ", text)
    return f"{text}{' (' + ', '.join(limits) + ')' if limits else ''}"


def type_text(annotation: Any) -> str:
    """A type as a reader of TOML knows it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{choice}`" if choice else '`""`' for choice in arguments)
    if origin in (Union, UnionType):
        return " or ".join(type_text(argument) for argument in arguments if argument is not NoneType)
    if origin is Annotated:
        return type_text(arguments[0])
    if origin is tuple:
        return f"list of {type_text(arguments[0])}"
    if isinstance(annotation, type) and issubclass(annotation, str) and annotation is not str:
        return "policy event"
    names = {str: "text", int: "integer", float: "number", bool: "true or false"}
    return names.get(annotation, "table")


def _default(field: FieldInfo) -> str:
    value = field.default
    if value is None:
        return "unset"
    if isinstance(value, tuple):
        value = [part.payload() if isinstance(part, Contract) else part for part in value]
    return f"`{json.dumps(value)}`"


def heartbeats() -> str:
    """The heartbeat from each timeframe on."""
    rows = [(f"`{timeframe}`", str(bars)) for timeframe, bars in HEARTBEAT_BARS.items()]
    return table(("timeframe, from", "own bars between heartbeats"), rows)
