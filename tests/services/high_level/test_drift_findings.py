import pytest
from pydantic import ValidationError

from schemas.config import GateSettings
from services.high_level.clusters import build_clusters, measure
from services.high_level.drift import (
    DriftInputs,
    decay_alarms,
    expectation_misses,
    fire_quality,
    regime_drift,
)
from tests.services.high_level.builders import episode, playbook


def measures(episodes):
    return [measure(item, GateSettings(bet_unit="trade"), 0.0, "1h") for item in build_clusters(episodes)]


def test_decay_alarm_names_the_trade_that_raised_it():
    good = [episode(number=k, r=0.3) for k in range(60)]
    bad = [episode(number=k, r=-1.0) for k in range(60, 120)]
    (alarm,) = decay_alarms(measures([*good, *bad]))
    assert alarm.playbook_id == "pullback"
    assert bad[0].known_at < alarm.known_at < bad[-1].known_at
    assert decay_alarms(measures(good)) == ()


def test_regime_drift_reports_the_rank_that_moved_and_only_that():
    rows = [(0.2, 0.5, 0.5, 0.5, 0.5)] * 20 + [(0.6, 0.5, 0.5, 0.5, 0.6)] * 20
    (line,) = regime_drift(DriftInputs(fingerprints=tuple(rows)), [])
    assert line.startswith("regime fingerprint: mean trend_rank moved by +0.40")


def test_regime_drift_without_windows_compares_the_episodes_or_says_too_few():
    steady = [episode(number=k) for k in range(40)]
    assert "no mean rank moved" in regime_drift(DriftInputs(), steady)[0]
    assert "too few" in regime_drift(DriftInputs(), steady[:39])[0]


def test_fire_quality_reports_shares_that_moved():
    pair = {
        "now": {"armed": 10, "activated": 2, "expired": 7},
        "before": {"armed": 10, "activated": 8, "expired": 6},
    }
    few = {"now": {"armed": 4, "activated": 0, "expired": 4}, "before": pair["before"]}
    inputs = DriftInputs.model_validate({"fires": {"a": pair, "b": few}})
    assert fire_quality(inputs) == ("fire quality a: share activated went from 0.80 to 0.20",)


def test_drift_inputs_with_an_unknown_key_are_refused():
    with pytest.raises(ValidationError):
        DriftInputs.model_validate({"fingerprint": []})


def test_expectation_misses_name_holds_and_excursions_off_the_file():
    book = playbook()
    off = [episode(book, number=k, r=1.0, hold_bars=30, mae_r=-1.2, mfe_r=0.4) for k in range(10)]
    kinds = [line.split()[0] for line in expectation_misses(measures(off), {"pullback": book})]
    assert kinds == ["MAE", "MFE", "hold"]
    fine = [episode(book, number=k, r=1.0, hold_bars=9, mae_r=-0.5, mfe_r=1.0) for k in range(10)]
    assert expectation_misses(measures(fine), {"pullback": book}) == ()
    assert expectation_misses(measures(off[:4]), {"pullback": book}) == ()
