"""What change plans cost: the list of a thousand, and a row of a live run while one waits; CPU time.

`uv run python -m benchmarks.plan_costs` prints both.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path

from services.plans.drafting import draft
from services.plans.same_change import WaitingPlan
from services.store import open_store
from services.store.plan_records import summary_of
from services.store.tables import change_plans
from tests.services.plans.plan_worlds import desk_world, risk
from tests.services.store.plans import change_plan
from tests.services.store.stores import new_run
from worker.cli.plans import COLUMNS
from worker.pages.text_parts import lines_of, rows_table
from worker.session import Timing

PLANS, PAIRS, ROWS = 1_000, 7, 150


async def list_ms(folder: str) -> list[float]:
    """CPU milliseconds of reading and printing `PLANS` plans of one store, each time."""
    async with await open_store(f"sqlite:///{folder}/plans.db", create=True) as store:
        run_id = (await store.runs.create(new_run())).run_id
        kept = await store.plans.put(run_id, change_plan())  # type: ignore[no-untyped-call]
        texts = {"steps": '{"1":"waiting"}', "decisions": "[]", "reasons": "[]", "two_phase": None}
        row = vars(kept) | texts | {"run_id": run_id, "journalled": 1, "revisions": "x" * 20_000}
        async with store.plans._write() as connection:
            rows = [row | {"plan_id": f"{number:016x}"} for number in range(PLANS - 1)]
            await connection.execute(change_plans.insert(), rows)
        spent = []
        for _ in range(PAIRS):
            started = time.process_time()
            with redirect_stdout(StringIO()):
                plans = rows_table(map(summary_of, await store.plans.all()), COLUMNS)
                print(*(line for line, _ in lines_of([plans])), sep="\n")
            spent.append((time.process_time() - started) * 1e3)
    return spent


def rows_s(*, waits: bool) -> float:
    """CPU seconds of `ROWS` rows of a session, with or without a plan that waits longer than they last."""
    world = desk_world(approval="ask")
    if waits:
        facts = replace(world.desk.facts(world.now), expires_at=2**62)
        plan = draft([risk(0.008)], facts, "text", understanding="it waits")
        world.desk.waiting["waits"] = WaitingPlan(plan)  # type: ignore[arg-type]
    until = world.session.engine.t + ROWS

    async def drive() -> None:
        for row in range(world.session.engine.t + 1, until + 1):
            while world.session.engine.t < row:
                await world.session.step(Timing(), end=row)

    started = time.process_time()
    asyncio.run(drive())
    return time.process_time() - started


def main() -> None:
    """Print both."""
    with tempfile.TemporaryDirectory() as folder:
        spent = asyncio.run(list_ms(str(Path(folder))))
    sys.stdout.write(f"list of {PLANS} plans: {statistics.median(spent):.1f} ms of CPU at the median\n")
    rows_s(waits=False)
    ratios = [rows_s(waits=True) / rows_s(waits=False) for _ in range(PAIRS)]
    low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
    sys.stdout.write(f"a row with a plan that waits: {middle:.3f} of one without ({low:.3f} to {high:.3f})\n")


if __name__ == "__main__":
    main()
