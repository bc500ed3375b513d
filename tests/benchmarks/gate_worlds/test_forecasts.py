import pytest

from benchmarks.gate_worlds.forecasts import came, main


@pytest.mark.parametrize("world", ["normal -.6R", "t -.4R"])
def test_median_claim_comes_about_when_the_forecast_said(world):
    named, took, runs = came(world, 40, 12)
    assert runs >= 36
    assert 0.65 <= took / named <= 1.5


def test_table_of_forecasts_has_a_line_a_world(capsys):
    assert main(["--runs", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all("named" in line and "took" in line for line in lines)
