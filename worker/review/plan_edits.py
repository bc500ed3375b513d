"""What a person edits of a plan: assignments as they are typed, or a plan as it was printed and changed."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError
from services.model_calls.quoting import visible
from services.plans.editing import StepEdit

if TYPE_CHECKING:
    from services.store.plan_records import StoredPlan

ASSIGNMENT = re.compile(r"steps\.(?P<number>\d{1,3})\.(?P<field>[a-z_]{1,40})=(?P<value>.{0,100})", re.ASCII)
LARGEST = 1_000_000


def typed_edit(text: str) -> StepEdit:
    """`steps.N.FIELD=VALUE`.

    Raises:
        ConfigError: it is none.
    """
    found = ASSIGNMENT.fullmatch(text)
    if found is None or visible(text) != text:
        raise ConfigError(
            f"--set {text!r}: write it like steps.1.value=0.0025, the number as `plans show` has it"
        )
    return StepEdit(int(found["number"]), found["field"], found["value"].strip())


def edits_of_file(
    path: Path, stored: "StoredPlan", shown: Mapping[str, Any]
) -> tuple[list[StepEdit], list[int]]:
    """Edits, and numbers of the steps that are left out, of a plan that `plans show --json` printed.

    Args:
        path: the file.
        stored: the plan as it stands.
        shown: its document.

    Raises:
        ConfigError: it cannot be read, is of another revision, or changes what is no step.
    """
    told = _read(path)
    if told.get("hash") != stored.record.hash:
        raise ConfigError(
            f"--file {str(path)!r} is not of revision {stored.record.revision}: write it anew with "
            f"`thinktwice plans show {stored.record.plan_id} --json`"
        )
    others = sorted(name for name in {*told, *shown} - {"steps"} if told.get(name) != shown.get(name))
    if others:
        raise ConfigError(f"--file {str(path)!r} changes {', '.join(others)}: only steps can be edited")
    given = {step.get("number"): step for step in told["steps"]}
    before = {step["number"]: step for step in shown["steps"]}
    strange = [number for number in given if number not in before]
    if strange or len(given) != len(told["steps"]):
        raise ConfigError(
            f"--file {str(path)!r} has steps that the plan has not: other actions are another plan"
        )
    edits = [edit for number, step in given.items() for edit in _edits(number, before[number], step)]
    return edits, [number for number in before if number not in given]


def _edits(number: int, before: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[StepEdit]:
    old, new = dict(before) | dict(before["action"]), dict(given) | dict(given.get("action") or {})
    for name in sorted({*old, *new} - {"action"}):
        if old.get(name) != new.get(name):
            value = new.get(name)
            yield StepEdit(number, name, json.dumps(value) if not isinstance(value, str) else value)


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST:
            raise ConfigError(f"--file {str(path)!r} is larger than any plan")
        told = json.loads(path.read_text("utf-8"))
        if not all(isinstance(step, dict) for step in told["steps"]):
            raise TypeError("steps")
    except OSError as error:
        raise ConfigError(f"--file {str(path)!r} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ConfigError(
            f"--file {str(path)!r} holds no plan: give what `plans show --json` prints"
        ) from error
    return dict(told)
