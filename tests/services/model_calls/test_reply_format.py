import json
from typing import Any

import pytest

from agents.judge_reply import FORM as JUDGE
from agents.planning.plan_reply import FORM as PLAN
from agents.strategies.strategist_reply import FORM as STRATEGIST
from agents.strategies.strategist_reply import HoldReply, ReplyFault, read_strategist_reply
from prompts import load_prompt
from services.high_level.narrative_reply import FORM as NARRATIVE
from services.model_calls.reply_format import ReplyFormat
from services.model_calls.reply_text import json_text, strip_fence
from services.policy_checks.consolidation import FORM as CONSOLIDATION

FORMS = [STRATEGIST, CONSOLIDATION, JUDGE, NARRATIVE, PLAN]
TAKEN = {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref"}
AGREES = json.dumps({"verdict": "pass", "comment": "Fine.", "findings": [], "deferred_needs": []})


def parts(schema: Any) -> list[dict[str, Any]]:
    """Every schema within a schema."""
    found = [schema]
    inner = [
        *schema.get("properties", {}).values(),
        *schema.get("anyOf", []),
        *schema.get("$defs", {}).values(),
    ]
    for part in [*inner, *([schema["items"]] if "items" in schema else [])]:
        found += parts(part)
    return found


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_form_of_a_reply_uses_only_what_the_apis_take(form: ReplyFormat):
    assert form.schema["type"] == "object"
    assert "anyOf" not in form.schema, "one object at the root"
    for part in parts(form.schema):
        assert set(part) - {"$defs", "description"} <= TAKEN
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
        if "$ref" in part:
            assert part["$ref"].rpartition("/")[2] in form.schema["$defs"]
    assert load_prompt(form.name).name == form.name


def test_form_of_the_strategist_has_every_answer_and_null_for_what_it_does_not_say():
    fields = STRATEGIST.schema["properties"]
    assert set(fields["answer"]["enum"]) == {"propose", "hold", "tighten", "abstain"}
    assert fields["stop"]["anyOf"][-1] == {"type": "null"}
    held: dict[str, object] = {
        "because": [],
        "answer": "hold",
        "base": None,
        "changes": None,
        "stop": None,
        "comment": None,
    }
    assert isinstance(read_strategist_reply(json.dumps(held)), HoldReply)
    assert isinstance(read_strategist_reply(json.dumps(held | {"stop": 3.0})), ReplyFault), (
        "it has no place there"
    )
    assert isinstance(read_strategist_reply(json.dumps(held | {"answer": None})), ReplyFault)


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "\n ```JSON\r\n{}\r\n```  \n", "{}"])
def test_one_code_fence_around_a_reply_is_taken_off(fence):
    assert CONSOLIDATION.reads(fence.replace("{}", AGREES))


@pytest.mark.parametrize(
    "text",
    [
        "```json\n{}\n```\n```json\n{}\n```",
        "Here:\n```json\n{}\n```",
        "```json\n{}\n```\nDone.",
        "```{}```",
        "```json\n{}",
    ],
)
def test_more_than_one_code_fence_around_a_reply_stays_and_is_refused(text):
    message = text.replace("{}", AGREES)
    assert strip_fence(message) == message
    assert not CONSOLIDATION.reads(message)


@pytest.mark.parametrize("text", [
    "<think>\nHm {1}.\n</think>\n\n{}", " <think></think>```json\n{}\n```",
    "Hm {1}.\n</think>\n\n{}", "</think>```json\n{}\n```",
])  # fmt: skip
def test_thoughts_before_a_reply_are_taken_off_however_long_and_though_nothing_opens_them(text):
    assert CONSOLIDATION.reads(text.replace("{}", AGREES))
    assert CONSOLIDATION.reads(text.replace("{}", AGREES).replace("</think>", "x" * 30_000 + "</think>"))
    assert json_text(text.replace("{}", AGREES)) == AGREES


@pytest.mark.parametrize(
    "text",
    [
        "<think>{}",
        "{}</think>{}",
        "```json\n{}\n```</think>",
        "{}<think>Hm</think>",
        "<think></think><think></think>{}",
        "Hm <think></think>{}",
    ],
)
def test_thoughts_anywhere_else_stay_and_are_refused(text):
    assert not CONSOLIDATION.reads(text.replace("{}", AGREES))


def test_closing_tag_of_thoughts_within_a_reply_is_a_word_of_it():
    text = json.dumps({**json.loads(AGREES), "comment": "Not </think> here."})
    assert json_text(text) == text


def test_reply_that_is_no_json_keeps_its_size_and_beginning_escaped():
    with pytest.raises(ValueError, match="300 characters, beginning 'no.u202e") as caught:
        json_text("no\u202e" + "x" * 297)
    assert len(str(caught.value)) < 300
