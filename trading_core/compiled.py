"""How the engine is compiled: IEEE arithmetic, without a memory runtime, cached where Python enters it.

Without the runtime a function that allocates does not compile, so "nothing is allocated per bar" holds by
construction; and no array argument is reference-counted, which cost more than everything a quiet bar does.
"""

import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from numba import njit

from trading_core.engine_image import cached, without_wrapper

Function = TypeVar("Function", bound=Callable[..., Any])
_OPTIONS: Final[dict[str, Any]] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}

BLAS: Final = "scipy.linalg.cython_blas"


def _load_without_linear_algebra() -> None:
    """Let numba find no BLAS, which no kernel uses: looking for it costs each process 0.15 s of imports."""
    if BLAS in sys.modules:
        return
    sys.modules[BLAS] = None  # type: ignore[assignment]  # "not there", as the import system says it
    try:
        import numba.np.arraymath  # noqa: F401 - it looks once, when it is imported
    finally:
        del sys.modules[BLAS]


_load_without_linear_algebra()


def entry_point(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, on its first call, and keep it on disk with all that it calls.

    Division by zero gives infinities and NaN, as in numpy.
    """
    return cached(njit(**_OPTIONS)(function))


def compiled(function: Function) -> Function:
    """Compile a function into its callers; what Python needs to call it is made only when Python does."""
    return _inner(function)


def inlined(function: Function) -> Function:
    """Compile a function of the quiet path into its caller, whatever the compiler thinks of its size."""
    return _inner(function, {"forceinline": True})


def _inner(function: Function, more: Mapping[str, Any] = MappingProxyType({})) -> Function:
    options: dict[str, Any] = {"no_cpython_wrapper": True, **_OPTIONS, **more}
    dispatcher: Any = njit(**options)(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT
        return function
    door = njit(**_OPTIONS)(lambda *values: dispatcher(*values))
    return cast(Function, without_wrapper(dispatcher, door))
