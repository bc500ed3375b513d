import dataclasses

import pytest

from schemas.settings.live import FeedSettings
from services.feeds.assembler import MOST_STRANGERS, RowAssembler
from services.feeds.label_grid import NS, LabelGrid
from services.feeds.port import BarRow, BlockReason, FeedAnomaly
from services.feeds.port import FeedAnomalyKind as Kind
from services.feeds.raw_bar import RawBar
from tests.services.feeds.arrivals import GRID, MINUTE, SETTINGS, T0, Desk, bar, close, full, label, raw

SECOND = NS


def test_row_with_every_symbol_goes_at_once():
    desk = Desk()
    assert desk.take(close(0) + SECOND, raw(0, "B")) == []
    (row,) = desk.take(close(0) + SECOND, raw(0, "A"))
    assert row == BarRow(label(0), {"A": bar(0, "A"), "B": bar(0, "B")})
    assert list(row.bars) == ["A", "B"]


def test_row_without_a_symbol_goes_after_the_grace_and_blocks_that_symbol():
    desk = Desk()
    full(desk, 0)
    assert desk.take(close(1), raw(1, "A")) == []
    assert desk.assembler.next_due() == close(1) + 5 * SECOND
    assert desk.take(close(1) + 5 * SECOND - 1) == []
    anomaly, row = desk.take(close(1) + 5 * SECOND)
    assert anomaly == FeedAnomaly(Kind.MISSING, "B", label(1), {"bars": 1, "to": label(1)})
    assert row == BarRow(label(1), {"A": bar(1, "A")}, {"B": "missing bar"})
    full(desk, 2)
    assert desk.rows()[-1].blocked == {}


def test_row_waits_for_the_row_before_it_only_as_long_as_the_grace():
    desk = Desk(settings=FeedSettings(grace_s=90.0))
    full(desk, 0)
    assert [row.label for row in desk.take(close(0) + 30 * SECOND)] == [label(0)]
    assert desk.take(close(2), raw(2, "A"), raw(2, "B")) == []
    assert [row.label for row in desk.take(close(2) + SECOND, raw(1, "B"), raw(1, "A"))] == [
        label(1),
        label(2),
    ]
    assert desk.take(close(4), raw(4, "A"), raw(4, "B")) == []
    found = desk.take(close(3) + 90 * SECOND)
    assert [item.label for item in found] == [label(3), label(3), label(4)]


def test_same_bar_again_is_dropped_and_told_once_before_and_after_its_row():
    desk = Desk()
    found = desk.take(close(0), raw(0, "A"), raw(0, "A"), raw(0, "A"))
    assert found == [FeedAnomaly(Kind.DUPLICATE, "A", label(0))]
    assert desk.take(close(0), raw(0, "B"))[0].label == label(0)
    assert desk.take(close(0) + SECOND, raw(0, "B"), raw(0, "B"), raw(0, "A")) == [
        FeedAnomaly(Kind.DUPLICATE, "B", label(0))
    ]
    assert desk.assembler.counts[Kind.DUPLICATE] == 5


@pytest.mark.parametrize("waiting", [True, False])
def test_conflict_keeps_the_first_bar_and_blocks_the_symbol_for_the_quarantine(waiting):
    desk = Desk(settings=FeedSettings(quarantine_bars=3))
    full(desk, 0)
    if waiting:
        desk.take(close(1), raw(1, "A"), raw(1, "A", wrong=1.0), raw(1, "A", wrong=2.0), raw(1, "B"))
    else:
        desk.take(close(1), raw(1, "A"), raw(1, "B"))
        desk.take(close(1) + SECOND, raw(1, "A", wrong=1.0), raw(1, "A", wrong=2.0))
    full(desk, 2, 3)
    desk.take(close(4) + 5 * SECOND, raw(4, "B"))  # no bar of A: not a clean one
    full(desk, 5, 6)
    assert desk.shown(Kind.CONFLICT) == [
        FeedAnomaly(Kind.CONFLICT, "A", label(1), {"kept": list(bar(1)), "dropped": list(bar(1, wrong=1.0))})
    ]
    assert desk.rows()[1].bars["A"] == bar(1)
    blocked = [row.label for row in desk.rows() if row.blocked.get("A") == "conflicting bars"]
    assert blocked == [label(n) for n in ([1] if waiting else []) + [2, 3, 5]]
    assert all("B" not in row.blocked for row in desk.rows())


