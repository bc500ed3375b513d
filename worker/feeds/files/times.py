"""The time column of a bar file as UTC labels.

A zone is never guessed: a time without one needs the operator's `--tz`. Epoch integers are UTC and tell their
unit by their magnitude. Every refusal names the first value and its row.
"""

import re
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import DataError, nearest
from schemas.timeframes import TIMEFRAME_SECONDS
from trading_core.spacing import NS

Place = Callable[[int], str]
IntArray = npt.NDArray[np.int64]

_ISO = r"^\d{4}([-/])\d{2}([-/])\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?( ?(Z|[+-]\d{2}(:?\d{2})?))?)?$"
_ZONED = r"[T ]\d{2}:.*(Z|[+-]\d{2}(:?\d{2})?)$"
_EPOCH_UNITS = (("s", 10**8, 10**11), ("ms", 10**11, 10**14), ("us", 10**14, 10**17), ("ns", 10**17, 2**63))
# 20120103, 2012010316, 201201031630, 20120103163000: dates, not epochs of the 1970s or of the year 2600.
_CALENDAR = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(([01]\d|2[0-3])([0-5]\d){0,2})?")
_SHORT = re.compile(r"\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([01]\d|2[0-3])[0-5]\d")  # 2401150005
_FEW = 10  # seconds since 1970 that all look so: with 60 s or more between them there are no more
_SAMPLE = 100  # values that show whether a column of integers holds dates
_NS_PER = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_FIRST_NS = -9_214_560_000 * 10**9  # 1678-01-01, where int64 nanoseconds begin to reach
_OLDEST_NS = 315_532_800 * 10**9  # 1980-01-01; a file of epochs whose newest is older counts otherwise
_END_NS = 9_214_646_400 * 10**9  # 2262-01-01


def zone_named(name: str | None) -> ZoneInfo | None:
    """The time zone an operator named.

    Raises:
        DataError: no such zone.
    """
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        guess = nearest(name, available_timezones())
        raise DataError(
            f"--tz {name!r} is no time zone: give a name like UTC or America/New_York.{guess}"
        ) from error


def utc_labels(column: Any, place: Place, zone: ZoneInfo | None) -> IntArray:
    """UTC nanoseconds of an Arrow column of text, timestamps, dates or epoch integers, in file order.

    A `zone` is given to times that carry none; `place` names a row for an error message.

    Raises:
        DataError: empty, unreadable, naive without a zone, ambiguous or nonexistent times.
    """
    kind = column.type
    is_text = pa.types.is_string(kind)
    column = pc.utf8_trim_whitespace(column) if is_text else column
    _check_given(column, place)
    if pa.types.is_timestamp(kind):
        return _from_stamps(column, place, zone)
    if pa.types.is_date(kind):
        return _localise(_index(column), place, zone, dates_only=True)
    if pa.types.is_integer(kind):
        return _from_epochs(column, place)
    if is_text:
        return _from_texts(column, place, zone)
    raise DataError(
        f"{place(0)}: the time column holds {kind}: store timestamps, ISO 8601 text or epoch integers"
    )


def is_readable(texts: Any) -> bool:
    """Whether most of a column of texts, none of them empty, are ISO 8601 or epoch integers."""
    epochs = 0 if _calendar(texts) else _mask(texts, r"^\d{9,19}$").sum()
    return 2 * int(max(epochs, _mask(texts, _ISO).sum())) > len(texts)


def _check_given(column: Any, place: Place) -> None:
    empty = pc.is_null(column)
    if pa.types.is_string(column.type):
        empty = pc.or_kleene(empty, pc.equal(column, ""))
    rows = np.flatnonzero(empty.to_numpy(zero_copy_only=False))
    if rows.size:
        raise DataError(f"{place(int(rows[0]))}: the time is empty: remove the row")


def _from_stamps(column: Any, place: Place, zone: ZoneInfo | None) -> IntArray:
    if column.type.tz is not None:
        return _nanoseconds(_index(column), place)
    return _localise(_index(column), place, zone, dates_only=False)


def _from_epochs(column: Any, place: Place) -> IntArray:
    values = _integers(column, place)
    inside = {unit: (least <= values) & (values < limit) for unit, least, limit in _EPOCH_UNITS}
    unit = max(reversed(inside), key=lambda unit: int(inside[unit].sum()))
    if not inside[unit].all():
        row, other = int(np.argmin(inside[unit])), values[np.argmax(inside[unit])]
        raise DataError(
            f"{place(row)}: time {values[row]} is no epoch in the unit of {other} (s, ms, us or ns; 1973 or "
            "later): write ISO 8601 times"
        )
    labels = _nanoseconds(pd.DatetimeIndex(values.astype(f"datetime64[{unit}]")), place)
    if labels.max() < _OLDEST_NS or (unit == "ns" and _are_hundreds(labels)):
        shown = np.datetime_as_string(labels[:1].astype("datetime64[ns]"), unit="D")[0]
        raise DataError(
            f"{place(0)}: times like {values[0]} are numbers of a kind that is not known, as {unit} since "
            f"1970 they begin at {shown}: write ISO 8601 times"
        )
    return labels


