"""Puts one worker together: an open store, a run in it, a clock, and the reflection beside the event loop."""

import asyncio
import os
import platform
import secrets
from collections.abc import Sequence

from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from schemas.reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from schemas.settings import Settings
from services.store import Store
from worker.bootstrap import judge_of, slow_reflection
from worker.operations.logs import EventSink
from worker.slow_worker.bars_of_run import columns_of_run, reflection_on_bars
from worker.slow_worker.judge_step import HOLD_MS, JudgeStep
from worker.slow_worker.lease_holder import LeaseHolder
from worker.slow_worker.ports import Clock, CrashPoints, Reflect
from worker.slow_worker.slot_runner import RunOfSlots, SlotRunner
from worker.slow_worker.worker import SlowWorker

PERIOD_S = 30.0
LEASE_PERIODS = 3


def new_owner() -> str:
    """A name no other process has or will have: host, process and a random part."""
    return f"{platform.node()}:{os.getpid()}:{secrets.token_hex(4)}"


def threaded_reflection(settings: Settings) -> Reflect:
    """The high-level reflection by rules, in a thread: waker, lease and watchdog go on meanwhile."""
    service = slow_reflection(settings)

    async def reflect(
        request: HighLevelReflectionRequest,
        episodes: Sequence[Episode],
        definitions: Sequence[PlaybookDefinition],
    ) -> HighLevelReflectionReport:
        return await asyncio.to_thread(asyncio.run, service.reflect(request, episodes, definitions))

    return reflect


def assemble_worker(
    store: Store,
    run: RunOfSlots,
    clock: Clock,
    note: EventSink,
    *,
    owner: str | None = None,
    lease_ms: int = int(LEASE_PERIODS * PERIOD_S * 1_000),
    hold_ms: int = HOLD_MS,
    reflect: Reflect | None = None,
    points: CrashPoints | None = None,
    traded: bool = False,
) -> SlowWorker:
    """A worker for the slow loop of one run.

    Args:
        store: open, with the worker's tables.
        run: whose slow loop.
        clock: the present; the lease runs on the database's clock all the same.
        note: told of everything that happens.
        owner: name in leases and claims; unique among processes.
        lease_ms: how long a worker that died keeps others waiting.
        hold_ms: how long a consumer that died keeps its report.
        reflect: what makes a report; None for the rules in a thread.
        points: told of every step; for tests.
        traded: whether a process trades the run: then that one asks the judge, and the bars that it took are
            there to try values of the playbooks' grids on.
    """
    name, settings = owner or new_owner(), run.settings
    tenure = LeaseHolder(store.leases, run.lease_name, name, lease_ms, note)
    made = reflect or (reflection_on_bars(store, run) if traded else threaded_reflection(settings))
    columns = columns_of_run(store, run) if traded else None
    runner = SlotRunner(store, run, made, clock, note, points, columns)
    if traded:
        return SlowWorker(run.run_id, tenure, runner, None, note)
    judge = judge_of(settings)
    step = JudgeStep(store.reports, judge, clock, note, name, hold_ms=hold_ms, points=points)
    return SlowWorker(run.run_id, tenure, runner, step, note)
