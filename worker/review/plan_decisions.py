"""What an operator decides on a stored change plan: edit, approve, cancel, roll back."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.errors import ConfigError
from schemas.plan import ChangePlan
from schemas.settings import JudgeSettings
from schemas.settings.plans import PlansSettings
from services.plans.editing import revise
from services.store.change_plans import Operator
from worker.review import playbook_files
from worker.review.plan_document import document_of, edits_of_file, typed_edit
from worker.review.plan_facts import last_close
from worker.review.run_requests import will_go_on

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from services.store.plan_records import StoredPlan


@dataclass(frozen=True)
class OperatorDecision:
    """A plan of a run and who decides on it; each decision gives the plan as it stands then.

    Attributes:
        store: that holds it, with every table.
        record: its run.
        stored: the plan as it was shown.
        by: who decides.
    """

    store: "Store"
    record: "RunRecord"
    stored: "StoredPlan"
    by: str

    async def edit(self, assignments: list[str], drop: list[int], file: Path | None) -> "StoredPlan":
        """Change values and drop steps, by assignments or as a file has them.

        Raises:
            ConfigError: the run forbids it, or an edit is none.
        """
        edits = [typed_edit(text) for text in assignments]
        if not PlansSettings.model_validate(self.record.config.get("plans") or {}).allow_edit:
            raise ConfigError(
                f"plans of run {self.record.run_id} are not edited: its plans.allow_edit is off"
            )
        if file is not None:
            edits, drop = edits_of_file(file, self.stored, document_of(self.stored))
        judge = JudgeSettings.model_validate(self.record.config["judge"])
        revised = revise(self.stored.plan, edits=edits, drop=drop, judge=judge)
        who = await self._operator()
        await self.store.plans.revise(self.record.run_id, revised, self.stored.record.hash, who)
        return await self._find()

    async def approve(self, digits: str) -> "StoredPlan":
        """A process takes it at its next bar; a folder is written now.

        Raises:
            ConfigError: the digits are not those of its hash, or its folder cannot be written.
        """
        run_id, plan, plan_id = self.record.run_id, self.stored.plan, self.stored.record.plan_id
        if self.stored.folder is not None:
            playbook_files.demand_place(plan)
            versions = await playbook_files.versions_at(self.store, run_id, plan.basis.at)
            on_newest = plan.report_id is None
            present = await playbook_files.versions_at(self.store, run_id, None) if on_newest else ()
        approved = await self.store.plans.approve(run_id, plan_id, digits, await self._operator())
        if approved.state == "executing":

            def write(plan: ChangePlan) -> "playbook_files.Outcome":
                return playbook_files.carry_out(plan, versions, run_id, present=present)

            await self.store.plans.carry_out(run_id, plan_id, write)
        return await self._find()

    async def cancel(self) -> "StoredPlan":
        """Nothing of it happens."""
        who = await self._operator()
        await self.store.plans.cancel(self.record.run_id, self.stored.record.plan_id, who)
        return await self._find()

    async def roll_back(self) -> "StoredPlan":
        """Every playbook that it changed returns to its version of before; a process is asked to."""
        who = await self._operator()
        run_id, plan_id = self.record.run_id, self.stored.record.plan_id
        if self.stored.folder is None:
            await self.store.plans.ask_rollback(run_id, plan_id, who)
        else:
            playbook_files.demand_place(self.stored.plan)
            at = self.stored.plan.basis.at
            versions = await playbook_files.versions_at(self.store, run_id, at)

            def write(plan: ChangePlan) -> "playbook_files.Outcome":
                return playbook_files.roll_back(plan, versions, run_id)

            await self.store.plans.carry_out(run_id, plan_id, write, state="completed", who=who)
        return await self._find()

    async def _find(self) -> "StoredPlan":
        return await self.store.plans.find(self.stored.record.plan_id, self.record.run_id)

    async def _operator(self) -> Operator:
        """Who decides now; a plan of a process expires by its bars."""
        now = time.time_ns()
        runs_on = self.record.status == "running" or will_go_on(self.record)
        if self.stored.folder is not None or not runs_on:
            await self.store.plans.expire(self.record.run_id, self.stored.record.plan_id, now)
            return Operator(self.by, now, now)
        return Operator(self.by, now, await last_close(self.store, self.record))