def test_conflict_during_a_quarantine_starts_it_again():
    desk = Desk(("A",), FeedSettings(quarantine_bars=2))
    full(desk, 0)
    desk.take(close(0), raw(0, wrong=1.0))
    full(desk, 1)
    desk.take(close(1), raw(1, wrong=1.0))
    full(desk, 2, 3, 4)
    assert [bool(row.blocked) for row in desk.rows()] == [False, True, True, True, False]


def test_bar_of_a_row_that_has_gone_is_late_and_told_once():
    desk = Desk()
    desk.take(close(1) + 5 * SECOND, raw(1, "A"))
    assert desk.take(close(2), raw(1, "B"), raw(1, "B"), raw(0, "A")) == [
        FeedAnomaly(Kind.LATE, "B", label(1), {"bar": list(bar(1, "B")), "newest": label(1)}),
        FeedAnomaly(Kind.LATE, "A", label(0), {"bar": list(bar(0, "A")), "newest": label(1)}),
    ]
    assert len(desk.rows()) == 1


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"open": float("nan")}, "open is 'nan', not a finite number"),
        ({"high": float("inf")}, "high is 'inf', not a finite number"),
        ({"close": None}, "close is 'None', not a finite number"),
        ({"volume": float("nan")}, "volume is 'nan', not a finite number"),
        ({"low": 0.0}, "a price is not above zero"),
        ({"high": 1.0}, "high is below low"),
        ({"close": 1_000.0}, "open or close lies outside low..high"),
        ({"volume": -1.0}, "volume is negative"),
    ],
)
def test_bar_that_cannot_be_is_told_and_never_handed_over(values, reason):
    desk = Desk(("A",))
    bad = RawBar("A", label(0), bar(0)._replace(**values))
    assert desk.take(close(0), bad, bad) == [FeedAnomaly(Kind.INVALID, "A", label(0), {"reason": reason})]
    assert desk.take(close(0), raw(0)) == [BarRow(label(0), {"A": bar(0)})]


def test_label_off_the_grid_is_invalid():
    desk = Desk(("A",))
    (found,) = desk.take(close(0), RawBar("A", label(0) + SECOND, bar(0)))
    assert (found.kind, found.detail["reason"]) == (Kind.INVALID, "label off the grid")


def test_symbols_that_nobody_asked_for_are_told_once_and_only_the_first_of_many():
    desk = Desk(("A",))
    names = [f"X{number}" * 40 for number in range(100)]
    desk.take(close(0), *(RawBar(name, label(0), bar(0)) for name in names + names))
    assert len(desk.shown(Kind.INVALID)) == MOST_STRANGERS + 1
    assert desk.shown()[0].detail == {"reason": "unknown symbol"}
    assert desk.shown()[-1].detail == {"reason": "many unknown symbols"}
    assert max(len(str(item.symbol)) for item in desk.shown()) == 64


def test_bar_that_is_not_over_is_dropped_told_once_and_taken_when_it_is():
    desk = Desk(("A",))
    assert desk.take(label(0), raw(0, wrong=1.0), raw(0, wrong=2.0)) == [
        FeedAnomaly(Kind.UNCLOSED, "A", label(0))
    ]
    assert desk.take(close(0), raw(0))[0].bars == {"A": bar(0)}
    assert desk.take(close(0) + 50 * SECOND, raw(1, wrong=1.0)) == [FeedAnomaly(Kind.UNCLOSED, "A", label(1))]
    assert desk.take(close(1) - SECOND, raw(1))[0].bars == {"A": bar(1)}  # our clock may be a second behind


