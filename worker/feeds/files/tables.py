"""A bar file as raw columns: CSV (plain or gzip) and Parquet become one table that knows each row's place.

Values are read, not judged: text stays text until a column is asked for as numbers or names.
Every failure of the bytes is a `DataError` that names the file and, where known, the line.
"""

import csv
import gzip
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pa_csv
from pyarrow import parquet as pa_parquet

from schemas.errors import DataError
from services.model_calls.quoting import from_spreadsheet_text
from services.text.given_files import MAX_BYTES, check_size, open_given
from worker.feeds.files.columns import TIME_NAMES, bar_columns, further_columns

PARQUET_SUFFIXES = (".parquet", ".pq")
CSV_SUFFIXES = (".csv", ".csv.gz")
EMPTY_WORDS = ["", "nan", "na", "n/a", "null", "none"]
_SEPARATORS = ",;\t|"
_PIECE, _BLOCK = 1_048_576, 65_536
_GZIP = 31  # the window of zlib with the frame of gzip around it
_LONGEST_HEADER = 4 * _PIECE
MOST_COLUMNS = 20_000  # five for each symbol of a wide file
_CELL_BYTES = 8  # of a number or a time, and of where a text begins, however well they are packed
_BATCH = 256  # rows of texts that are counted at a time

Pick = Callable[[tuple[str, ...], str], Sequence[int]]  # positions of the columns to read, by names and file


@dataclass(frozen=True)
class BarTable:
    """Columns of one file by position, in file order.

    Attributes:
        path: the file.
        names: header names as written.
        columns: one Arrow array for each name; text is always `string`, zoned times are shown in UTC.
        row_word: what a row is called in this format, "line" or "row".
        first_row: number of the first row of data, counted as the file's reader counts.
    """

    path: Path
    names: tuple[str, ...]
    columns: tuple[Any, ...]
    row_word: str
    first_row: int

    def place(self, row: int) -> str:
        """Where a row of data (from 0) stands in the file."""
        return f"{self.path.name} {self.row_word} {row + self.first_row}"

    @classmethod
    def of_frame(cls, frame: object, word: str = "bars", needs: str = "at least two bars") -> "BarTable":
        """A DataFrame as a table: its index is a column of times, and a second level of it one of names.

        An index that only numbers the rows is left out, and so is one whose times a column has. Columns of
        two levels, as downloads of several symbols have them, become one name each. Of a period its start is
        taken.

        Args:
            frame: whatever was handed over.
            word: what its rows are, in a refusal.
            needs: what a refusal of one without rows asks for.

        Raises:
            DataError: it is no DataFrame, has no rows, or columns that Arrow cannot hold.
        """
        import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            found = type(frame).__name__
            raise DataError(f"{word} are of type {found!r}: give a pandas DataFrame, or a path")
        plain = frame.copy(deep=False)
        if isinstance(frame.columns, pd.MultiIndex):
            plain.columns = ["_".join(str(part) for part in name if str(part)) for name in frame.columns]
        plain = _with_index(plain, frame.index)
        try:
            table = pa.Table.from_pandas(plain, preserve_index=False)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise DataError(f"DataFrame: its columns are no table of {word}: {_first_line(error)}") from error
        if table.num_rows == 0:
            raise DataError(f"DataFrame has no rows: it needs {needs}")
        columns = tuple(_plain(column) for column in table.columns)
        return cls(Path("DataFrame"), tuple(map(str, table.column_names)), columns, "row", 0)

    def numbers(self, column: int) -> npt.NDArray[np.float64]:
        """A column as float64; an empty cell is NaN.

        Raises:
            DataError: a value that is not a number, by its row.
        """
        array = self.columns[column]
        if pa.types.is_string(array.type):
            array = self._parse(column, _without_empty_words(array))
        elif not _is_number(array.type):
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
        if _parses(texts):
            return pc.cast(texts, pa.float64())
        low, high = 0, len(texts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _parses(texts[low:middle]) else (low, middle)
        raise DataError(
            f"{self.place(low)}: {self.names[column]!r} is {texts[low].as_py()!r}, not a number: "
            "correct or remove the row"
        )


def symbol_of_name(path: Path) -> str:
    """The symbol of a file that names none: its name up to the first dot, in capitals."""
    return path.name.split(".")[0].upper() or path.name


def all_columns(names: tuple[str, ...], _: str) -> Sequence[int]:
    """The positions of all names."""
    return range(len(names))


def read_table(
    path: Path, needs: str = "at least two bars", most: int = MAX_BYTES, pick: Pick = all_columns
) -> BarTable:
    """The raw columns of a CSV or Parquet file, told apart by suffix, else by content.

    Args:
        path: the file.
        needs: what a refusal of an empty file asks for.
        most: bytes that it may hold, unpacked; counted before anything is parsed.
        pick: which of its columns are read.

    Raises:
        DataError: the file is missing, unreadable, empty, too large, neither format, or no regular file.
    """
    try:
        with open_given(path, most) as file:
            begin = file.read(4)
            file.seek(0)
            if not begin:
                raise DataError(f"{path.name} is empty: it needs a header and {needs}")
            if path.name.lower().endswith(PARQUET_SUFFIXES) or begin == b"PAR1":
                return _read_parquet(path, file, needs, most, pick)
            packed = begin[:2] == b"\x1f\x8b"
            return _read_csv(path, _unpack(path, file, most) if packed else file.read(), needs, pick)
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"no such file: {str(path)!r}; give an existing CSV or Parquet file") from error
    except MemoryError as error:
        raise DataError(
            f"this machine has not the memory to read {path.name}: free some, or give a shorter file"
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {str(path)!r}: {error}") from error


def _unpack(path: Path, file: BinaryIO, most: int) -> bytes:
    """The bytes in a gzip file; a first pass counts them, because one byte can stand for a thousand."""
    data = file.read()
    size, part = 0, None
    try:
        for begin in range(0, len(data), _BLOCK):
            block = data[begin : begin + _BLOCK]
            while block := block if part else block.lstrip(b"\0"):  # zeros may fill up between parts
                part = part or zlib.decompressobj(_GZIP)
                size += len(part.decompress(block, _PIECE))
                check_size(path, size, most)
                block = part.unconsumed_tail or part.unused_data
                part = None if part.eof else part
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path.name} is not a complete gzip file: {error}; fetch it again") from error


