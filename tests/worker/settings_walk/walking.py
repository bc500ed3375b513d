"""What a walk over the settings is made of: the leaves of the tree, and an entry for each of them.

An entry names another value and a look: a function that takes settings, builds what they are wired to by the
program's own factories, and returns what it saw. The walk demands that the other value is seen.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from schemas.canonical import canonical_json
from schemas.contract import Contract
from schemas.errors import ConfigError
from schemas.settings import Settings
from worker.settings import FIELDS, load_settings

Look = Callable[[Settings], Any]
REFUSED_BEFORE = "llm.provider"  # mode `full` without a model
NO_CONTENT = ("id", "ids", "hash", "hashes")


@dataclass(frozen=True)
class Entry:
    """How a setting is seen to do something.

    Attributes:
        value: what it is changed to; of a field inside a list (`envelope.no_trade_windows[].reason`) the
            whole list that holds the changed field.
        look: what is compared.
        beside: other settings of both sides, and what the default is replaced by where it shows nothing.
    """

    value: Any
    look: Look
    beside: Mapping[str, Any] = field(default_factory=dict)


def leaves() -> Iterator[str]:
    """Every key of the tree, and every field of what its lists hold as `key[].field`."""
    for key, setting in FIELDS.items():
        yield key
        for part in get_args(setting.annotation):
            if isinstance(part, type) and issubclass(part, Contract):
                yield from (f"{key}[].{name}" for name in part.model_fields)


def settings_with(changes: Mapping[str, Any]) -> Settings:
    """The settings that a command line with these changes resolves to."""
    flags = {key: ("the walk", value) for key, value in changes.items()}
    return load_settings(environment={}, flags=flags).settings


def seen(entry: Entry, changes: Mapping[str, Any]) -> str:
    """What an entry's look sees under its `beside` and some changes."""
    return canonical_json({"seen": entry.look(settings_with({**entry.beside, **changes}))})


_BEFORE: dict[tuple[Look, str], str] = {}


def seen_before(entry: Entry) -> str:
    """What the look sees without the change, or why it is refused; once for all entries that share it."""
    name = (entry.look, repr(sorted(entry.beside.items())))
    if name not in _BEFORE:
        try:
            _BEFORE[name] = seen(entry, {})
        except ConfigError as error:
            _BEFORE[name] = str(error)
    return _BEFORE[name]


def seen_after(key: str, entry: Entry) -> str:
    """What the look sees with the change."""
    return seen(entry, {key.split("[]")[0]: entry.value})


def content(payload: Any) -> Any:
    """A payload without ids and hashes: they hold settings that may have done nothing."""
    if isinstance(payload, dict):
        return {
            name: content(value)
            for name, value in payload.items()
            if name.rpartition("_")[2] not in NO_CONTENT
        }
    return [content(part) for part in payload] if isinstance(payload, list | tuple) else payload


def looks(table: Mapping[str, Entry]) -> list[str]:
    """One key for every different look of a table, if its settings are not refused."""
    found = {(entry.look, repr(entry.beside)): key for key, entry in table.items()}
    return [key for key in found.values() if key != REFUSED_BEFORE]
