from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.vocabulary import ExitReason, FailureMode
from services.high_level.failure_modes import PREDICATES, classify
from tests.each_case import check_each
from tests.services.high_level.builders import episode

# Facts of constructed losers; what is not named is unremarkable (trend up, neutral, ranks 0.5, 8 bars).
CONSTRUCTED: dict[FailureMode, list[dict[str, Any]]] = {
    FailureMode.NEWS_WHIPSAW: [
        {"hold_bars": 1, "mae_r": -1.9, "r": -1.8},
        {"hold_bars": 0, "fingerprint": (0.5, 0.5, 0.5, 0.5, 0.95)},
    ],
    FailureMode.LOW_VOLUME_BREAKOUT: [
        {"structure": "breakout", "fingerprint": (0.5, 0.5, 0.5, 0.2, 0.5)},
        {
            "structure": "breakdown",
            "direction": "short",
            "regime": "down/mid",
            "fingerprint": (0.5, 0.5, 0.5, 0.0, 0.5),
        },
    ],
    FailureMode.FALSE_BREAKOUT: [
        {"structure": "breakout", "mfe_r": 0.1},
        {"playbook_id": "channel_breakout", "mfe_r": 0.1},
        {"structure": "breakdown", "direction": "short", "regime": "down/high", "mfe_r": 0.4},
    ],
    FailureMode.LATE_ENTRY: [{"fingerprint": (0.5, 0.5, 0.5, 0.5, 0.85), "mfe_r": 0.1}],
    FailureMode.TREND_EXHAUSTION: [
        {"fingerprint": (0.9, 0.5, 0.5, 0.5, 0.5), "mfe_r": 0.6},
        {"fingerprint": (0.9, 0.5, 0.5, 0.5, 0.5), "direction": "short", "regime": "down/mid"},
    ],
    FailureMode.STOP_TOO_TIGHT: [{"mfe_r": 0.9, "mae_r": -1.05}],
    FailureMode.CHOP: [
        {"regime": "sideways/low"},
        {"exit_reason": ExitReason.TIME_STOP, "mfe_r": 0.3, "r": -0.6, "mae_r": -0.7},
    ],
    FailureMode.GAP_THROUGH_STOP: [{"mae_r": -2.7, "r": -2.8}, {"mae_r": -1.3, "r": -1.25}],
    FailureMode.GAVE_BACK: [
        {"mfe_r": 0.5, "mae_r": -0.6, "r": -0.5},
        {"mfe_r": 1.4, "exit_reason": ExitReason.INVALIDATION},
    ],
    FailureMode.THESIS_FAILED: [{"mfe_r": 0.4, "exit_reason": ExitReason.INVALIDATION}],
    FailureMode.NEVER_WORKED: [{"mfe_r": 0.0}, {"mfe_r": 0.24, "fingerprint": ()}],
    FailureMode.UNCLASSIFIED: [{"mfe_r": 0.25}, {"fingerprint": ()}],
}
CASES = [(mode, facts) for mode, all_facts in CONSTRUCTED.items() for facts in all_facts]


def loser(**facts):
    return episode(**({"r": -1.0, "mae_r": -1.1, "mfe_r": 0.3} | facts))


@check_each(("mode", "facts"), CASES)
def test_constructed_loser_has_its_mode(mode, facts):
    assert classify(loser(**facts)) is mode


@check_each(("mode", "facts"), CASES)
@check_each("r", [-0.3, 0.0, 0.8])
def test_same_facts_without_a_loss_have_no_mode(mode, facts, r):
    assert classify(loser(**(facts | {"r": r}))) is None


@pytest.mark.parametrize(
    ("mode", "facts", "moved"),
    [
        (FailureMode.NEWS_WHIPSAW, {"hold_bars": 1, "mae_r": -1.9}, {"hold_bars": 3}),
        (FailureMode.FALSE_BREAKOUT, {"structure": "breakout"}, {"mfe_r": 0.5}),
        (FailureMode.FALSE_BREAKOUT, {"structure": "breakout"}, {"direction": "short"}),
        (FailureMode.TREND_EXHAUSTION, {"fingerprint": (0.9, 0.5, 0.5, 0.5, 0.5)}, {"direction": "short"}),
        (FailureMode.STOP_TOO_TIGHT, {"mfe_r": 0.9}, {"mae_r": -1.3}),
        (FailureMode.GAP_THROUGH_STOP, {"mae_r": -1.4, "r": -1.3}, {"r": -1.2}),
        (FailureMode.GAVE_BACK, {"mfe_r": 0.5}, {"mfe_r": 0.49}),
        (FailureMode.THESIS_FAILED, {"exit_reason": ExitReason.INVALIDATION}, {"mfe_r": 0.5}),
        (
            FailureMode.THESIS_FAILED,
            {"exit_reason": ExitReason.INVALIDATION},
            {"exit_reason": ExitReason.STOP},
        ),
        (FailureMode.NEVER_WORKED, {"mfe_r": 0.2}, {"mfe_r": 0.25}),
        (FailureMode.STOP_TOO_TIGHT, {"mfe_r": 0.9}, {"exit_reason": ExitReason.INVALIDATION}),
    ],
)
def test_loser_beyond_a_limit_leaves_the_mode(mode, facts, moved):
    assert classify(loser(**facts)) is mode
    assert classify(loser(**(facts | moved))) is not mode


@given(
    st.floats(-3, -0.31),
    st.floats(0, 3),
    st.integers(0, 30),
    st.sampled_from(list(ExitReason)),
    st.tuples(*[st.floats(0, 1)] * 5),
)
def test_every_loser_has_exactly_one_mode(r, mfe_r, hold_bars, exit_reason, fingerprint):
    facts = loser(
        r=r, mae_r=r, mfe_r=mfe_r, hold_bars=hold_bars, exit_reason=exit_reason, fingerprint=fingerprint
    )
    matching = [mode for mode, holds in PREDICATES if holds(facts)]
    assert classify(facts) == (matching[0] if matching else FailureMode.UNCLASSIFIED)


def test_every_mode_has_a_predicate_and_a_constructed_case():
    assert (
        {mode for mode, _ in PREDICATES} | {FailureMode.UNCLASSIFIED} == set(FailureMode) == set(CONSTRUCTED)
    )
