import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import ConfigError
from schemas.playbook import PlaybookDefinition
from services.playbooks.rendering import number_text, render_rules, render_text
from tests.services.playbooks.samples import definition


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2"),
        (0.25, "0.25"),
        (100.0, "100"),
        (0.0, "0"),
        (-0.0, "0"),
        (-1.5, "(-1.5)"),
        (1e-7, "0.0000001"),
        (1e16, "1" + "0" * 16),
    ],
)
def test_number_text_is_the_shortest_plain_text(value, text):
    assert number_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_number_text_of_any_float_reads_back_exactly(value):
    assert float(number_text(value).strip("()")) == value


def test_rendering_fills_parameters_of_the_definition():
    rules = render_rules(definition(), "short")
    assert rules.setup == "close < ema_20 - 0.5 * atr_14"
    assert rules.stop == "close + 2 * atr_14"
    assert rules.activation is None


def test_rendering_with_an_override_leaves_the_definition_alone():
    playbook = definition()
    assert render_rules(playbook, "long", {"stop_atr": 2.5}).stop == "close - 2.5 * atr_14"
    assert render_rules(playbook, "long").stop == "close - 2 * atr_14"


def test_rendering_an_unknown_name_or_a_lone_brace_is_refused():
    with pytest.raises(ConfigError, match=r"\{edg\}.*Did you mean 'edge'"):
        render_text("close > {edg}", {"edge": 1.0})
    with pytest.raises(ConfigError, match="brace"):
        render_text("close > {edge}}", {"edge": 1.0})


def test_rendering_a_direction_without_rules_is_refused():
    playbook = definition()
    names = ("rules", "eligibility")
    one = {name: {"long": getattr(playbook, name)["long"]} for name in names}
    with pytest.raises(ConfigError, match="no short rules"):
        render_rules(PlaybookDefinition.model_validate(playbook.model_dump() | one), "short")
