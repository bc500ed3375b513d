import os
from functools import partial

import pytest

from schemas.errors import FeedError
from schemas.settings.live import FeedSettings
from services.feeds.assembler import RowAssembler
from services.feeds.port import FeedAnomaly
from services.feeds.port import FeedAnomalyKind as Kind
from tests.worker.feeds.growing import HEADER, MINUTE, NS, T0, World, close, label, line, read_shown, rows
from worker.feeds.csv.rows import LONGEST_LINE
from worker.feeds.csv.tail import MOST_UNREADABLE


@pytest.fixture
def world(tmp_path):
    found = World(tmp_path / "bars.csv")
    found.write(HEADER)
    return found


def test_appended_bars_come_as_rows_once_they_are_over(world):
    for number in range(3):
        world.append(close(number) + NS, line(number))
    items = world.run(close(3))
    assert [(row.label, row.history, row.blocked) for row in rows(items)] == [
        (label(number), False, {}) for number in range(3)
    ]
    assert read_shown(items) == []
    assert tuple(rows(items)[0].bars["A"]) == (100.0, 102.0, 98.0, 101.0, 10.0)
    assert world.feed.last_labels() == {"A": label(2)}


def test_bars_that_stand_there_already_are_history_as_long_as_wanted(world):
    world.settings = FeedSettings(history_bars=3)
    world.now = close(5) + 2 * NS
    world.write(HEADER + "".join(line(number) for number in (0, 1, 3, 2, 4, 5)))
    world.append(close(6), line(6))
    assert [(row.label, row.history) for row in rows(world.run(close(6) + 3 * NS))] == [
        (label(3), True),
        (label(4), True),
        (label(5), True),
        (label(6), False),
    ]


@pytest.mark.parametrize(("history_bars", "kept"), [(3, [1, 2, 3]), (0, [])])
def test_appended_bars_from_before_the_start_are_traded_or_told_as_too_late(world, history_bars, kept):
    """What stood in the file at the start is history; a delayed source is not, however old its bars are."""
    world.settings = FeedSettings(history_bars=history_bars, max_row_age_bars=2, continuous=False)
    world.now = close(9) + 2 * NS
    world.write(HEADER + "".join(line(number) for number in range(4)))
    world.append(world.now + 2 * NS, line(7) + line(8) + line(9))
    items = world.run(close(9) + 30 * NS)
    assert [(row.label, row.history, row.blocked) for row in rows(items)] == [
        *((label(number), True, {}) for number in kept),
        (label(7), False, {"A": "known too late"}),
        (label(8), False, {}),
        (label(9), False, {}),
    ]
    assert [found.kind for found in read_shown(items)] == []


def test_further_columns_come_with_their_bars_and_what_is_no_number_is_unknown(world):
    world.write(HEADER.rstrip("\n") + ",Funding,note\n")
    for number, cells in enumerate((",0.25,x", ",,y", ",inf,1")):
        world.append(close(number) + NS, line(number).rstrip("\n") + cells + "\n")
    assert [row.extra for row in rows(world.run(close(3)))] == [
        {"A": {"funding": 0.25, "note": None}},
        {"A": {"funding": None, "note": None}},
        {"A": {"funding": None, "note": 1.0}},
    ]


def test_volume_that_a_growing_file_does_not_have_is_unknown_and_its_bars_are_taken(world):
    world.append(close(0) + NS, line(0).replace(",10\n", ",nan\n") + line(0).replace(",10\n", ",\n"))
    items = world.run(close(1))
    assert [row.bars["A"].volume for row in rows(items)] == [None]
    assert [found.kind for found in read_shown(items)] == [Kind.DUPLICATE]


def test_growing_file_without_a_column_of_volume_has_bars_of_unknown_volume(world):
    world.write(HEADER.replace(",volume", ""))
    world.append(close(0) + NS, line(0).replace(",10\n", "\n"))
    assert [tuple(row.bars["A"]) for row in rows(world.run(close(1)))] == [(100.0, 102.0, 98.0, 101.0, None)]


def test_restart_goes_on_after_the_last_label_and_trades_nothing_old(world):
    world.now = close(8) + 2 * NS
    world.write(HEADER + "".join(line(number) for number in range(9)))
    found = rows(world.run(world.now + 9 * NS, after=label(4)))
    assert [(row.label, row.history) for row in found] == [(label(number), False) for number in (5, 6, 7, 8)]
    assert [row.blocked for row in found] == [{"A": "known too late"}] * 3 + [{}]


def test_half_a_line_waits_for_its_end(world):
    whole = line(0)
    world.append(close(0) + NS, whole[:-4])
    world.append(close(0) + 9 * NS, whole[-4:])
    found = world.run(close(1))
    assert read_shown(found) == []
    assert [row.bars["A"].volume for row in rows(found)] == [10.0]


