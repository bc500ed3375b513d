"""Sentences on playbooks: which version is in force, what it does, and what was changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.answering.statements import Part, Reply, Statement, day_of, join_words, quote_line, r_of, share_of
from agents.planning.row_questions import DOES, MANY, STATUS
from schemas.fact_check import FactRow
from services.model_calls.quoting import count_noun

RULES = ("setup", "activation", "entry", "refinement", "stop", "trail", "target", "invalidation")
# What becomes of an open position at an advance, by the terms that say so.
MANAGED: Mapping[tuple[str, ...], str] = {
    ("scale_out_share", "scale_out_r"): "a share of {:g} is closed at {:g}R",
    ("break_even_r",): "the stop moves to the entry price at {:g}R",
}
MOST_VERSIONS = 4
MOST_CHANGES = 4


def of_playbooks(reply: Reply) -> Iterator[Statement]:
    """Versions with their states and changes; of one playbook what its version in force does, too."""
    versions, rows = reply.content["versions"], _rows(reply)
    named = reply.params.get("playbook_id")
    yield from _status(reply, versions, rows)
    if not versions:
        yield reply.absent(f"a version of {named or 'any playbook'}")
    shown = (
        [version for version in versions if named is None or version["state"] == "active"][-1:]
        if named
        else []
    )
    rest = [version for version in versions if version not in shown]
    for version in shown:
        yield from _stands_and_does(reply, version, rows[versions.index(version)])
        yield from _tell_change(reply, version, rows[versions.index(version)])
    kept = rest[-MOST_VERSIONS:] if named else [version for version in rest if version["state"] == "active"]
    for version in kept:
        yield _stands(reply, version, rows[versions.index(version)])
        yield from _tell_change(reply, version, rows[versions.index(version)])


def _status(reply: Reply, versions: Sequence[Mapping[str, Any]], rows: Any) -> Iterator[Statement]:
    """How many there are, and what is banned or not in force, where that is asked for."""
    question = reply.question.casefold()
    if MANY.search(question) and reply.params.get("playbook_id") is None:
        books = len({version["playbook_id"] for version in versions})
        yield replace(
            reply.tell_known(f"The run has {count_noun(books, 'playbook')}.", Part.WHAT), rows=reply.rows
        )
    asked = STATUS.search(question)
    if asked is None:
        return
    named = reply.params.get("playbook_id")
    active = [
        (version, row) for version, row in zip(versions, rows, strict=True) if version["state"] == "active"
    ]
    banned = [(version, row) for version, row in active if version["banned"]]
    for version, row in banned:
        yield reply.tell(
            f"{version['playbook_id']} is banned in {join_words(version['banned'])}.", Part.WHAT, row
        )
        yield reply.tell(
            f"Its reason is {quote_line(version['transitions'][-1]['reason'])}.", Part.REASON, row
        )
    ever = any(version["ever_banned"] for version in versions)
    whose = named or "any playbook"
    if not banned and "ban" in asked[0]:
        told = "is banned now" if ever else "was ever banned"
        yield reply.tell(f"No version of {whose} {told} as of {reply.day}.", Part.WHAT)
    if named is not None and "ban" not in asked[0]:
        stands, in_force = "is" if active else "is not", [row for _, row in active]
        yield reply.tell(f"{named} {stands} in force as of {reply.day}.", Part.WHAT, *in_force)


def _rows(reply: Reply) -> list[Mapping[str, Any]]:
    """The row of the newest transition of each version; rows lie version by version."""
    rows, found, at = reply.content["rows"], [], 0
    for version in reply.content["versions"]:
        at += len(version["transitions"])
        found.append(rows[min(at, len(rows)) - 1])
    return found


def _stands(reply: Reply, one: Mapping[str, Any], row: Mapping[str, Any]) -> Statement:
    name = f"Version {one['version']} of {one['playbook_id']}"
    if one["state"] == "active":
        part = Part.WHAT if reply.alone else Part.NEXT
        return Statement(f"{name} became active on {day_of(one['since'])}.", _row(row), part)
    return reply.tell(f"{name} is {one['state']} since {day_of(one['since'])}.", Part.NEXT, row)


def _row(row: Mapping[str, Any]) -> tuple[FactRow, ...]:
    return (FactRow.model_validate(row),)


def _stands_and_does(reply: Reply, one: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Statement]:
    yield _stands(reply, one, row)
    definition = one.get("definition")
    if definition is None or not reply.alone:
        return
    name = one["playbook_id"]
    yield reply.tell(
        f"{name} is {quote_line(definition['description'] or definition['title'])}.", Part.WHAT, row
    )
    values = [f"{key} {item['value']:g}" for key, item in definition["parameters"].items()]
    if values:
        yield reply.tell(f"Parameters of {name}: {', '.join(values)}.", Part.AMOUNT, row)
    risk = f"{100 * definition['risk_fraction']:.2f} % of equity"
    bars = definition["horizon_bars"]
    yield reply.tell(f"It risks {risk} on a trade and holds for {bars} bars at most.", Part.AMOUNT, row)
    managed = [
        words.format(*map(definition.get, names))
        for names, words in MANAGED.items()
        if definition[names[0]] is not None
    ]
    if managed:
        yield reply.tell(f"Of an open position of {name}, {join_words(managed)}.", Part.AMOUNT, row)
    if DOES.search(reply.question.casefold()):
        yield _tell_expected(reply, name, definition["expectation"], row)
    for side, rules in definition["rules"].items():
        said = [f"{rule} `{rules[rule]}`" for rule in RULES if rules and rules.get(rule)]
        if said:
            yield reply.tell(f"Its {side} rules: {', '.join(said)}.", Part.REASON, row)


def _tell_expected(reply: Reply, name: str, expected: Mapping[str, Any], row: Mapping[str, Any]) -> Statement:
    """What is expected of its trades."""
    return reply.tell(
        f"Of {name} is expected: {share_of(expected['hit_rate'])} of trades won, "
        f"{r_of(expected['expectancy_r'])} a trade, a target of {r_of(expected['target_r'])}, "
        f"held for {expected['hold_p50_bars']:g} bars at the median.",
        Part.AMOUNT,
        row,
    )


def _tell_change(reply: Reply, one: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Statement]:
    told = [f"{change['field']} from {change['from']} to {change['to']}" for change in one["changes"]]
    if told:
        what = quote_line(", ".join(told[:MOST_CHANGES]))
        yield reply.tell(f"Version {one['version']} changed {what}.", Part.NEXT, row)
