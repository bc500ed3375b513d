"""A session on a few embedded bars whose desk is at hand, and its rows."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from schemas.judge import JudgeAction
from schemas.plan import ChangePlan, Proposed
from schemas.settings import Settings
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.plans.drafting import draft
from services.plans.run_plans import RunPlans
from tests.worker.shared_runs import embedded_bars
from worker.bootstrap import assemble
from worker.session import Session, Timing

NAME, OTHER = "channel_breakout", "trend_pullback"


def settings_with(**plans: Any) -> Settings:
    """The defaults but for plans."""
    default = Settings()
    return default.model_copy(update={"plans": default.plans.model_copy(update=plans)})


@dataclass
class DeskWorld:
    """A session that has begun, its journal in memory."""

    session: Session
    sink: MemorySink

    @property
    def desk(self) -> RunPlans:
        return self.session.slow_loop.plans

    @property
    def now(self) -> int:
        return self.session.clock.now

    def to_row(self, row: int) -> None:
        """Validate bars up to a row, evaluations and all."""

        async def drive() -> None:
            while self.session.engine.t < row:
                assert not self.session.engine.done, "the bars ended before it happened"
                await self.session.step(Timing(), end=row)

        asyncio.run(drive())

    def rows(self, *kinds: str) -> list[dict[str, Any]]:
        asyncio.run(self.session.journal.flush())
        return [json.loads(row.payload) for row in self.sink.rows if row.kind in kinds]

    def kinds(self) -> list[str]:
        """Kinds of the rows of plans and versions that moved, in order, without those of the start."""
        asyncio.run(self.session.journal.flush())
        wanted = ("two_phase", "plan_", "playbook_version")
        found = [row.kind for row in self.sink.rows if row.kind.startswith(wanted)]
        return found[len(self.session.books.reader.active()) :]

    def plan(self, *proposed: Proposed, **named: Any) -> ChangePlan:
        """A plan that is drafted on the present state, beside the run."""
        made = draft(proposed, self.desk.facts(self.now), "text", understanding="a test", **named)
        assert isinstance(made, ChangePlan), made
        return made

    def decide(self, plan: ChangePlan, decision: str = "approve", **named: Any) -> dict[str, Any]:
        command: dict[str, Any] = {
            "plan_id": plan.plan_id,
            "decision": decision,
            "hash": plan.content_hash,
            "by": "ann",
        }
        with_bytes = decision in ("approve", "submit")
        command["plan"] = json.loads(plan.canonical_text()) if with_bytes else None
        return self.desk.decide(command | named, self.now)

    def in_force(self, name: str = NAME) -> Any:
        return self.session.books.lifecycle.active(name)


def desk_world(start: str = "2009-01-01", rows: int = 120, **plans: Any) -> DeskWorld:
    """A session over three quarters of a year of two symbols, at a row."""
    bars = embedded_bars(start, "2010-06-30").select(("AAPL", "IBM"))
    sink = MemorySink()
    session = assemble(settings_with(**plans), bars, JournalWriter(sink))
    session.begin()
    world = DeskWorld(session, sink)
    world.to_row(rows)
    return world


def risk(value: float, name: str = NAME) -> Proposed:
    """A plan's step that sets a risk."""
    lowers = value < 0.005
    reason = "a person wants it"
    action = JudgeAction(
        kind="set_risk_fraction", playbook_id=name, value=value, lowers_exposure=lowers, reason=reason
    )
    return Proposed(action)


def replan() -> Proposed:
    """A plan's step that retires every policy."""
    return Proposed(JudgeAction(kind="replan", reason="a person wants it"))
