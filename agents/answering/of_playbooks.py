"""Sentences on playbooks: which version is in force, what it does, and what was changed."""

from collections.abc import Iterator, Mapping
from typing import Any

from agents.answering.statements import Part, Reply, Statement, day_of, quoted
from schemas.fact_check import FactRow

RULES = ("setup", "activation", "entry", "stop", "target", "invalidation")
MOST_VERSIONS = 4
MOST_CHANGES = 4


def of_playbooks(reply: Reply) -> Iterator[Statement]:
    """Versions with their states and changes; of one playbook what its version in force does, too."""
    versions, rows = reply.content["versions"], _rows(reply)
    named = reply.params.get("playbook_id")
    if not versions:
        yield reply.absent(f"a version of {named or 'any playbook'}")
    shown = [one for one in versions if named is None or one["state"] == "active"][-1:] if named else []
    rest = [one for one in versions if one not in shown]
    for one in shown:
        yield from _stands_and_does(reply, one, rows[versions.index(one)])
        yield from _changed(reply, one, rows[versions.index(one)])
    kept = rest[-MOST_VERSIONS:] if named else [one for one in rest if one["state"] == "active"]
    for one in kept:
        yield _stands(reply, one, rows[versions.index(one)])
        yield from _changed(reply, one, rows[versions.index(one)])


def _rows(reply: Reply) -> list[Mapping[str, Any]]:
    """The row of the newest transition of each version; rows lie version by version."""
    rows, found, at = reply.content["rows"], [], 0
    for one in reply.content["versions"]:
        at += len(one["transitions"])
        found.append(rows[min(at, len(rows)) - 1])
    return found


def _stands(reply: Reply, one: Mapping[str, Any], row: Mapping[str, Any]) -> Statement:
    name = f"Version {one['version']} of {one['playbook_id']}"
    if one["state"] == "active":
        part = Part.WHAT if reply.alone else Part.NEXT
        return Statement(f"{name} became active on {day_of(one['since'])}.", _row(row), part)
    return reply.told(f"{name} is {one['state']} since {day_of(one['since'])}.", Part.NEXT, row)


def _row(row: Mapping[str, Any]) -> tuple[FactRow, ...]:
    return (FactRow.model_validate(row),)


def _stands_and_does(reply: Reply, one: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Statement]:
    yield _stands(reply, one, row)
    definition = one.get("definition")
    if definition is None or not reply.alone:
        return
    name = one["playbook_id"]
    yield reply.told(f"{name} is {quoted(definition['description'] or definition['title'])}.", Part.WHAT, row)
    values = [f"{key} {item['value']:g}" for key, item in definition["parameters"].items()]
    if values:
        yield reply.told(f"Parameters of {name}: {', '.join(values)}.", Part.AMOUNT, row)
    risk = f"{100 * definition['risk_fraction']:.2f} % of equity"
    bars = definition["horizon_bars"]
    yield reply.told(f"It risks {risk} on a trade and holds for {bars} bars at most.", Part.AMOUNT, row)
    for side, rules in definition["rules"].items():
        said = [f"{rule} `{rules[rule]}`" for rule in RULES if rules and rules.get(rule)]
        if said:
            yield reply.told(f"Its {side} rules: {', '.join(said)}.", Part.REASON, row)


def _changed(reply: Reply, one: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Statement]:
    told = [f"{change['field']} from {change['from']} to {change['to']}" for change in one["changes"]]
    if told:
        what = quoted(", ".join(told[:MOST_CHANGES]))
        yield reply.told(f"Version {one['version']} changed {what}.", Part.NEXT, row)
