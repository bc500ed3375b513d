"""Features of the caller's own: functions of a symbol's bars, each value made from the bars up to it alone.

A value is what the function says of the last `lookback` + 1 own bars, so a later bar cannot change it and a
live run has what a backtest has. What it says of all bars must be the same: else it looks ahead, or further
back than it was said to.
"""

import hashlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.errors import ConfigError, RuleError

FloatArray = npt.NDArray[np.float64]
Function = Callable[..., FloatArray]
NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)*", re.ASCII)
OWN = "own:"
MAX_LOOKBACK = 5_000
TOLERANCE = 1e-9
_LIBRARIES = ("numpy", "numba", "math", "builtins")
_PLAIN = (int, float, str, bool, type(None))


@dataclass(frozen=True)
class OwnFeature:
    """One function.

    Attributes:
        name: as rules read it.
        function: of open, high, low, close and volume, float64 (N,) each, oldest first; gives N numbers.
        lookback: own bars before the present one that a value is made of.
        source_hash: of its source, and of what that reads around it.
    """

    name: str
    function: Function
    lookback: int
    source_hash: str

    def values(self, bars: FloatArray, first: int) -> FloatArray:
        """Values of the own bars from `first` on; NaN where unknown.

        Args:
            bars: float64 (5, N), the symbol's own bars so far.
            first: the first that is wanted.

        Raises:
            RuleError: the function fails, or does not give one number a bar.
        """
        found = np.full(bars.shape[1] - first, np.nan)
        for t in range(max(first, self.lookback), bars.shape[1]):
            found[t - first] = self._call(bars[:, t - self.lookback : t + 1])[-1]
        return found

    def check(self, bars: FloatArray, labels: npt.NDArray[np.int64], values: FloatArray) -> None:
        """Compare at every bar what the function says of all bars with what it says of those it may know.

        Args:
            bars: float64 (5, N), a symbol's own bars.
            labels: int64 (N,), UTC ns.
            values: float64 (N,), those of all these bars.

        Raises:
            RuleError: the two are not the same; names the first bar.
        """
        if bars.shape[1] <= self.lookback:
            return
        whole = self._call(bars)
        is_same = np.isclose(whole, values, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        differing = self.lookback + np.flatnonzero(~is_same[self.lookback :])
        if not differing.size:
            return
        t = int(differing[0])
        label = np.datetime_as_string(labels[t].astype("datetime64[ns]"), unit="s")
        so_far = self._call(bars[:, : t + 1])[-1]
        if not np.isclose(whole[t], so_far, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            raise RuleError(
                f"feature {self.name!r} looks ahead: at {label} it is {so_far:g} of the bars up to there "
                f"and {whole[t]:g} of all bars; a value may read its own bar and earlier ones only",
                feature=self.name,
            )
        raise RuleError(
            f"feature {self.name!r} looks further back than lookback={self.lookback}: at {label} it "
            f"is {values[t]:g} of the last {self.lookback + 1} bars and {so_far:g} of all up to there; "
            "give a larger lookback",
            feature=self.name,
        )

    def _call(self, bars: FloatArray) -> FloatArray:
        try:
            found = np.asarray(self.function(*(np.array(column) for column in bars)), dtype=np.float64)
        except Exception as error:
            raise RuleError(
                f"feature {self.name!r} fails on {bars.shape[1]} bars: {type(error).__name__}: {error}",
                feature=self.name,
            ) from error
        if found.shape != (bars.shape[1],):
            raise RuleError(
                f"feature {self.name!r} gives an array of shape {found.shape} of {bars.shape[1]} bars: "
                "give one number a bar",
                feature=self.name,
            )
        return np.where(np.isfinite(found), found, np.nan)


_defined: dict[str, OwnFeature] = {}


def define(name: str, function: Function, lookback: int) -> OwnFeature:
    """Keep a function under a name, in the place of the one that was there.

    Raises:
        ConfigError: the name, the function or the lookback cannot be.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ConfigError(f"feature {name!r}: name it in lower-case words joined by '_', such as 'my_trend'")
    if type(lookback) is not int or not 0 <= lookback <= MAX_LOOKBACK:
        raise ConfigError(f"feature {name!r}: lookback {lookback!r} is no whole number of 0..{MAX_LOOKBACK}")
    if not callable(function):
        raise ConfigError(
            f"feature {name!r}: {function!r} is no function of open, high, low, close and volume"
        )
    shown = hashlib.sha256(
        "\n".join((str(lookback), *_read_sources(name, function, set()))).encode()
    ).hexdigest()
    _defined[name] = OwnFeature(name, function, lookback, shown)
    return _defined[name]


def find(name: str) -> OwnFeature | None:
    """The feature of this name, if one was defined."""
    return _defined.get(name)


def hashes_of(names: Iterable[str]) -> dict[str, str]:
    """Hash by name of those among some features that are the caller's own."""
    return {name: _defined[name].source_hash for name in sorted(set(names)) if name in _defined}


def list_changed(recorded: Mapping[str, str]) -> list[str]:
    """Which features of a run are gone, or were defined otherwise since."""
    return [name for name, shown in recorded.items() if hashes_of([name]).get(name) != shown]


def _read_sources(name: str, given: Any, seen: set[int]) -> list[str]:
    """Source of a function, and of what it reads of its surroundings.

    Raises:
        ConfigError: it cannot be read, or reads what has no text.
    """
    function = inspect.unwrap(getattr(given, "py_func", given))
    if id(function) in seen:
        return []
    seen.add(id(function))
    if not isinstance(function, FunctionType):
        raise ConfigError(f"feature {name!r}: {given!r} is no plain function: write one with def")
    try:
        shown = [textwrap.dedent(inspect.getsource(function))]
        around = inspect.getclosurevars(function)
    except (OSError, TypeError, ValueError) as error:
        raise ConfigError(
            f"feature {name!r}: its source cannot be read: write it in a file or a cell"
        ) from error
    defaults = {f"default {k}": value for k, value in enumerate(function.__defaults__ or ())}
    for what, value in sorted({**around.nonlocals, **around.globals, **defaults}.items()):
        shown += _describe_value(name, what, value, seen)
    return shown


def _describe_value(name: str, what: str, value: Any, seen: set[int]) -> list[str]:
    if isinstance(value, ModuleType):
        return [f"{what}={value.__name__}"]
    if isinstance(value, np.ndarray | np.generic):
        return [f"{what}={value.dtype}{value.shape}{value.tobytes().hex()}"]
    if all(isinstance(item, _PLAIN) for item in (value if isinstance(value, tuple) else (value,))):
        return [f"{what}={value!r}"]
    if callable(value):
        package = (getattr(value, "__module__", None) or "").split(".")[0]
        return [f"{what}={value!r}"] if package in _LIBRARIES else [what, *_read_sources(name, value, seen)]
    raise ConfigError(
        f"feature {name!r} reads {what!r} around it, a {type(value).__name__} that no run can keep: "
        "make it numbers, text or a function"
    )
