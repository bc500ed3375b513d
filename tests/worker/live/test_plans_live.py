"""Plans of a run that trades live: approved, edited, cancelled and left to lapse, killed, replayed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from schemas.plan import ChangePlan
from schemas.settings import Settings
from services.plans.drafting import draft
from services.store import Store
from services.store.change_plans import Operator
from tests.services.plans.plan_worlds import risk
from tests.worker.live.decided_plans import KILL_AT, PLACES, RUN, ApprovedOnce, Decided, what_is_wrong
from tests.worker.live.paper_runs import (
    RunningFeed,
    read_requests,
    replayed,
    rows_stored,
)


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Decided:
    live = Decided(tmp_path_factory.mktemp("plans"))
    outcome = asyncio.run(live.trade())
    assert outcome.document is not None
    return live


def rows(live: Decided, kind: str) -> list[dict[str, Any]]:
    return [json.loads(row.payload) for row in rows_stored(live.folder, "latest", kind)]


def test_live_plans_act_with_the_approved_bytes(decided: Decided) -> None:
    stored = {row["version_hash"]: row["definition"] for row in rows(decided, "playbook_version")}
    for name in ("approved", "edited"):
        (made,) = decided.plans[name].steps[0].makes
        assert stored[made.version_hash] == json.loads(made.definition.canonical_text())
    steps = [(row["kind"], row["state"]) for row in rows(decided, "plan_step")]
    assert steps == [("set_risk_fraction", "done")] * 2


def test_live_plan_that_is_cancelled_or_lapses_does_nothing(decided: Decided) -> None:
    ends = {row["plan_id"]: (row["by"], row["state"]) for row in rows(decided, "plan_decided")}
    assert decided.plans["cancelled"].plan_id not in ends, "it never reached the run"
    assert sorted(ends.values()) == [("ann", "approved"), ("ann", "approved"), ("unattended", "declined")]


def test_live_run_in_which_plans_were_decided_is_verified(decided: Decided) -> None:
    report = replayed(decided.folder, Settings())
    assert (report.ok, report.problem) == (True, None)


def test_live_plans_stand_in_the_store_as_they_ended(decided: Decided) -> None:
    async def standing(store: Store) -> list[tuple[str, str, int]]:
        return sorted((plan.trigger, plan.state, plan.revision) for plan in await store.plans.all())

    assert read_requests(decided.folder, standing) == [
        ("rollback", "declined", 1),
        ("text", "cancelled", 1),
        ("text", "completed", 1),
        ("text", "completed", 2),
    ]


@pytest.mark.parametrize("place", PLACES)
def test_live_plan_acts_once_wherever_its_process_dies(tmp_path: Path, place: str) -> None:
    assert what_is_wrong(tmp_path, place) == []


@pytest.mark.parametrize("place", ["behind the claim", "before its rows are stored"])
def test_live_plan_on_postgresql_acts_once_where_its_process_dies(postgres_url: str, place: str) -> None:
    assert what_is_wrong(postgres_url, place) == []


class InLockStep(ApprovedOnce):
    """Bars that wait for every decision; the plan is approved while the process waits for the next one."""

    @property
    def feed(self) -> RunningFeed:
        feed = super().feed
        feed.lock_step = True
        return feed

    async def between(self, number: int) -> None:
        if number == KILL_AT:
            now = self.process.traded.stepper.session.clock.now
            plan = draft([risk(0.008)], self.desk.facts(now), "text", understanding="the operator wants it")
            assert isinstance(plan, ChangePlan)
            self.plans["approved"] = plan
            ann = Operator("ann", now, now)
            await self.store.plans.put(RUN, plan)
            await self.store.plans.approve(RUN, plan.plan_id, plan.content_hash, ann)
            await self.process.traded.requests.look()


def test_plan_approved_between_bars_that_wait_acts_before_the_next_one(tmp_path: Path) -> None:
    live = InLockStep(tmp_path)
    asyncio.run(live.trade())
    (decided,) = rows_stored(tmp_path, "latest", "plan_decided")
    assert json.loads(decided.payload)["state"] == "approved"
    assert decided.known_at == live.plans["approved"].made_at, "of the bar on which it was decided"
    assert replayed(tmp_path, Settings()).ok
