"""Own parts of a sweep's runs by name: each worker imports them, and no code is sent."""

import hashlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pkgutil import resolve_name
from typing import Any, NamedTuple

from schemas.errors import ConfigError
from schemas.settings import Settings
from thinktwice.parts import (
    CriticParts,
    JudgePart,
    ModelPart,
    StrategistPart,
    find_part,
    list_critics,
    names_provider,
    own_model,
    own_parts,
    place_named,
)
from worker.models import Overrides, one_model
from worker.studies.executors.named_features import cannot_import


class NamedPart(NamedTuple):
    """A part: `strategist`, `judge`, `critic` or `model`; `MODULE:NAME`; the hash of its module's source."""

    kind: str
    place: str
    source_hash: str


@dataclass(frozen=True)
class NamedParts:
    """See `TaskParts`."""

    named: tuple[NamedPart, ...]

    def modules(self) -> dict[str, str]:
        """See `TaskParts`."""
        return {f"{part.kind} {part.place!r}": part.place.partition(":")[0] for part in self.named}

    def load(self, settings: Settings) -> Overrides:
        """See `TaskParts`."""
        found: dict[str, list[Any]] = {}
        for kind, place, source_hash in self.named:
            try:
                part = resolve_name(place)
            except (ImportError, AttributeError) as error:
                raise cannot_import(f"{kind} {place!r}", place.partition(":")[0], error) from error
            if _hash_source(kind, part) != source_hash:
                raise ConfigError(
                    f"{kind} {place!r}: the source of its module is not the one here that it was where the "
                    "task was made: bring the same file to each worker, and start the workers again"
                )
            found.setdefault(kind, []).append(part)
        strategist, judge, model = (found.get(kind, [None])[0] for kind in ("strategist", "judge", "model"))
        own, answering = own_parts(strategist, judge, found.get("critic", ())), own_model(model)
        return own if answering is None else replace(own, models=one_model(settings, answering))


def named_parts(
    strategist: StrategistPart = None,
    judge: JudgePart = None,
    critics: CriticParts = (),
    model: ModelPart = None,
) -> NamedParts:
    """Parts as `backtest` takes them, by name.

    Raises:
        ConfigError: one is no function or class that a module holds, or its source cannot be read.
    """
    given = [
        ("strategist", strategist),
        ("judge", judge),
        *(("critic", each) for each in list_critics(critics)),
    ]
    given += [] if names_provider(model) else [("model", model)]
    return NamedParts(tuple(_name(kind, part) for kind, part in given if find_part(kind, part) is not None))


def _name(kind: str, given: Any) -> NamedPart:
    found = find_part(kind, given)
    place = (
        place_named(kind, given)
        if isinstance(given, str)
        else f"{getattr(found, '__module__', None)}:{getattr(found, '__qualname__', None)}"
    )
    try:
        is_there = resolve_name(place) is found
    except (ImportError, AttributeError, ValueError):
        is_there = False
    if not is_there or not (isinstance(found, type) or inspect.isroutine(found)):
        raise ConfigError(
            f"{kind} {given!r}: each run of a sweep imports it by name, and {place!r} is no class or function"
            ": write one at the top level of a module (no lambda, nothing made in a function, no object that "
            "would go from run to run), and give it or 'MODULE:NAME'"
        )
    return NamedPart(kind, place, _hash_source(kind, found))


def _hash_source(kind: str, part: Callable[..., Any]) -> str:
    """Of the module in which a part is written."""
    try:
        text = inspect.getsource(sys.modules[part.__module__])
    except (OSError, TypeError, KeyError) as error:
        raise ConfigError(
            f"{kind} {part!r}: the source of {part.__module__!r} cannot be read: write it in a file"
        ) from error
    return hashlib.sha256(text.encode()).hexdigest()
