"""How kernel functions are compiled: cached on disk, IEEE arithmetic, and without a memory runtime.

Without the runtime a function that allocates does not compile, so "nothing is allocated per bar" holds by
construction; and no array argument is reference-counted, which cost more than everything a quiet bar does.
"""

import sys
from collections.abc import Callable
from typing import Any, Final

from numba import njit

_OPTIONS: Final[dict[str, Any]] = {"cache": True, "error_model": "numpy", "_nrt": False}

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


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a kernel function on first call; division by zero gives infinities and NaN, as in numpy."""
    return njit(**_OPTIONS)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function of the quiet path into its caller, whatever the compiler thinks of its size."""
    return njit(forceinline=True, **_OPTIONS)(function)
