import contextlib
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import DataError, FeedError
from services.feeds.raw_bar import RawBar
from tests.worker.feeds.growing import HEADER, NS, T0, World, close, line, rows
from worker.feeds.csv.rows import CsvRows
from worker.feeds.csv.shape import settled_shape

CELLS = st.one_of(
    st.sampled_from(
        ["", "nan", "inf", "-1", "1e400", "0x1", "1_0", "٣", '"', "a,b", "\x00", "A", "\r", "\ufeff"]
    ),
    st.sampled_from(
        ["1700000040", "1700000040000", "2023-11-14T22:14:00Z", "2023-11-14 22:14", "20231114", "9" * 19]
    ),
    st.floats().map(repr),
    st.text(max_size=6),
)
LINES = st.one_of(
    st.integers(0, 4).map(lambda number: line(number).encode()),
    st.lists(CELLS, min_size=1, max_size=8).map(
        lambda cells: (",".join(cells) + "\n").encode("utf-8", "replace")
    ),
    st.binary(max_size=60),
)
HEADERS = st.one_of(
    st.just(HEADER.encode()),
    st.sampled_from(
        [b"time;o;h;l;c;v\n", b"\xef\xbb\xbfdate,A_open,A_high,A_low,A_close,A_volume\n", b"\n", b""]
    ),
    st.binary(max_size=40),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    found: Path = tmp_path_factory.mktemp("tail")
    return found


@settings(max_examples=120, deadline=None)
@given(HEADERS, st.lists(LINES, max_size=12), st.lists(st.integers(0, 400), max_size=5))
def test_bytes_of_any_kind_are_rows_or_complaints_however_they_are_cut(header, lines, cuts):
    data = header + b"".join(lines)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

    def read(pieces):
        found, reader = [], CsvRows(Path("bars.csv"), "A", None)
        try:
            for piece in pieces:
                found += reader.read(piece)
        except DataError as error:
            return str(error)
        return sorted(map(repr, [*found, *reader.end()]))

    whole = read([data])
    assert read([data[a:b] for a, b in zip(places, places[1:], strict=False)]) == whole


@settings(max_examples=60, deadline=None)
@given(HEADERS, st.lists(LINES, max_size=10))
def test_file_of_any_kind_is_settled_or_refused(folder, header, lines):
    path = folder / "shape.csv"
    path.write_bytes(header + b"".join(lines))
    with contextlib.suppress(DataError):
        shape = settled_shape(path)
        assert shape.symbols == tuple(sorted(set(shape.symbols)))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 300), LINES, st.sampled_from(["append", "write", "gone"])), max_size=8)
)
def test_file_that_does_anything_is_followed_or_given_up(folder, steps):
    world = World(folder / "any.csv")
    world.write(HEADER)
    for second, text, what in steps:
        when = T0 + second * NS
        if what == "append":
            world.append(when, text)
        elif what == "write":
            world.at(when, partial(world.write, HEADER.encode() + text))
        else:
            world.at(when, lambda: world.path.unlink(missing_ok=True))
    with contextlib.suppress(FeedError):
        labels = [row.label for row in rows(world.run(close(5)))]
        assert labels == sorted(set(labels))


def test_reader_takes_a_whole_file_that_the_bar_files_take(folder):
    path = folder / "whole.csv"
    text = HEADER + "".join(line(number, symbol) for number in range(50) for symbol in "AB")
    path.write_text(text)
    from worker.feeds.files.files import load_bar_file

    series = load_bar_file(path)
    found = [entry for entry in CsvRows(path, "A", None).read(text.encode()) if isinstance(entry, RawBar)]
    assert len(found) == series.bar_count
    for episode in found:
        row, s = int((series.times == episode.label).argmax()), series.symbols.index(episode.symbol)
        assert tuple(episode.bar) == tuple(getattr(series, name)[row, s] for name in episode.bar._fields)
