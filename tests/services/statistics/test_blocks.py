"""Blocks of trades by entry: when they count, and what they add up."""

from datetime import UTC, datetime, timedelta
from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import DataError
from services.statistics.blocks import (
    ADVERSE_CUT_R,
    GAINING,
    LOSING,
    NEVER,
    Blocks,
    Trades,
    blocks_of,
    winsorise,
)
from services.statistics.calendar_units import DAY_NS, unit_numbers, unit_starts
from tests.services.statistics.laid_out import HOUR_NS, MONDAY, WEEK_NS

LOW, HIGH = -3.0, 4.0
UNITS = st.sampled_from(["day", "week", "month", "quarter"])
ROWS = st.lists(
    st.tuples(st.integers(0, 400), st.integers(0, 45), st.floats(-70, 70)), min_size=1, max_size=40
)


def trades(rows):
    """Trades of rows (day of entry, days held, R)."""
    return Trades.of([((start + hold) * DAY_NS + 1, start * DAY_NS, r) for start, hold, r in rows])


def blocks(rows, unit="week", **more) -> Blocks:
    return blocks_of(trades(rows), unit, LOW, HIGH, **more)


def period(day, unit):
    """The period of a day as the calendar of the standard library names it, in order of time."""
    date = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)
    if unit == "day":
        return day
    if unit == "week":
        return tuple(date.isocalendar())[:2]
    return date.year, date.month if unit == "month" else (date.month - 1) // 3


def clip(r, low, high):
    return min(max(r, low), high)


def test_winsorise_outside_the_bounds_is_clipped():
    assert winsorise(np.array([-9.0, 0.5, 9.0]), LOW, HIGH).tolist() == [-3.0, 0.5, 4.0]


@given(ROWS, UNITS)
def test_sums_of_a_block_are_those_of_the_trades_entered_in_it(rows, unit):
    """Against plain Python over the standard library's calendar."""
    groups: dict[object, list[float]] = {}
    for start, _, r in sorted(rows):
        groups.setdefault(period(start, unit), []).append(r)
    seen = blocks(rows, unit)
    assert seen.sizes.tolist() == [len(found) for found in groups.values()]
    cuts = {"losing": (LOW, ADVERSE_CUT_R), "gaining": (-ADVERSE_CUT_R, HIGH)}
    wanted = {
        "raw": [fsum(found) for found in groups.values()],
        "winsorised": [fsum(clip(r, LOW, HIGH) for r in found) for found in groups.values()],
        **{
            name: [fsum(clip(r, *cut) for r in found) for found in groups.values()]
            for name, cut in cuts.items()
        },
    }
    for name, found in (
        ("raw", seen.raw),
        ("winsorised", seen.winsorised),
        ("losing", seen.sums[LOSING]),
        ("gaining", seen.sums[GAINING]),
    ):
        np.testing.assert_allclose(found, wanted[name], rtol=1e-12, atol=1e-12)
    for claim, cut in ((LOSING, cuts["losing"]), (GAINING, cuts["gaining"])):
        squares = [fsum(clip(r, *cut) ** 2 for r in found) for found in groups.values()]
        np.testing.assert_allclose(seen.squares[claim], squares, rtol=1e-12, atol=1e-12)


@given(ROWS, UNITS)
def test_two_largest_rows_against_each_claim_are_kept(rows, unit):
    groups: dict[object, list[float]] = {}
    for start, _, r in sorted(rows):
        groups.setdefault(period(start, unit), []).append(r)
    seen = blocks(rows, unit)
    for place, found in enumerate(groups.values()):
        against_losing = sorted((clip(r, LOW, ADVERSE_CUT_R) for r in found), reverse=True)
        against_gaining = sorted((-clip(r, -ADVERSE_CUT_R, HIGH) for r in found), reverse=True)
        for claim, wanted in ((LOSING, against_losing), (GAINING, against_gaining)):
            assert seen.worst[claim, :, place].tolist() == (wanted + [-ADVERSE_CUT_R] * 2)[:2]


