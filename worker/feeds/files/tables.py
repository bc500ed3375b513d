"""A bar file as raw columns: CSV, Parquet, Feather and JSON become one table that knows each row's place.

Values are read, not judged: text stays text until a column is asked for as numbers or names.
Every failure of the bytes is a `DataError` that names the file and, where known, the line.
"""

import csv
import math
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pa_csv

from schemas.errors import DataError
from services.model_calls.quoting import count_noun
from services.text.given_files import MAX_BYTES, open_given
from worker.feeds.files.arrow_files import read_feather, read_parquet, table_of
from worker.feeds.files.bar_table import (
    EMPTY_WORDS,
    BarTable,
    Pick,
    Source,
    all_columns,
    check_width,
    first_line,
)
from worker.feeds.files.columns import FEWEST, PRICES, bar_columns
from worker.feeds.files.guesses import given_columns, rename
from worker.feeds.files.json_rows import ROWS_AT, json_columns
from worker.feeds.files.packed import ABOVE, PIECE, check_kind, decode, unpack_gzip, unpack_zip
from worker.feeds.files.shapes import SAMPLE, TableShape, header_of

PARQUET_SUFFIXES = (".parquet", ".pq")
CSV_SUFFIXES = (".csv", ".csv.gz")
_SEPARATORS = ",;\t|"
_LONGEST_HEADER = 4 * PIECE


def symbol_of_name(path: Path) -> str:
    """The symbol of a file that names none: its name up to the first dot, in capitals."""
    return path.name.split(".")[0].upper() or path.name


def read_table(
    path: Path,
    needs: str = "at least two bars",
    most: int = MAX_BYTES,
    pick: Pick = all_columns,
    columns: str | None = None,
) -> BarTable:
    """The raw columns of a CSV, Parquet, Feather or JSON file, told apart by suffix, else by content.

    What it unpacks to is counted before anything is parsed; see `Source`.

    Raises:
        DataError: the file is missing, unreadable, empty, too large, of no such format, or no regular file.
    """
    try:
        with open_given(path, most) as file:
            return _read(path, file, Source(needs, most, pick, columns=given_columns(columns)))
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(
            f"no such file: {str(path)!r}; give an existing CSV, Parquet, Feather or JSON file"
        ) from error
    except MemoryError as error:
        raise DataError(
            f"this machine has not the memory to read {path.name}: free some, or give a shorter file"
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {str(path)!r}: {error}") from error


def _read(path: Path, file: BinaryIO, source: Source) -> BarTable:
    begin = file.read(8)
    file.seek(0)
    if not begin:
        raise DataError(f"{path.name} is empty: it needs a header and {source.needs}")
    if path.name.lower().endswith(PARQUET_SUFFIXES) or begin.startswith(b"PAR1"):
        return read_parquet(path, file, source)
    if begin.startswith(b"ARROW1"):
        return read_feather(path, file, source)
    data = file.read()
    if begin.startswith(b"\x1f\x8b"):
        return _read(path, BytesIO(unpack_gzip(path, data, source.most)), replace(source, packed=True))
    if begin.startswith(b"PK\x03\x04") and not source.packed:
        return _read(path, BytesIO(unpack_zip(path, data, source.most)), replace(source, packed=True))
    check_kind(path, data)
    data, note = decode(data)
    if data.lstrip()[:1] == b"<" and _count_separators(data.lstrip()[:PIECE].splitlines()[0]) < len(PRICES):
        raise DataError(
            f"{path.name} is a page of HTML or XML: open it in a browser, which shows why the site sent no "
            "file; a table on it is read by pandas.read_html"
        )
    if data.lstrip()[:1] in (b"[", b"{"):
        return _read_json(path, data, source)
    return _read_csv(path, data, source, () if note is None else (note,))


def _read_json(path: Path, data: bytes, source: Source) -> BarTable:
    header, columns = json_columns(path, data, source.columns)
    try:
        arrays = [pa.chunked_array([pa.array(column)]) for column in columns]
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{path.name}: its rows are no table: {first_line(error)}") from error
    note = header.note or ""
    try:
        return table_of(path, header.names, arrays, source, (note,) if note else ())
    except DataError as error:
        if not note.startswith(ROWS_AT):
            raise
        text = str(error).replace(f"{path.name}:", f"{path.name}, of which {note}:", 1)
        raise DataError(text, **error.context) from error


def _read_csv(path: Path, data: bytes, source: Source, notes: tuple[str, ...]) -> BarTable:
    data = _with_tabs(_strip_quotes(data)) if source.pick is bar_columns else data
    header, separator = _header(path, data, source)
    rows = _cells(data, separator, header.rows, SAMPLE)
    names = _fit(header.names, rows[0]) if rows and source.pick is bar_columns else header.names
    if separator == "," and rows and len(rows[0]) >= len(names) + len(PRICES) and source.pick is bar_columns:
        raise DataError(
            f"{path.name} has {len(rows[0])} cells in a row for {len(names)} names, as by decimal commas "
            "without quotes: export it with ; between the cells"
        )
    names = rename(names, source.columns, path.name)
    notes = notes if header.note is None else (*notes, header.note)
    lines = data.rstrip(b"\r\n")
    above, _, last = lines.rpartition(b"\n")
    if source.pick is bar_columns and len(names) >= FEWEST and separator.encode() not in last:
        lines, notes = above, (*notes, "the line below the rows is passed over")
    lines += b"\n"
    if lines.count(b"\n") + lines.count(b"\r") < header.rows + 1:
        raise DataError(f"{path.name} has a header and no rows: it needs {source.needs}")
    cells = dict(enumerate(rows[0] if rows else ()))
    places = source.places(
        names, path.name, lambda place: _may_be_number(cells.get(place, "-")), lambda: rows
    )
    table = _read_cells(path, lines, separator, header.rows, len(names), list(map(str, places)))
    left = tuple(name for place, name in enumerate(names) if name and place not in places)
    found = tuple(names[place] for place in places)
    again = pc.equal(pc.utf8_trim(table.column(0), " \t\ufeff"), found[0])
    is_joined = found[0] and source.pick is bar_columns and not pc.all(again).as_py()
    if omitted := np.flatnonzero(again).tolist() if is_joined else []:
        notes = (*notes, f"{count_noun(len(omitted), 'row')} with the header once more left out")
        table = table.filter(pc.invert(again))
    first, rest = header.rows + 1, tuple(omitted)
    return BarTable(path, found, tuple(table.columns), "line", first, notes, left, rest, separator)


def _read_cells(
    path: Path, lines: bytes, separator: str, above: int, width: int, chosen: list[str]
) -> pa.Table:
    try:
        return pa_csv.read_csv(
            pa.BufferReader(lines),
            # One thread: only then does an error name its row.
            read_options=pa_csv.ReadOptions(
                use_threads=False, skip_rows=above, column_names=list(map(str, range(width)))
            ),
            parse_options=pa_csv.ParseOptions(delimiter=separator, ignore_empty_lines=False),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(chosen, pa.string()), include_columns=chosen
            ),
        )
    except MemoryError:
        raise
    except pa.ArrowException as error:
        raise DataError(
            f"{path.name} is not a CSV table of {width} columns: {first_line(error)}; correct or remove "
            "the row"
        ) from error


