import io
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pa_parquet

from schemas.errors import DataError
from tests.worker.bar_text import HEADER, bar_csv, days
from trading_core.bars import BarSeries
from worker.feeds.files.files import load_bar_file
from worker.feeds.files.symbol_rows import Selection

CELLS = st.one_of(
    st.sampled_from(
        ["", "nan", "inf", "-1", "0", "1", "1e400", "1e308", "1.5", "0x1", "٣", '"', "a,b", "\x00", "now"]
    ),
    st.sampled_from(
        [*days(3, 4, 5, 6), "2012-01-03", "1325601000", "20120103", "2012-03-11 02:30:00", "9999-01-01"]
    ),
    st.floats(allow_nan=True).map(repr),
    st.text(max_size=6),
)
NAMES = st.sampled_from(
    ["time", "date", "symbol", "open", "high", "low", "close", "volume", "A_open", "c", "", "x"]
)
NANOSECONDS = [1325548800 * 10**9 + hour * 3600 * 10**9 for hour in range(3)]
GOOD_COLUMNS = {
    "time": pa.array(NANOSECONDS, pa.timestamp("ns", "UTC")),
    "symbol": pa.array(["A", "A", "A"]),
    "open": pa.array([10.0, 10.0, 10.0]),
    "high": pa.array([12, 12, 12], pa.int32()),
    "low": pa.array(["9", "9", "9"]),
    "close": pa.array([11, 11, 11]).cast(pa.decimal128(21, 2)),
    "volume": pa.array([1.0, 2.0, 3.0], pa.float32()),
}
ODD_COLUMNS = [
    pa.nulls(3),
    pa.array([None, "", "x"]),
    pa.array(["9", None, "1e400"], pa.large_string()),
    pa.array(["2012-01-03", "2012-01-04", "2012-01-05"]).cast(pa.string_view()),
    pa.array(["a", "b", None]).dictionary_encode(),
    pa.array([b"1", b"2", b"3"]),
    pa.array([b"1", b"\xff\xfe", b"3"]).cast(pa.string(), safe=False),
    pa.array(["1", "2", "3"]).cast(pa.string_view()),
    pa.array([True, False, None]),
    pa.array([float("nan"), float("inf"), 0.0]),
    pa.array([1.0, 2.0, 3.0], pa.float16()),
    pa.array([2**64 - 1, 0, 1], pa.uint64()),
    pa.array([-(2**63), 0, 2**63 - 1]),
    pa.array([20120103, 20120104, 20120105]),
    pa.array(NANOSECONDS, pa.timestamp("ns")),
    pa.array([-(2**50), 0, 2**50], pa.timestamp("s", "UTC")),
    pa.array([2**31 - 1, 0, -(2**31)], pa.int32()).view(pa.date32()),
    pa.array([0, None, 86_400_000], pa.int64()).view(pa.date64()),
    pa.array([1, 2, 3], pa.duration("s")),
    pa.array([1, 2, 3], pa.int32()).view(pa.time32("s")),
    pa.array([[1], [], None]),
    pa.array([{"a": 1}, None, {}]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def parquet(columns: dict[str, pa.Array]) -> bytes:
    buffer = io.BytesIO()
    pa_parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


GOOD_PARQUET = parquet(GOOD_COLUMNS)
GOOD_CSV = bar_csv(days(3, 4, 5, 6)).encode()


def outcome(path: Path, tz: str | None) -> BarSeries | str:
    try:
        return load_bar_file(path, Selection(tz=tz))
    except DataError as error:
        return str(error)


def loads_or_refuses(path: Path, data: bytes, tz: str | None = None) -> None:
    path.write_bytes(data)
    result = outcome(path, tz)
    assert result
    assert not isinstance(result, str) or "\n" not in result


def mutated(good: bytes) -> st.SearchStrategy[bytes]:
    edits = st.lists(st.tuples(st.integers(0, len(good) - 1), st.binary(max_size=3)), min_size=1, max_size=4)

    def apply(changes: list[tuple[int, bytes]]) -> bytes:
        data = bytearray(good)
        for position, new in changes:
            data[position : position + len(new)] = new
        return bytes(data)

    return edits.map(apply)


@given(
    data=st.binary(max_size=400),
    name=st.sampled_from(["a.csv", "a.csv.gz", "a.parquet", "a.dat", "a.json", "a.zip"]),
)
def test_any_bytes_give_bars_or_a_data_error(folder, data, name):
    loads_or_refuses(folder / name, data)


@given(data=mutated(GOOD_CSV), tz=st.sampled_from([None, "UTC", "America/New_York"]))
def test_damaged_csv_gives_bars_or_a_data_error(folder, data, tz):
    loads_or_refuses(folder / "b.csv", data, tz)


@given(data=mutated(GOOD_PARQUET))
def test_damaged_parquet_gives_bars_or_a_data_error(folder, data):
    loads_or_refuses(folder / "c.parquet", data)


@given(
    header=st.one_of(st.just(HEADER.split(",")), st.lists(NAMES, min_size=1, max_size=8)),
    rows=st.lists(st.lists(CELLS, min_size=6, max_size=6), max_size=5),
    tz=st.sampled_from([None, "UTC", "America/New_York"]),
)
def test_any_cells_give_bars_or_a_data_error(folder, header, rows, tz):
    text = "\n".join(",".join(row) for row in [header, *rows])
    loads_or_refuses(folder / "d.csv", text.encode("utf-8", "surrogatepass"), tz)


@given(
    spoiled=st.dictionaries(st.sampled_from(sorted(GOOD_COLUMNS)), st.sampled_from(ODD_COLUMNS), max_size=3),
    tz=st.sampled_from([None, "UTC"]),
)
def test_any_parquet_types_give_bars_or_a_data_error(folder, spoiled, tz):
    loads_or_refuses(folder / "e.parquet", parquet({**GOOD_COLUMNS, **spoiled}), tz)


def test_undamaged_files_of_the_fuzz_give_bars(folder):
    for name, data in (("f.csv", GOOD_CSV), ("f.parquet", GOOD_PARQUET)):
        (folder / name).write_bytes(data)
        assert isinstance(outcome(folder / name, None), BarSeries)
