"""A row of a followed file counts when it is closed, and one that is others than it was is a conflict."""

import pytest

from schemas.settings.live import FeedSettings
from services.feeds.port import BarRow, FeedAnomaly
from services.feeds.port import FeedAnomalyKind as Kind
from tests.worker.feeds.growing import HEADER, MINUTE, NS, T0, World, close, label, line, read_shown, rows
from trading_core.live.growing_bars import Bar

HOUR, DAY = 3_600 * NS, 86_400 * NS
RUNNING = 50.0  # the price of a candle that still runs
UNCLOSED = FeedAnomaly(Kind.UNCLOSED, "A", label(1))
NO_HISTORY = FeedSettings(continuous=True, gone_s=30.0, history_bars=0)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "bars.csv")


def begun(world: World, text: str, written: int, now: int) -> None:
    """The file was written at one time, and the feed begins at another."""
    world.write(HEADER + text)
    world.stamp(written)
    world.now = now


def opens(items: list[BarRow | FeedAnomaly]) -> dict[int, float]:
    return {(row.label - T0) // MINUTE: row.bars["A"].open for row in rows(items)}


@pytest.mark.parametrize("how", ["write", "replace"])
@pytest.mark.parametrize("before_s", [50.0, 1.0])
def test_running_candle_that_a_program_gives_last_is_taken_when_it_is_closed(world, how, before_s):
    """The feed begins, and looks again, when the candle of the file is over by the clock."""
    begun(world, line(0) + line(1, price=RUNNING), close(1) - round(before_s * NS), close(1) + 5 * NS)
    world.at(close(1) + 20 * NS, lambda: getattr(world, how)(HEADER + line(0) + line(1) + line(2, price=7.0)))
    items = world.run(close(1) + 50 * NS)
    assert opens(items) == {0: 100.0, 1: 100.0}
    assert read_shown(items) == [UNCLOSED, FeedAnomaly(Kind.UNCLOSED, "A", label(2))]


def test_running_candle_rewritten_every_second_is_taken_once_closed_without_a_conflict(world):
    def write(number: int, second: int):
        price = 100.0 if second >= 0 else RUNNING - second
        return lambda: world.write(
            HEADER + "".join(line(n) for n in range(number)) + line(number, price=price)
        )

    begun(world, "", T0, T0)
    for number in range(3):
        for second in range(-50, 3):
            world.at(close(number) + second * NS, write(number, second))
    items = world.run(close(2) + 9 * NS)
    assert opens(items) == {0: 100.0, 1: 100.0, 2: 100.0}
    assert [item.kind for item in read_shown(items)] == [Kind.UNCLOSED] * 3
    assert all(row.blocked == {} for row in rows(items))


@pytest.mark.parametrize("written", [0, close(1) - 30 * NS], ids=["long ago", "before its close"])
def test_later_row_shows_that_the_one_before_it_is_closed_whenever_the_file_was_written(world, written):
    """An archive that gives its files no time of their own is no reason to wait for ever."""
    begun(world, line(0) + line(1), written, close(1) + 5 * NS)
    world.append(close(2) + NS, line(2))
    world.at(close(2) + NS, lambda: world.stamp(written))
    items = world.run(close(2) + 30 * NS)
    assert opens(items) == {0: 100.0, 1: 100.0}
    assert read_shown(items) == [UNCLOSED, FeedAnomaly(Kind.UNCLOSED, "A", label(2))]


def test_row_of_a_copy_that_has_the_time_of_its_original_is_taken_where_it_was_closed_by_then(world):
    begun(world, line(0) + line(1), close(1), close(1) + 5 * NS)
    items = world.run(close(1) + 30 * NS)
    assert (opens(items), read_shown(items)) == ({0: 100.0, 1: 100.0}, [])


def test_row_written_in_the_tick_before_its_close_is_taken_at_once(world):
    world.settings = NO_HISTORY
    begun(world, "", T0, T0)
    world.at(close(0), lambda: world.write(HEADER + line(0)))
    world.at(close(0), lambda: world.stamp(close(0) - 4_000_000))
    items = world.run(close(0) + 3 * NS)
    assert (opens(items), read_shown(items)) == ({0: 100.0}, [])


def test_file_written_again_with_the_same_bytes_after_the_close_closes_its_last_row(world):
    begun(world, line(0) + line(1), close(1) - 9 * NS, close(1) - 8 * NS)
    world.at(close(1) + 5 * NS, lambda: world.stamp(close(1) + 5 * NS))
    items = world.run(close(1) + 9 * NS)
    assert (opens(items), read_shown(items)) == ({0: 100.0, 1: 100.0}, [UNCLOSED])


def test_time_of_a_file_that_lies_ahead_of_our_clock_shows_nothing(world):
    """Of another machine, or set by hand: then the next row does."""
    ahead = close(9)
    begun(world, line(0) + line(1, price=RUNNING), ahead, close(1) + 5 * NS)
    world.at(close(1) + 20 * NS, lambda: world.replace(HEADER + line(0) + line(1) + line(2)))
    world.at(close(1) + 20 * NS, lambda: world.stamp(ahead))
    items = world.run(close(1) + 50 * NS)
    assert (opens(items), [item.kind for item in read_shown(items)]) == (
        {0: 100.0, 1: 100.0},
        [Kind.UNCLOSED] * 2,
    )


def test_candle_that_does_not_change_until_its_close_is_not_missing(world):
    """A quiet market: to a reader the file looks as if one line had been appended."""
    begun(world, line(0) + line(1), close(1) - 30 * NS, close(1) - 29 * NS)
    world.at(close(1) + 4 * NS, lambda: world.write(HEADER + line(0) + line(1) + line(2, price=RUNNING)))
    items = world.run(close(1) + 9 * NS)
    assert opens(items) == {0: 100.0, 1: 100.0}
    assert [item.kind for item in read_shown(items)] == [Kind.UNCLOSED] * 2


def test_symbols_of_one_file_are_closed_each_by_its_own_rows(world):
    world.symbols = ("A", "B")
    begun(world, line(0) + line(0, "B", RUNNING) + line(1), close(0) - NS, close(0) + NS)
    world.at(
        close(0) + 3 * NS, lambda: world.replace(HEADER + line(0) + line(0, "B") + line(1) + line(1, "B"))
    )
    items = world.run(close(0) + 50 * NS)
    assert [(row.label, row.bars["B"].open) for row in rows(items)] == [(label(0), 100.0)]
    assert FeedAnomaly(Kind.UNCLOSED, "B", label(0)) in read_shown(items)


@pytest.mark.parametrize(("labels", "taken"), [("open", []), ("close", [T0 // DAY * DAY])])
def test_daily_row_written_in_the_evening_is_closed_only_where_its_label_is_its_close(world, labels, taken):
    midnight = T0 // DAY * DAY
    world.timeframe, world.labels = "1d", labels
    begun(world, f"{midnight // NS},A,100,102,98,101,10\n", midnight + DAY - 3 * HOUR, midnight + DAY + HOUR)
    assert [row.label for row in rows(world.run(world.now + 9 * NS))] == taken


CHANGED = FeedAnomaly(
    Kind.CONFLICT,
    "A",
    label(1),
    {"kept": [100.0, 102.0, 98.0, 101.0, 10.0], "dropped": [101.0, 103.0, 99.0, 102.0, 10.0]},
)


@pytest.mark.parametrize("how", ["write", "replace"])
@pytest.mark.parametrize("following", ["", line(1, "B") + line(1, "C")], ids=["last", "further up"])
def test_row_that_changes_after_it_was_taken_is_told_once_as_a_conflict(world, how, following):
    """However the file is written anew, and whether or not its last bytes are the same."""
    whole = HEADER + "".join(line(0, symbol) for symbol in "ABC") + line(1)
    changed = whole.replace(line(1), line(1, price=101.0))
    world.symbols = ("A", "B", "C") if following else ("A",)
    begun(world, "", T0, T0)
    world.at(close(1) + NS, lambda: world.write(whole + following))
    for second in (20, 30, 40):
        world.at(close(1) + second * NS, lambda: getattr(world, how)(changed + following))
    items = world.run(close(1) + 55 * NS)
    assert [item for item in read_shown(items) if item.label is not None and item.symbol == "A"] == [CHANGED]
    assert rows(items)[-1].bars["A"].open == 100.0, "the first stays"


def test_row_that_changed_while_no_process_ran_is_told_once_as_a_conflict(world):
    """A crash between the reading and its anomaly, or a change meanwhile, hides nothing."""
    taken = [BarRow(label(n), {"A": Bar(100.0, 102.0, 98.0, 101.0, 10.0)}) for n in range(3)]

    def again(*conflicts: tuple[str, int]) -> list[FeedAnomaly]:
        world.events.clear()
        world.recalled = taken, conflicts
        begun(world, line(0) + line(1, price=101.0) + line(2), close(2) + 4 * NS, close(2) + 5 * NS)
        return read_shown(world.run(close(2) + 20 * NS, after=label(2)))

    assert again() == [CHANGED]
    assert again(("A", label(1))) == [], "it was told before"


def test_rewrite_of_a_followed_file_tells_nothing_that_was_told_and_no_connection(world):
    """A line that cannot be read stays where it is, and the last line never gets its end."""
    begun(world, "", T0, T0)
    text = HEADER + "yesterday,A,1,1,1,1,1\n"
    for number in range(3):
        text += line(number)
        for second in range(1, 50, 7):
            whole = text + line(number + 1)[: 20 + second % 2]
            world.at(close(number) + second * NS, lambda whole=whole: world.replace(whole))
    items = world.run(close(2) + 50 * NS)
    assert opens(items) == {0: 100.0, 1: 100.0, 2: 100.0}
    assert [(item.kind, item.detail["line"]) for item in read_shown(items)] == [(Kind.INVALID, 2)]


def test_file_that_is_away_at_one_look_only_is_a_rewrite(world):
    begun(world, "", T0, T0)
    world.append(close(0), line(0))
    world.at(close(0) + 10 * NS, world.path.unlink)
    world.at(close(0) + 11 * NS, lambda: world.write(HEADER + line(0)))
    items = world.run(close(0) + 30 * NS)
    assert (opens(items), read_shown(items)) == ({0: 100.0}, [])


def test_anomaly_of_the_file_at_the_start_comes_after_its_history(world):
    begun(world, line(0) + "x\n" + line(1) + line(1, price=9.0), close(1), close(1) + 5 * NS)
    found = [
        item.kind.value if isinstance(item, FeedAnomaly) else item.history
        for item in world.run(close(1) + 9 * NS)
    ]
    assert found == [True, True, "invalid", "conflict"]


def test_live_row_labelled_within_the_bar_before_it_shows_no_close(world):
    """Some sources give the last trade as a row of its own: it stands after a bar that still runs."""
    world.settings, world.timeframe = FeedSettings(), "1h"
    hour = T0 // HOUR * HOUR
    text = f"{hour // NS},A,50,52,48,51,10\n{(hour + HOUR // 2) // NS},A,51,51,51,51,1\n"
    begun(world, text, hour + HOUR // 2 + 9 * NS, hour + HOUR + 9 * NS)
    assert rows(world.run(world.now + 9 * NS)) == []


def test_file_that_is_replaced_while_its_history_is_read_gives_each_bar_once(world):
    begun(world, "".join(line(number) for number in range(40)), close(39), close(39) + NS)
    newer = HEADER + "".join(line(number) for number in range(39)) + line(39, price=101.0)
    world.at(0, lambda: world.replace(newer))
    items = world.run(close(39) + 9 * NS)
    assert (len(rows(items)), read_shown(items)) == (40, [])
    assert rows(items)[-1].bars["A"].open == 101.0


def test_row_of_the_far_future_does_not_close_the_running_candle(world):
    """A slip in a year stands in a row of its own: it shows nothing of the bar in front of it."""
    slip = f"{(T0 + 365 * DAY) // NS},A,7,9,5,8,10\n"
    begun(world, line(0) + line(1, price=RUNNING) + slip, close(1) - 30 * NS, close(1) + 5 * NS)
    world.at(close(1) + 20 * NS, lambda: world.replace(HEADER + line(0) + line(1) + slip))
    items = world.run(close(1) + 50 * NS)
    assert opens(items) == {0: 100.0, 1: 100.0}
    assert UNCLOSED in read_shown(items)
