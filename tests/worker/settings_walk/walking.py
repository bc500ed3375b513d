"""What a walk over the settings is made of: the leaves of the tree, and an entry for each of them.

An entry names another value and a look: a function that takes settings, builds what they are wired to by the
program's own factories, and returns what it saw. The walk demands that the other value is seen.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, get_args

from schemas.canonical import canonical_json
from schemas.contract import Contract
from schemas.errors import ConfigError
from schemas.settings import Settings
from worker.settings import FIELDS, load_settings

Look = Callable[[Settings], Any]
REFUSED_BEFORE = "llm.model"  # mode `full` without a model
NO_CONTENT = ("id", "ids", "hash", "hashes")


class SeenOtherwise(Exception):
    """The last row is not the one that was seen before: a run need not go on."""


@dataclass(frozen=True)
class RowLook:
    """A look at the rows of a run; a look for a change ends it at the first row that differs.

    Attributes:
        tell: runs with settings and hands over each row as it comes.
    """

    tell: Callable[[Settings, Callable[[Any], None]], None]

    def __call__(self, settings: Settings) -> list[Any]:
        """All rows."""
        found: list[Any] = []
        self.tell(settings, found.append)
        return found

    def until_other(self, settings: Settings, before: Sequence[Any]) -> list[Any]:
        """The rows up to the first that is not the one of `before`, in the form of JSON, at its place."""
        found: list[Any] = []

        def told(row: Any) -> None:
            found.append(row)
            if [json.loads(canonical_json(row))] != before[len(found) - 1 : len(found)]:
                raise SeenOtherwise

        with suppress(SeenOtherwise):
            self.tell(settings, told)
        return found


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
_TOLD_BY: dict[tuple[Look, str], int] = {}  # how many rows of a look tell all the changes apart


def _name(entry: Entry) -> tuple[Look, str]:
    return entry.look, repr(sorted(entry.beside.items()))


def seen_before(entry: Entry) -> str:
    """What the look sees without the change, or why it is refused; once for all entries that share it."""
    name = _name(entry)
    if name not in _BEFORE:
        try:
            _BEFORE[name] = seen(entry, {})
        except ConfigError as error:
            _BEFORE[name] = str(error)
    return _BEFORE[name]


def seen_after(key: str, entry: Entry) -> str:
    """What the look sees with the change; of rows no more than up to the first that differs."""
    changes = {key.split("[]")[0]: entry.value}
    if not isinstance(entry.look, RowLook):
        return seen(entry, changes)
    before = json.loads(seen_before(entry))["seen"]
    after = entry.look.until_other(settings_with({**entry.beside, **changes}), before)
    _TOLD_BY[_name(entry)] = max(_TOLD_BY.get(_name(entry), 0), len(after))
    return canonical_json({"seen": after})


def sees_the_same(entry: Entry) -> bool:
    """Whether a second look sees the same; of rows at least those by which changes were told from it."""
    if not isinstance(entry.look, RowLook):
        return seen(entry, {}) == seen_before(entry)
    before = json.loads(seen_before(entry))["seen"]
    wanted = before[: _TOLD_BY.get(_name(entry), len(before))]
    again = entry.look.until_other(settings_with(entry.beside), wanted)
    return bool(canonical_json(again[: len(wanted)]) == canonical_json(wanted))


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
