"""Trade by trade against the recorded lists of other engines; `make parity` records them anew."""

import pytest

from benchmarks.comparison import compare
from benchmarks.crossing import simulated
from benchmarks.parity_cases import CASES
from benchmarks.peer_settings import BACKTESTING, BACKTRADER
from tests.trading_core.parity.recorded import compared, every_case, recorded_as_asked, recording, told

# These two do the same float operations in the same order: bars and prices are equal to the last bit.
EXACT = (BACKTESTING.name, BACKTRADER.name)


@pytest.mark.parametrize("peer_case", [one for one in every_case() if one[0] in EXACT], ids=told)
def test_parity_every_trade_is_equal(peer_case):
    name, case = peer_case
    found = compared(name, case, relative=0.0)
    assert found.differing.empty, found.differing.to_string()
    assert found.equal == found.ours == found.theirs


@pytest.mark.parametrize("peer_case", [one for one in every_case() if one[0] in EXACT], ids=told)
def test_parity_fees_and_profit_are_equal(peer_case):
    name, case = peer_case
    ours, theirs = simulated(case.bars(), recording(name).switches), recording(name).trades[case.name]
    # Sums of the same products in another order: some units in the last place of the price are left.
    for column in ("fees", "pnl"):
        assert ours[column].tolist() == pytest.approx(theirs[column].tolist(), rel=1e-12, abs=1e-9), column


@pytest.mark.parametrize("name", EXACT)
def test_parity_was_recorded_with_the_settings_of_the_command(name):
    assert recorded_as_asked(name)


@pytest.mark.parametrize(
    "switches",
    [
        {"level_base": "fill"},
        {"both_hit": "target"},
        {"gap": "level"},
        {"entry_bar_exits": False},
        {"fill": "close"},
        {"time_stop_bars": 51},
    ],
    ids=lambda switches: "-".join(map(str, *switches.items())),
)
def test_parity_with_backtesting_needs_every_setting(switches):
    """The recording tells each assumption from its alternative, so equality above is no accident."""
    case = next(case for case in CASES[BACKTESTING.name] if case.name == "walk-11")
    lists = recording(BACKTESTING.name)
    assert (
        compare(simulated(case.bars(), {**lists.switches, **switches}), lists.trades[case.name]).share < 1.0
    )
