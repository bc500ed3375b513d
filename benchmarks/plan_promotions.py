"""A promotion in a live process on a planted world: what came of its plans, by the rows of its journal.

`uv run python -m benchmarks.plan_promotions` trades bars in which buying strength wins, with a store on disk
and `plans.approval = "ask"`; each bar waits until the one before is decided. Nobody decides on the first
plan. A person edits and approves the second one over the store, as `thinktwice plans` does. Prints what
happened, and whether the run replays to its head.
"""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from schemas.canonical import ns_to_datetime
from services.plans.editing import StepEdit, revise
from services.playbooks.loader import load_playbooks
from services.playbooks.measures import alter
from services.store import open_store
from services.store.change_plans import Operator
from services.store.plan_records import StoredPlan
from tests.services.plans.plan_worlds import settings_with
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import RunningFeed, address, replayed, rows_stored
from tests.worker.momentum_worlds import momentum_world
from worker.live.process import PaperProcess
from worker.live.process_inputs import ProcessInputs
from worker.studies.scenarios import PLANTED

RUN, NAME, BARS, CAREFUL, EDITED, LOOKS, LOOK_S = "r0001", "buys_strength", 720, 0.002, 0.003, 500, 0.02


class Promoted:
    """A live run whose operator leaves the first plan alone and edits and approves the second."""

    def __init__(self, folder: Path) -> None:
        (planted,) = load_playbooks(PLANTED)
        self.folder = folder
        self.books = [alter(planted, risk_fraction=CAREFUL)]
        self.settings = settings_with(approval="ask")
        self.first: str | None = None
        self.edited: StoredPlan | None = None
        self.approved_at = 0

    async def between(self, number: int) -> None:
        """Look for a plan that waits, when everything before is stored."""
        if number == 0 or self.edited is not None:
            return
        await self.process.traded.committing.caught_up()
        waiting = [plan for plan in await self.store.plans.all(RUN) if plan.state == "awaiting_approval"]
        if not waiting:
            return
        self.first = self.first or waiting[0].plan_id
        if waiting[0].plan_id != self.first:
            await self.decide(await self.store.plans.find(waiting[0].plan_id, RUN))

    async def decide(self, stored: StoredPlan) -> None:
        """Edit the value and approve what was edited."""
        now = self.approved_at = self.process.traded.stepper.session.clock.now
        ann = Operator("ann", now, now)
        judge = self.process.traded.stepper.settings.judge
        plan = revise(stored.plan, edits=[StepEdit(1, "value", str(EDITED))], judge=judge)
        await self.store.plans.revise(RUN, plan, stored.plan.content_hash, ann)
        await self.store.plans.approve(RUN, plan.plan_id, plan.content_hash, ann)
        self.edited = await self.store.plans.find(plan.plan_id, RUN)
        for _ in range(LOOKS):  # taken between two rows, and answered
            if not await self.store.operator.waiting(RUN):
                return
            await asyncio.sleep(LOOK_S)

    async def trade(self) -> None:
        """Trade the planted bars to their end."""
        feed = RunningFeed(momentum_world(strength=1.0, bars=BARS, symbols=12), self.between)
        feed.lock_step = True
        async with await open_store(address(self.folder), create=True) as self.store:
            self.process = PaperProcess(ProcessInputs(
                self.settings, feed, self.store, "host:1:a", NullMonitor(lambda kind, detail: None),
                definitions=self.books, look_s=LOOK_S,
            ))  # fmt: skip
            await self.process.run("benchmark")


def main() -> None:
    """Trade, tell, replay; exit code 1 where the promotion did not act as approved."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        live = Promoted(folder)
        asyncio.run(live.trade())
        rows = {kind: _rows(folder, kind) for kind in ("plan_decided", "plan_step", "playbook_version")}
        for at, row in rows["plan_decided"]:
            _tell(
                f"{at} plan {row['plan_id'][:12]} {row['state']} by {row['by']} {'; '.join(row['reasons'])}"
            )
        done = [row for _, row in rows["plan_step"]]
        made = [] if live.edited is None else list(live.edited.plan.steps[0].makes)
        stored = [
            row for _, row in rows["playbook_version"] if made and row["version_hash"] == made[0].version_hash
        ]
        acts = [row for row in stored if row["state"] == "active"]
        same = bool(acts) and acts[-1]["definition"] == json.loads(made[0].definition.canonical_text())
        report = replayed(folder, live.settings, definitions=live.books)
        _tell(f"steps {[row['state'] for row in done]}; in force as approved: {same}")
        _tell(f"replayed to its head: {report.ok}")
        sys.exit(0 if same and report.ok and live.first is not None else 1)


def _rows(folder: Path, kind: str) -> list[tuple[str, Any]]:
    found = rows_stored(folder, "latest", kind)
    return [(ns_to_datetime(row.known_at).date().isoformat(), json.loads(row.payload)) for row in found]


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