def _read_parquet(path: Path, file: BinaryIO, needs: str, most: int, pick: Pick) -> BarTable:
    try:
        parquet = pa_parquet.ParquetFile(file)
        schema = parquet.schema_arrow
        _check_width(path, len(schema))
        names = tuple(schema.names)
        further = _further(names, path.name, pick)
        chosen = [
            schema.field(place)
            for place in pick(names, path.name)
            if place not in further or _is_number(schema.field(place).type)
        ]
        table = _read_chosen(path, file, parquet, chosen, most)
        table.validate(full=True)
        check_size(path, sum(map(_count_bytes, table.columns)), most)
        names = tuple(map(str, table.column_names))
        columns = tuple(_plain(column) for column in table.columns)
    except (DataError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path.name} is not a readable Parquet file: {_first_line(error)}") from error
    if table.num_rows == 0:
        raise DataError(f"{path.name} has columns and no rows: it needs {needs}")
    return BarTable(path, names, columns, "row", 1)


def _read_chosen(path: Path, file: BinaryIO, parquet: Any, chosen: Sequence[Any], most: int) -> Any:
    """The chosen columns, texts as codes into those that differ; what they claim is counted before."""
    for field in chosen:
        if pa.types.is_nested(field.type):
            raise DataError(f"{path.name}: column {field.name!r} holds {field.type}: store one value a cell")
    about, names = parquet.metadata, {field.name for field in chosen}
    parts = [
        part
        for group in map(about.row_group, range(about.num_row_groups))
        for part in map(group.column, range(group.num_columns))
        if part.path_in_schema in names
    ]
    width = sum(_CELL_BYTES if _is_text(field.type) else _width(field.type) for field in chosen)
    check_size(path, max(sum(part.total_uncompressed_size for part in parts), about.num_rows * width), most)
    texts = {field.name for field in chosen if _is_text(field.type)}
    delta = {part.path_in_schema for part in parts if any("DELTA" in word for word in part.encodings)} & texts
    size = 0
    for batch in parquet.iter_batches(_BATCH, columns=sorted(delta)) if delta else ():
        size += sum(map(_count_bytes, batch.columns))
        check_size(path, size, most)
    coded = pa_parquet.ParquetFile(file, read_dictionary=sorted(texts - delta))
    table = coded.read(columns=None if len(names) == len(parquet.schema_arrow) else sorted(names))
    return table.select([place for place, name in enumerate(table.column_names) if name in names])


