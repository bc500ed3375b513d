"""What differs between two versions of a playbook, field by field; number and date do not count. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.playbook import PlaybookDefinition

NAMES = ("version", "known_at")
Value = str | float | int | bool | list[Any] | None


@dataclass(frozen=True)
class Change:
    """One field with its value before and after; None where a version does not have the field."""

    field: str
    before: Value
    after: Value

    def payload(self) -> dict[str, Value]:
        """The change as plain data."""
        return {"field": self.field, "from": self.before, "to": self.after}


def changes(before: PlaybookDefinition, after: PlaybookDefinition) -> tuple[Change, ...]:
    """Fields that differ, by name: `risk_fraction`, `parameters.side.value`, `eligibility.long.banned`."""
    old, new = dict(_fields(before.payload())), dict(_fields(after.payload()))
    return tuple(
        Change(field, old.get(field), new.get(field))
        for field in sorted({*old, *new})
        if field not in NAMES and old.get(field) != new.get(field)
    )


def _fields(value: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Value]]:
    for name, item in value.items():
        field = f"{place}.{name}" if place else str(name)
        if isinstance(item, Mapping):
            yield from _fields(item, field)
        else:
            yield field, list(item) if isinstance(item, tuple | list) else item
