"""The engine made ready before anything waits for it, and said so where that takes long."""

import sys
from contextlib import AbstractContextManager
from typing import Any

from trading_core.compiled_cache import full_mark
from worker.runs.garbage import all_is_loaded
from worker.runs.progress import speak_soon, step

LOADING = "loading the engine; the first time takes long"
COMPILING = "compiling the engine, once for this version"


def loading() -> AbstractContextManager[Any]:
    """What a person sees while modules of the engine are imported; at a prompt at once, else soon."""
    speak_soon()
    return step(LOADING, at_once=not is_compiled() or hasattr(sys, "ps1"))


def ready_engine() -> None:
    """Load the compiled engine, or compile it and say so, before anything is made that waits for it."""
    compiled = is_compiled()
    with step(LOADING, at_once=not compiled):
        from worker.runs.warm_up import compile_engine

    with step("loading the compiled engine" if compiled else COMPILING, at_once=not compiled):
        compile_engine()
    all_is_loaded()


def ready_once() -> None:
    """As `ready_engine` in a process that needs a part of the engine, which is loaded as it is called."""
    if not is_compiled():
        ready_engine()


def is_compiled() -> bool:
    """Whether the disk cache was filled to its end for these very sources.

    Some compiled code in it is not enough: a first run may have been ended half way, or be at it now, and
    commands that need no engine compile a part.
    """
    return full_mark().exists()
