import pytest

from schemas.settings import GateSettings
from services.high_level.cluster_figures import check_expectations, miss_texts
from services.high_level.clusters import measure
from tests.services.high_level.builders import DAY_NS, episode, playbook

BOOK = playbook()


def measured(episodes):
    at = max(shown.known_at for shown in episodes) + 7 * DAY_NS
    return measure(episodes, GateSettings(), {"pullback": BOOK}, at)


def check(episodes):
    (row,) = check_expectations(measured(episodes), {"pullback": BOOK})
    return row


def off(n, **facts):
    values = {"r": 1.0, "hold_bars": 30, "mae_r": -1.2, "mfe_r": 0.4} | facts
    return [episode(BOOK, number=k, **values) for k in range(n)]


def test_expectation_check_holds_what_was_measured_beside_what_the_file_expects():
    row = check(off(10))
    assert (row.n, row.hold_p50_bars, row.expected_hold_p50_bars) == (10, 30.0, 8.0)
    assert (row.hold_p90_bars, row.expected_hold_p90_bars) == (30.0, 16.0)
    assert (row.winner_mae_p80_r, row.expected_winner_mae_p80_r) == (-1.2, -0.7)
    assert (row.mfe_p50_r, row.expected_mfe_p50_r) == (0.4, 0.8)
    assert row.missed == ("hold", "MAE", "MFE")
    assert [line.split()[0] for line in miss_texts([row])] == ["MAE", "MFE", "hold"]


@pytest.mark.parametrize(
    ("facts", "missed"),
    [
        ({}, ("hold", "MAE", "MFE")),
        ({"hold_bars": 9}, ("MAE", "MFE")),
        ({"mae_r": -0.94}, ("hold", "MFE")),
        ({"mfe_r": 0.56}, ("hold", "MAE")),
        ({"hold_bars": 9, "mae_r": -0.5, "mfe_r": 1.0}, ()),
    ],
)
def test_expectation_check_names_only_what_is_off(facts, missed):
    assert check(off(10, **facts)).missed == missed


def test_expectation_check_on_four_trades_shows_numbers_and_misses_nothing():
    row = check(off(4))
    assert (row.n, row.missed, miss_texts([row])) == (4, (), ())


def test_expectation_check_of_a_playbook_without_a_file_is_left_out():
    assert check_expectations(measured(off(10)), {}) == ()
