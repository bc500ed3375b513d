"""BarSeries: the one form in which bars enter the engine, checked at the door.

Arrays of shape (T, S) in C order, float64, with a presence mask; a missing bar is missing, never invented.
Labels are never shifted: results show the input's own labels.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from schemas.errors import DataError, nearest
from schemas.timeframes import ALLOWED, TIMEFRAME_SECONDS, UNEVEN, after_bars, is_fixed, timeframe_problem
from trading_core.spacing import DAY_NS, bucket_numbers, find_overlap, off_phase, show_label

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
COLUMNS = ("open", "high", "low", "close", "volume")
NS = 1_000_000_000
_SPANS_DAYS = {"1w": (6, 8), "1M": (27, 35)}


@dataclass(frozen=True, eq=False)
class BarSeries:
    """Bars of S symbols on one time axis of T labels.

    Attributes:
        times: int64 (T,), UTC ns labels, strictly increasing.
        symbols: names in ascending order; column s belongs to symbols[s].
        timeframe: one of `TIMEFRAME_SECONDS`.
        label: whether a label is the open or the close of its bar.
        open, high, low, close: float64 (T, S); NaN where absent.
        volume: likewise, and NaN where it is unknown of a bar that is there.
        present: bool (T, S).
        zone: whose calendar says how long days, weeks and months are, and whose clock a rule reads.
        extra: float64 (T, S) each, by ascending name: further columns known at their bar's close, or NaN.
        notes: how they were read where a reader might not expect it; of no hash.
        repeated: symbol and label of each row that stood twice and was left out; likewise.
        made_of: the shorter bars that these were made of; likewise.
    """

    times: IntArray
    symbols: tuple[str, ...]
    timeframe: str
    label: Literal["open", "close"]
    open: FloatArray
    high: FloatArray
    low: FloatArray
    close: FloatArray
    volume: FloatArray
    present: BoolArray
    zone: str = "UTC"
    extra: Any = field(default_factory=dict)  # Any: so that a dict of arrays may stand for the fields above
    notes: Any = ()  # likewise; tuple[str, ...]
    repeated: Any = ()  # likewise; tuple[tuple[str, int], ...]
    made_of: Any = None  # likewise; BarSeries | None

    def __post_init__(self) -> None:
        self._normalise()
        self._check_axes()
        for s in range(len(self.symbols)):
            self._check_symbol(s)
            self._check_spacing(s)

    @property
    def shape(self) -> tuple[int, int]:
        """(T, S)."""
        return self.present.shape[0], self.present.shape[1]

    @cached_property
    def close_times(self) -> IntArray:
        """int64 (T,): the ns at which each bar is known."""
        return self.closes_of(self.times)

    def closes_of(self, labels: IntArray) -> IntArray:
        """int64 (n,): the ns at which the bars of labels are known."""
        if self.label == "close":
            return labels
        if is_fixed(self.timeframe, self.zone):
            return labels + self.bar_ns
        closes = [after_bars(label, self.timeframe, self.zone) for label in labels.tolist()]
        return np.array(closes, dtype=np.int64)

    def open_of(self, t: int) -> int:
        """The ns at which the bar of a row began, whatever its label says."""
        label = int(self.times[t])
        return label if self.label == "open" else after_bars(label, self.timeframe, self.zone, -1)

    @property
    def bar_ns(self) -> int:
        """Length of one bar in ns; of a month the usual one."""
        return TIMEFRAME_SECONDS[self.timeframe] * NS

    @cached_property
    def bar_count(self) -> int:
        """Number of present symbol-bars."""
        return int(self.present.sum())

    @cached_property
    def sha256(self) -> str:
        """Hash over the canonical arrays: labels, symbols, timeframe and present values."""
        of_zone = () if self.zone == "UTC" else (self.zone,)
        digest = hashlib.sha256(repr((self.symbols, self.timeframe, self.label, *of_zone)).encode())
        digest.update(self.times.tobytes())
        for name in COLUMNS:
            values = getattr(self, name)[self.present]
            values[np.isnan(values)] = np.nan  # an unknown volume; it has many bit patterns
            digest.update(values.tobytes())
        digest.update(np.packbits(self.present).tobytes())
        return digest.hexdigest()

    @cached_property
    def extra_hashes(self) -> dict[str, str]:
        """Hash over the present values of each further column; bars are the same bars without them."""
        return {
            name: hashlib.sha256(values[self.present].tobytes()).hexdigest()
            for name, values in self.extra.items()
        }

    def off_phase(self) -> dict[str, IntArray]:
        """Labels off the phase of their neighbours, int64 (n,), of each symbol that has some."""
        if self.timeframe in UNEVEN:
            return {}
        of_symbol = {symbol: self.times[self.present[:, s]] for s, symbol in enumerate(self.symbols)}
        found = {
            symbol: times[off_phase(times, self.bar_ns)] for symbol, times in of_symbol.items() if times.size
        }
        return {symbol: labels for symbol, labels in found.items() if labels.size}

    def select(
        self,
        symbols: tuple[str, ...] | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
    ) -> "BarSeries":
        """Bars of some symbols with start <= label <= end; rows in which none of them is present are dropped.

        Raises:
            DataError: an unknown symbol, or nothing is left.
        """
        names = self.symbols if not symbols else tuple(sorted(set(symbols)))
        for name in names:
            if name not in self.symbols:
                raise DataError(
                    f"unknown symbol {name!r}: the data has {', '.join(self.symbols)}."
                    f"{nearest(name, self.symbols)}"
                )
        columns = np.array([self.symbols.index(name) for name in names], dtype=np.int64)
        keep = self.present[:, columns].any(axis=1)
        if start_ns is not None:
            keep &= self.times >= start_ns
        if end_ns is not None:
            keep &= self.times <= end_ns
        if not keep.any():
            raise DataError("no bars left after --symbols, --from and --to: widen the selection")
        rows = np.flatnonzero(keep)
        return self.take(rows, columns)

    def take(
        self, rows: npt.NDArray[np.intp], columns: IntArray, present: BoolArray | None = None
    ) -> "BarSeries":
        """Some rows and symbols of it.

        Args:
            rows: int (N,), ascending.
            columns: int (M,), ascending.
            present: bool (T, S), which bars are taken; None: all there are.
        """
        there = self.present if present is None else present
        cells = np.ix_(rows, columns)

        def part(values: FloatArray) -> FloatArray:
            return _array(np.where(there[cells], values[cells], np.nan))

        return BarSeries(
            self.times[rows].copy(),
            tuple(self.symbols[s] for s in columns),
            self.timeframe,
            self.label,
            present=np.ascontiguousarray(there[cells]),
            zone=self.zone,
            extra={name: part(values) for name, values in self.extra.items()},
            notes=self.notes,
            repeated=self.repeated,
            made_of=self.made_of,
            **{name: part(getattr(self, name)) for name in COLUMNS},
        )

    @classmethod
    def from_frame(
        cls,
        frame: "pd.DataFrame | Mapping[str, pd.DataFrame]",
        *,
        timeframe: str | None = None,
        label: Literal["open", "close"] = "open",
        symbol: str = "SYMBOL",
        zone: str = "UTC",
    ) -> "BarSeries":
        """Bars from one pandas frame, or from a dict of them by symbol.

        Args:
            frame: columns open, high, low, close, volume (unknown where it is not there); aware index.
                Further columns of numbers are kept as `extra` under their names in lower case.
            timeframe: None infers it from the modal spacing.
            label: what the index labels mean; they are never shifted.
            symbol: name of the symbol when a single frame is given.
            zone: whose calendar says how long days, weeks and months are.

        Raises:
            DataError: naming the first offending rows.
        """
        frames = _name_frame(frame, symbol)
        labels = {name: _labels(name, part) for name, part in frames.items()}
        symbols = tuple(sorted(frames))
        first = labels[symbols[0]]
        is_shared = all(np.array_equal(first, part) for part in labels.values())
        times = first if is_shared else np.unique(np.concatenate([labels[name] for name in symbols]))
        shape = (times.size, len(symbols))
        arrays = {name: np.full(shape, np.nan) for name in COLUMNS}
        present = np.zeros(shape, dtype=np.bool_)
        for s, name in enumerate(symbols):
            rows = slice(None) if is_shared else np.searchsorted(times, labels[name])
            present[rows, s] = True
            for column in COLUMNS:
                arrays[column][rows, s] = _column(name, frames[name], column)
        extra: dict[str, FloatArray] = {}
        for s, name in enumerate(symbols):
            rows = slice(None) if is_shared else np.searchsorted(times, labels[name])
            for column, values in _extra_columns(frames[name]).items():
                extra.setdefault(column, np.full(shape, np.nan))[rows, s] = values
        found = _settled_timeframe(timeframe, labels)
        further = dict(sorted(extra.items()))
        series = cls(times, symbols, found, label, present=present, zone=zone, extra=further, **arrays)
        for s in range(len(symbols)):
            series._check_spacing(s, whole=True)
        return series

    def _normalise(self) -> None:
        """One layout and type for the kernel, whatever the caller's arrays were."""
        if self.label not in ("open", "close"):
            raise DataError(f"label {self.label!r} is neither 'open' nor 'close'")
        for name, kind in (("times", np.int64), ("present", np.bool_), *((c, np.float64) for c in COLUMNS)):
            given = np.asarray(getattr(self, name))
            if given.dtype.kind not in ("b" if name == "present" else "iuf" if name != "times" else "iu"):
                raise DataError(f"{name} has type {given.dtype}, which is no array of {np.dtype(kind).name}")
            object.__setattr__(self, name, np.require(given, dtype=kind, requirements=["C", "W"]))
        extra = {name: np.array(values, dtype=np.float64) for name, values in sorted(self.extra.items())}
        for name, values in extra.items():
            if values.shape != self.present.shape:
                raise DataError(f"extra {name!r} has shape {values.shape}, not {self.present.shape}")
            values[~(np.isfinite(values) & self.present)] = np.nan
        object.__setattr__(self, "extra", extra)
        if self.present.shape != (self.times.size, len(self.symbols)):
            raise DataError(
                f"present has shape {self.present.shape}, not {(self.times.size, len(self.symbols))}"
            )

    def _check_axes(self) -> None:
        if (problem := timeframe_problem(str(self.timeframe))) is not None:
            raise DataError(f"timeframe {problem}")
        if self.times.size == 0 or not self.symbols:
            raise DataError("no bars: the series is empty")
        if list(self.symbols) != sorted(set(self.symbols)):
            raise DataError(f"symbols {self.symbols!r} must ascend without repeats")
        steps = np.flatnonzero(np.diff(self.times) <= 0)
        if steps.size:
            raise DataError(
                f"times must strictly increase: row {int(steps[0]) + 1} is not after the row above it"
            )
        for name in COLUMNS:
            array = getattr(self, name)
            if array.shape != (self.times.size, len(self.symbols)):
                raise DataError(f"{name} has shape {array.shape}, not {(self.times.size, len(self.symbols))}")

    def _check_symbol(self, s: int) -> None:
        rows = np.flatnonzero(self.present[:, s])
        o, h, low, c, v = (getattr(self, name)[rows, s] for name in COLUMNS)
        checks: tuple[tuple[str, Any], ...] = (
            (
                "has a value that is NaN or infinite",
                ~np.logical_and.reduce([np.isfinite(part) for part in (o, h, low, c)]) | np.isinf(v),
            ),
            ("has a price that is not above zero", (o <= 0) | (h <= 0) | (low <= 0) | (c <= 0)),
            ("has high below low", h < low),
            ("has open or close outside low..high", (o < low) | (o > h) | (c < low) | (c > h)),
            ("has negative volume", v < 0),
        )
        for problem, bad in checks:
            if bad.any():
                first = rows[np.flatnonzero(bad)[:3]]
                at = ", ".join(map(show_label, self.times[first].tolist()))
                k = int(np.flatnonzero(bad)[0])
                raise DataError(
                    f"{self.symbols[s]}: {int(bad.sum())} bar(s) where the row {problem}, first at {at} "
                    f"(open {o[k]!s} high {h[k]!s} low {low[k]!s} close {c[k]!s} volume {v[k]!s}); "
                    "correct or remove these rows",
                    symbol=self.symbols[s],
                    label=int(self.times[first[0]]),
                )

    def _check_spacing(self, s: int, *, whole: bool = False) -> None:
        times = self.times[self.present[:, s]]
        if self.timeframe in UNEVEN:
            same = np.flatnonzero(np.diff(bucket_numbers(self.timeframe, times + 1, self.zone)) == 0)
            k = int(same[0]) + 1 if same.size else None
        else:
            k = find_overlap(times, self.bar_ns, self.label, whole=whole)
        if k is not None:
            before, label = times[k - 1 : k + 1].tolist()
            raise DataError(
                f"{self.symbols[s]}: the bars of {show_label(before)} and {show_label(label)} overlap: "
                f"{(label - before) / NS:.15g} s apart, and a bar of {self.timeframe} lasts "
                f"{self.bar_ns // NS} s; remove one of the two rows",
                symbol=self.symbols[s],
                label=label,
                before=before,
            )


