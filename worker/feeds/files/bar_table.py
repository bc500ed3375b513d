"""BarTable: columns of one file, from which numbers and names are read; every cell knows its place.

Values are read, not judged: text stays text until a column is asked for as numbers or names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import DataError
from services.model_calls.quoting import from_spreadsheet_text
from worker.feeds.files.columns import bar_columns, further_columns
from worker.feeds.files.guesses import given_columns, guess_columns, rename
from worker.feeds.files.names import TIME_NAMES
from worker.feeds.files.shapes import SAMPLE, Rows, join_levels

EMPTY_WORDS = ["", "nan", "na", "n/a", "null", "none"]
MOST_COLUMNS = 20_000  # five for each symbol of a wide file


Pick = Callable[[tuple[str, ...], str], Sequence[int]]  # positions of the columns to read, by names and file


def all_columns(names: tuple[str, ...], _: str) -> Sequence[int]:
    """The positions of all names."""
    return range(len(names))


@dataclass(frozen=True)
class Source:
    """How the bytes of one file are read."""

    needs: str  # what a refusal of an empty file asks for
    most: int  # bytes that it may hold, unpacked
    pick: Pick  # which of its columns are read
    packed: bool = False  # whether they were unpacked already
    # their names by role, as the operator gives them
    columns: Mapping[str, str] = field(default_factory=dict)

    def places(
        self, names: tuple[str, ...], file: str, is_numeric: Callable[[int], bool], sample: Callable[[], Rows]
    ) -> list[int]:
        """Positions of the columns to read: those needed, and further ones that hold numbers.

        Raises:
            DataError: as `recognise`, with a guess by some rows of the `sample`.
        """
        if self.pick is not bar_columns:
            return list(self.pick(names, file))
        try:
            further = further_columns(names, file)
        except DataError as error:
            if not (guess := guess_columns(names, sample())):
                raise
            raise DataError(f"{str(error).partition(';')[0]}; {guess}") from error
        return [place for place in self.pick(names, file) if place not in further or is_numeric(place)]


@dataclass(frozen=True)
class BarTable:
    """Columns of one file by position, in file order."""

    path: Path
    names: tuple[str, ...]  # header names as written
    # one Arrow array for each name; text is always `string`, zoned times are shown in UTC
    columns: tuple[Any, ...]
    row_word: str  # what a row is called in this format, "line" or "row"
    first_row: int  # number of the first row of data, counted as the file's reader counts
    notes: tuple[str, ...] = ()  # what a reader should know of how the file was read
    left: tuple[str, ...] = ()  # names of columns that are not among them
    omitted: tuple[int, ...] = ()  # positions of rows that are not among its own, ascending
    separator: str = ""  # what stands between the cells of a text; else empty

    def place(self, row: int) -> str:
        """Where a row of data (from 0) stands in the file."""
        for left_out in self.omitted:
            row += left_out <= row
        return f"{self.path.name} {self.row_word} {row + self.first_row}"

    @classmethod
    def of_frame(
        cls, frame: object, word: str = "bars", needs: str = "at least two bars", columns: str | None = None
    ) -> "BarTable":
        """A DataFrame as a table: its index is a column of times, and a second level of it one of names.

        An index that only numbers the rows is left out, and so is one whose times a column has. Columns of
        two levels, as downloads of several symbols have them, become one name each. Of a period its start is
        taken.

        A refusal calls its rows by `word` and asks for what it `needs`.

        Raises:
            DataError: it is no DataFrame, has no rows, or columns that Arrow cannot hold or are no bars.
        """
        import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            found = type(frame).__name__
            raise DataError(f"{word} are of type {found!r}: give a pandas DataFrame, or a path")
        plain = frame.copy(deep=False)
        if isinstance(frame.columns, pd.MultiIndex):
            plain.columns = join_levels([tuple(map(str, name)) for name in frame.columns])
        plain = _with_index(plain, frame.index)
        try:
            table = pa.Table.from_pandas(plain, preserve_index=False)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise DataError(f"DataFrame: its columns are no table of {word}: {first_line(error)}") from error
        if table.num_rows == 0:
            raise DataError(f"DataFrame has no rows: it needs {needs}")
        cells = tuple(plain_column(column) for column in table.columns)
        names = tuple(map(str, table.column_names))
        if word == "bars":
            source = Source(needs, 0, bar_columns, columns=given_columns(columns))
            names = rename(names, source.columns, "DataFrame")
            source.places(names, "DataFrame", bool, lambda: sample_rows(cells))
        return cls(Path("DataFrame"), names, cells, "row", 0)

    def numbers(self, column: int) -> npt.NDArray[np.float64]:
        """A column as float64; an empty cell is NaN.

        Raises:
            DataError: a value that is not a number, by its row.
        """
        array = self.columns[column]
        if pa.types.is_string(array.type):
            array = self._parse(column, without_empty_words(array))
        elif not is_number(array.type):
            raise DataError(
                f"{self.path.name}: column {self.names[column]!r} holds {array.type}: store it as numbers"
            )
        floats = pc.cast(array, pa.float64(), safe=False)
        return np.array(floats.to_numpy(zero_copy_only=False), dtype=np.float64)

    def strip_names(self, column: int) -> Any:
        """A column of names as stripped text, an Arrow array; an empty one where there is none.

        Raises:
            DataError: the column holds no names.
        """
        array = self.columns[column]
        if not (pa.types.is_string(array.type) or pa.types.is_integer(array.type)):
            raise DataError(f"{self.path.name}: column {self.names[column]!r} holds {array.type}, not names")
        return pc.fill_null(pc.utf8_trim_whitespace(pc.cast(array, pa.string())), "")

    def texts(self, column: int) -> npt.NDArray[np.object_]:
        """A column of names as stripped text; an apostrophe before a formula is not part of the name.

        Raises:
            DataError: an empty name, by its row, or a column that holds no names.
        """
        stripped = self.strip_names(column)
        names: npt.NDArray[np.object_] = stripped.to_numpy(zero_copy_only=False).astype(object)
        empty = np.flatnonzero(names == "")
        if empty.size:
            raise DataError(f"{self.place(int(empty[0]))}: {self.names[column]!r} is empty: name the symbol")
        if self.row_word == "line" and pc.any(pc.starts_with(stripped, "'")).as_py():
            return np.array([from_spreadsheet_text(name) for name in names], dtype=object)
        return names

    def _parse(self, column: int, texts: Any) -> Any:
        if parses(texts):
            return pc.cast(texts, pa.float64())
        low, high = 0, len(texts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if parses(texts[low:middle]) else (low, middle)
        raise DataError(
            f"{self.place(low)}: {self.names[column]!r} is {texts[low].as_py()!r}, not a number: "
            "correct or remove the row"
        )


def check_width(path: Path, columns: int) -> None:
    """Refuse more columns than any table of bars has.

    Raises:
        DataError: there are more.
    """
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{path.name} has {columns:,} columns, more than the {MOST_COLUMNS:,} that a file may have: "
            "divide it into several, or write one row a bar and symbol"
        )


def plain_column(column: Any) -> Any:
    """The column with one type for all text, and zoned stamps shown in UTC, in which Arrow keeps them."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return pc.cast(column, pa.string())
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return pc.cast(column, pa.timestamp(column.type.unit, "UTC"))
    return column


