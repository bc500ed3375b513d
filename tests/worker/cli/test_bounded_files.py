"""Files that have no end, or unpack to more than a machine holds: one line, before anything is parsed."""

import gzip
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather as pa_feather
from pyarrow import parquet as pa_parquet

from agents.language_models.cassette import read_cassette
from schemas.errors import DataError, OperatorError
from schemas.settings import RuntimeSettings
from services.playbooks.loader import load_playbooks
from services.playbooks.writing import demand_writable
from services.text.given_files import MAX_BYTES, parse_toml
from tests.worker.bar_text import bar_csv, days
from worker.feeds.csv.shape import settled_shape
from worker.feeds.files.columns import bar_columns
from worker.feeds.files.files import load_bar_file
from worker.feeds.files.tables import read_table
from worker.settings import load_settings
from worker.studies.ask_again.asking import read_template
from worker.studies.given_text import given_text

MIB = 1 << 20
TEXT = bar_csv(days(*range(3, 28))).encode()
COLUMNS = ("time", "open", "high", "low", "close", "volume")


def packed_zeros(path: Path, parts: int) -> None:
    """A gzip file of so many times 64 MiB."""
    path.write_bytes(gzip.compress(bytes(64 * MIB), 9) * parts)


def claiming(path: Path, rows: int) -> None:
    """A Parquet file of equal rows, which packs to almost nothing."""
    million = pa.table({name: np.ones(1_000_000) for name in COLUMNS})
    with pa_parquet.ParquetWriter(path, million.schema) as writer:
        for _ in range(rows // 1_000_000):
            writer.write_table(million)


BARS = 20_000


def minute_bars(rows: int = BARS) -> dict[str, object]:
    """Columns of valid minute bars."""
    first = np.datetime64("2024-01-01", "ns").astype(np.int64)
    times = pa.array(first + np.arange(rows) * 60 * 10**9, pa.timestamp("ns", "UTC"))
    return {"time": times, **{name: np.ones(rows) for name in COLUMNS[1:]}}


def long_symbols(path: Path, encoding: str | None = None) -> None:
    """Bars whose symbol is one text of 20,000 letters, which packs to almost nothing."""
    table = pa.table(minute_bars() | {"symbol": pa.array(["x" * 20_000]).take(pa.array([0] * BARS))})
    how = {} if encoding is None else {"use_dictionary": False, "column_encoding": {"symbol": encoding}}
    pa_parquet.write_table(table, path, **how)


def delta_symbols(path: Path) -> None:
    long_symbols(path, "DELTA_BYTE_ARRAY")


def coded_symbols(path: Path) -> None:
    """The same in a Feather file, as one text and codes."""
    symbols = pa.array(["x" * 20_000]).take(pa.array([0] * BARS))
    pa_feather.write_feather(pa.table(minute_bars() | {"symbol": symbols.dictionary_encode()}), path)


def packed_notes(path: Path) -> None:
    """One batch whose texts are written out, and pack to almost nothing."""
    notes = pa.array(["x" * 20_000]).take(pa.array([0] * BARS))
    pa_feather.write_feather(pa.table(minute_bars() | {"note": notes}), path, compression="zstd")


def zipped_zeros(path: Path, method: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("bars.csv", bytes(7 * 64 * MIB))


def zipped_otherwise(path: Path) -> None:
    """It claims little, and one piece of it unpacks to all there is."""
    zipped_zeros(path, zipfile.ZIP_BZIP2)
    size = (7 * 64 * MIB).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, LIMIT.to_bytes(4, "little")))


def trades(path: Path) -> None:
    """Trades of which no column says what is one position: every column is read."""
    words = {name: ["a"] * BARS for name in ("playbook", "regime")} | {"timeframe": ["1d"] * BARS}
    bars = minute_bars()
    times = {"entry_time": bars["time"], "exit_time": bars["time"], "r": np.ones(BARS)}
    note = pa.array(["x" * 20_000]).take(pa.array([0] * BARS))
    pa_parquet.write_table(pa.table(words | times | {"note": note}), path)


