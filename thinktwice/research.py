"""Features of the caller's own, and a rule by itself: each true entry traded with a bracket, no account."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np

from schemas.errors import ConfigError, DataError
from thinktwice.boundary import trims_errors
from thinktwice.inputs import bars_of, settings_of, symbols_of
from trading_core.bars import BarSeries
from trading_core.features.registry import CROSS_RANK, define_feature
from trading_core.research import simulation
from trading_core.research.simulation import SimulationResult
from trading_core.rules.foreign import CONSTANTS
from trading_core.rules.grammar import FUNCTIONS, WORDS
from trading_core.spacing import show_label
from worker.runs.readiness import ready_once

if TYPE_CHECKING:
    import pandas as pd

    Bars: TypeAlias = pd.DataFrame | str | Path | None
    Entry: TypeAlias = str | pd.Series[Any]


@trims_errors
def feature(name: str, function: Callable[..., Any], lookback: int) -> None:
    """Let rules of this process read a function of your own by a name: `my_trend > 0`.

    The function takes open, high, low, close and volume, float64 arrays of one symbol's bars, oldest first,
    and gives one number a bar; NaN is unknown. A value is taken of the last `lookback` + 1 bars. When bars
    are loaded it is compared at each bar with what the function says of all of them: a function that
    looks ahead, or further back, is refused there. Its source is hashed into the run, which is played again
    only where the feature has the same source.

    Args:
        name: lower-case words joined by `_`, none of a feature or function of ours; a second call replaces.
        function: of numpy or numba.
        lookback: bars before the present one that a value is made of.

    Raises:
        ConfigError: the name is taken, or the source, or what it reads around it, cannot be hashed.
    """
    if name in (*FUNCTIONS, *WORDS, *CONSTANTS, CROSS_RANK):
        raise ConfigError(f"feature {name!r} is a word of the rule language: take another name")
    define_feature(name, function, lookback)


@overload
def simulate(bars: "Bars" = None, entry: "Entry" = ..., **terms: Any) -> SimulationResult: ...
@overload
def simulate(
    bars: "Bars" = None, *, entry: "Mapping[str, Entry] | list[Entry]", **terms: Any
) -> dict[str, SimulationResult]: ...
@overload
def simulate(
    bars: "Bars", entry: "Mapping[str, Entry] | list[Entry]", **terms: Any
) -> dict[str, SimulationResult]: ...


@trims_errors
def simulate(
    bars: "Bars" = None,
    entry: Any = "crosses_above(sma_10, sma_30)",
    *,
    direction: Literal["long", "short"] = "long",
    stop_pct: float = 0.02,
    target_pct: float | None = 0.04,
    time_stop_bars: int = 50,
    symbols: Sequence[str] | None = None,
    tz: str | None = None,
    start: str | None = None,
    end: str | None = None,
    **terms: Any,
) -> Any:
    """What a rule would have traded: `trades` and `equity` as pandas objects, and orders that were `refused`.

    Args:
        bars: as `backtest` takes them.
        entry: boolean rule, read at each close; acts at the next open. Or a Series of booleans by the labels
            of the bars of one symbol, each known at the close of its bar. Several, as a dict by name or a
            list, give a dict of results by name, by the rule's text, or by the name of the Series.
        direction: long or short.
        stop_pct: distance of the stop, as a share of the close that orders.
        target_pct: distance of the target, likewise; None: no target.
        time_stop_bars: bars until an exit at the open.
        symbols: those that are traded, at least one; None: all. Of bars that name none, their name.
        tz: zone of times that carry none.
        start: first label kept, UTC.
        end: last label kept, UTC.
        terms: what else closes or manages a position, as in a playbook: the rules `stop`, `target`, `exit`,
            `trail` and `invalidation`, and `break_even_r`, `scale_out_r`, `scale_out_share`, `add_at_r`,
            `add_share`, `target_moves`; how orders fill and what they cost, as `execution` has it and by its
            defaults: `fee_bps`, `slippage_bps`, `level_base`, `both_hit` and the others; and how the bars are
            read, as `backtest` takes it: `data__zone`, by whose clock a time of day is.

    Raises:
        DataError: the bars or the Series cannot be used.
        RuleError: the rule cannot be read; it names the column and the nearest name.
        ConfigError: a value that cannot be.
        TypeError: a term that is none.
    """
    given: dict[str, Any] = {"runtime__tz": tz, "runtime__start": start, "runtime__end": end}
    given |= {"data__symbols": symbols_of(symbols)}
    data = {name: terms.pop(name) for name in [*terms] if name.startswith("data__")}
    shown = settings_of(None, given, data)
    series = bars_of(bars, shown)
    ready_once()

    def result(rule: Any) -> SimulationResult:
        return simulation.simulate(
            series, _truths(rule, series, tz), direction=direction, stop_pct=stop_pct, target_pct=target_pct,
            time_stop_bars=time_stop_bars, **terms,
        )  # fmt: skip

    if isinstance(entry, Mapping | list | tuple):
        return {name: result(rule) for name, rule in _by_name(entry).items()}
    return result(entry)


def _by_name(entries: Mapping[str, Any] | Sequence[Any]) -> Mapping[str, Any]:
    if isinstance(entries, Mapping):
        return entries
    names = [rule if isinstance(rule, str) else str(getattr(rule, "name", None)) for rule in entries]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError(f"entry: {twice!r} is there twice: give a dict of rules by name")
    return dict(zip(names, entries, strict=True))


def _truths(entry: Any, bars: BarSeries, tz: str | None) -> Any:
    """A rule as it is, or the truths of a Series at the labels of the bars, bool (T, 1)."""
    import pandas as pd

    if not isinstance(entry, pd.Series):
        return entry
    index = entry.index
    if entry.dtype != bool:
        raise DataError(f"entry: a Series of {entry.dtype}, not of booleans: add .fillna(False).astype(bool)")
    if len(bars.symbols) != 1:
        raise DataError(f"entry: a Series is of one symbol: name one of {', '.join(bars.symbols)} as symbols")
    if not isinstance(index, pd.DatetimeIndex):
        raise DataError(f"entry: its index is a {type(index).__name__}: give it the times of the bars")
    if not index.is_unique:
        raise DataError(f"entry: {index[index.duplicated()][0]} is there twice: give one value for each bar")
    index = index.tz_localize(tz or "UTC") if index.tz is None else index
    rows = index.tz_convert("UTC").as_unit("ns").get_indexer(pd.DatetimeIndex(bars.times, tz="UTC"))
    if (rows < 0).any():
        first = show_label(int(bars.times[int(np.argmax(rows < 0))]))
        raise DataError(f"entry: no value at {first}: give one for each bar, such as entry.reindex(df.index)")
    return entry.to_numpy(dtype=np.bool_)[rows][:, np.newaxis]
