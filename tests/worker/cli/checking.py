"""`thinktwice check` as tests start it, and a plan that passes without a finding, with other values."""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from worker.cli import app

DAY_NS, NOW = 86_400 * 10**9, 1_710_547_200 * 10**9  # NOW: when the bar of the plan was known
PLAN = Path(__file__).with_name("example_plan.json")
POSITION = {
    "direction": "long", "quantity": 1.0, "entry_price": 180.0,
    "entry_label": NOW - 4 * DAY_NS, "stop": 170.0, "target": 200.0,
    "bars_held": 3, "r_now": 0.5, "mae_r": -0.2, "mfe_r": 0.7,
    "playbook_id": "trend_pullback", "policy_id": "0" * 16, "thesis": "up",
}  # fmt: skip
HELD: dict[str, Any] = {
    "state": "HOLD_LOCK", "snapshot__state": "HOLD_LOCK", "snapshot__position": POSITION,
    "snapshot__risk__gross_exposure": 0.01, "invariants__gross_exposure": 0.01,
}  # fmt: skip


def run(*words: str, stdin: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(app, list(words), input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def example(*words: str) -> dict[str, Any]:
    result = run("check", "--example", *words)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@cache
def unedited() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PLAN.read_text("utf-8"))
    return found


def edited(**changes: Any) -> dict[str, Any]:
    """The plan with other values; `__` reaches into an object, a list takes a number."""
    request = copy.deepcopy(unedited())
    for path, value in changes.items():
        *way, last = (int(step) if step.isdigit() else step for step in path.split("__"))
        inner: Any = request
        for step in way:
            inner = inner[step]
        inner[last] = copy.deepcopy(value)
    return request


def checked(request: Any, *words: str) -> tuple[int, dict[str, Any]]:
    result = run("check", "-", "--json", *words, stdin=json.dumps(request))
    assert result.exit_code in (0, 3, 4, 5), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return result.exit_code, found


def complaint(stdin: str | bytes, *words: str) -> str:
    result = run("check", "-", *words, stdin=stdin)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.count("\n") == 1
    return result.stderr


def codes(document: dict[str, Any]) -> dict[str, list[str]]:
    return {
        check: [finding["code"] for finding in found]
        for check, found in document["findings"].items()
        if found
    }


def name_of(value: Any) -> str:
    if isinstance(value, set):
        return "-".join(sorted(value))[:40]
    return "-".join(value)[:40] if isinstance(value, dict) else str(value)[:20]