def _name_frame(frame: "pd.DataFrame | Mapping[str, pd.DataFrame]", symbol: str) -> "dict[str, pd.DataFrame]":
    import pandas as pd

    frames = frame if isinstance(frame, Mapping) else {symbol: frame}
    if not frames:
        raise DataError("no frames given: pass at least one symbol")
    for name, part in frames.items():
        if not isinstance(name, str):
            raise DataError(f"symbol {name!r} is a {type(name).__name__}: name symbols by text")
        if not isinstance(part, pd.DataFrame):
            raise DataError(
                f"{name}: a {type(part).__name__}, not a pandas frame with open, high, low, close"
            )
    return dict(frames)


def _settled_timeframe(given: str | None, labels: Mapping[str, IntArray]) -> str:
    """The given timeframe, if the bars are spaced so; the inferred one when none is given."""
    if given is None:
        return infer_timeframe(labels)
    known = given in TIMEFRAME_SECONDS
    if known and any(part.size > 1 for part in labels.values()):
        usual = infer_timeframe(labels)
        if usual != given:
            raise DataError(f"timeframe {given!r} does not match the bars: their usual spacing is {usual!r}")
    return given


def infer_timeframe(labels: Mapping[str, IntArray]) -> str:
    """The timeframe of the modal spacing of all symbols.

    Raises:
        DataError: fewer than two bars, or a spacing that is no known timeframe.
    """
    steps = np.concatenate([np.diff(part) for part in labels.values()])
    if steps.size == 0:
        raise DataError("one bar has no spacing: give the timeframe, for example --timeframe 1d")
    values, counts = np.unique(steps, return_counts=True)
    mode = int(values[int(np.argmax(counts))])
    for name, seconds in TIMEFRAME_SECONDS.items():
        if seconds * NS == mode:
            return name
    for name, (least, most) in _SPANS_DAYS.items():  # bars that begin at their first session, or by a clock
        if least * DAY_NS <= mode <= most * DAY_NS:
            return name
    raise DataError(
        f"the usual spacing of the bars is {mode / NS:g} s, which is no timeframe: use {ALLOWED}; finer bars "
        "are made into such by --resample"
    )


