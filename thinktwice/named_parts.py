"""Own parts of a sweep's runs by name: each worker imports them, and no code is sent."""

import ast
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from importlib.util import resolve_name as resolve_import
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

from schemas.canonical import content_hash
from schemas.errors import ConfigError
from schemas.settings import Settings
from thinktwice.boundary import INSTALLED
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
    """A part: `strategist`, `judge`, `critic` or `model`; `MODULE:NAME`; the hash of its source."""

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
            except (Exception, SystemExit) as error:  # a module of the caller's may raise anything
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
    try:
        return content_hash(_read_sources(part.__module__))
    except (OSError, TypeError, ValueError, SyntaxError) as error:
        raise ConfigError(
            f"{kind} {part!r}: the source of {part.__module__!r} cannot be read: write it in a file"
        ) from error


def _read_sources(name: str) -> dict[str, str]:
    """Text by module: of this one, and of those of the caller's that it imports in turn."""
    texts, left = dict[str, str](), [name]
    for found in left:
        place = _place_of(found, name)
        if found in texts or place is None:
            continue
        texts[found] = Path(place).read_text("utf-8")
        package = found if Path(place).stem == "__init__" else found.rpartition(".")[0]
        left.append(found.rpartition(".")[0])
        for node in ast.walk(ast.parse(texts[found])):
            if isinstance(node, ast.Import):
                left += [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = resolve_import("." * node.level + (node.module or ""), package)
                left += [base, *(f"{base}.{each.name}" for each in node.names)]
    if not texts:
        raise OSError(f"no file of {name!r}")
    return texts


def _place_of(name: str, part: str) -> str | None:
    """The file of a module of the caller's, or of the one that holds the part, wherever that is."""
    if name == "__main__":
        return getattr(sys.modules[name], "__file__", None)
    place: str | None = None
    for known in (name.partition(".")[0], name):  # looking below a package imports it: not of ours or theirs
        try:
            found = find_spec(known)
        except Exception:  # noqa: BLE001 - a package of the caller's may raise anything
            return None
        place = None if found is None else found.origin
        if found is None or (name != part and (place or "").startswith(INSTALLED)):
            return None
    return place if place is not None and place.endswith(".py") else None