def sample_rows(columns: Sequence[Any]) -> Rows:
    """Some rows of Arrow columns as text."""
    cells = [column.slice(0, SAMPLE).to_pylist() for column in columns]
    return [["" if cell is None else str(cell) for cell in row] for row in zip(*cells, strict=True)]


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is one of numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def without_empty_words(texts: Any) -> Any:
    """Texts without blanks around them, null where one stands for no value."""
    stripped = pc.utf8_trim_whitespace(texts)
    empty = pc.is_in(pc.utf8_lower(stripped), value_set=pa.array(EMPTY_WORDS))
    return pc.if_else(empty, pa.scalar(None, pa.string()), stripped)


def parses(texts: Any) -> bool:
    """Whether all texts are numbers."""
    try:
        pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def first_line(error: BaseException) -> str:
    """What an error says, on one line, cut to 200 characters."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _with_index(frame: Any, index: Any) -> Any:
    """The frame with what its index says as columns in front; a level of names is the column `symbol`."""
    import pandas as pd

    if isinstance(index, pd.RangeIndex):
        return frame
    for place, level in enumerate(range(index.nlevels)):
        values = index.get_level_values(level)
        if isinstance(values, pd.PeriodIndex):
            values = values.to_timestamp()
        is_time = index.nlevels == 1 or isinstance(values, pd.DatetimeIndex)
        name, alike = ("time", TIME_NAMES) if is_time else ("symbol", {"symbol"})
        if not any(str(column).casefold() in alike for column in frame.columns[place:]):
            frame.insert(place, name, values.to_numpy() if values.dtype == object else values)
    return frame