def test_symbol_without_bars_is_stale_once_and_fresh_when_it_is_back():
    desk = Desk()
    full(desk, 0)
    for number in range(1, 7):
        desk.take(close(number) + 5 * SECOND, raw(number, "A"))
    full(desk, 7, 8)
    assert desk.kinds() == [
        "row",
        *["missing", "row"] * 2,
        "missing",
        "stale",
        *["row"] * 4,
        "fresh",
        *["row"] * 2,
    ]
    assert desk.shown(Kind.STALE, Kind.FRESH) == [
        FeedAnomaly(Kind.STALE, "B", label(0), {"after_bars": 3}),
        FeedAnomaly(Kind.FRESH, "B", label(7), {"missed": 3}),
    ]
    assert [row.blocked.get("B") for row in desk.rows()] == [
        None,
        "missing bar",
        "missing bar",
        "stale",
        "stale",
        "stale",
        "stale",
        None,
        None,
    ]
    assert desk.assembler.counts[Kind.MISSING] == 6


def test_silent_feed_makes_every_symbol_stale_by_the_clock():
    desk = Desk()
    full(desk, 0)
    assert desk.take(close(3) + 5 * SECOND - 1) == []
    found = desk.take(close(3) + 5 * SECOND)
    assert [(item.kind, item.symbol, item.label) for item in found] == [
        (Kind.STALE, "A", label(0)),
        (Kind.STALE, "B", label(0)),
    ]
    assert desk.take(close(9)) == []


def test_stale_symbol_stays_so_when_only_old_bars_come():
    desk = Desk(("A",), FeedSettings(max_row_age_bars=100.0))
    full(desk, 0)
    desk.take(close(10))
    found = desk.take(close(10), raw(1), raw(8))
    assert [item.kind for item in desk.shown()] == [Kind.STALE, Kind.FRESH]
    assert [item.blocked for item in found if isinstance(item, BarRow)] == [{"A": "stale"}, {}]


def test_symbol_that_never_had_a_bar_is_stale_counted_from_the_start():
    desk = Desk(start=T0)
    assert desk.take(T0 + 3 * MINUTE + 5 * SECOND - 1) == []
    assert [item.label for item in desk.take(T0 + 3 * MINUTE + 5 * SECOND)] == [None, None]


def test_gap_that_is_filled_comes_in_order_and_is_too_late_to_trade():
    desk = Desk(("A",))
    full(desk, 0)
    assert [item.kind for item in desk.take(close(5) + SECOND)] == [Kind.STALE]
    found = desk.take(close(5) + SECOND, *(raw(number) for number in (3, 1, 5, 2, 4)))
    rows = [item for item in found if isinstance(item, BarRow)]
    assert [row.label for row in rows] == [label(number) for number in range(1, 6)]
    assert [row.blocked for row in rows] == [{"A": "known too late"}] * 4 + [{}]
    assert [item.kind for item in found if isinstance(item, FeedAnomaly)] == [Kind.FRESH]


def test_gap_that_is_not_filled_is_told_once_for_each_symbol_with_its_length():
    desk = Desk(settings=FeedSettings(stale_after_bars=10))
    full(desk, 0, 4)
    detail = {"bars": 3, "to": label(3)}
    assert desk.shown() == [
        FeedAnomaly(Kind.MISSING, "A", label(1), detail),
        FeedAnomaly(Kind.MISSING, "B", label(1), detail),
    ]


def test_rows_wait_while_a_gap_is_being_filled_and_the_watchdog_does_not():
    desk = Desk(("A",))
    full(desk, 0)
    assert desk.take(close(2), raw(2), hold=True) == []
    assert [item.kind for item in desk.take(close(4), raw(3), hold=True)] == [Kind.STALE]
    assert [item.label for item in desk.take(close(4), raw(1)) if isinstance(item, BarRow)] == [
        label(1),
        label(2),
        label(3),
    ]


def test_rows_from_before_the_start_are_history_and_their_gaps_are_no_news():
    desk = Desk(start=close(5) + SECOND)
    desk.take(close(5) + SECOND, *(raw(n, "A") for n in (0, 1, 4, 5)), *(raw(n, "B") for n in (0, 5)))
    full(desk, 6)
    assert desk.shown() == []
    assert [(row.label, row.history, row.blocked) for row in desk.rows()] == [
        (label(0), True, {}),
        (label(1), True, {}),
        (label(4), True, {}),
        (label(5), True, {}),
        (label(6), False, {}),
    ]


