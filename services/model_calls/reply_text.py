"""What every closed reply of a model has in common before its own contract is asked."""

import json
import re
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from services.model_calls.quoting import visible

LONGEST_REPLY = 20_000
SHOWN = 80  # characters of a model's own words in a reason
SEEN = 200
THOUGHTS = ("<think>", "</think>")  # around them, where a server does not take them out of the answer
FENCE, OPENING = "```", re.compile(r"```[A-Za-z0-9_-]{0,20}[ \t]*\r?")
NO_OBJECT = "the reply is not one JSON object and nothing else"

Reply = TypeVar("Reply")


class KeyFault(ValueError):
    """A key that stands twice in one object."""


class MalformedReply(ValueError):
    """A reply that its contract does not take.

    Attributes:
        plain: why, without a word of the reply; the reason may quote it. None of it is stored but this.
        extra: fields that it brings of its own.
    """

    def __init__(self, reason: str, plain: str = NO_OBJECT, extra: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.plain = plain
        self.extra = extra

    @classmethod
    def in_our_words(cls, reason: str) -> "MalformedReply":
        """One whose reason holds no word of the reply."""
        return cls(reason, reason)


def read_reply(
    text: str, contract: TypeAdapter[Reply], *, longest: int = LONGEST_REPLY, without_nulls: bool = False
) -> Reply:
    """The closed reply in a model's text.

    Args:
        text: what the model said.
        contract: of the reply.
        longest: characters that are read at most.
        without_nulls: leave out fields that say nothing, where a form has those of several answers.

    Raises:
        MalformedReply: there is none; the reason is in words of ours.
    """
    if (size := len(strip_thoughts(text))) > longest:
        raise MalformedReply.in_our_words(f"{size} characters, more than {longest}")
    try:
        inside = json_text(text)
        return contract.validate_json(_without_nulls(inside) if without_nulls else inside)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        extra = [".".join(map(str, item["loc"])) for item in problems if item["type"] == "extra_forbidden"]
        first = problems[0]
        named = first["loc"][0] if first["loc"] and first["type"] != "extra_forbidden" else "reply"
        plain = f"{named}: {first['type'].replace('_', ' ')}"
        raise MalformedReply(first_problem(error), plain, tuple(sorted(extra))) from error
    except RecursionError as error:
        raise MalformedReply.in_our_words("nested too deeply") from error
    except KeyFault as error:
        raise MalformedReply(str(error), "a key stands twice") from error
    except ValueError as error:
        raise MalformedReply(str(error)) from error


def is_read(text: str, contract: TypeAdapter[Any], **how: Any) -> bool:
    """Whether a text holds a reply that the contract takes; `how` as in `read_reply`."""
    try:
        read_reply(text, contract, **how)
    except MalformedReply:
        return False
    return True


def _without_nulls(text: str) -> str:
    document = json.loads(text)
    if not isinstance(document, dict) or None not in document.values():
        return text
    return json.dumps({name: value for name, value in document.items() if value is not None})


def strip_thoughts(text: str) -> str:
    """The text without the one block of thoughts that it begins with; any other text as it is.

    Templates that open the block themselves leave its closing tag alone in the reply.
    """
    opening, closing = THOUGHTS
    thoughts, closed, answer = text.lstrip().partition(closing)
    is_open = thoughts.startswith(opening) or not (opening in thoughts or thoughts.startswith(("{", FENCE)))
    return answer.lstrip() if closed and is_open else text


def strip_fence(text: str) -> str:
    """The text without the one code fence around it; any other text as it is."""
    opening, line, rest = text.strip().partition("\n")
    if not line or not rest.endswith(FENCE) or OPENING.fullmatch(opening) is None:
        return text
    inside = rest.removesuffix(FENCE).rstrip(" \t").removesuffix("\n").removesuffix("\r")
    return text if FENCE in inside else inside


def quote_beginning(text: str, most: int = SEEN) -> str:
    """The beginning of a text between quotes, with everything that cannot be seen escaped."""
    return f"'{visible(text[:most])}'{'...' if len(text) > most else ''}"


def json_text(text: str) -> str:
    """The one JSON document in a reply, ready for its contract.

    Raises:
        ValueError: it is no JSON, or a key stands twice in it; the reason is in words of ours.
        RecursionError: it is nested too deeply.
    """
    inside = strip_fence(strip_thoughts(text))
    try:
        json.loads(inside, object_pairs_hook=object_without_repeats)
    except json.JSONDecodeError:
        raise ValueError(f"{NO_OBJECT}: {len(text)} characters, beginning {quote_beginning(text)}") from None
    return inside


def object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An `object_pairs_hook` of `json.loads`: a key that stands twice would hide one of its values.

    Raises:
        KeyFault: a key stands twice.
    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise KeyFault(f"the key {key[:SHOWN]!r} stands twice")
        found[key] = value
    return found


def first_problem(error: ValidationError) -> str:
    """Place and type of the first problem, in words of ours.

    It goes into hashed rows and into the next prompt, and other versions of a library word theirs anew.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part)[:SHOWN] for part in first["loc"]) or "reply"
    if first["type"] == "value_error":
        return f"{place}: {str(first['ctx']['error'])[: 3 * SHOWN]}"
    limits = sorted(first.get("ctx", {}).items())
    text = ", ".join(f"{name} {str(value)[:SHOWN]}" for name, value in limits if name != "error")
    return f"{place}: {first['type'].replace('_', ' ')}{f' ({text})' if text else ''}"
