"""The form in which a model writes claims: closed, with no name but those of the run."""

from typing import Any

import pytest
from pydantic import BaseModel

from schemas.claims import Section
from services.model_calls.reply_format import ReplyFormat


class SectionsReply(BaseModel):
    sections: tuple[Section, ...]


FORM = ReplyFormat("high_level_reflection", SectionsReply, lambda text: True)
NAMES = {"playbook": ("fade", "trend"), "symbol": ("AAPL",), "regime": ("up/mid",)}


def values(schema: dict[str, Any], field: str) -> list[Any]:
    """What the field of a subject may hold."""
    return [part.get("enum", part["type"]) for part in schema["$defs"]["Of"]["properties"][field]["anyOf"]]


@pytest.mark.parametrize(("field", "names"), NAMES.items())
def test_schema_of_a_run_takes_its_own_names_alone(field: str, names: tuple[str, ...]):
    assert values(FORM.naming(NAMES).schema, field) == [list(names), "null"]
    assert values(FORM.schema, field) == ["string", "null"]


def test_schema_keeps_other_fields_and_differs_by_names():
    named = FORM.naming(NAMES)
    assert (
        named.schema["$defs"]["Of"]["properties"]["direction"]
        == FORM.schema["$defs"]["Of"]["properties"]["direction"]
    )
    assert len({FORM.hash, named.hash, FORM.naming({"symbol": ("IBM",)}).hash}) == 3


def test_every_object_of_the_schema_is_closed():
    def objects(part: Any) -> list[dict[str, Any]]:
        if isinstance(part, list):
            return [found for item in part for found in objects(item)]
        own = [part] if isinstance(part, dict) and part.get("type") == "object" else []
        return own + [
            found for item in (part.values() if isinstance(part, dict) else ()) for found in objects(item)
        ]

    found = objects(FORM.naming(NAMES).schema)
    assert len(found) == 11
    assert all(
        item["additionalProperties"] is False and item["required"] == list(item["properties"])
        for item in found
    )
