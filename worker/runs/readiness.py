"""The engine made ready before anything waits for it, and said so where that takes long."""

import os
import sys
from contextlib import AbstractContextManager
from typing import Any

from schemas.errors import ConfigError
from trading_core.compiled_cache import full_mark
from worker.runs.garbage import all_is_loaded
from worker.runs.progress import speak_soon, step

LOADING = "loading the engine; the first time takes long"
MAKING_READY = "making the engine ready, once for this version"


def loading() -> AbstractContextManager[Any]:
    """What a person sees while modules of the engine are imported; at a prompt at once, else soon."""
    speak_soon()
    return step(LOADING, at_once=not is_compiled() or hasattr(sys, "ps1"))


def ready_engine() -> None:
    """Load the compiled engine, or make it and say so, before anything is made that waits for it.

    Raises:
        ConfigError: nothing may be compiled here.
    """
    refuse_plain()
    compiled = is_compiled()
    with step(LOADING, at_once=not compiled):
        from worker.runs.warm_up import compile_engine

    with step("loading the compiled engine" if compiled else MAKING_READY, at_once=not compiled):
        compile_engine()
    all_is_loaded()


def ready_once() -> None:
    """As `ready_engine` in a process that needs a part of the engine, which is loaded as it is called."""
    refuse_plain()
    if not is_compiled():
        ready_engine()


def refuse_plain() -> None:
    """Turn away a setting of numba under which the engine, which is written for its compiler, does not run.

    Raises:
        ConfigError: `NUMBA_DISABLE_JIT` is set.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise ConfigError("NUMBA_DISABLE_JIT is set, and the engine runs compiled only: unset it")


def is_compiled() -> bool:
    """Whether the disk cache was filled to its end for these very sources.

    Some compiled code in it is not enough: a first run may have been ended half way, or be at it now, and
    commands that need no engine compile a part.
    """
    return full_mark().exists()
