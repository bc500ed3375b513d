"""Trade by trade against the recorded lists of nautilus_trader, prices on the tick, by settings alone."""

import pytest

from benchmarks.comparison import compare
from benchmarks.crossing import BRACKET, simulate_trades
from benchmarks.parity_cases import CASES
from benchmarks.peer_settings import CENT, NAUTILUS, TICK
from tests.trading_core.parity.recorded import compared, recorded_as_asked, recording

NAME = NAUTILUS.name
# Ours are sums of floats, theirs whole numbers of ticks and cents: a billionth is far below either.
NEAR = 1e-9

# Entry bars of the trades that differ, all for one reason: the stop, 2 % below the close, falls exactly
# between two ticks. Here half a tick is rounded up; nautilus_trader rounds the binary number next to it.
BETWEEN_TICKS = {"tick-walk-21": [], "tick-walk-22": [6_556, 10_177, 13_485], "tick-walk-23": []}


@pytest.mark.parametrize("case", CASES[NAME], ids=lambda case: case.name)
def test_parity_with_nautilus_every_trade_is_equal_but_for_levels_between_two_ticks(case):
    found = compared(NAME, case, relative=NEAR)
    assert found.differing["entry_bar"].tolist() == BETWEEN_TICKS[case.name], found.differing.to_string()
    assert found.equal == found.ours - len(found.differing) == found.theirs - len(found.differing)


@pytest.mark.parametrize("case", CASES[NAME], ids=lambda case: case.name)
def test_parity_with_nautilus_differing_stops_lie_between_two_ticks(case):
    differing = compared(NAME, case, relative=NEAR).differing
    for trade in differing.to_dict("records"):
        stop_in_ticks = trade["entry_price"] * (1.0 - BRACKET["stop_pct"]) / TICK
        assert stop_in_ticks % 1.0 == pytest.approx(0.5, abs=1e-6)
        assert trade["exit_price"] == pytest.approx((stop_in_ticks + 0.5) * TICK, abs=NEAR)
        assert trade["exit_price_theirs"] == pytest.approx((stop_in_ticks - 0.5) * TICK, abs=NEAR)


@pytest.mark.parametrize("case", CASES[NAME], ids=lambda case: case.name)
def test_parity_with_nautilus_fees_are_equal_to_the_cent(case):
    """Each commission is rounded to the cent, and a target pays the maker's rate."""
    ours, theirs = simulate_trades(case.bars(), recording(NAME).switches), recording(NAME).trades[case.name]
    both = ours.merge(theirs, on=["symbol", "entry_bar"], suffixes=("", "_theirs"))
    both = both[~both["entry_bar"].isin(BETWEEN_TICKS[case.name])]
    assert len(both) > 100
    for column in ("fees", "pnl"):
        gaps = (both[column] - both[f"{column}_theirs"]).abs()
        assert gaps.max() < CENT * 1e-6, both[gaps > CENT * 1e-6].to_string()


def test_parity_with_nautilus_was_recorded_with_the_settings_of_the_command():
    assert recorded_as_asked(NAME)


@pytest.mark.parametrize(
    "switches",
    [
        {"fill": "next_open"},
        {"both_hit": "stop"},
        {"both_hit": "color"},
        {"gap": "open"},
        {"time_exit": "open"},
        {"time_exit": "after_stops"},
        {"tick_size": 0.0},
        {"reentry": False},
    ],
    ids=lambda switches: "-".join(map(str, *switches.items())),
)
def test_parity_with_nautilus_needs_every_setting(switches):
    case = CASES[NAME][0]
    lists = recording(NAME)
    ours = simulate_trades(case.bars(), {**lists.switches, **switches})
    assert compare(ours, lists.trades[case.name], NEAR).share < 1.0


@pytest.mark.parametrize("switches", [{"fee_rounding": 0.0}, {"maker_fee_bps": None}], ids=str)
def test_parity_with_nautilus_fees_need_every_setting(switches):
    case = CASES[NAME][0]
    lists = recording(NAME)
    ours = simulate_trades(case.bars(), {**lists.switches, **switches})
    both = ours.merge(lists.trades[case.name], on=["symbol", "entry_bar"], suffixes=("", "_theirs"))
    assert (both["fees"] - both["fees_theirs"]).abs().max() > CENT / 10.0


def test_parity_with_nautilus_bars_lie_on_the_tick():
    for case in CASES[NAME]:
        closes = case.bars().close[:, 0]
        assert abs(closes / TICK - (closes / TICK).round()).max() < 1e-6
