"""The tools as a planner is told them: short, in one order, and bounded whatever a server sends.

A description is cut, and of a parameter's schema what a caller needs stays. Names are those of the hosts, or,
for a provider's own calling of tools, names that its API takes.
"""

import logging
import re
from collections.abc import Iterator
from typing import Any

from agents.planning.call_check import Offered
from schemas.settings.planner import OWN
from schemas.tool import ToolDefinition
from services.model_calls.quoting import quoted_json, visible

LOG = logging.getLogger("thinktwice.tools")
LONGEST_DESCRIPTION = 100
LONGEST_LISTING = 60_000
LONGEST_NAME = 64
DEEPEST = 4
NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
SHOWN = (
    "type",
    "enum",
    "const",
    "default",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "format",
)


def tool_listing(tools: Offered) -> list[dict[str, Any]]:
    """Client, method, description, parameters and required ones of every tool: our own first, then by name.

    What would make the listing longer than a prompt should be is left out, with a warning.
    """
    listing, left_out, length = [], [], 0
    for client, tool in _in_order(tools):
        row = _row(client, tool)
        length += len(quoted_json(row))
        if length > LONGEST_LISTING:
            length -= len(quoted_json(row))
            left_out.append(f"{client}.{tool.name}")
        else:
            listing.append(row)
    if left_out:
        LOG.warning("tools_left_out_of_a_plan", extra={"tools": left_out})
    return listing


def tools_to_call(tools: Offered) -> dict[str, tuple[str, str, ToolDefinition]]:
    """Client, method and the definition that is sent, by the name that it is sent under."""
    listed = {(row["client"], row["method"]) for row in tool_listing(tools)}
    found: dict[str, tuple[str, str, ToolDefinition]] = {}
    for client, tool in _in_order(tools):
        if (client, tool.name) not in listed:
            continue
        plain = NOT_IN_A_NAME.sub("_", f"{client}__{tool.name}")[:LONGEST_NAME]
        name, number = plain, 1
        while name in found:
            number += 1
            name = f"{plain[: LONGEST_NAME - 4]}_{number}"
        sent = tool.model_copy(update={"name": name, "description": brief(tool.description)})
        found[name] = (client, tool.name, sent)
    return found


def brief(description: str) -> str:
    """A description on one line, cut; it is another's text, so what cannot be seen is escaped."""
    return visible(" ".join(description.split()))[:LONGEST_DESCRIPTION]


def _in_order(tools: Offered) -> Iterator[tuple[str, ToolDefinition]]:
    for client in sorted(tools, key=lambda name: (name != OWN, name)):
        for tool in sorted(tools[client], key=lambda item: item.name):
            yield client, tool


def _row(client: str, tool: ToolDefinition) -> dict[str, Any]:
    schema = tool.payload()["input_schema"]
    parameters, required = schema.get("properties"), schema.get("required")
    definitions = schema.get("$defs")
    known = definitions if isinstance(definitions, dict) else {}
    return {
        "client": client,
        "method": tool.name,
        "description": brief(tool.description),
        "parameters": {
            str(name): _summary(part, known)
            for name, part in (parameters.items() if isinstance(parameters, dict) else ())
        },
        "required": [str(name) for name in required] if isinstance(required, list) else [],
    }


def _summary(schema: Any, definitions: dict[str, Any], depth: int = 0) -> dict[str, Any]:
    """What a caller needs to know of one parameter."""
    if not isinstance(schema, dict) or depth == DEEPEST:
        return {}
    if "$ref" in schema:
        return _summary(definitions.get(str(schema["$ref"]).rpartition("/")[2]), definitions, depth + 1)
    payload = {name: schema[name] for name in SHOWN if schema.get(name) is not None}
    if isinstance(schema.get("description"), str):
        payload["description"] = brief(schema["description"])
    if isinstance(schema.get("items"), dict):
        payload["items"] = _summary(schema["items"], definitions, depth + 1)
    if isinstance(schema.get("properties"), dict):
        payload["properties"] = {
            str(name): _summary(part, definitions, depth + 1) for name, part in schema["properties"].items()
        }
    variants = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(variants, list):
        kinds = [_summary(part, definitions, depth + 1) for part in variants if part != {"type": "null"}]
        return payload | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds})
    return payload