def test_restart_drops_what_an_earlier_process_took_and_tells_the_gap_since():
    desk = Desk(("A",), start=close(9), after=label(4))
    desk.take(close(9) + SECOND, *(raw(number) for number in (2, 3, 4, 8, 9)))
    assert desk.kinds() == ["missing", "stale", "fresh", "row", "row"]
    assert [row.history for row in desk.rows()] == [False, False]
    assert [row.blocked for row in desk.rows()] == [{"A": "known too late"}, {}]


def test_market_with_pauses_has_no_gaps_and_is_stale_by_its_rows_alone():
    grid = LabelGrid("1m", "open", False)
    desk = Desk(grid=grid)
    full(desk, 0)
    assert desk.take(close(600)) == []
    full(desk, 601)
    for number in (602, 603, 604):
        desk.take(close(number) + 5 * SECOND, raw(number, "A"))
    full(desk, 605)
    assert [item.kind for item in desk.shown()] == [Kind.MISSING] * 3 + [Kind.STALE, Kind.FRESH]


@pytest.mark.parametrize("timeframe", ["1h", "1d"])
def test_market_with_pauses_may_open_at_a_quarter_of_an_hour_but_not_between(timeframe):
    grid = LabelGrid(timeframe, "open", False)
    assert grid.has(T0 // (900 * NS) * 900 * NS)
    assert not grid.has(T0 // (900 * NS) * 900 * NS + 60 * NS)


def test_labels_that_are_closes_are_due_at_themselves():
    desk = Desk(("A",), grid=LabelGrid("1m", "close", True))
    assert desk.take(label(1), RawBar("A", label(1), bar(1)))[0].label == label(1)


def test_a_reason_of_the_whole_feed_blocks_every_symbol_and_lateness_comes_first():
    assembler = RowAssembler(("A", "B"), GRID, SETTINGS, start=T0)
    for number in (0, 1):
        for symbol in "AB":
            assembler.take(raw(number, symbol), close(1))
    found = assembler.rows(close(1) + 1, blocked=BlockReason.CLOCK)
    assert [row.blocked for row in found if isinstance(row, BarRow)] == [
        dict.fromkeys("AB", "known too late"),
        dict.fromkeys("AB", "clock in doubt"),
    ]


def test_more_waiting_bars_than_there_is_room_for_are_refused_and_told():
    assembler = RowAssembler(("A",), GRID, SETTINGS, start=T0, most_waiting=10)
    shown = [item for number in range(20) for item in assembler.take(raw(number), close(30))]
    assert [(item.kind, item.detail["reason"]) for item in shown] == [
        (Kind.INVALID, "10 bars wait already")
    ] * 10
    assert len([item for item in assembler.rows(close(30)) if isinstance(item, BarRow)]) == 10


def test_memory_stays_bounded_over_many_rows_and_faults():
    desk = Desk(("A",))
    for number in range(3_000):
        desk.assembler.take(raw(number), close(number))
        desk.assembler.take(raw(number), close(number))
        desk.assembler.rows(close(number))
    assert len(desk.assembler._handed) == 512
    assert len(desk.assembler._waiting) == 0
    assert desk.assembler.take(raw(0), close(3_000))[0].kind is Kind.LATE  # too old to be compared


def test_last_labels_say_the_last_bar_of_each_symbol_that_was_handed_over():
    desk = Desk()
    assert desk.assembler.last_labels() == {}
    full(desk, 0)
    desk.take(close(1) + 5 * SECOND, raw(1, "A"))
    desk.take(close(2), raw(2, "B"))
    assert desk.assembler.last_labels() == {"A": label(1), "B": label(0)}


def test_anomaly_says_nothing_that_a_clock_measured():
    desk = Desk()
    full(desk, 0)
    desk.take(close(4), raw(0, "A", wrong=1.0), raw(5, "A"))
    assert all(not dataclasses.asdict(item)["measured"] for item in desk.shown())