def _count_bytes(column: Any) -> int:
    """What a column takes with every text written out."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return sum(map(_text_bytes, chunks)) + len(column) * _CELL_BYTES


def _text_bytes(chunk: Any) -> int:
    if not _is_text(chunk.type):
        return 0
    coded = pa.types.is_dictionary(chunk.type)
    values = chunk.dictionary if coded else chunk
    lengths = pc.binary_length(pc.cast(values, pa.large_binary()) if "_view" in str(values.type) else values)
    lengths = lengths.take(chunk.indices) if coded else lengths
    return int(pc.sum(pc.cast(lengths, pa.int64())).as_py() or 0)


def _is_text(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    return any(test(kind) for test in tests) or "_view" in str(kind)


def _width(kind: Any) -> int:
    wide = pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind)
    return max(_CELL_BYTES, int(kind.byte_width)) if wide else _CELL_BYTES


def _check_width(path: Path, columns: int) -> None:
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{path.name} has {columns:,} columns, more than the {MOST_COLUMNS:,} that a file may have: "
            "divide it into several, or write one row a bar and symbol"
        )


def _read_csv(path: Path, data: bytes, needs: str, pick: Pick) -> BarTable:
    names, separator = csv_header(path, data)
    lines = data.rstrip(b"\r\n") + b"\n"
    if lines.count(b"\n") + lines.count(b"\r") < 2:
        raise DataError(f"{path.name} has a header and no rows: it needs {needs}")
    positions = [str(i) for i in range(len(names))]
    further, first = _further(names, path.name, pick), _first_cells(lines, separator)
    chosen = [
        positions[place]
        for place in pick(names, path.name)
        if place not in further or (place < len(first) and _may_be_number(first[place]))
    ]
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(lines),
            # One thread: only then does an error name its row.
            read_options=pa_csv.ReadOptions(use_threads=False, skip_rows=1, column_names=positions),
            parse_options=pa_csv.ParseOptions(delimiter=separator, ignore_empty_lines=False),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(chosen, pa.string()), include_columns=chosen
            ),
        )
    except MemoryError:
        raise
    except pa.ArrowException as error:
        raise DataError(
            f"{path.name} is not a CSV table of {len(names)} columns: {_first_line(error)}"
        ) from error
    return BarTable(path, tuple(names[int(place)] for place in chosen), tuple(table.columns), "line", 2)


def _further(names: tuple[str, ...], file: str, pick: Pick) -> frozenset[int]:
    return further_columns(names, file) if pick is bar_columns else frozenset()


def _first_cells(lines: bytes, separator: str) -> list[str]:
    """Cells of the first row of data; none where it cannot be read, which the reader then says."""
    try:
        row = lines.split(b"\n", 2)[1][:_LONGEST_HEADER].decode()
        return next(csv.reader([row.rstrip("\r")], delimiter=separator), [])
    except (UnicodeDecodeError, csv.Error):
        return []


def _may_be_number(cell: str) -> bool:
    try:
        return cell.strip().lower() in EMPTY_WORDS or math.isfinite(float(cell))
    except ValueError:
        return False


def csv_header(path: Path, data: bytes) -> tuple[tuple[str, ...], str]:
    """The column names in the first line of a CSV file, and what separates them.

    Raises:
        DataError: no text, or no names.
    """
    try:
        text = (data[:_LONGEST_HEADER].splitlines() or [b""])[0].decode("utf-8-sig")
        separator = max(_SEPARATORS, key=text.count)
        _check_width(path, text.count(separator) + 1)
        names = next(csv.reader([text], delimiter=separator), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path.name} is neither UTF-8 CSV nor Parquet: {error}") from error
    if not any(name.strip() for name in names):
        raise DataError(f"{path.name} line 1 is blank: the first line must name the columns")
    return tuple(name.strip() for name in names), separator


def _plain(column: Any) -> Any:
    """The column with one type for all text, and zoned stamps shown in UTC, in which Arrow keeps them."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return pc.cast(column, pa.string())
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        return pc.cast(column, pa.timestamp(column.type.unit, "UTC"))
    return column


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _without_empty_words(texts: Any) -> Any:
    stripped = pc.utf8_trim_whitespace(texts)
    empty = pc.is_in(pc.utf8_lower(stripped), value_set=pa.array(EMPTY_WORDS))
    return pc.if_else(empty, pa.scalar(None, pa.string()), stripped)


def _parses(texts: Any) -> bool:
    try:
        pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _first_line(error: BaseException) -> str:
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
