"""Trade by trade against the recorded lists of backtesting.py; `make parity` records them anew."""

import pytest

from benchmarks.comparison import compare
from benchmarks.crossing import bars_sha256, crossings_sha256, simulated
from benchmarks.parity_cases import BACKTESTING, CASES, read_recording, settings_of

RECORDING = read_recording(BACKTESTING.name)
RECORDED = {about["name"]: about for about in RECORDING.about["cases"]}


@pytest.mark.parametrize("case", CASES[BACKTESTING.name], ids=lambda case: case.name)
def test_parity_with_backtesting_every_trade_is_equal(case):
    bars, recorded = case.bars(), RECORDED[case.name]
    assert bars_sha256(bars) == recorded["bars_sha256"], "other bars than the recorded: run make parity"
    assert crossings_sha256(bars) == recorded["crossings_sha256"], "averages cross elsewhere: run make parity"
    ours, theirs = simulated(bars, RECORDING.switches), RECORDING.trades[case.name]
    assert len(theirs) == recorded["trades"] > 0
    # Both sides do the same float operations in the same order: bars and prices are equal to the last bit.
    found = compare(ours, theirs, relative=0.0)
    assert found.differing.empty, found.differing.to_string()
    assert found.equal == len(ours) == len(theirs)
    # Their fees are sums of two products and their profit a difference of them: an ulp of the price is left.
    for name in ("fees", "pnl"):
        assert ours[name].tolist() == pytest.approx(theirs[name].tolist(), rel=1e-12, abs=1e-9), name


def test_parity_with_backtesting_was_recorded_with_the_settings_of_the_command():
    assert RECORDING.about["settings"] == settings_of(BACKTESTING)
    assert list(RECORDED) == [case.name for case in CASES[BACKTESTING.name]]


@pytest.mark.parametrize(
    "switches",
    [
        {"level_base": "fill"},
        {"both_hit": "target"},
        {"gap": "level"},
        {"entry_bar_exits": False},
        {"fill": "close"},
        {"time_stop_bars": 51},
        {"fee_bps": 0.0},
    ],
    ids=lambda switches: "-".join(map(str, *switches.items())),
)
def test_parity_with_backtesting_needs_every_setting(switches):
    """The recording tells each assumption from its alternative, so equality above is no accident."""
    case = CASES[BACKTESTING.name][5]
    ours, theirs = simulated(case.bars(), {**RECORDING.switches, **switches}), RECORDING.trades[case.name]
    equal_money = len(ours) == len(theirs) and ours["pnl"].tolist() == pytest.approx(theirs["pnl"].tolist())
    assert compare(ours, theirs).share < 1.0 or not equal_money
