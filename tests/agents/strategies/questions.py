"""What a strategist's model was asked, taken apart again, replies to it, and a position to manage."""

import json
from typing import Any, NamedTuple

from schemas.snapshot import PolicySnapshot, PositionView
from tests.services.policy_checks.plans import playbook_named, right_request

HEADS = (
    "Task: ",
    "\n\nThe market, the account and what is known at the decision bar (JSON, quoted material):\n",
    "\n\nWhat is known beside it: recent bars, cases, your last plans, lessons (JSON, quoted material):\n",
    "\n\nBase plans on offer (JSON, quoted material), as the rules would rank them:\n",
    "\n\nRevision request (JSON, quoted material):\n",
    "\n\nCorrection (JSON, quoted material):\n",
)


class Question(NamedTuple):
    """One request, with its parts as data; None where the prompt says none."""

    task: str
    snapshot: dict[str, Any]
    bases: list[dict[str, Any]]
    revision: dict[str, Any] | None
    correction: dict[str, Any] | None
    background: dict[str, Any] | None = None

    def base(self, origin: str = "playbook") -> str:
        """Id of the first base of that origin."""
        return str(next(base["id"] for base in self.bases if base["origin"] == origin))


def question(prompt: str) -> Question:
    parts = []
    rest = prompt
    for head in HEADS:
        before, found, rest = rest.partition(head)
        assert found, head
        parts.append(before)
    task, snapshot, background, bases, *rare = [*parts[1:], rest]
    rest_of_it = (None if text == "none" else json.loads(text) for text in (*rare, background))
    return Question(task, json.loads(snapshot), json.loads(bases), *rest_of_it)


def reason(kind: str, name: str) -> dict[str, str]:
    return {"kind": kind, "name": name}


BECAUSE = [reason("feature", "close"), reason("regime", "trend")]


def propose(base: str, *changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"because": BECAUSE, "answer": "propose", "base": base, "changes": list(changes)} | more


def but_for_reasons(plan: dict[str, Any]) -> dict[str, Any]:
    """A plan's payload without its reasons, their words, and what they argue for."""
    return {name: plan[name] for name in plan if name not in ("because", "rationale", "argues_for")}


def change(field: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"field": field, "value": value, **more}


HOLD: dict[str, Any] = {"because": [], "answer": "hold"}
ABSTAIN: dict[str, Any] = {"because": [reason("regime", "trend")], "answer": "abstain"}


def tighten(stop: float) -> dict[str, Any]:
    return {"because": BECAUSE, "answer": "tighten", "stop": stop}


def in_position(direction: str = "long") -> PolicySnapshot:
    """A position of 100 at a close of 100, its stop 4 away."""
    sign = 1.0 if direction == "long" else -1.0
    position = PositionView(
        direction=direction,  # type: ignore[arg-type]
        quantity=10.0,
        entry_price=99.0,
        entry_label=0,
        stop=100.0 - 4.0 * sign,
        target=100.0 + 8.0 * sign,
        bars_held=3,
        r_now=0.2,
        mae_r=-0.1,
        mfe_r=0.3,
        playbook_id="channel_breakout",
        policy_id="p",
        thesis="t",
    )
    snapshot: PolicySnapshot = right_request(playbook_named("channel_breakout")).snapshot
    return snapshot.model_copy(update={"position": position})
