"""The reply of a model that plans: its reasoning apart, and the calls that it names.

The reasoning stands in a `<reasoning>` block before the JSON, or, where an API holds the model to a form, in
the form's first field. Nothing here is believed: what cannot be read is a `MalformedReply` in words of ours.
"""

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, WithJsonSchema

from services.model_calls.quoting import visible
from services.model_calls.reply_format import ClosedReply, DecisionField, ReplyFormat
from services.model_calls.reply_text import MalformedReply, json_text, read_reply

PROMPT = "evidence_planner"
LONGEST_REASONING = 4_000
LONGEST_QUESTION_BACK = 500
TAG = re.compile(r"<(/?)reasoning[ \t]{0,8}>", re.IGNORECASE)
UNCLOSED = "a <reasoning> block is not closed"
NO_OBJECT = "params are no object"

Text = Annotated[Any, WithJsonSchema({"type": "string"})]
Arguments = Annotated[
    Any, WithJsonSchema({"type": "string", "description": 'JSON text, such as {"symbol": "AAPL"}'})
]


class NamedCall(BaseModel):
    """One call as a model writes it; whether there is such a tool is asked later, call by call."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    client: Text = None
    method: Text = None
    params: Arguments = None


class PlanReply(ClosedReply):
    """The plan as a model writes it."""

    reasoning: str = ""
    confidence: float = Field(default=1.0, ge=0, le=1)
    clarification: Annotated[str, StringConstraints(max_length=LONGEST_QUESTION_BACK)] | None = None
    tools: Annotated[tuple[NamedCall, ...], DecisionField(("reasoning",))] = ()


_REPLY = TypeAdapter(PlanReply)
_ARGUMENTS = TypeAdapter(dict[str, Any])


def without_reasoning(text: str) -> tuple[str, str | None]:
    """The reasoning of a reply, and the reply without it: None where a block is never closed.

    Blocks may be several, and one may hold another.
    """
    if "<" not in text or _is_json(text):
        return "", text
    blocks, rest, depth, start, end = list[str](), list[str](), 0, 0, 0
    for tag in TAG.finditer(text):
        if not tag[1]:
            if depth == 0:
                rest.append(text[end : tag.start()])
                start = tag.end()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                blocks.append(text[start : tag.start()])
                end = tag.end()
    if depth:
        return shorten("\n".join([*blocks, text[start:]])), None
    return shorten("\n".join(block.strip() for block in blocks)), "".join([*rest, text[end:]]).strip()


def shorten(reasoning: str) -> str:
    """A model's own words as they are kept: what cannot be seen escaped, cut where they are long."""
    return visible(reasoning.strip()[:LONGEST_REASONING], lines=True)


def read_plan(text: str) -> PlanReply:
    """The plan in a model's text.

    Raises:
        MalformedReply: there is none.
    """
    reasoning, rest = without_reasoning(text)
    if rest is None:
        raise MalformedReply.in_our_words(UNCLOSED)
    read = read_reply(rest, _REPLY, without_nulls=True)
    return read.model_copy(update={"reasoning": reasoning or shorten(read.reasoning)})


def read_plan_with_uses(text: str) -> PlanReply:
    """The plan in what a model says beside calls that it asks for; it may say nothing, or plain words.

    Raises:
        MalformedReply: it has a plan that cannot be read.
    """
    reasoning, rest = without_reasoning(text)
    if rest is not None and _is_json(rest):
        return read_plan(text)
    message = reasoning if rest is None else f"{reasoning}\n{shorten(rest)}"
    return PlanReply(reasoning=shorten(message))


def read_arguments(given: Any) -> dict[str, Any]:
    """What a tool is given: an object, or the text of one; nothing where none is named.

    Raises:
        MalformedReply: it is neither.
    """
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        return read_reply(given, _ARGUMENTS)
    if not isinstance(given, dict):
        raise MalformedReply(NO_OBJECT)
    return given


def reads(text: str) -> bool:
    """Whether a text holds a plan."""
    try:
        read_plan(text)
    except MalformedReply:
        return False
    return True


def _is_json(text: str) -> bool:
    try:
        json_text(text)
    except (ValueError, RecursionError):
        return False
    return True


FORM = ReplyFormat(PROMPT, PlanReply, reads)