def _labels(symbol: str, frame: "pd.DataFrame") -> IntArray:
    import pandas as pd

    index = frame.index
    if not isinstance(index, pd.DatetimeIndex):
        raise DataError(
            f"{symbol}: the index is a {type(index).__name__}, not times: set a UTC DatetimeIndex"
        )
    if index.tz is None:
        raise DataError(
            f"{symbol}: naive times: localise the index, for example frame.tz_localize('UTC') (--tz ZONE)"
        )
    if index.hasnans:
        raise DataError(f"{symbol}: the index has missing times (NaT): remove those rows")
    try:
        stamps = index.tz_convert("UTC").as_unit("ns").asi8.astype(np.int64)
    except pd.errors.OutOfBoundsDatetime as error:
        raise DataError(
            f"{symbol}: a time outside the years 1678..2261 that nanoseconds reach: {error}"
        ) from error
    if stamps.size == 0:
        raise DataError(f"{symbol}: no rows")
    steps = np.flatnonzero(np.diff(stamps) <= 0)
    if steps.size:
        row = int(steps[0]) + 1
        word = "repeats" if stamps[row] == stamps[row - 1] else "comes before"
        raise DataError(
            f"{symbol}: row {row} ({index[row]}) {word} the row above it: times must strictly increase"
        )
    return stamps


