"""Functions over arrays, compiled when that pays: to load the compiler takes half a second, few blocks none.

The same source runs in both ways, with the same figures to the last bit: IEEE arithmetic in the same order.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any, Final

import numpy as np

FEW = 200  # blocks at once: the last axis of an array
MANY = 100_000  # blocks in all
_OPTIONS: Final[dict[str, Any]] = {"error_model": "numpy", "no_cfunc_wrapper": True}


class Kernels:
    """Functions of one module, in their order, which call each other."""

    def __init__(self) -> None:
        self.walked = 0  # blocks, by all of them
        self._functions: list[tuple[FunctionType, dict[str, Any]]] = []
        self._compiled: dict[str, Any] = {}

    def inlined(self, function: Any) -> Any:
        """Compile a function into its callers, which are the only ones to call it."""
        self._functions.append((function, {**_OPTIONS, "no_cpython_wrapper": True}))
        return function

    def kernel(self, function: Any) -> "LazyKernel":
        """Compile a function once it has met many blocks, or where the compiler is loaded."""
        self._functions.append((function, _OPTIONS))
        return LazyKernel(function, self)

    def compiled(self, name: str) -> Callable[..., Any]:
        """A function as numba compiles it."""
        if not self._compiled:
            from numba import njit

            from trading_core.compiled import cache_on_disk

            known = dict(self._functions[0][0].__globals__)
            for function, options in self._functions:
                own = FunctionType(function.__code__, known, function.__name__)
                own.__module__, own.__qualname__ = function.__module__, function.__qualname__
                made = njit(**options)(own)
                made = made if "no_cpython_wrapper" in options else cache_on_disk(made)
                known[function.__name__] = self._compiled[function.__name__] = made
        found: Callable[..., Any] = self._compiled[name]
        return found


class LazyKernel:
    """One function in both ways."""

    def __init__(self, function: Callable[..., Any], kernels: Kernels) -> None:
        self.plain, self._kernels = function, kernels

    def __call__(self, *arguments: Any) -> Any:
        """Call it, compiled where that pays or the compiler is loaded anyway."""
        most = max((array.shape[-1] for array in _arrays(arguments)), default=0)
        self._kernels.walked += most
        if "numba" in sys.modules or most > FEW or self._kernels.walked > MANY:
            return self.compiled(*arguments)
        with np.errstate(all="ignore"):  # as compiled code has it
            return self.plain(*arguments)

    @property
    def compiled(self) -> Callable[..., Any]:
        """It as numba compiles it."""
        return self._kernels.compiled(self.plain.__name__)


def _arrays(arguments: Iterable[Any]) -> Iterator[np.ndarray]:
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            yield argument
        elif isinstance(argument, tuple):
            yield from _arrays(argument)
