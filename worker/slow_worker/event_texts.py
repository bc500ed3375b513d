"""Events of the slow loop as lines for a reader."""

from collections.abc import Callable
from typing import Any

from services.model_calls.quoting import count_noun
from worker.pages.figures import shown_time


def describe_event(name: str, fields: dict[str, Any]) -> str:
    """An event as a line for a reader."""
    text = TEXTS.get(name)
    if text is not None:
        return text(fields)
    return f"{name.replace('_', ' ')}  {' '.join(f'{key}={value}' for key, value in fields.items())}".rstrip()


def _describe_skipped(fields: dict[str, Any]) -> str:
    count = f"{fields['counted']} of {fields['needed']} new episodes"
    later = "" if fields["next_eligible"] is None else f", next {shown_time(fields['next_eligible'])}"
    return f"slot {shown_time(fields['slot'])} skipped: {fields['reason']} ({count}{later})"


def _describe_claimed(fields: dict[str, Any]) -> str:
    count = f"{count_noun(fields['episodes'], 'episode')}, {fields['new_episodes']} new"
    return f"slot {shown_time(fields['slot'])} is due ({fields['trigger']}): {count}"


def _describe_resumed(fields: dict[str, Any]) -> str:
    return f"slot {shown_time(fields['slot'])} was left behind by {fields['left_by']}: finishing it"


def _describe_failed(fields: dict[str, Any]) -> str:
    return f"slot {shown_time(fields['slot'])} failed: {fields['reason']}"


def _describe_written(fields: dict[str, Any]) -> str:
    short = ", sample insufficient" if fields["insufficient_sample"] else ""
    episodes = count_noun(fields["episodes"], "episode")
    return (
        f"slot {shown_time(fields['slot'])} reported: {fields['report_id']} over {episodes} "
        f"recommends {fields['recommended_action']}{short}"
    )


def _describe_delivered(fields: dict[str, Any]) -> str:
    refused = f", refused {', '.join(fields['refused'])}" if "refused" in fields else ""
    actions = f"{fields['actions']} action{'' if fields['actions'] == 1 else 's'}"
    return f"report {fields['report_id']} judged: {fields['decision']}, {actions}{refused}"


def _describe_nothing(fields: dict[str, Any]) -> str:
    decided = fields["newest_decided"]
    last = "no slot is decided yet" if decided is None else f"decided up to {shown_time(decided)}"
    return f"nothing is due: {last}, the next slot is {shown_time(fields['next_slot'])}"


# The events that are results, as a reader has them.
TEXTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "slot_skipped": _describe_skipped,
    "slot_claimed": _describe_claimed,
    "slot_resumed": _describe_resumed,
    "slot_failed": _describe_failed,
    "report_written": _describe_written,
    "report_delivered": _describe_delivered,
    "nothing_due": _describe_nothing,
}
