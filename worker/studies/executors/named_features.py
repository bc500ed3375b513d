"""Own features that a task reads: the worker imports the module that defines them, and no code is sent."""

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from schemas.errors import ConfigError
from trading_core.features.own import find, list_changed


class NamedFeature(NamedTuple):
    """A feature by its name, the module that defines it when it is imported, and the hash of its source."""

    name: str
    module: str
    source_hash: str


def named_features(names: Iterable[str]) -> tuple[NamedFeature, ...]:
    """Those of some features that are the caller's own.

    Raises:
        ConfigError: one is defined where no worker can import it.
    """
    found = []
    for name in sorted(set(names)):
        if (own := find(name)) is None:
            continue
        module = own.function.__module__
        if module == "__main__" or find_spec(module) is None:
            raise ConfigError(
                f"feature {name!r} is defined in {module!r}, which no worker can import: define it in a "
                "module beside the script and import that, or use the executor 'serial'"
            )
        found.append(NamedFeature(name, module, own.source_hash))
    return tuple(found)


def load_features(features: Iterable[NamedFeature]) -> None:
    """Define in this process what a task reads, as it was where the task was made.

    Raises:
        ConfigError: a module is not here, or defines something else.
    """
    for name, module, source_hash in features:
        if not list_changed({name: source_hash}):
            continue
        try:
            import_module(module)
        except ImportError as error:
            raise ConfigError(
                f"feature {name!r}: this worker cannot import {module!r} ({error}): put it on the worker's "
                "PYTHONPATH"
            ) from error
        if list_changed({name: source_hash}):
            raise ConfigError(
                f"feature {name!r}: module {module!r} does not define it here as it was defined where the "
                "task was made: call tt.feature when the module is imported, from the same source"
            )
