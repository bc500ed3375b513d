import pytest
from pydantic import ValidationError

from schemas.settings import GateSettings
from services.high_level.clusters import measure
from services.high_level.drift import (
    MOST_EPISODES,
    DriftInputs,
    decay_alarms,
    decay_levels,
    regime_shift,
    regime_text,
)
from tests.services.high_level.builders import DAY_NS, episode


def measures(episodes):
    """Five trades a week, and a look when all of them are over."""
    at = max(shown.known_at for shown in episodes) + 7 * DAY_NS
    return measure(episodes, GateSettings(), {}, at)


def test_decay_alarm_names_when_the_block_that_raised_it_was_known():
    good = [episode(number=k, r=0.3) for k in range(60)]
    bad = [episode(number=k, r=-1.0) for k in range(60, 260)]
    (alarm,) = decay_alarms(measures([*good, *bad]))
    assert alarm.playbook_id == "pullback"
    assert bad[0].known_at < alarm.known_at < bad[-1].known_at
    assert decay_alarms(measures(good)) == ()


def test_decay_levels_stand_for_every_playbook_with_or_without_an_alarm():
    good = [episode(number=k, r=0.3) for k in range(60)]
    bad = [episode(number=k, r=-1.0) for k in range(60, 260)]
    (quiet,), (loud,) = decay_levels(measures(good)), decay_levels(measures([*good, *bad]))
    assert (quiet.n, quiet.mean_r, quiet.alarmed, loud.alarmed) == (60, 0.3, False, True)
    assert quiet.highest < quiet.limit < loud.level == loud.highest <= 1e9


def test_regime_drift_reports_the_rank_that_moved_and_only_that():
    rows = [(0.2, 0.5, 0.5, 0.5, 0.5)] * 20 + [(0.6, 0.5, 0.5, 0.5, 0.6)] * 20
    shift = regime_shift(DriftInputs(fingerprints=tuple(rows)), [])
    assert (shift.windows, shift.older["trend_rank"], shift.newer["trend_rank"]) == (40, 0.2, 0.6)
    line = regime_text(shift)
    assert line.startswith("regime fingerprint: mean trend_rank moved by +0.40 over 40 decision windows")
    assert "energy distance 0.825" in line
    assert "p 0.0" in line
    assert line.endswith("over 10 blocks of 4; monitoring only")
    assert (shift.block, shift.blocks) == (4, 10)
    assert f"p {shift.p_value:.3f}" in line


def test_regime_drift_without_windows_compares_the_episodes_or_says_too_few():
    steady = [episode(number=k) for k in range(40)]
    assert "no mean rank moved" in regime_text(regime_shift(DriftInputs(), steady))
    few = regime_shift(DriftInputs(), steady[:39])
    assert (few.windows, few.source, few.energy_distance, few.older) == (39, "episodes", None, {})
    assert "too few" in regime_text(few)


def test_regime_drift_without_windows_compares_the_newest_episodes_and_no_more_than_it_can_hold():
    old = [episode(number=k, fingerprint=(0.9, 0.5, 0.5, 0.5, 0.5)) for k in range(300)]
    new = [episode(number=k, fingerprint=(0.1, 0.5, 0.5, 0.5, 0.5)) for k in range(300, 300 + MOST_EPISODES)]
    shift = regime_shift(DriftInputs(), [*old, *new])
    assert shift.windows == MOST_EPISODES
    assert (shift.older["trend_rank"], shift.newer["trend_rank"]) == (0.1, 0.1)


def test_drift_inputs_with_an_unknown_key_are_refused():
    with pytest.raises(ValidationError):
        DriftInputs.model_validate({"fingerprint": []})
