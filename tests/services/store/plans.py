"""Small change plans, and the journal rows in which a run tells of them."""

from schemas.judge import JudgeAction
from schemas.plan import ChangePlan, FolderAction, PlanBasis, PlanStep
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter

DAY = 86_400 * 10**9
MADE = 20_000 * DAY
EXPIRES = MADE + DAY


def risk_step(number=1, value=0.0025):
    """Less risk for one playbook."""
    action = JudgeAction(kind="set_risk_fraction", playbook_id="p", value=value, reason="it loses")
    return PlanStep(
        number=number, action=action, precondition="p 1 is in force", effect=f"risks {value}", undo="rollback"
    )


def change_plan(made_at=MADE, *, value=0.0025, **changes):
    """A first revision of one step."""
    values = {
        "trigger": "verdict",
        "understanding": "risk less",
        "approach": "one step",
        "steps": (risk_step(value=value),),
        "expected_outcome": "smaller losses",
        "basis": PlanBasis(at=made_at, closes={"AAPL": 0.1 + 0.2}, atr={"AAPL": 1e-9}),
        "made_at": made_at,
        "expires_at": made_at + DAY,
    }
    return ChangePlan(**values | changes)


def folder_plan(folder="out", **changes):
    """A plan that writes a folder."""
    action = FolderAction(folder=folder, reason="the run is over")
    writes = PlanStep(number=2, action=action, precondition="it is free", effect="writes", undo="rollback")
    return change_plan(steps=(risk_step(), writes), **changes)


def edited(plan, value=0.001, **changes):
    """The next revision."""
    values = {"revision": plan.revision + 1, "first": plan.plan_id, "steps": (risk_step(value=value),)}
    return plan.model_copy(update=values | changes)


class PlanJournal:
    """Writes the rows of a run about its plans, each after the one before."""

    def __init__(self):
        self.sink = MemorySink()
        self._writer = JournalWriter(self.sink)

    def row(self, kind, at=MADE, /, **payload):
        """The next row."""
        self._writer.append(kind, ts_event=at, known_at=at, payload=payload)

    def drafted(self, plan, /, at=MADE, **changes):
        """Phase 1 ends with a plan that waits."""
        payload = {"plan_id": plan.plan_id, "plan_hash": plan.content_hash, "revision": plan.revision}
        payload |= {"status": "awaiting_approval", "plan_length": len(plan.steps), "plan": plan.payload()}
        payload |= {"refused": [], "reasoning": None, "report_id": None, "verdict_id": None}
        self.row("two_phase_phase1_complete", at, **payload | changes)

    def decided(self, plan, /, decision="approve", state="executing", at=MADE, **changes):
        """Somebody, or nobody, decided."""
        payload = {"plan_id": plan.plan_id, "plan_hash": plan.content_hash, "revision": plan.revision}
        payload |= {"decision": decision, "by": "ann", "state": state, "reasons": []}
        payload |= {"plan_edited": plan.revision > 1, "plan": None}
        self.row("plan_decided", at, **payload | changes)

    def step(self, plan, number=1, state="done", at=MADE, reason=""):
        """A step was carried out."""
        payload = {"plan_id": plan.plan_id, "plan_hash": plan.content_hash, "phase": 2, "number": number}
        payload |= {"kind": "set_risk_fraction", "state": state, "versions": [], "reason": reason}
        self.row("plan_step", at, **payload)

    def ended(self, plan, status="completed", at=MADE, phase=2):
        """Phase 2 ends."""
        payload = {"plan_id": plan.plan_id, "plan_hash": plan.content_hash, "phase": phase, "status": status}
        payload |= {"plan_edited": plan.revision > 1, "plan_length": len(plan.steps), "tools_used": 1}
        self.row("two_phase_phase2_complete", at, **payload)

    async def rows(self):
        """All of them."""
        await self._writer.flush()
        return self.sink.rows
