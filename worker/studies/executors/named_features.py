"""Own features that a task reads: the worker imports the module that defines them, and no code is sent."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from schemas.errors import ConfigError
from trading_core.features.own import find, list_changed
from worker.studies.executors.executor import Executor, SerialExecutor


class NamedFeature(NamedTuple):
    """A feature by its name, the module that defines it when it is imported, and the hash of its source."""

    name: str
    module: str
    source_hash: str


def named_features(names: Iterable[str]) -> tuple[NamedFeature, ...]:
    """Those of some features that are the caller's own."""
    own = [found for name in sorted(set(names)) if (found := find(name)) is not None]
    return tuple(NamedFeature(each.name, each.function.__module__, each.source_hash) for each in own)


def require_importable(executor: Executor, modules: Mapping[str, str]) -> None:
    """Refuse what no worker can import; tasks of this process import nothing.

    Args:
        executor: where it would be imported.
        modules: by what people call what is defined there.

    Raises:
        ConfigError: names it, and the module.
    """
    for what, module in () if isinstance(executor, SerialExecutor) else modules.items():
        if module == "__main__" or find_spec(module) is None:
            raise ConfigError(
                f"{what} is defined in {module!r}, which no worker can import: define it in a "
                "module beside the script and import that, or use the executor 'serial'"
            )


def cannot_import(what: str, module: str, error: BaseException) -> ConfigError:
    """The error of a worker that lacks a module."""
    return ConfigError(
        f"{what}: this worker cannot import {module!r} ({error}): put it on the worker's PYTHONPATH"
    )


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
            raise cannot_import(f"feature {name!r}", module, error) from error
        if list_changed({name: source_hash}):
            raise ConfigError(
                f"feature {name!r}: module {module!r} does not define it here as it was defined where the "
                "task was made: call tt.feature when the module is imported, from the same source"
            )