def million_columns(path: Path) -> None:
    names = ",".join(f"c{number}" for number in range(1_000_000))
    path.write_text(f"time,open,high,low,close,volume,{names}\n" + "1" + "," * 1_000_005 + "\n", "utf-8")


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def levels(path: Path) -> None:
    path.write_text("a = " + "[" * 200_000, "utf-8")


def dotted(path: Path) -> None:
    path.write_text(".".join(["a"] * 100_000) + " = 1\n", "utf-8")


def dotted_known(path: Path) -> None:
    path.write_text("data.symbols." + ".".join(["a"] * 900) + " = 1\n", "utf-8")


def dotted_past_ends_of_lines(path: Path) -> None:
    """Quoted keys that hold what Unicode, but not TOML, calls the end of a line."""
    path.write_text(".".join(['"\u2028"', '"\x85"'] * 50_000) + " = 1\n", "utf-8")


def dotted_within_ten_thousand(path: Path) -> None:
    path.write_text(".".join(["a"] * 9_990) + " = 1\n", "utf-8")


def keys_below_a_long_header(path: Path) -> None:
    path.write_text(f"[{'.'.join(['a'] * 1_000)}]\n" + "".join(f"b{k}.c=1\n" for k in range(90_000)), "utf-8")


def many_keys(path: Path) -> None:
    path.write_text("".join(f"a.b{number}.c = 1\n" for number in range(100_000)), "utf-8")


LIMIT = 100_000_000  # of unpacked bytes, of which a file below holds four times as many
# The command, several times in a process that says the most memory it held; a child inherits `ru_maxrss`.
MEASURE = """
import contextlib, io, json, sys, time
from pathlib import Path
from worker.cli import app
found = []
for words in json.load(sys.stdin):
    reply, begun = io.StringIO(), time.process_time()
    try:
        with contextlib.redirect_stderr(reply):
            app(words)
    except SystemExit as end:
        found.append([end.code, reply.getvalue(), time.process_time() - begun])
most = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
print(json.dumps([found, int(most) / 1024]))
"""
CASES: list[tuple[str, Callable[[Path], object], tuple[str, ...], float]] = [
    ("bomb.csv.gz", lambda path: packed_zeros(path, 7), ("data", "check"), 2.0),
    ("bomb.zip", zipped_zeros, ("data", "check"), 2.0),
    ("bzip2.zip", zipped_otherwise, ("data", "check"), 2.0),
    ("symbols.feather", coded_symbols, ("data", "check"), 2.0),
    ("notes.feather", packed_notes, ("data", "check"), 2.0),
    ("claims.parquet", lambda path: claiming(path, 9_000_000), ("data", "check"), 5.0),
    ("symbols.parquet", long_symbols, ("data", "check"), 5.0),
    ("delta.parquet", delta_symbols, ("data", "check"), 5.0),
    ("trades.parquet", trades, ("gate",), 5.0),
    ("columns.csv", million_columns, ("data", "check"), 5.0),
    ("endless.csv", endless, ("gate",), 5.0),
    ("pipe.csv", os.mkfifo, ("data", "check"), 2.0),
    ("fed.csv", os.mkfifo, ("paper", "--feed", "csv", "--data"), 2.0),
    ("traded.csv", os.mkfifo, ("backtest", "--data"), 2.0),
    ("pipe.txt", os.mkfifo, ("factcheck",), 5.0),
    ("endless.toml", endless, ("config", "show"), 5.0),
    ("levels.toml", levels, ("config", "show"), 5.0),
    ("dotted.toml", dotted, ("config", "show"), 5.0),
    ("known.toml", dotted_known, ("config", "show"), 5.0),
    ("keys.toml", many_keys, ("config", "show"), 5.0),
    ("quoted.toml", dotted_past_ends_of_lines, ("config", "show"), 5.0),
    ("within.toml", dotted_within_ten_thousand, ("config", "show"), 5.0),
    ("header.toml", keys_below_a_long_header, ("config", "show"), 5.0),
]


