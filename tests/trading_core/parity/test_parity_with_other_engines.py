"""Trade by trade against the recorded lists of other engines; `make parity` records them anew."""

import pytest

from benchmarks.comparison import compare
from benchmarks.crossing import simulate_trades
from benchmarks.parity_cases import CASES
from benchmarks.peer_settings import BACKTESTING, BACKTRADER, VECTORBT
from tests.each_case import check_each
from tests.trading_core.parity.recorded import compared, every_case, read_shown, recorded_as_asked, recording

# These do the same float operations in the same order: bars and prices are equal to the last bit.
EXACT = (BACKTESTING.name, BACKTRADER.name, VECTORBT.name)


@check_each("peer_case", [pair for pair in every_case() if pair[0] in EXACT], ids=read_shown)
def test_parity_every_trade_is_equal(peer_case):
    name, case = peer_case
    found = compared(name, case, relative=0.0)
    assert found.differing.empty, found.differing.to_string()
    assert found.equal == found.ours == found.theirs


@check_each("peer_case", [pair for pair in every_case() if pair[0] in EXACT], ids=read_shown)
def test_parity_fees_and_profit_are_equal(peer_case):
    name, case = peer_case
    ours, theirs = simulate_trades(case.bars(), recording(name).switches), recording(name).trades[case.name]
    # Sums of the same products in another order: some units in the last place of the price are left.
    for column in ("fees", "pnl"):
        assert ours[column].tolist() == pytest.approx(theirs[column].tolist(), rel=1e-12, abs=1e-9), column


@pytest.mark.parametrize("name", EXACT)
def test_parity_was_recorded_with_the_settings_of_the_command(name):
    assert recorded_as_asked(name)


def needed(name):
    """Every setting that the peer needs, beside one that it does not have."""
    others = {
        "level_base": "fill",
        "entry_bar_exits": name == BACKTRADER.name or name == VECTORBT.name,
        "time_exit": "after_stops" if name != VECTORBT.name else "open",
        "both_hit": "target",
        "gap": "level",
        "fill": "close",
        "time_stop_bars": 51,
    }
    return [(name, {switch: value}) for switch, value in others.items()]


@check_each(
    ("name", "switches"),
    [item for name in EXACT for item in needed(name)],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, *value.items())),
)
def test_parity_needs_every_setting(name, switches):
    """The recording tells each assumption from its alternative, so equality above is no accident."""
    case = next(case for case in CASES[name] if case.name == "walk-11")
    ours = simulate_trades(case.bars(), {**recording(name).switches, **switches})
    assert compare(ours, recording(name).trades[case.name]).share < 1.0
