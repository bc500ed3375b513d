"""Tools as they are sent to a model's API: `strict` where the schema can be closed, else open.

A strict tool holds the model to its arguments. The APIs take a part of JSON Schema for that: OpenAI wants
every argument named, with null for what is left out; Anthropic lets it be left out, and takes 20 strict tools
with 24 arguments that may be left out. What does not fit is sent open; each call is checked all the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.tool import Tools
from services.model_calls.reply_format import NULL, closed_schema

MOST_STRICT = 20
MOST_LEFT_OUT = 24


@dataclass(frozen=True)
class ToolFormat:
    """One tool of a request; `schema` is that of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]
    strict: bool


def tool_forms(tools: Tools, *, nulls: bool) -> list[ToolFormat]:
    """The tools as an API takes them.

    Args:
        tools: in the order in which they are sent.
        nulls: whether the API wants null for an argument that is left out, instead of nothing.
    """
    forms, strict, left_out = [], 0, 0
    for tool in tools:
        schema = tool.payload()["input_schema"]
        needed = set(schema.get("required", ()))
        optional = len(schema.get("properties", {})) - len(needed)
        fits = nulls or (strict < MOST_STRICT and left_out + optional <= MOST_LEFT_OUT)
        if fits and is_closed(schema):
            strict, left_out = strict + 1, left_out + optional
            forms.append(ToolFormat(tool.name, tool.description, _strict(schema, needed, nulls=nulls), True))
        else:
            forms.append(ToolFormat(tool.name, tool.description, schema, False))
    return forms


def is_closed(schema: Mapping[str, Any]) -> bool:
    """Whether arguments are an object without further fields, and of plain values alone."""
    fields = schema.get("properties", {})
    plain = isinstance(fields, Mapping) and all(_is_plain(field) for field in fields.values())
    return schema.get("type") == "object" and schema.get("additionalProperties") is False and plain


def _is_plain(field: Any) -> bool:
    """A value, a list of them, or one of several; no object and no reference."""
    if not isinstance(field, Mapping) or "$ref" in field:
        return False
    inner = [*field.get("anyOf", ()), *([field["items"]] if "items" in field else ())]
    named = bool(inner) or any(name in field for name in ("enum", "const", "type"))
    return named and field.get("type") != "object" and all(_is_plain(part) for part in inner)


def _strict(schema: dict[str, Any], needed: set[str], *, nulls: bool) -> dict[str, Any]:
    closed = closed_schema(schema)
    change = _or_null if nulls else _not_null
    fields = {
        name: field if name in needed else change(field) for name, field in closed["properties"].items()
    }
    required = [name for name in fields if nulls or name in needed]
    return closed | {"properties": fields, "required": required}


def _or_null(field: dict[str, Any]) -> dict[str, Any]:
    variants = field.get("anyOf", [field])
    return field if NULL in variants else {"anyOf": [*variants, NULL]}


def _not_null(field: dict[str, Any]) -> dict[str, Any]:
    variants = [variant for variant in field.get("anyOf", []) if variant != NULL]
    if len(variants) != 1:
        return field
    payload = {key: value for key, value in field.items() if key != "anyOf"}
    only: dict[str, Any] = variants[0]
    return payload | only