def test_file_without_bound_is_refused_in_one_line_with_little_memory_and_time(tmp_path):
    for name, make, _, _ in CASES:
        make(tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        cwd=tmp_path, env=os.environ | {"THINKTWICE_RUNTIME__MAX_BYTES": str(LIMIT)}, check=True,
        input=json.dumps([[*words, name] for name, _, words, _ in CASES]), capture_output=True, text=True,
    )  # fmt: skip
    found, megabytes = json.loads(done.stdout)
    assert len(found) == len(CASES)
    for (name, _, _, seconds), (code, complaint, used) in zip(CASES, found, strict=True):
        assert (code, complaint.count("\n")) == (2, 1), complaint
        assert complaint.startswith("thinktwice: ")
        assert name in complaint
        assert used < seconds, name
    assert megabytes < 300


THREADS = """
import os, sys
from pathlib import Path
from schemas.errors import DataError
from worker.feeds.files.tables import read_table

before = set(os.listdir("/proc/self/task"))
try:
    read_table(Path(sys.argv[1]), most=int(sys.argv[2]))
except DataError:
    print(sorted(set(os.listdir("/proc/self/task")) - before))
"""


def feather(path: Path) -> None:
    pa_feather.write_feather(pa.table(minute_bars()), path)


@pytest.mark.parametrize(
    ("name", "make", "most"),
    [
        ("symbols.parquet", long_symbols, LIMIT),
        ("delta.parquet", delta_symbols, LIMIT),
        ("x.feather", feather, 6 * 8 * BARS - 1),  # packed it is smaller
    ],
)
def test_table_that_is_refused_leaves_no_thread_that_aborts_the_end_of_the_process(
    tmp_path, name, make, most
):
    make(path := tmp_path / name)
    command = [sys.executable, "-c", THREADS, str(path), str(most)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    "text",
    [
        "a = [" + "0.25, " * 2_000 + "]",
        "[data.feed]\n" + "".join(f"b{k}.c = 0.5\n" for k in range(50_000)),
        'a = """\n' + "[1.] A sentence... and one more.\n" * 20_000 + '"""',
    ],
    ids=["an array on one line", "many keys", "a long text"],
)
def test_toml_of_many_dots_that_nests_little_is_read(text):
    assert parse_toml(text) == tomllib.loads(text)


def written(folder: Path, kind: str) -> Path:
    path = folder / f"bars.{kind}"
    if kind == "parquet":
        pa_parquet.write_table(pa.table({name: np.ones(1_000) for name in COLUMNS}), path)
    else:
        path.write_bytes(gzip.compress(TEXT) if kind == "csv.gz" else TEXT)
    return path


@pytest.mark.parametrize(("kind", "size"), [("csv", len(TEXT)), ("csv.gz", len(TEXT)), ("parquet", 48_000)])
def test_file_larger_than_max_bytes_is_refused_by_its_unpacked_size_and_names_the_setting(
    tmp_path, kind, size
):
    path = written(tmp_path, kind)
    read_table(path, most=size)
    with pytest.raises(DataError, match=f"holds more than the {size - 1:,} bytes that runtime.max_bytes"):
        read_table(path, most=size - 1)


def test_max_bytes_is_a_setting_that_bounds_a_folder_in_all(tmp_path):
    assert RuntimeSettings().max_bytes == MAX_BYTES == 2_000_000_000
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(TEXT)
    assert load_bar_file(tmp_path, most=4 * len(TEXT)).symbols == ("A", "B")
    with pytest.raises(DataError) as caught:
        load_bar_file(tmp_path, most=len(TEXT) + 1)
    for part in ("'b.csv'", f"the {len(TEXT) + 1:,} bytes that runtime.max_bytes allows a folder in all"):
        assert part in str(caught.value)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_that_no_bar_is_made_of_are_not_read(tmp_path, kind):
    path = tmp_path / f"bars.{kind}"
    if kind == "csv":
        path.write_text("".join(f"{line},{'x' * 1_000}\n" for line in TEXT.decode().splitlines()))
        bound = path.stat().st_size
    else:
        note = pa.array(["x" * 20_000]).take(pa.array([0] * BARS))
        pa_parquet.write_table(pa.table({"note": note} | minute_bars()), path)
        bound = 6 * 8 * BARS
    assert load_bar_file(path, most=bound).bar_count == (25 if kind == "csv" else BARS)
    assert "x" not in "".join(read_table(path, pick=bar_columns).names)


