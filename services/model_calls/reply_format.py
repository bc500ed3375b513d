"""The form of a reply: the closed schema that an API may hold a model to, and what reads the reply for use.

The schema is the contract in the part of JSON Schema that the APIs take: closed objects with every field
required, no bounds of numbers, texts and lists, and one object at the root, so a union becomes an object
whose further fields may be null. Fields that name a part of a run take that run's own names. The contract
itself is asked afterwards all the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from schemas.canonical import content_hash

KEPT = ("type", "enum", "const", "$ref", "description")
NULL = {"type": "null"}


class ClosedReply(BaseModel):
    """The wire model of a reply, or a part of one; its validator is built when the first reply is read."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


@dataclass(frozen=True)
class DecisionField:
    """Marks a field of a reply that decides; a model writes in order, so those of `after` stand before it."""

    after: tuple[str, ...]


@dataclass(frozen=True)
class ReplyFormat:
    """Form of the replies to one prompt.

    Attributes:
        name: of the prompt.
        contract: what a reply is validated against.
        reads: whether a reply's text can be used.
        names: of a run, by the field that takes them; none: any name can be written.
    """

    name: str
    contract: Any
    reads: Callable[[str], bool]
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def naming(self, names: Mapping[str, tuple[str, ...]]) -> "ReplyFormat":
        """The same form for one run: no other name can be written in these fields."""
        return replace(self, names=tuple(sorted(names.items())))

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The schema as it is sent; the caller changes nothing in it."""
        schema: dict[str, Any] = _with_names(
            closed_schema(TypeAdapter(self.contract).json_schema()), dict(self.names)
        )
        return schema

    @cached_property
    def hash(self) -> str:
        """Of the schema."""
        return content_hash(self.schema)


def closed_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema in the part of it that the APIs take."""
    definitions = schema.get("$defs", {})
    variants = schema.get("oneOf") or schema.get("anyOf")
    root = {key: value for key, value in schema.items() if key != "$defs"}
    if variants:
        root = _one_object([_resolve(variant, definitions) for variant in variants])
    closed = _close(root)
    used = _find_references(closed, definitions)
    return closed | ({"$defs": {name: _close(definitions[name]) for name in used}} if used else {})


def _with_names(schema: Any, names: Mapping[str, tuple[str, ...]]) -> Any:
    """A closed schema in which the fields of these names take these values alone, or null where they may."""
    if isinstance(schema, list):
        return [_with_names(part, names) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _with_names(part, names) for key, part in schema.items()}
    fields = made.get("properties", {})
    for name in names.keys() & fields.keys():
        fields[name] = _take_names(fields[name], names[name])
    return made


def _take_names(field: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    if field.get("type") == "string":
        return field | {"enum": list(names)}
    return (
        field | {"anyOf": [_take_names(variant, names) for variant in field["anyOf"]]}
        if "anyOf" in field
        else field
    )


def _one_object(variants: list[dict[str, Any]]) -> dict[str, Any]:
    """One object with the fields of all variants; what some of them lack may be null."""
    found: dict[str, list[dict[str, Any]]] = {}
    for variant in variants:
        for name, field in variant["properties"].items():
            found.setdefault(name, []).append(field)
    fields = {}
    for name, given in found.items():
        if all("const" in field for field in given):
            fields[name] = {"type": "string", "enum": [field["const"] for field in given]}
            continue
        fields[name] = given[0] if len(given) == len(variants) else {"anyOf": [given[0], NULL]}
    return {"type": "object", "properties": fields}


def _close(schema: dict[str, Any]) -> dict[str, Any]:
    closed = {key: schema[key] for key in KEPT if key in schema}
    if isinstance(closed.get("const"), str):
        closed["type"] = "string"
    variants = schema.get("anyOf") or schema.get("oneOf")
    if variants:
        closed["anyOf"] = [_close(variant) for variant in variants]
    if "items" in schema:
        closed["items"] = _close(schema["items"])
    if schema.get("type") == "object":
        fields = {name: _close(field) for name, field in schema.get("properties", {}).items()}
        closed |= {"properties": fields, "required": list(fields), "additionalProperties": False}
    return closed


def _resolve(variant: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = definitions[variant["$ref"].rpartition("/")[2]] if "$ref" in variant else variant
    return found


def _find_references(schema: Any, definitions: dict[str, Any]) -> list[str]:
    """Names of the definitions that a schema needs, those that they need themselves with them."""
    found: list[str] = []

    def visit(part: Any) -> None:
        if isinstance(part, dict):
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found.append(name)
                visit(_close(definitions[name]))
            for inner in part.values():
                visit(inner)
        elif isinstance(part, list):
            for inner in part:
                visit(inner)

    visit(schema)
    return sorted(found)
