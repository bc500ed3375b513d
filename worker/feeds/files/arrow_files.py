"""Parquet and Feather files as tables; what they unpack to is counted before it is read."""

from collections.abc import Sequence
from pathlib import Path
from struct import error as StructError
from struct import unpack_from
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pa_parquet

from schemas.errors import DataError
from services.text.given_files import check_size
from worker.feeds.files.bar_table import (
    BarTable,
    Source,
    check_width,
    first_line,
    is_number,
    parses,
    plain_column,
    sample_rows,
)
from worker.feeds.files.guesses import rename
from worker.feeds.files.shapes import SAMPLE, Rows, level_names

_CELL_BYTES = 8  # of a number or a time, and of where a text begins, however well they are packed
_MAGIC = 8  # bytes that stand before the messages of an Arrow file
_BATCH = 256  # rows of texts that are counted at a time
# Read without threads: a pool that has just begun when the process ends, as on a refusal, aborts it.


def read_parquet(path: Path, file: BinaryIO, source: Source) -> BarTable:
    """The columns of an open Parquet file.

    Raises:
        DataError: it cannot be read, has no rows, or unpacks to too much.
    """
    try:
        parquet = pa_parquet.ParquetFile(file, pre_buffer=False)
        schema = parquet.schema_arrow
        check_width(path, len(schema))
        names = rename(level_names(schema.names), source.columns, path.name)
        places = source.places(
            names,
            path.name,
            lambda place: is_number(schema.field(place).type),
            lambda: _first_rows(path, parquet, source.most),
        )
        chosen = [schema.field(place) for place in places]
        table = _read_chosen(path, file, parquet, chosen, source.most)
        table.validate(full=True)
        check_size(path, sum(map(_count_bytes, table.columns)), source.most)
        left = tuple(name for place, name in enumerate(names) if place not in places)
        shown = dict(zip(schema.names, names, strict=True))
        names = tuple(shown[name] for name in table.column_names)
        columns = tuple(plain_column(column) for column in table.columns)
    except (DataError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path.name} is not a readable Parquet file: {first_line(error)}") from error
    if table.num_rows == 0:
        raise DataError(f"{path.name} has columns and no rows: it needs {source.needs}")
    return BarTable(path, names, columns, "row", 1, (), left)


def _first_rows(path: Path, parquet: Any, most: int) -> Rows:
    check_size(path, parquet.metadata.row_group(0).total_byte_size, most)
    return sample_rows(next(parquet.iter_batches(SAMPLE, use_threads=False)).columns)


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
    for batch in parquet.iter_batches(_BATCH, columns=sorted(delta), use_threads=False) if delta else ():
        size += sum(map(_count_bytes, batch.columns))
        check_size(path, size, most)
    coded = pa_parquet.ParquetFile(file, read_dictionary=sorted(texts - delta), pre_buffer=False)
    wanted = None if len(names) == len(parquet.schema_arrow) else sorted(names)
    table = coded.read(columns=wanted, use_threads=False)
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


def _claimed_bytes(message: Any) -> int:
    """What the buffers of a message of the IPC format unpack to; each that is packed begins with its size.

    Source: Message.fbs of the Arrow columnar format, read by the rules of FlatBuffers.
    """
    if message.body is None or message.type not in ("record batch", "dictionary"):
        return 0
    data = memoryview(message.metadata)

    def number(form: str, place: int) -> int:
        return int(unpack_from(form, data, place)[0])

    def field(table: int, place: int) -> int:
        """Where a field of a table stands; 0 where it is left out."""
        about = table - number("<i", table)
        offset = number("<H", about + 4 + 2 * place) if 4 + 2 * place < number("<H", about) else 0
        return table + offset if offset else 0

    def below(place: int) -> int:
        return place + number("<I", place)

    batch = below(field(below(0), 2))
    batch = below(field(batch, 1)) if message.type == "dictionary" else batch
    buffers = below(field(batch, 2))
    places = [buffers + 4 + 16 * k for k in range(number("<I", buffers))]
    spans = [(number("<q", place), number("<q", place + 8)) for place in places]
    if not field(batch, 3):
        return sum(length for _, length in spans)
    body = memoryview(message.body)
    sizes = [(unpack_from("<q", body, begin)[0] if length else 0, length) for begin, length in spans]
    return sum(size if size >= 0 else length for size, length in sizes)


def read_feather(path: Path, file: BinaryIO, source: Source) -> BarTable:
    """The columns of an open Feather file.

    Raises:
        DataError: it cannot be read, has no rows, or unpacks to too much.
    """
    try:
        whole = pa.py_buffer(file.read())
        pa.ipc.open_file(whole)  # one that is cut off has no footer
        data = whole[_MAGIC:]
        check_size(path, sum(map(_claimed_bytes, pa.ipc.MessageReader.open_stream(data))), source.most)
        reader = pa.ipc.open_stream(data, options=pa.ipc.IpcReadOptions(use_threads=False))
        check_width(path, len(reader.schema))
        batches, size = [], 0
        for batch in reader:
            batches.append(batch)
            size += max(batch.nbytes, sum(map(_count_bytes, batch.columns)))
            check_size(path, size, source.most)
        table = pa.Table.from_batches(batches, reader.schema)
        table.validate(full=True)
    except (DataError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, StructError) as error:
        raise DataError(f"{path.name} is not a readable Feather file: {first_line(error)}") from error
    return table_of(path, level_names(table.column_names), list(table.columns), source)


def table_of(
    path: Path, names: tuple[str, ...], columns: Sequence[Any], source: Source, notes: tuple[str, ...] = ()
) -> BarTable:
    """The chosen ones of Arrow columns in memory, as a table.

    Raises:
        DataError: no rows, or no columns that make bars.
    """
    found = [is_number(each.type) or (pa.types.is_string(each.type) and parses(each)) for each in columns]
    names = rename(names, source.columns, path.name)
    places = source.places(names, path.name, found.__getitem__, lambda: sample_rows(columns))
    if not columns or len(columns[0]) == 0:
        raise DataError(f"{path.name} has columns and no rows: it needs {source.needs}")
    left = tuple(name for place, name in enumerate(names) if name and place not in places)
    chosen = tuple(plain_column(columns[place]) for place in places)
    return BarTable(path, tuple(names[place] for place in places), chosen, "row", 1, notes, left)
