import pytest

from worker.pages.rendering import change_words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "no change"),
        ({"kind": "replan"}, "plan anew"),
        ({"kind": "set_eligibility", "regime": "up/low", "eligible": False}, "ban in up/low"),
        ({"kind": "set_eligibility", "regime": "up/low", "eligible": True}, "trade again in up/low"),
        (
            {"kind": "set_eligibility", "regime": "up/low", "eligible": False, "direction": "short"},
            "ban short in up/low",
        ),
        ({"kind": "set_risk_fraction", "value": 0.00375}, "risk 0.375 % of equity a trade"),
        ({"kind": "open_experiment", "parameter": "stop_atr", "value": 2.0}, "try stop_atr 2 on paper"),
        ({"kind": "set_stop", "parameter": "stop_atr", "value": 2}, "trade with stop_atr 2"),
    ],
)
def test_change_words_of_a_complete_change_leave_no_field_name(change, words):
    assert change_words(change) == words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "replan", "why": "odd"}, "plan anew, why odd"),
        ({"value": "much", "kind": "set_risk_fraction"}, "kind set_risk_fraction, value much"),
        ({"kind": "other", "b": 1, "a": None}, "a None, b 1, kind other"),
    ],
)
def test_change_words_of_any_other_change_leave_nothing_out(change, words):
    assert change_words(change) == words
