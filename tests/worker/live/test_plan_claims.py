"""An approval that is not in force when the process comes to it changes nothing and is in no journal."""

import asyncio
import json

from schemas.plan import ChangePlan
from schemas.settings import Settings
from services.plans.editing import StepEdit, revise
from tests.worker.live.decided_plans import RUN, Decided
from tests.worker.live.paper_runs import read_requests, replayed, rows_stored
from tests.worker.shared_runs import embedded_bars
from trading_core.bars import BarSeries

AT = 40


class Overtaken(Decided):
    """Its process holds an approval of bytes that were edited since it was fetched."""

    async def between(self, number: int) -> None:
        if number != AT:
            return
        plan, ann = await self.put(0.008)
        edited = revise(plan, edits=[StepEdit(1, "value", "0.006")], judge=Settings().judge)
        await self.store.plans.revise(RUN, edited, plan.content_hash, ann)
        self.answered.clear()
        await self.store.operator.put(RUN, "plan", _approval(plan))
        async with asyncio.timeout(20.0):
            await self.answered.wait()
            await self.all_answered()  # the edit and the approval may be fetched one after the other

    @property
    def feed_bars(self) -> BarSeries:
        return embedded_bars("2009-01-01", "2009-03-31").select(("AAPL", "IBM"))


def _approval(plan: ChangePlan) -> dict[str, object]:
    payload = {"plan_id": plan.plan_id, "decision": "approve", "hash": plan.content_hash, "by": "ann"}
    return payload | {"plan": plan.payload()}


def test_approval_that_was_overtaken_by_an_edit_is_refused_and_reaches_no_journal(tmp_path):
    live = Overtaken(tmp_path)
    asyncio.run(live.trade())

    async def standing(store):
        return [plan.state for plan in await store.plans.all()], await store.operator.all(RUN)

    states, (edit, request) = read_requests(tmp_path, standing)
    assert (states, edit.state, request.state) == (["declined"], "done", "refused"), (
        "nobody decided on the edit"
    )
    assert "edited, cancelled or decided since" in request.result["reasons"][0]
    commands = [json.loads(row.payload) for row in rows_stored(tmp_path, "latest", "operator_command")]
    assert [command["payload"]["decision"] for command in commands] == ["submit"]
    versions = [json.loads(row.payload) for row in rows_stored(tmp_path, "latest", "playbook_version")]
    assert {row["version"] for row in versions} == {1}
    assert replayed(tmp_path, Settings()).ok