@given(ROWS, UNITS, st.randoms(use_true_random=False))
def test_order_of_rows_reaches_no_bit_of_a_block(rows, unit, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    first, second = blocks(rows, unit), blocks(shuffled, unit)
    assert all(vars(first)[name].tobytes() == vars(second)[name].tobytes() for name in vars(first))


@given(ROWS, UNITS)
def test_block_counts_when_its_period_is_over_and_its_trades_and_those_before_have_exited(rows, unit):
    seen, batch = blocks(rows, unit), trades(rows)
    entered = unit_numbers(batch.entry_ns, unit)
    for number, complete_at in zip(seen.numbers, seen.complete_at, strict=True):
        over = int(unit_starts(number + 1, unit))
        assert complete_at == max(over, int(batch.exit_ns[entered <= number].max()))


def test_trade_counts_where_it_was_entered_however_late_it_exits():
    seen = blocks([(4, 100, 1.0), (11, 0, 2.0)])
    assert seen.sizes.tolist() == [1, 1]
    assert seen.complete_at.tolist() == [104 * DAY_NS + 1] * 2  # the second waits for the first


def test_cut_is_on_the_side_that_favours_the_claim_alone():
    seen = blocks([(4, 0, -9.0), (4, 0, 9.0)])
    assert seen.raw.tolist() == [0.0]
    assert seen.winsorised.tolist() == [LOW + HIGH]
    assert seen.sums.tolist() == [[LOW + 9.0], [-9.0 + HIGH]]


def test_bad_data_is_cut_at_fifty_r_on_the_adverse_side():
    seen = blocks([(4, 0, 900.0), (4, 0, -900.0)])
    assert seen.sums.tolist() == [[LOW + 50.0], [-50.0 + HIGH]]


@pytest.mark.parametrize(
    ("unit", "first", "second", "count"),
    [
        ("day", MONDAY - 1, MONDAY, 2),
        ("day", MONDAY, MONDAY + DAY_NS - 1, 1),
        ("week", MONDAY - 1, MONDAY, 2),
        ("week", MONDAY, MONDAY + WEEK_NS - 1, 1),
        ("month", 30 * DAY_NS, 31 * DAY_NS, 2),
        ("month", 0, 30 * DAY_NS, 1),
        ("quarter", 89 * DAY_NS, 90 * DAY_NS, 2),
        ("quarter", 0, 89 * DAY_NS, 1),
    ],
)
def test_entries_at_the_edge_of_a_period_split_there(unit, first, second, count):
    batch = Trades.of([(at + HOUR_NS, at, 0.1) for at in (first, second)])
    assert len(blocks_of(batch, unit, LOW, HIGH)) == count


@given(ROWS, UNITS, st.integers(0, 400))
def test_open_position_holds_its_block_and_those_after_it(rows, unit, day):
    open_since = day * DAY_NS
    free, held = blocks(rows, unit), blocks(rows, unit, open_since=open_since)
    waits = free.numbers >= unit_numbers(open_since, unit)
    assert held.complete_at[waits].tolist() == [NEVER] * int(waits.sum())
    assert held.complete_at[~waits].tolist() == free.complete_at[~waits].tolist()
    assert held.raw.tobytes() == free.raw.tobytes()


@given(ROWS, UNITS)
def test_four_periods_together_hold_the_same_trades(rows, unit):
    alone, together = blocks(rows, unit), blocks(rows, unit, together=4)
    groups = alone.numbers // 4
    assert together.numbers.tolist() == sorted(set(groups.tolist()))
    sizes = [int(alone.sizes[groups == number].sum()) for number in together.numbers]
    assert together.sizes.tolist() == sizes
    sums = [fsum(alone.raw[groups == number]) for number in together.numbers]
    np.testing.assert_allclose(together.raw, sums, atol=1e-9)


def test_no_trades_make_no_blocks():
    seen = blocks_of(Trades.of([]), "week", LOW, HIGH)
    assert len(seen) == 0
    assert seen.sums.shape == (2, 0)
    assert seen.worst.shape == (2, 2, 0)


@pytest.mark.parametrize("rows", [[(1, 2, 0.0)], [(2, 1, float("nan"))], [(2, 1, float("inf"))]])
def test_trade_that_cannot_be_is_refused(rows):
    with pytest.raises(DataError, match="trade 0"):
        Trades.of(rows)
