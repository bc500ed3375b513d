"""What an operator's request does to a desk: between two rows, journalled, and the same in a replay."""

from typing import Any

from schemas.errors import ThinktwiceError
from worker.trading.desk import TradingDesk


async def carry_out(desk: TradingDesk, command: dict[str, Any]) -> dict[str, Any]:
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
        session.policy_loop.replan()
        return {"outcome": "done", "replanned": True}
    return {"outcome": "done"}


def _rolled_back(desk: TradingDesk, playbook_id: str) -> dict[str, Any]:
    session = desk.session
    try:
        changed = session.lifecycle.rollback(playbook_id, session.clock.now)
    except ThinktwiceError as error:
        return {"outcome": "refused", "reason": str(error)}
    session.slow_loop.retire_changed(changed, session.clock.now)
    return {
        "outcome": "done",
        "versions": [f"{one.definition.id} {one.definition.version}: {one.state}" for one in changed],
    }
