"""Times as programs write them, brought into the forms that `times` reads: day, month and clock.

A reading that another one could contradict is refused with the option that decides it.
"""

import warnings
from collections.abc import Callable
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import DataError
from worker.feeds.files.bar_table import BarTable, is_number, parses
from worker.feeds.files.columns import Layout
from worker.feeds.files.names import OF_UTC, bare_name
from worker.feeds.files.times import is_readable, zone_named

_COMPACT = r"^(19|20)\d{6}([T ]?\d{4}(\d{2})?)?$"
_SHEET_EPOCH, _SHEET_END = 25_569, 73_051  # 1970-01-01 and 2100-01-01; fewer can be days since 1970
_OPTION = "--date-format '{}'"
_EXAMPLES = ("%m/%d/%Y %I:%M %p", "%y%m%d%H%M")  # for a refusal; shown where they read the value
_SPARSE = 100  # times the span of another reading: a year taken for a day spreads days over years
Times = tuple[Any, ZoneInfo | None]


def read_times(
    table: BarTable, layout: Layout, zone: ZoneInfo | None, form: str | None, tell: Callable[[str], None]
) -> Times:
    """The times of a table in a form that `utc_labels` reads, and the zone of those that have none.

    Without a `form`, as `strptime` has it, they are read as they look.

    Raises:
        DataError: times that can be read in two ways, or not as `form` says.
    """
    column = table.columns[layout.time]
    if layout.clock is not None:
        column = _join_clock(column, table.columns[layout.clock])
    if (serials := _days_of_sheet(column)) is not None:
        tell("numbers as times are read as days of a spreadsheet, counted from 1899-12-30")
        column = serials
    if pa.types.is_floating(column.type) and _is_whole(column):
        column = pc.cast(column, pa.int64(), safe=False)
    if pa.types.is_integer(column.type) and _are_all(pc.cast(column, pa.string()), _COMPACT):
        column = pc.cast(column, pa.string())
    if pa.types.is_string(column.type):
        column = pc.utf8_trim_whitespace(pc.replace_substring_regex(column, r"\s+", " "))
        if pc.any(pc.match_substring_regex(column, "[.eE]")).as_py() and parses(column) and _is_whole(column):
            column = pc.cast(pc.cast(pc.cast(column, pa.float64()), pa.int64()), pa.string())
        column, zone = _without_zone(column, zone)
        if form is not None:
            column = _parse_as(column, form, table)
        elif _has_each(column) and not is_readable(column):
            column = _guess(column, table, tell)
    if zone is None and bare_name(table.names[layout.time]) in OF_UTC:
        zone = zone_named("UTC")
    if zone is None and _are_dates(column):
        tell("dates without a zone are read as days of UTC")
        zone = zone_named("UTC")
    return column, zone


def _join_clock(dates: Any, clocks: Any) -> Any:
    """Dates and times of the day in one column; a clock of digits alone gets the zeros that it lost."""
    dates, clocks = (pc.utf8_trim_whitespace(pc.cast(part, pa.string())) for part in (dates, clocks))
    longest = pc.max(pc.utf8_length(clocks)).as_py() or 0
    digits = pc.match_substring_regex(clocks, r"^\d+$")
    clocks = pc.if_else(digits, pc.utf8_lpad(clocks, 4 if longest <= len("hhmm") else 6, "0"), clocks)
    return pc.binary_join_element_wise(dates, clocks, " ")


def _days_of_sheet(column: Any) -> Any | None:
    """Days since 1899-12-30 as times, to the second; None where not all of a column lie from 1970 to 2099."""
    if pa.types.is_string(column.type) and parses(column):
        column = pc.cast(column, pa.float64())
    if not is_number(column.type) or column.null_count:
        return None
    days = pc.cast(column, pa.float64(), safe=False).to_numpy()
    if not ((days >= _SHEET_EPOCH) & (days < _SHEET_END)).all():
        return None
    seconds = np.round((days - _SHEET_EPOCH) * 86_400).astype("datetime64[s]")
    return pa.chunked_array([pa.array(seconds.astype("datetime64[ns]"))])


def _without_zone(texts: Any, zone: ZoneInfo | None) -> Times:
    """Times without the name of a zone that stands behind all of them, and that zone."""
    first = next((text for text in texts.slice(0, 1).to_pylist() if text), "")
    name = first.rpartition(" ")[2]
    is_zone = "/" in name or name in ("UTC", "GMT")
    if not is_zone or not name[0].isalpha() or not pc.all(pc.ends_with(texts, f" {name}")).as_py():
        return texts, zone
    return pc.utf8_slice_codeunits(texts, 0, -len(name) - 1), zone_named(name)