def test_rows_appended_out_of_order_come_in_order(world):
    world.symbols = ("A", "B")
    world.append(close(0) + NS, line(0, "B"))
    world.append(close(0) + 3 * NS, line(0, "A"))
    world.append(close(2) + NS, "".join(line(n, s) for n in (2, 1) for s in "BA"))
    found = rows(world.run(close(3)))
    assert [(row.label, list(row.bars)) for row in found] == [(label(n), ["A", "B"]) for n in (0, 1, 2)]


def test_bar_that_is_not_over_is_told_and_taken_when_it_is_there_again(world):
    world.append(label(0) + 30 * NS, line(0, price=50.0))
    world.append(close(0) + NS, line(0))
    found = world.run(close(1))
    assert read_shown(found) == [FeedAnomaly(Kind.UNCLOSED, "A", label(0))]
    assert [row.bars["A"].open for row in rows(found)] == [100.0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            b"yesterday,A,1,1,1,1,1\n",
            "line 2: time 'yesterday' is unreadable: write ISO 8601 like 2012-01-31T16:00:00Z",
        ),
        (b"2012-01-31 16:00:00,A,1,1,1,1,1\n", "line 2: time '2012-01-31 16:00:00' has no time zone"),
        (b"1700000040,A,x,1,1,1,1\n", "open is 'x', not a number"),
        (b"1700000040,A,1_0,1,1,1,1\n", "open is '1_0', not a number"),
        (b"1700000040,,1,1,1,1,1\n", "the symbol is empty"),
        (b"1700000040,A,1,1\n", "4 cells, where the header has 7"),
        (b"\xff\xfe\n", "no CSV text: "),
        (b'1700000040,"A,1,1,1,1,1\n', "no CSV text: "),
        (b"x" * (LONGEST_LINE + 1) + b"\n", "the line is longer than 65536 bytes"),
        (b"x" * (3 * LONGEST_LINE) + b"\n", "the line is longer than 65536 bytes"),
    ],
)
def test_line_that_cannot_be_read_is_told_with_its_number_and_passed_over(world, text, reason):
    world.append(close(0), text)
    world.append(close(0) + NS, line(0))
    items = world.run(close(0) + 9 * NS)
    (found,) = read_shown(items)
    assert (found.kind, found.symbol, found.label, found.detail["line"]) == (Kind.INVALID, None, None, 2)
    assert found.detail["reason"].startswith(reason)
    assert [row.label for row in rows(items)] == [label(0)]


def test_many_unreadable_lines_are_told_as_many(world):
    world.append(close(0), "x\n" * 5_000 + line(0))
    items = world.run(close(0) + 9 * NS)
    assert len(read_shown(items)) == MOST_UNREADABLE + 1
    assert read_shown(items)[-1].detail["reason"] == "many unreadable lines"
    assert len(rows(items)) == 1


def test_rotated_file_is_read_to_its_end_and_the_next_one_from_its_beginning(world):
    def rotate():
        world.write(line(1) + line(2)[:9], "ab")
        os.replace(world.path, world.path.with_suffix(".1"))
        world.write(HEADER + line(2))

    world.append(close(0), line(0))
    world.at(close(2) + NS, rotate)
    world.append(close(3), line(3))
    items = world.run(close(4))
    assert [row.label for row in rows(items)] == [label(number) for number in range(4)]
    assert [(item.kind, item.detail.get("reason")) for item in read_shown(items)] == [
        (Kind.INVALID, "the line was never finished")
    ]


@pytest.mark.parametrize(
    ("text", "other"), [(HEADER, []), (HEADER + line(0, price=110.0), [(Kind.CONFLICT, label(0))])]
)
@pytest.mark.parametrize("how", ["write", "replace"])
def test_file_that_is_written_anew_repeats_no_row_and_tells_only_a_changed_bar(world, text, other, how):
    whole = text + line(0) * (text == HEADER) + line(1)
    write = getattr(world, how)
    world.append(close(0), line(0))
    world.at(close(1), lambda: write(text))
    world.at(close(1) + 3 * NS, lambda: write(whole))
    items = world.run(close(2))
    assert [row.label for row in rows(items)] == [label(0), label(1)]
    assert [(item.kind, item.label) for item in read_shown(items)] == other


