"""The rates that are printed beside a claim are those of the file that the worlds' command wrote."""

import pytest

from benchmarks.gate_worlds import rates
from services.high_level.measured_rates import OPINION_TEXT, RATES, proven_text, rates_for

MEASURED = {int(count): rate for count, rate in RATES["null_year_by_hypotheses"].items()}


@pytest.mark.parametrize(
    ("own", "measured"), [(1, 15), (15, 15), (16, 60), (61, 125), (126, 500), (500, 500), (9_000, 500)]
)
def test_a_family_gets_the_rate_of_the_next_number_that_was_measured(own, measured):
    found = rates_for(own)
    assert (found["hypotheses"], found["null_year"]) == (measured, MEASURED[measured])
    assert f"{MEASURED[measured]:g} % of years without a cause at {measured} hypotheses" in proven_text(own)


def test_both_lines_name_each_rate_of_the_file():
    for name in ("shock_of_12_weeks", "five_years_of_ar_9"):
        assert f" {RATES[name]:g} % " in proven_text(15)
    for name in ("losing_plain", "losing_lasting", "losing_rare_winners"):
        assert f" {RATES[name]:g} % " in OPINION_TEXT


def test_rates_keep_the_bounds_that_are_promised():
    assert max(MEASURED.values()) <= 5.0
    assert RATES["shock_of_12_weeks"] <= 12.0
    assert RATES["five_years_of_ar_9"] <= 30.0


def test_command_writes_every_rate_and_names_itself(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rates, "FILE", tmp_path / "rates.json")
    monkeypatch.setattr(rates, "PLAYBOOKS", (3,))
    assert rates.main(["--runs", "2", "--seed", "5"]) == 0
    written = (tmp_path / "rates.json").read_text()
    assert written == capsys.readouterr().out
    assert all(f'"{name}"' in written for name in RATES)
    assert "gate_worlds.rates --runs 2 --seed 5" in written
