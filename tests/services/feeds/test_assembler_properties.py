"""Arrivals in any order with any faults, against a plain model of what must come out."""

from collections import Counter
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.settings.live import FeedSettings
from services.feeds.label_grid import NS
from services.feeds.port import FeedAnomaly
from services.feeds.port import FeedAnomalyKind as Kind
from services.feeds.raw_bar import RawBar
from tests.services.feeds.arrivals import T0, Desk, bar, close, label, raw
from trading_core.live.growing_bars import Bar

SYMBOLS = ("A", "B", "C")
GRACE = 5 * NS
QUARANTINE = 4
SETTINGS = FeedSettings(grace_s=5.0, quarantine_bars=QUARANTINE, stale_after_bars=3)


@dataclass(frozen=True)
class Fate:
    """What happens to one bar on its way: how late it is, and what comes again and how late."""

    delay: int = 0
    dropped: bool = False
    again: int | None = None
    conflict: int | None = None


@st.composite
def fates(draw, least=4, most=30):
    """A fate for each bar; most bars just come."""
    count = draw(st.integers(least, most))
    delays = st.integers(0, GRACE - 1)
    later = st.one_of(st.none(), st.integers(0, 200 * NS))
    odd = st.builds(Fate, delay=delays, dropped=st.booleans(), again=later, conflict=later)
    fate = st.one_of(st.just(Fate()), st.builds(Fate, delay=delays), odd)
    return {(number, symbol): draw(fate) for number in range(count) for symbol in SYMBOLS}


def arrivals(found: dict[tuple[int, str], Fate]) -> list[tuple[int, int, RawBar]]:
    """Times, ranks and bars; the first of a label always is the true one."""
    events = []
    for rank, ((number, symbol), fate) in enumerate(sorted(found.items())):
        if fate.dropped:
            continue
        at = close(number) + fate.delay
        events.append((at, 2 * rank, raw(number, symbol)))
        if fate.again is not None:
            events.append((at + fate.again, 2 * rank + 1, raw(number, symbol)))
        if fate.conflict is not None:
            events.append((at + fate.conflict, 2 * rank + 1, raw(number, symbol, wrong=1.0)))
    return sorted(events)


def driven(events: list[tuple[int, int, RawBar]], count: int) -> Desk:
    """Bars arrive, and a feed also looks when a row is due."""
    desk = Desk(SYMBOLS, SETTINGS)
    bars: dict[int, list[RawBar]] = {close(number) + GRACE: [] for number in range(count)}
    for at, _, entry in events:
        bars.setdefault(at, []).append(entry)
    for at in sorted(bars):
        desk.take(at, *bars[at])
    return desk


@settings(max_examples=150, deadline=None)
@given(fates())
def test_rows_equal_the_clean_feed_wherever_data_is_equal_and_each_fault_is_told_once(found):
    count = 1 + max(number for number, _ in found)
    desk = driven(arrivals(found), count)
    demand_missing_bars_told(found, desk, count)
    demand_no_entry_without_a_bar_or_after_a_conflict(found, desk, count)
    there = {key for key, fate in found.items() if not fate.dropped}
    expected = [
        (label(number), {symbol: bar(number, symbol) for symbol in SYMBOLS if (number, symbol) in there})
        for number in range(count)
    ]
    assert [(row.label, dict(row.bars)) for row in desk.rows()] == [pair for pair in expected if pair[1]]
    payload = Counter((item.kind, item.symbol, item.label) for item in desk.shown())
    assert not payload or max(payload.values()) == 1
    for kind, name in ((Kind.DUPLICATE, "again"), (Kind.CONFLICT, "conflict")):
        repeated = {key for key in there if getattr(found[key], name) is not None}
        assert {(item.label, item.symbol) for item in desk.shown(kind)} == {
            (label(number), symbol) for number, symbol in repeated
        }
    assert not desk.shown(Kind.LATE, Kind.INVALID, Kind.UNCLOSED)


def demand_missing_bars_told(found: dict[tuple[int, str], Fate], desk: Desk, count: int) -> None:
    """Every missing bar is told, or stands in the return of its symbol."""
    numbers = [(row.label - T0) // (60 * NS) for row in desk.rows()]
    for symbol in SYMBOLS:
        missing = [
            n for n in range(count) if found[n, symbol].dropped and numbers and numbers[0] <= n <= numbers[-1]
        ]
        shown = sum(item.detail["bars"] for item in desk.shown(Kind.MISSING) if item.symbol == symbol)
        shown += sum(item.detail["missed"] for item in desk.shown(Kind.FRESH) if item.symbol == symbol)
        watch = desk.assembler._watches[symbol]
        assert shown + watch.unsaid == len(missing)


def demand_no_entry_without_a_bar_or_after_a_conflict(
    found: dict[tuple[int, str], Fate], desk: Desk, count: int
) -> None:
    conflicts: dict[str, int] = dict.fromkeys(SYMBOLS, 0)
    for item in desk.items:
        if isinstance(item, FeedAnomaly):
            conflicts.update({str(item.symbol): QUARANTINE} if item.kind is Kind.CONFLICT else {})
        else:
            for symbol in SYMBOLS:
                if symbol not in item.bars:
                    assert symbol in item.blocked
                elif conflicts[symbol]:
                    assert symbol in item.blocked
                    conflicts[symbol] -= 1
    clean = {symbol for symbol in SYMBOLS if all(found[n, symbol] == Fate() for n in range(count))}
    assert not any(symbol in row.blocked for row in desk.rows() for symbol in clean)


@settings(max_examples=60, deadline=None)
@given(fates(), st.randoms(use_true_random=False))
def test_order_within_one_moment_changes_no_row(found, random):
    """Conflicts apart, of which the first stays."""
    plain = {key: Fate(fate.delay, fate.dropped, fate.again) for key, fate in found.items()}
    count = 1 + max(number for number, _ in found)
    events = arrivals(plain)
    moments = sorted({at for at, _, _ in events})
    first, second = Desk(SYMBOLS, SETTINGS), Desk(SYMBOLS, SETTINGS)
    for at in [*moments, close(count) + 300 * NS]:
        now = [entry for when, _, entry in events if when == at]
        first.take(at, *now)
        random.shuffle(now)
        second.take(at, *now)
    assert first.rows() == second.rows()
    assert Counter(map(repr, first.shown())) == Counter(map(repr, second.shown()))


values = st.one_of(st.floats(), st.sampled_from([0.0, -1.0, 1.0, 1e308, None, 10**400]))
anything = st.builds(
    RawBar,
    st.sampled_from(["A", "B", "", "X", "Y" * 1_000]),
    st.one_of(st.integers(), st.integers(-3, 20).map(label)),
    st.one_of(
        st.builds(Bar, values, values, values, values, values),
        st.integers(0, 3).map(bar),
    ),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 30), anything, st.booleans()), max_size=40))
def test_whatever_arrives_rows_stay_in_order_and_hold_possible_bars(steps):
    desk = Desk(("A", "B"), SETTINGS)
    for number, item, hold in steps:
        desk.take(close(number), item, hold=hold)
    labels = [row.label for row in desk.rows()]
    assert labels == sorted(set(labels))
    for row in desk.rows():
        assert row.bars
        for values in row.bars.values():
            assert (
                0.0
                < values.low
                <= min(values.open, values.close)
                <= max(values.open, values.close)
                <= values.high
            )
    again = Desk(("A", "B"), SETTINGS)
    for number, item, hold in steps:
        again.take(close(number), item, hold=hold)
    assert repr(again.items) == repr(desk.items)