def _column(symbol: str, frame: "pd.DataFrame", column: str) -> FloatArray:
    names = {str(name).lower(): name for name in frame.columns}
    if len(names) < len(frame.columns):
        found = ", ".join(map(str, frame.columns))
        raise DataError(f"{symbol}: two columns have one name, apart from case: {found}; keep one of each")
    if column not in names:
        if column == "volume":
            return np.full(len(frame), np.nan)
        found = ", ".join(map(str, frame.columns))
        raise DataError(f"{symbol}: no column {column!r} among {found}.{nearest(column, names)}")
    kind = frame[names[column]].dtype
    if kind.kind not in "iuf":
        raise DataError(f"{symbol}: column {column!r} has type {kind}, which is not a number: convert it")
    try:
        return frame[names[column]].to_numpy(dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"{symbol}: column {column!r} holds something that is not a number: {error}"
        ) from error


def extra_name(column: str) -> str | None:
    """What a further column is called in `BarSeries.extra`; None where a rule could not name it."""
    name = re.sub(r"[\s-]+", "_", column.strip().lower())
    return name if name not in COLUMNS and re.fullmatch(r"[a-z][a-z0-9_]*", name, re.ASCII) else None


def _extra_columns(frame: "pd.DataFrame") -> dict[str, FloatArray]:
    """Further columns of numbers; the first of two that have one name."""
    found: dict[str, FloatArray] = {}
    for column in frame.columns:
        name = extra_name(str(column))
        if name is not None and name not in found and frame[column].dtype.kind in "iuf":
            found[name] = frame[column].to_numpy(dtype=np.float64, na_value=np.nan)
    return found


def _array(values: FloatArray) -> FloatArray:
    return np.require(values, dtype=np.float64, requirements=["C", "W", "O"])
