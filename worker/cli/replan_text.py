"""What `thinktwice replan` and `thinktwice playbooks` print: verdicts, transitions and changes, in lines."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from worker.cli.console import print_line
from worker.pages.figures import shown_time

JUDGED = {
    "now": "",
    "before": " (judged before: a report is judged once)",
    "in the run": " (judged and applied in the run: nothing is applied again)",
}
TOLD_BY = {"run": "of the run", "worker": "of its worker", "on_demand": "on demand"}
TARGET = ("playbook_id", "regime", "direction", "parameter", "value")


def render(found: Mapping[str, Any]) -> None:
    """Print the outcome of a report."""
    for line in _lines(found):
        print_line(line)


def transition_lines(transitions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each transition, and one for each field that a new version changes."""
    for one in transitions:
        came = f" from version {one['from_version']}" if one["from_version"] != one["version"] else ""
        ends = "" if one["ends"] is None else f", ends {one['ends'][:16].replace('T', ' ')}"
        yield f"{one['playbook_id']} version {one['version']}{came}: {one['state']}{ends}"
        yield from (f"  {line}" for line in change_lines(one["changes"]))


def change_lines(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """`risk_fraction 0.005 -> 0.0025`."""
    for one in changes:
        yield f"{one['field']} {shown_value(one['from'])} -> {shown_value(one['to'])}"


def version_lines(title: str, versions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Versions with when they end."""
    if versions:
        yield f"{title}:"
    for one in versions:
        ends = "" if one["ends"] is None else f"  until {one['ends'][:16].replace('T', ' ')}"
        yield f"  {one['playbook_id']} version {one['version']}{ends}"


def written_lines(written: Mapping[str, Any] | None) -> Iterator[str]:
    """Where the files are, and what to do with them."""
    if written is not None:
        yield f"wrote {len(written['files'])} files to {written['folder']}"
        yield f'Next: set runtime.playbooks = "{written["folder"]}" to trade with them.'


def shown_value(value: Any) -> str:
    """A value as a reader writes it."""
    if isinstance(value, list):
        return f"[{', '.join(map(shown_value, value))}]"
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    verdict = found["verdict"]
    yield (
        f"report {found['report_id']} {TOLD_BY[found['source']]} {found['run_id']}, "
        f"known {shown_time(found['known_at'])}, recommends {found['recommended_action']}"
    )
    said = f"verdict {verdict['verdict_id']}: {verdict['decision']}, by {verdict['model']}"
    yield said + JUDGED[found["judged"]]
    if verdict["fallback"] is not None:
        yield f"  no model had a say: {verdict['fallback']}"
    yield f"  {verdict['reason']}"
    for one in found["actions"]:
        yield from _action(one)
    for one in found["refused"]:
        yield f"refused {_named(one['action'])}: {one['code']}, {one['reason']}"
    yield from version_lines("active", found["active"])
    yield from version_lines("on trial", found["on_trial"])
    yield from written_lines(found["written"])


def _action(one: Mapping[str, Any]) -> Iterator[str]:
    done = "action" if one["carried_out"] else "not carried out"
    yield f"{done} {_named(one['action'])}: {one['action']['reason']}"
    for line in transition_lines(one["transitions"]):
        yield f"  {line}"
    if one["boundaries"]:
        yield f"  retires the policies of {', '.join(one['boundaries'])}, a boundary at their next close"


def _named(action: Mapping[str, Any]) -> str:
    parts = [shown_value(action[name]) for name in TARGET if name in action]
    return " ".join([action["kind"], *parts])
