"""`thinktwice schema`: every contract has a JSON schema, and the example of `check` keeps to its own."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from schemas.contract_listing import contract_named, contracts, schema_of
from tests.each_case import check_each
from tests.worker.cli.checking import run, unedited

ROOT = Path(__file__).resolve().parents[3]
KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$") -> list[str]:
    """Where a value breaks a schema; for the keywords that our schemas use."""
    if "$ref" in schema:
        return faults(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
    if "anyOf" in schema:
        each = [faults(value, item, root, at) for item in schema["anyOf"]]
        return [] if [] in each else [fault for entry in each for fault in entry]
    kind = schema.get("type")
    if kind is not None and (
        not isinstance(value, KINDS[kind]) or isinstance(value, bool) != (kind == "boolean")
    ):
        return [f"{at} is no {kind}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{at} is not one of {schema['enum']}"]
    if isinstance(value, list):
        inner = schema.get("items", {})
        return [fault for i, item in enumerate(value) for fault in faults(item, inner, root, f"{at}[{i}]")]
    if not isinstance(value, dict):
        return []
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    found = [f"{at}.{name} is missing" for name in schema.get("required", []) if name not in value]
    found += [f"{at}.{name} is unknown" for name in value if name not in known and others is False]
    for name, item in value.items():
        found += faults(
            item, known.get(name, others if isinstance(others, dict) else {}), root, f"{at}.{name}"
        )
    return found


def printed(name: str) -> dict[str, Any]:
    result = run("schema", name)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_schema_names_every_contract_that_the_sources_define():
    sources = "\n".join(path.read_text("utf-8") for path in (ROOT / "schemas").rglob("*.py"))
    families = ("Contract", "OrderTerms", "ModelLimits", "TrialCounts", "PlaybookDefinition")
    defined = {
        name for name, base in re.findall(r"^class (\w+)\((\w+)\):", sources, re.M) if base in families
    }
    assert len(defined) > 50
    assert set(contracts()) == defined


@check_each("name", sorted(contracts()))
def test_schema_of_every_contract_lists_its_fields_and_refuses_others(name):
    schema = schema_of(contract_named(name))
    fields = contract_named(name).model_fields.items()
    assert set(schema["properties"]) == {field.alias or attribute for attribute, field in fields}
    assert schema["additionalProperties"] is False


def test_schema_example_of_check_keeps_to_the_schema_and_a_spoiled_one_does_not():
    schema = printed("PolicyLevelReflectionRequest")
    request = unedited()
    assert faults(request, schema, schema) == []
    spoiled = json.loads(json.dumps(request))
    del spoiled["proposal"]["stop"]
    spoiled["proposal"]["convicton"] = 0.4
    spoiled["snapshot"]["state"] = "IDEL"
    spoiled["memory"]["winners"][0]["r"] = "1.0"
    assert len(faults(spoiled, schema, schema)) >= 4


def test_schema_without_a_name_lists_one_contract_a_line():
    lines = run("schema").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(contracts())
    assert all(len(line.split()) > 2 for line in lines)


def test_schema_list_as_json_says_where_each_is_defined():
    listing = json.loads(run("schema", "--json").stdout)
    assert [entry["name"] for entry in listing] == list(contracts())
    assert all(item["summary"] for item in listing)
    assert {"name", "module", "summary"} == set(listing[0])
    assert {item["module"] for item in listing} >= {
        "schemas.reflection",
        "schemas.slow_reflection",
        "schemas.proposal",
        "schemas.judge",
    }


@pytest.mark.parametrize("name", ["PolicyPropsal", "policyproposal"])
def test_schema_unknown_name_is_refused_with_the_nearest(name):
    result = run("schema", name)
    assert (result.exit_code, result.stdout) == (2, "")
    guess = "Did you mean 'PolicyProposal'?"
    assert result.stderr == f"thinktwice: no contract {name!r}. {guess} `thinktwice schema` lists them all\n"