def _guess(texts: Any, table: BarTable, tell: Callable[[str], None]) -> Any:
    """Times of the one form in which all of them can be read, turn least often and lie most closely."""
    first = texts[0].as_py()
    forms = _forms_of(first)
    found = {form: index for form in forms if not (index := _parse(texts, form)).hasnans}
    for measure, most in ((_turns, 2), (_span, _SPARSE)):
        sizes = {form: measure(index) for form, index in found.items()}
        found = {form: index for form, index in found.items() if sizes[form] <= most * min(sizes.values())}
    if len({index.asi8.tobytes() for index in found.values()}) > 1:
        options = " or ".join(map(_OPTION.format, found))
        raise DataError(f"{table.place(0)}: time {first!r} can be read in two ways: say which with {options}")
    for form, index in found.items():
        if "%d" in form[:2] or "%m" in form[:2] or "%y" in form:
            tell(f"times are read as {form}")
        return pa.chunked_array([pa.array(index)])
    best = max(forms, key=lambda form: int(np.sum(_parse(texts, form).notna())), default=None)
    row = 0 if best is None else int(np.flatnonzero(_parse(texts, best).isna())[0])
    rest, _, word = first.rpartition(" ")
    before = (f"{form} {word}" for form in (_forms_of(rest) if rest else ()))
    literal = next((form for form in before if not _parse(texts.slice(0, 1), form).hasnans), None)
    words = "".join(sign if sign.isalpha() else " " for sign in texts[row].as_py()).split()
    hints = (form for form in _EXAMPLES if not _parse(texts.slice(row, 1), form).hasnans)
    cure = f", or give the form of the times by {_OPTION.format(next(hints, 'FORM'))}"
    if best is not None and 2 * int(np.sum(_parse(texts, best).notna())) > len(texts):
        cure = f", or as the others, which are read as {best}"
    if word.isalpha() and literal and pc.all(pc.ends_with(texts, f" {word}")).as_py():
        cure = f", or say which zone {word!r} is by --tz, and {_OPTION.format(literal)}"
    elif best is None and any(len(word) > len("AM") for word in words):
        cure = "; names of months and days are read in English alone"
    raise DataError(
        f"{table.place(row)}: time {texts[row].as_py()!r} is unreadable: write ISO 8601 like "
        f"2012-01-31T16:00:00Z{cure}"
    )


def _turns(index: pd.DatetimeIndex) -> int:
    """How often times go against the way that most of them go; of blocks by symbol once a block."""
    steps = np.diff(index.asi8)
    return int(min((steps < 0).sum(), (steps > 0).sum()))


def _span(index: pd.DatetimeIndex) -> int:
    return int(np.ptp(index.asi8))


def _forms_of(text: str) -> list[str]:
    """The forms in which a time can be meant; a year of two digits stands at the end or at the front."""
    body, half = (text[:-3], " %p") if text[-3:].upper() in (" AM", " PM") else (text, "")
    date, blank, clock = body.partition(" ")
    mark = next((sign for sign in date if not sign.isalnum()), " ")
    parts = date.split(mark)
    is_short = len(parts) == 3 and max(map(len, parts)) < len("2024") and all(parts)
    if is_short:
        date = mark.join([*parts[:2], f"20{parts[2]}"])
    guesses = [_form_of(f"{date}{blank}{clock}", day_first=day_first) for day_first in (True, False)]
    forms = [form for form in guesses if form]
    if mark == "." and any(form.startswith("%d") for form in forms):
        forms = [form for form in forms if form.startswith("%d")]  # so wherever dots are written
    if is_short and (year_first := _form_of(f"20{body}", day_first=False)):
        forms.append(year_first)
    forms = [form.replace("%Y", "%y") if is_short else form for form in forms] or _year_first(body)
    return [form.replace("%H", "%I") + half if half else form for form in dict.fromkeys(forms)]


def _year_first(text: str) -> list[str]:
    """The form of digits that begin with a year, whatever stands between them."""
    fields, form, runs = iter("YmdHMS"), "", [(key, "".join(run)) for key, run in groupby(text, str.isdigit)]
    for is_digit, run in runs:
        form += f"%{next(fields, '%')}" if is_digit else run.replace("%", "%%")
    is_dated = len(runs[0][1]) == len("2024") and "%d" in form and not runs[-1][1].startswith(" ")
    return [form] if is_dated else []


def _form_of(text: str, *, day_first: bool) -> str | None:
    from pandas.tseries.api import guess_datetime_format

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the day comes first after all, which is looked at anyway
        form = guess_datetime_format(text, dayfirst=day_first) or guess_datetime_format(
            text.title(),
            dayfirst=day_first,  # 02-JAN-2024
        )
    is_odd = form is None or (form.startswith("%Y") and "%d" in form[2:5]) or "%z" in form.lower()
    return None if is_odd else form


def _parse_as(texts: Any, form: str, table: BarTable) -> Any:
    index = _parse(texts, form)
    if index.hasnans:
        row = int(np.flatnonzero(index.isna())[0])
        raise DataError(
            f"{table.place(row)}: time {texts[row].as_py()!r} is not of the form {_OPTION.format(form)}: "
            "correct the option or the row"
        )
    return pa.chunked_array([pa.array(index)])


def _parse(texts: Any, form: str) -> pd.DatetimeIndex:
    """Times of a form, NaT where one is not of it."""
    try:
        return pd.DatetimeIndex(pd.to_datetime(texts.to_pandas(), format=form, errors="coerce"))
    except (ValueError, OverflowError) as error:
        raise DataError(f"{_OPTION.format(form)}: {error}: write it like '%d.%m.%Y %H:%M'") from error


def _are_dates(column: Any) -> bool:
    """Whether all times are midnights without a zone."""
    if pa.types.is_date(column.type):
        return True
    if pa.types.is_timestamp(column.type) and column.type.tz is None:
        stamps = pd.DatetimeIndex(column.to_numpy(zero_copy_only=False))
        return bool((stamps == stamps.normalize()).all())
    return pa.types.is_string(column.type) and _are_all(
        column, r"^\d{4}[-/]\d{2}[-/]\d{2}([T ]00:00(:00(\.0+)?)?)?$"
    )


def _are_all(texts: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py()) and texts.null_count == 0


def _is_whole(column: Any) -> bool:
    values = pc.cast(column, pa.float64()).to_numpy()
    return bool((np.abs(values) < 2**63).all() and (values == np.floor(values)).all())


def _has_each(texts: Any) -> bool:
    return texts.null_count == 0 and not pc.any(pc.equal(texts, "")).as_py()
