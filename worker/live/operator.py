"""What an operator asks of a running process: fetched beside the bars, done between two rows, answered."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from schemas.errors import StoreError, ThinktwiceError
from services.store.change_plans import ChangePlanRepository
from services.store.operator_requests import OperatorRequest, OperatorRequests, Outcome
from services.store.repository import LeaseLost
from worker.operations.logs import EventSink
from worker.session import Session

CHANGES_PLAYBOOKS = ("rollback", "replan", "plan")  # they wait until no evaluation is out
BEFORE = {"outcome": "done", "note": "it was carried out before a restart"}


class LiveRun(Protocol):
    """A run that is stepped row by row; its session begins with the first one."""

    @property
    def session(self) -> Session:
        """The session, which has begun."""
        ...

    @property
    def lock_step(self) -> bool:
        """Whether rows wait for the policy loop and the slow loop."""
        ...


@dataclass(eq=False)
class OperatorCommands:
    """The requests to one run.

    Attributes:
        operator: where they wait.
        plans: where the plans stand that they decide on.
        run_id: the run.
        run: what they change.
        commit: stores what was done before the operator is told.
        note: told of each request that was answered.
        outcomes: of commands that stand in the journal already, by number.
        released: the operator lets entries go on.
    """

    operator: OperatorRequests
    plans: ChangePlanRepository
    run_id: str
    run: LiveRun
    commit: Callable[[], Awaitable[None]]
    note: EventSink
    outcomes: dict[int, dict[str, Any]]
    released: Callable[[], None]
    _waiting: list[OperatorRequest] = field(default_factory=list, init=False)
    _unanswered: set[int] = field(default_factory=set, init=False)

    @property
    def busy(self) -> bool:
        """Whether something is being done, or was done and is not answered."""
        return bool(self._unanswered)

    @property
    def asks_to_stop(self) -> bool:
        """Whether a request to stop waits."""
        return any(self._ends(request) for request in self._waiting)

    async def look(self) -> None:
        """Fetch what waits.

        Raises:
            StoreError: the store is away; the next look tries again.
        """
        self._waiting = await self.operator.waiting(self.run_id)

    async def execute(self, *, ending: bool = False) -> None:
        """Carry out and answer what waits; a request to stop is answered at the end.

        Raises:
            LeaseLost: another process trades this run.
            StoreError: what was done cannot be stored, and waiting will not help.
        """
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            if self._ends(request) != ending:
                self._waiting.append(request)
            elif request.kind not in CHANGES_PLAYBOOKS or not self.run.session.policy_loop.in_flight:
                shown = await self._done(request)
                if shown is not None:
                    await self._answer(request, shown)

    def _ends(self, one: OperatorRequest) -> bool:
        return one.kind == "stop" and one.number not in self.outcomes

    async def _done(self, one: OperatorRequest) -> dict[str, Any] | None:
        """What came of a request, now or when it was carried out; None where it has to wait."""
        known = self.outcomes.get(one.number)
        if known is not None:
            return known
        if one.kind == "plan" and one.payload["decision"] == "approve":
            claimed = await self._claim(one)
            if claimed is None or (claimed and self.run.session.policy_loop.in_flight):
                return None  # an approval that is claimed is claimed again at the next look
            if not claimed:
                return _refused_plan(one)
        self._unanswered.add(one.number)
        command = {"number": one.number, "kind": one.kind, "payload": one.payload}
        self.outcomes[one.number] = BEFORE  # it stands in the journal from here on
        self.outcomes[one.number] = shown = await execute(
            self.run.session, command, lock_step=self.run.lock_step
        )
        if one.kind == "kill_switch" and not one.payload["on"]:
            self.released()
        await self.commit()
        return shown

    async def _claim(self, one: OperatorRequest) -> bool | None:
        """Whether an approval is in force still; None where the store cannot say, and the next look asks."""
        try:
            return await self.plans.claim(self.run_id, one.payload["plan_id"], one.payload["hash"])
        except StoreError as error:
            if not error.retryable:
                raise
            self.note("request_not_answered", {"number": one.number, "reason": str(error)})
            return None

    async def _answer(self, one: OperatorRequest, payload: dict[str, Any]) -> None:
        """Answer; where the store cannot take it, the request is found again and answered then."""
        outcome: Outcome = "refused" if payload["outcome"] == "refused" else "done"
        result = {name: value for name, value in payload.items() if name != "outcome"}
        try:
            await self.operator.answer(self.run_id, one.number, outcome, result)
        except StoreError as error:
            if isinstance(error, LeaseLost) or not error.retryable:
                raise
            self.note("request_not_answered", {"number": one.number, "reason": str(error)})
            return
        self._unanswered.discard(one.number)
        self.note("operator_command", {"number": one.number, "kind": one.kind, "outcome": outcome})


async def execute(session: Session, command: dict[str, Any], *, lock_step: bool) -> dict[str, Any]:
    """Journal a command and do it.

    Args:
        session: of the run.
        command: {number, kind, payload} as the store holds it.
        lock_step: rows wait for the policy loop and the slow loop.

    Returns:
        {outcome: done | refused, ...} with what came of it, for the one who asked.
    """
    now = session.clock.now
    session.journal.append("operator_command", ts_event=now, known_at=now, payload=command)
    kind, payload = command["kind"], command["payload"]
    if kind == "kill_switch":
        session.engine.set_kill_switch(payload["on"])
        return {"outcome": "done", "kill_switch": payload["on"]}
    if kind == "rollback":
        return _roll_back(session, payload["playbook_id"])
    if kind == "replan":
        return await _replan(session, lock_step=lock_step)
    if kind == "ask_models":
        return {"outcome": "done", "models": session.models.account.retry_lost()}
    if kind == "rule_tried":
        return {"outcome": "done", "trial": payload["trial"]}
    if kind == "plan":
        return session.slow_loop.plans.decide(payload, now)
    return {"outcome": "done"}


async def _replan(session: Session, *, lock_step: bool) -> dict[str, Any]:
    """Reflect and ask the judge out of turn; where a model would keep the bars waiting, that is refused."""
    settings = session.settings
    asks_models = settings.reflection.mode == "full" or settings.judge.replan != "rules"
    if asks_models and not lock_step:
        return _refuse("models judge this run beside its bars: it is replanned on its worker's reports")
    verdict = await session.slow_loop.replan_now(session.engine.t - 1)
    if verdict is None:
        return _refuse("the slow loop of this run is off (high_level.enabled)")
    return {
        "outcome": "done",
        "report_id": verdict.report_id,
        "verdict_id": verdict.content_hash[:16],
        "decision": str(verdict.decision),
        "actions": [str(action.kind) for action in verdict.actions],
        "refused": [refusal.code for refusal in verdict.refused],
    }


def _refused_plan(one: OperatorRequest) -> dict[str, Any]:
    reason = "it was edited, cancelled or decided since: `thinktwice plans show` tells"
    return {"outcome": "refused", "plan_id": one.payload["plan_id"], "reasons": [reason]}


def _refuse(reason: str) -> dict[str, Any]:
    return {"outcome": "refused", "reason": reason}


def _roll_back(session: Session, playbook_id: str) -> dict[str, Any]:
    if session.settings.plans.enabled:
        return _rollback_planned(session, playbook_id)
    try:
        changed = session.books.lifecycle.rollback(playbook_id, session.clock.now)
    except ThinktwiceError as error:
        return _refuse(str(error))
    session.slow_loop.retire_changed(changed, session.clock.now)
    return {
        "outcome": "done",
        "versions": [
            f"{version.definition.id} {version.definition.version}: {version.state}" for version in changed
        ],
    }


def _rollback_planned(session: Session, playbook_id: str) -> dict[str, Any]:
    """A rollback is a plan: it waits for its approval, or has acted where nobody is asked."""
    desk = session.slow_loop.plans
    try:
        plan = desk.of_rollback(playbook_id, session.clock.now)
    except ThinktwiceError as error:
        return _refuse(str(error))
    if plan is None:
        return _refuse(f"the same rollback of {playbook_id} waits already: `thinktwice plans list`")
    finished = desk.finished.get(plan.plan_id)
    state = "awaiting_approval" if finished is None else finished.state
    payload = {"outcome": "done", "plan_id": plan.plan_id, "plan_hash": plan.content_hash, "state": state}
    return payload | {"versions": [] if finished is None else [made[2] for made in finished.made]}