def _strip_quotes(data: bytes) -> bytes:
    """The lines without the quotes around each whole line, as a sheet of one column has them."""
    bare = data.removeprefix(b"\xef\xbb\xbf")
    head = [line.strip() for line in bare[:_LONGEST_HEADER].splitlines()[:ABOVE]]
    rows = [line[1:-1].replace(b'""', b"") for line in head if line[:1] == line[-1:] == b'"']
    if not rows or len(rows) < len(head) or any(b'"' in row for row in rows):
        return data
    return b"\n".join(line.strip()[1:-1].replace(b'""', b'"') for line in bare.splitlines())


def _with_tabs(data: bytes) -> bytes:
    """The lines with a tab for each run of blanks, where nothing else can separate their cells."""
    head = data[:_LONGEST_HEADER].splitlines()[:ABOVE]
    if max(map(_count_separators, head), default=0) >= len(PRICES) or all(
        len(line.split()) < FEWEST for line in head
    ):
        return data
    return b"\n".join(b"\t".join(line.split()) for line in data.splitlines())


def _fit(names: tuple[str, ...], row: list[str]) -> tuple[str, ...]:
    """The names of a header for rows that have a comma at their end, a clock, or an index without a name."""
    further, clocked = len(row) - len(names), len(row) > 1 and ":" in row[1] and ":" not in row[0]
    if further == -1 and not names[-1]:
        return names[:-1]
    if further == 1 and not row[-1].strip():
        return (*names, "")
    if further == 1 and clocked:
        return ("date", "time", *names[1:])
    return {1: ("", *names), 2: ("date", "time", *names) if clocked else names}.get(further, names)


def _header(path: Path, data: bytes, source: Source) -> tuple[TableShape, str]:
    """The header of a CSV file and what separates its cells; that of bars may have several lines."""
    lines, is_bars = data[:_LONGEST_HEADER].splitlines()[:ABOVE], source.pick is bar_columns
    wide = next((line for line in lines if _count_separators(line) >= len(PRICES)), b"")
    names, separator = csv_header(path, wide if wide and is_bars else data)
    rows = _cells(data, separator, 0, SAMPLE) if is_bars else []
    given = set(source.columns.values())
    named = (k for k, row in enumerate(rows) if given and given <= {*map(str.strip, row)})
    if (above := next(named, None)) is not None:
        return TableShape(tuple(map(str.strip, rows[above])), above + 1), separator
    found = header_of(rows) if rows else TableShape(names, 1)
    if given and found.rows == 0:
        return TableShape(tuple(str(place + 1) for place in range(len(names))), 0), separator
    return (TableShape(names, 1) if (found.rows, found.note) == (1, None) else found), separator


def _count_separators(line: bytes) -> int:
    bare = line.strip(b" ,;\t|")  # a row of empty cells has none
    return max(bare.count(separator.encode()) for separator in _SEPARATORS)


def _cells(lines: bytes, separator: str, first: int, most: int) -> list[list[str]]:
    """Cells of some rows from the row `first` on; none where they cannot be read: the reader says why."""
    try:
        found = lines[:_LONGEST_HEADER].splitlines()[first : first + most]
        return list(csv.reader([line.decode("utf-8-sig", "ignore") for line in found], delimiter=separator))
    except csv.Error:
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
        check_width(path, text.count(separator) + 1)
        names = next(csv.reader([text], delimiter=separator), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"{path.name} is neither UTF-8 CSV nor Parquet, Feather or JSON ({error}): export it as one of "
            "them"
        ) from error
    if not any(name.strip() for name in names):
        raise DataError(f"{path.name} line 1 is blank: the first line must name the columns")
    return tuple(name.strip() for name in names), separator
