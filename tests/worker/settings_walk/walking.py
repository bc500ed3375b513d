"""What a walk over the settings is made of: the leaves of the tree, and an entry for each of them.

An entry names another value and a look: a function that takes settings, builds what they are wired to by the
program's own factories, and returns what it saw. The walk demands that the other value is seen.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from typing import Any, get_args

from schemas.canonical import canonical_json
from schemas.contract import Contract
from schemas.errors import ConfigError
from schemas.settings import Settings
from worker.settings import FIELDS, load_settings

Look = Callable[[Settings], Any]
REFUSED_BEFORE = "llm.model"  # mode `full` without a model
NO_CONTENT = ("id", "ids", "hash", "hashes")


@dataclass(frozen=True)
class RowLook:
    """A look at the rows of a run.

    Attributes:
        read: begins a run, which goes on only as far as its rows are read, and ends where they are closed.
    """

    read: Callable[[Settings], Generator[Any, None, None]]


class ReadRows:
    """The rows of a run that have been read, once for all who compare with them.

    Attributes:
        known: those that were read, in the form of JSON.
    """

    def __init__(self, rows: Generator[Any, None, None]) -> None:
        """Nothing is read yet."""
        self._rows = rows
        self.known: list[str] = []

    def at(self, place: int) -> str | None:
        """A row, for which the run goes on; None behind the last."""
        while len(self.known) <= place and (row := next(self._rows, None)) is not None:
            self.known.append(canonical_json(row))
        return self.known[place] if place < len(self.known) else None

    def close(self) -> None:
        """Give up the run."""
        self._rows.close()


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
    look: Look | RowLook
    companions: Mapping[str, Any] = field(default_factory=dict)


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
    assert not isinstance(entry.look, RowLook)
    return canonical_json({"seen": entry.look(settings_with({**entry.companions, **changes}))})


_BEFORE: dict[tuple[Look | RowLook, str], Any] = {}


def _name(entry: Entry) -> tuple[Look | RowLook, str]:
    return entry.look, repr(sorted(entry.companions.items()))


def seen_before(entry: Entry) -> str:
    """What the look sees without the change, or why it is refused; once for all entries that share it."""
    name = _name(entry)
    if name not in _BEFORE:
        try:
            _BEFORE[name] = seen(entry, {})
        except ConfigError as error:
            _BEFORE[name] = str(error)
    return str(_BEFORE[name])


def _rows_before(entry: Entry, look: RowLook) -> ReadRows:
    name = _name(entry)
    if name not in _BEFORE:
        _BEFORE[name] = ReadRows(look.read(settings_with(entry.companions)))
    rows: ReadRows = _BEFORE[name]
    return rows


def close_runs() -> None:
    """Give up the runs whose rows nobody reads any more."""
    for name in [name for name, before in _BEFORE.items() if isinstance(before, ReadRows)]:
        _BEFORE.pop(name).close()


def sees_change(key: str, entry: Entry) -> bool:
    """Whether the look sees the change; of rows it reads no more than up to the first that differs."""
    changes = {key.split("[]")[0]: entry.value}
    if not isinstance(entry.look, RowLook):
        return seen(entry, changes) != seen_before(entry)
    before = _rows_before(entry, entry.look)
    with closing(ReadRows(entry.look.read(settings_with({**entry.companions, **changes})))) as after:
        for place in count():
            if (row := after.at(place)) != before.at(place):
                return True
            if row is None:
                return False
    raise AssertionError("rows end")


def sees_the_same(entry: Entry) -> bool:
    """Whether a second look sees the same; of rows those by which changes were told from it, or all."""
    if not isinstance(entry.look, RowLook):
        return seen(entry, {}) == seen_before(entry)
    before = _rows_before(entry, entry.look)
    places = range(len(before.known)) if before.known else count()
    with closing(ReadRows(entry.look.read(settings_with(entry.companions)))) as again:
        for place in places:
            if (row := again.at(place)) != before.at(place):
                return False
            if row is None:
                break
    return True


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
    found = {(entry.look, repr(entry.companions)): key for key, entry in table.items()}
    return [key for key in found.values() if key != REFUSED_BEFORE]
