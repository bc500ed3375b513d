import pytest

from benchmarks.gate_worlds.forecasts import ALPHA, came, detected, main


@pytest.mark.parametrize("world", ["normal -.6R", "t -.4R"])
def test_median_claim_comes_about_when_the_forecast_said(world):
    named, took, runs = came(world, 40, 12)
    assert runs >= 36
    assert 0.65 <= took / named <= 1.5


def test_table_of_forecasts_has_a_line_a_world(capsys):
    assert main(["--runs", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6 + 16
    assert all("named" in line and "took" in line for line in lines[:6])
    assert all("detectable" in line and "gaining" in line for line in lines[6:])


@pytest.mark.parametrize("shape", ["normal", "t", "+2/-1", "+4/-1"])
def test_detectable_effect_is_found_in_about_the_share_that_limits_state(shape):
    """66 to 98 %, and an effect of half the size in less."""
    effect, losing, gaining = detected(shape, (104, 5, ALPHA), 100, 8)
    assert effect > 0.1
    assert all(58.0 <= end <= ever for end, ever in (losing, gaining))
