import hashlib

import pytest

import prompts
from prompts import PromptError, load_prompt, template_from_text

NAMES = [
    "policy_level_reflection",
    "high_level_reflection",
    "strategist",
    "judge_replanning",
    "change_plan",
    "evidence_planner",
]


@pytest.mark.parametrize("name", NAMES)
def test_load_prompt_embedded_template_is_hashed_over_its_text(name):
    template = load_prompt(name)
    text = (prompts.FOLDER / f"{name}.txt").read_text("utf-8")
    part = (prompts.FOLDER / "parts/claims.txt").read_text("utf-8").strip()
    text = text.replace("=== part claims ===", part)
    assert template.hash == hashlib.sha256(text.encode()).hexdigest()
    assert template.system
    assert template.placeholders


def test_load_prompt_embedded_templates_name_what_their_callers_give():
    assert load_prompt("policy_level_reflection").placeholders == {
        "findings",
        "proposal",
        "reasons",
        "playbook",
        "snapshot",
    }
    assert load_prompt("high_level_reflection").placeholders == {"cells", "topics"}
    assert load_prompt("judge_replanning").placeholders == {"actions", "refused", "report"}
    assert load_prompt("change_plan").placeholders == {"playbooks", "text"}
    planned = {"available_tools", "context", "turns", "prior_results", "question"}
    assert load_prompt("evidence_planner").placeholders == planned
    parts = {"task", "snapshot", "background", "bases", "revision", "correction"}
    assert load_prompt("strategist").placeholders == parts


WRITERS = (
    "high_level_reflection",
    "text_improvement",
    "text_quality_rewrite",
    "text_review_rewrite",
    "text_section",
)


@pytest.mark.parametrize("name", WRITERS)
def test_load_prompt_that_asks_for_a_text_says_which_claims_there_are(name):
    template = load_prompt(name)
    assert "A text is sections of claims, not sentences" in template.system
    assert "=== part" not in template.text


def test_load_prompt_unknown_name_error_lists_the_known_ones():
    with pytest.raises(PromptError, match="high_level_reflection"):
        load_prompt("../secrets")


def test_render_all_values_given_fills_every_placeholder():
    template = template_from_text("t", "Be brief.\n=== request ===\nIs {{ a }} above {{b}}?")
    assert template.system == "Be brief."
    assert template.render(a="1", b="2") == "Is 1 above 2?"


def test_render_unresolved_placeholder_error_names_it():
    template = template_from_text("t", "x\n=== request ===\n{{a}} {{b}}")
    with pytest.raises(PromptError, match="placeholder b"):
        template.render(a="1")


def test_render_unknown_value_error_names_it():
    template = template_from_text("t", "x\n=== request ===\n{{a}}")
    with pytest.raises(PromptError, match="no placeholder c"):
        template.render(a="1", c="2")


def test_render_placeholder_inside_a_value_stays_text():
    template = template_from_text("t", "x\n=== request ===\n{{a}} {{b}}")
    assert template.render(a="{{b}}", b="2") == "{{b}} 2"


@pytest.mark.parametrize(
    "text",
    [
        "no divider {{a}}",
        "x\n=== request ===\ny\n=== request ===\nz",
        "=== request ===\n{{a}}",
        "x\n=== request ===\n",
        "x {{a}}\n=== request ===\n{{a}}",
    ],
)
def test_template_malformed_text_error(text):
    with pytest.raises(PromptError, match="prompt 't'"):
        template_from_text("t", text)


def test_template_line_ends_of_another_platform_have_the_same_hash():
    unix, windows = "x\n=== request ===\n{{a}}\n", "x\r\n=== request ===\r\n{{a}}\r\n"
    assert template_from_text("t", unix).hash == template_from_text("t", windows).hash
