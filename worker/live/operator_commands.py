"""What an operator's request does to a desk: between two rows, journalled, and the same in a replay."""

from typing import Any

from schemas.errors import ThinktwiceError
from worker.live.stepper import LiveStepper


async def carry_out(desk: LiveStepper, command: dict[str, Any]) -> dict[str, Any]:
    """Journal a command and do it.

    Args:
        desk: a desk that has begun.
        command: {number, kind, payload} as the store holds it.

    Returns:
        {outcome: done | refused, ...} with what came of it, for the one who asked.
    """
    session = desk.session
    now = session.clock.now
    desk.journal.append("operator_command", ts_event=now, known_at=now, payload=command)
    kind, payload = command["kind"], command["payload"]
    if kind == "kill_switch":
        session.engine.set_kill_switch(payload["on"])
        return {"outcome": "done", "kill_switch": payload["on"]}
    if kind == "rollback":
        return _rolled_back(desk, payload["playbook_id"])
    if kind == "replan":
        return await _replanned(desk)
    return {"outcome": "done"}


async def _replanned(desk: LiveStepper) -> dict[str, Any]:
    """Reflect and ask the judge out of turn; where a model would keep the bars waiting, that is refused."""
    settings = desk.settings
    asks_models = settings.reflection.mode == "full" or settings.judge.replan != "rules"
    if asks_models and not desk.lock_step:
        return _refused("models judge this run beside its bars: it is replanned on its worker's reports")
    session = desk.session
    verdict = await session.slow_loop.replan_now(session.engine.t - 1)
    if verdict is None:
        return _refused("the slow loop of this run is off (high_level.enabled)")
    return {
        "outcome": "done",
        "report_id": verdict.report_id,
        "verdict_id": verdict.content_hash[:16],
        "decision": str(verdict.decision),
        "actions": [str(action.kind) for action in verdict.actions],
        "refused": [refusal.code for refusal in verdict.refused],
    }


def _refused(reason: str) -> dict[str, Any]:
    return {"outcome": "refused", "reason": reason}


def _rolled_back(desk: LiveStepper, playbook_id: str) -> dict[str, Any]:
    session = desk.session
    try:
        changed = session.lifecycle.rollback(playbook_id, session.clock.now)
    except ThinktwiceError as error:
        return _refused(str(error))
    session.slow_loop.retire_changed(changed, session.clock.now)
    return {
        "outcome": "done",
        "versions": [f"{one.definition.id} {one.definition.version}: {one.state}" for one in changed],
    }