def _are_hundreds(labels: IntArray) -> bool:
    """Whether the usual step is that of a timeframe only where each number counts 100 ns."""
    steps = np.abs(np.diff(labels))
    if not (steps > 0).any():
        return False
    values, counts = np.unique(steps[steps > 0], return_counts=True)
    step, usual = int(values[counts.argmax()]), [seconds * NS for seconds in TIMEFRAME_SECONDS.values()]
    return step not in usual and 100 * step in usual


def _integers(column: Any, place: Place) -> IntArray:
    try:
        values: IntArray = pc.cast(column, pa.int64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        row = next(row for row, value in enumerate(column) if int(value.as_py()) >= 2**63)
        raise DataError(f"{place(row)}: the time is too large for an epoch: write ISO 8601 times") from error
    if _calendar(values):
        row = next((row for row, value in enumerate(values) if _CALENDAR.fullmatch(str(value))), 0)
        raise DataError(
            f"{place(row)}: time {values[row]} reads as a date without separators: write ISO 8601 times"
        )
    return values


def _calendar(values: Any) -> bool:
    """Whether most of the first values are dates without separators, or all with a year of two digits."""
    texts = list(map(str, values[:_SAMPLE]))
    return 2 * sum(map(bool, map(_CALENDAR.fullmatch, texts))) > len(texts) or (
        len(texts) >= _FEW and all(map(_SHORT.fullmatch, texts))
    )


def _from_texts(texts: Any, place: Place, zone: ZoneInfo | None) -> IntArray:
    digits, shaped = _mask(texts, r"^\d{1,19}$"), _mask(texts, _ISO)
    if digits.all():
        return _from_epochs(texts, place)
    if digits.sum() > shaped.sum():
        row = int(np.argmin(digits))
        raise DataError(
            f"{place(row)}: time {texts[row].as_py()!r} is no epoch integer like those of other rows: "
            "correct or remove the row"
        )
    if not shaped.all():
        raise _unreadable(texts, int(np.argmin(shaped)), place)
    zoned = _mask(texts, _ZONED)
    if zoned.any() and not zoned.all():
        most = 2 * int(zoned.sum()) >= zoned.size
        row, words = int(np.argmax(zoned != most)), ("no zone", "one") if most else ("a zone", "none")
        raise DataError(
            f"{place(row)}: time {texts[row].as_py()!r} has {words[0]} where others have {words[1]}: "
            "give every row one"
        )
    index = _parse(texts, place, utc=bool(zoned.all()))
    if zoned.all():
        return _nanoseconds(index, place)
    dates_only = not pc.any(pc.match_substring(texts, ":")).as_py()
    return _localise(index, place, zone, dates_only=dates_only)


def _parse(texts: Any, place: Place, *, utc: bool) -> pd.DatetimeIndex:
    values = texts.to_pandas()
    try:
        index = pd.DatetimeIndex(pd.to_datetime(values, format="ISO8601", utc=utc))
    except (ValueError, OverflowError):
        index = pd.DatetimeIndex(pd.to_datetime(values, format="ISO8601", utc=utc, errors="coerce"))
    if index.hasnans:
        raise _unreadable(texts, int(np.flatnonzero(index.isna())[0]), place)
    return index


def _localise(index: pd.DatetimeIndex, place: Place, zone: ZoneInfo | None, *, dates_only: bool) -> IntArray:
    _nanoseconds(index, place)  # refuses years that nothing below can show
    if zone is None:
        shown = str(index[0].date()) if dates_only else str(index[0])
        option = "--tz UTC" if dates_only else "--tz ZONE, for example --tz America/New_York or --tz UTC"
        raise DataError(
            f"{place(0)}: time {shown!r} has no time zone: name the zone of the file with {option}"
        )
    never = np.ones(len(index), dtype=np.bool_)
    skipped = index.tz_localize(zone, ambiguous=never, nonexistent="NaT").isna()
    doubled = index.tz_localize(zone, ambiguous="NaT", nonexistent="shift_forward").isna()
    for found, word in ((skipped, "does not exist"), (doubled, "happens twice")):
        if found.any():
            row = int(np.flatnonzero(found)[0])
            raise DataError(
                f"{place(row)}: local time {str(index[row])!r} {word} in {zone.key}: write the offset or UTC"
            )
    return _nanoseconds(index.tz_localize(zone).tz_convert("UTC"), place)


def _nanoseconds(index: pd.DatetimeIndex, place: Place) -> IntArray:
    scale = _NS_PER[index.unit]
    outside = (index.asi8 < _FIRST_NS // scale) | (index.asi8 >= _END_NS // scale)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        shown = np.datetime_as_string(np.datetime64(int(index.asi8[row]), index.unit))
        raise DataError(
            f"{place(row)}: time {shown!s} is outside the years 1678 to 2261: correct or remove the row"
        )
    return np.asarray(index.as_unit("ns").asi8, dtype=np.int64)


def _index(column: Any) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(column.to_numpy(zero_copy_only=False))


def _mask(texts: Any, pattern: str) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return mask


def _unreadable(texts: Any, row: int, place: Place) -> DataError:
    return DataError(
        f"{place(row)}: time {texts[row].as_py()!r} is unreadable: write ISO 8601 like "
        "2012-01-31T16:00:00Z, or remove the row"
    )