@pytest.mark.parametrize("encoding", [None, "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()])
def test_texts_of_a_parquet_file_are_counted_as_wide_as_they_are(tmp_path, encoding, kind):
    path, width = tmp_path / "names.parquet", 1_000
    table = pa.table({"name": pa.array(["x" * width] * 999 + [None], kind)})
    how = {} if encoding is None else {"use_dictionary": False, "column_encoding": {"name": encoding}}
    pa_parquet.write_table(table, path, **how)
    (column,) = read_table(path, most=1_100_000).columns
    assert column.to_pylist() == table["name"].to_pylist()
    with pytest.raises(DataError, match=r"runtime\.max_bytes"):
        read_table(path, most=999 * width)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_file_of_more_columns_than_any_table_is_refused_in_one_line(tmp_path, kind):
    path = tmp_path / f"bars.{kind}"
    names = [f"c{number}" for number in range(20_001)]
    if kind == "csv":
        path.write_text(",".join(names) + "\n" + "," * 20_000 + "\n")
    else:
        pa_parquet.write_table(pa.table({name: [1.0] for name in names}), path)
    with pytest.raises(DataError, match=r"20,001 columns, more than the 20,000"):
        load_bar_file(path)


@pytest.mark.parametrize("words", [("data", "check"), ("backtest", "--data"), ("gate",)])
def test_max_bytes_reaches_every_command_that_reads_a_table(tmp_path, monkeypatch, shell, words):
    monkeypatch.setenv("THINKTWICE_RUNTIME__MAX_BYTES", "100")
    path = written(tmp_path, "csv")
    assert "holds more than the 100 bytes that runtime.max_bytes" in shell.complaint(*words, str(path))


def test_gzip_file_in_parts_with_zeros_between_is_read_and_one_cut_off_is_not(tmp_path):
    half, path = len(TEXT) // 2, tmp_path / "bars.csv.gz"
    whole = gzip.compress(TEXT[:half]) + bytes(70_000) + gzip.compress(TEXT[half:]) + bytes(512)
    path.write_bytes(whole)
    assert load_bar_file(path).bar_count == 25
    path.write_bytes(whole[:-600])
    with pytest.raises(DataError, match="not a complete gzip file"):
        load_bar_file(path)


def playbook_folder(path: Path) -> object:
    return load_playbooks(path.parent)


READERS: dict[str, Callable[[Path], object]] = {
    "a bar file": load_bar_file,
    "a growing file": settled_shape,
    "a text": lambda path: given_text(str(path)),
    "settings": load_settings,
    "a playbook": playbook_folder,
    "a cassette": read_cassette,
    "a prompt": read_template,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("make", [endless, os.mkfifo])
def test_every_reader_of_a_users_file_refuses_a_pipe_and_a_device(tmp_path, reader, make):
    path = tmp_path / "given.toml"
    make(path)
    with pytest.raises(OperatorError, match="is a pipe or a device") as caught:
        READERS[reader](path)
    assert "\n" not in str(caught.value)


def test_manifest_of_a_written_folder_that_never_ends_is_no_manifest_of_ours(tmp_path):
    (tmp_path / "lifecycle.json").symlink_to("/dev/zero")
    with pytest.raises(OperatorError, match="holds other files"):
        demand_writable(tmp_path)


def test_memory_that_runs_out_while_a_file_is_read_blames_the_machine(tmp_path, monkeypatch):
    path = written(tmp_path, "csv")

    def out_of_memory(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 1024 failed")

    monkeypatch.setattr("worker.feeds.files.tables.pa_csv.read_csv", out_of_memory)
    with pytest.raises(DataError, match="^this machine has not the memory to read bars.csv"):
        load_bar_file(path)


def test_memory_that_runs_out_in_a_command_is_one_line_about_the_machine(shell, monkeypatch):
    def out_of_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("worker.feeds.sample_data.load_embedded_bars", out_of_memory)
    assert shell.complaint("backtest").startswith("thinktwice: this machine has not the memory for it")