def test_bar_that_comes_too_late_in_another_file_is_told_once(tmp_path):
    world = World(tmp_path / "bars.csv", symbols=("A", "B"))
    world.write(HEADER)
    world.append(close(0), line(0) + line(0, "B"))
    world.append(close(1), line(1))
    world.at(close(1) + 20 * NS, world.path.unlink)
    whole = HEADER + line(0) + line(0, "B") + line(1) + line(1, "B")
    world.at(close(1) + 30 * NS, lambda: world.write(whole))
    world.at(close(1) + 40 * NS, world.path.unlink)
    world.at(close(1) + 50 * NS, lambda: world.write(whole))
    world.append(close(2), line(2) + line(2, "B"))
    items = world.run(close(3))
    bars = [(item.kind, item.symbol, item.label) for item in read_shown(items) if item.label is not None]
    assert bars == [(Kind.MISSING, "B", label(1)), (Kind.LATE, "B", label(1))]
    assert [sorted(row.bars) for row in rows(items)] == [["A", "B"], ["A"], ["A", "B"]]


def test_file_that_is_away_for_a_while_is_told_once_and_followed_again(world):
    world.append(close(0), line(0))
    world.at(close(0) + 10 * NS, world.path.unlink)
    world.at(close(0) + 30 * NS, lambda: world.write(HEADER + line(0)))
    world.append(close(1), line(1))
    items = world.run(close(2))
    assert [item.kind for item in read_shown(items)] == [Kind.DISCONNECTED, Kind.RECONNECTED]
    assert [row.label for row in rows(items)] == [label(0), label(1)]


def test_file_that_stays_away_ends_the_feed_with_an_error(world):
    world.at(close(0), world.path.unlink)
    with pytest.raises(FeedError, match="has been away for 30 s") as caught:
        world.run(close(3))
    assert caught.value.retryable
    assert close(0) + 30 * NS <= world.now <= close(0) + 33 * NS


def test_file_that_becomes_something_else_ends_the_feed_with_an_error(world):
    world.at(close(0), lambda: world.write("a,b\n1,2\n"))
    with pytest.raises(FeedError, match="cannot be followed: bars.csv: no time column"):
        world.run(close(3))


def test_pipe_in_place_of_the_file_is_not_opened(world):
    def swap():
        world.path.unlink()
        os.mkfifo(world.path)

    world.at(close(0), swap)
    with pytest.raises(FeedError, match="no regular file"):
        world.run(close(3))


def test_silent_file_makes_its_symbol_stale(world):
    world.append(close(0), line(0))
    items = world.run(close(6))
    assert read_shown(items) == [FeedAnomaly(Kind.STALE, "A", label(0), {"after_bars": 3})]


def test_row_is_handed_over_when_its_grace_ends_and_not_a_poll_later(world):
    world.symbols = ("A", "B")
    world.settings = FeedSettings(poll_s=50.0, grace_s=5.0)
    world.append(close(0), line(0))
    seen = []
    world.at(close(0) + 6 * NS, lambda: seen.append(world.feed.last_labels()))
    world.now = close(0) - 49 * NS
    world.run(close(0) + 30 * NS)
    assert seen == [{"A": label(0)}]


def test_jump_of_the_clock_blocks_entries_until_bars_agree(world):
    def jump(seconds):
        world.jump = seconds * NS

    for number in range(4):
        world.append(close(number) + NS, line(number))
    world.at(close(1), lambda: jump(-3_600))
    world.at(close(2) + 30 * NS, lambda: jump(0))
    items = world.run(close(4))
    assert [item.detail["reason"] for item in read_shown(items)] == ["jump", "jump", "source agrees"]
    assert [(row.label, row.blocked) for row in rows(items)] == [
        (label(0), {}),
        (label(1), {"A": "clock in doubt"}),
        (label(2), {"A": "clock in doubt"}),
        (label(3), {}),
    ]


def test_same_file_at_the_same_times_gives_the_same_items(tmp_path):
    def once(name):
        world = World(tmp_path / name, symbols=("A", "B"))
        world.write(HEADER)
        world.append(close(0), line(0) + line(0) + line(0, "B", 7.0) + "x\n")
        world.append(close(1), line(1) + line(0, price=3.0))
        world.append(close(3), line(3) + line(3, "B"))
        return world.run(close(5))

    assert repr(once("first.csv")).replace("first", "second") == repr(once("second.csv"))


def test_lock_step_is_not_asked_for(world):
    world.run(T0 + MINUTE)
    assert world.feed.lock_step is False
    assert (world.feed.symbols, world.feed.timeframe, world.feed.label) == (("A",), "1m", "open")


def test_large_backlog_is_handed_over_whole_and_in_order(world, monkeypatch):
    monkeypatch.setattr("worker.feeds.csv.tail._PAGE", 500)
    monkeypatch.setattr("worker.feeds.csv.tail.RowAssembler", partial(RowAssembler, most_waiting=1_000))
    count = 5_000
    world.now = close(count - 1) + NS
    world.write(HEADER + "".join(line(number) for number in range(count)))
    found = world.run(world.now + 5 * NS, after=label(9))
    assert [item.label for item in rows(found)] == [label(number) for number in range(10, count)]
    assert {item.kind for item in read_shown(found)} <= {Kind.STALE, Kind.FRESH}
