"""Phase 1 of a change plan by command: from the verdict on a report, or from a person's text."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError
from schemas.plan import ChangePlan, RefusedStep, Trigger
from schemas.settings import Settings
from services.plans.detection import DetectionContext, TwoPhase, detect_two_phase
from services.plans.drafting import EmptyPlan, PlanFacts, Proposed, draft
from services.plans.editing import WHOLE
from services.store.change_plans import Operator
from worker.review.change_texts import read_change
from worker.review.plan_facts import read_plan_facts
from worker.review.report_finder import FoundReport

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from services.store.plan_records import PlanRecord

NEED_A_PROCESS = ("replan", "open_experiment")  # nothing of them is in a folder of playbooks
NO_FOLDER = "it needs a run that trades: a folder holds none"
MISSED = ("stale", "failed", "expired")


@dataclass(frozen=True)
class PlanRequest:
    """What is to be planned.

    Attributes:
        run: its run.
        settings: of the run.
        trades: whether a process trades it.
        folder: where the playbooks that result are written; None for a run that trades.
        by: who makes the plan.
    """

    run: "RunRecord"
    settings: Settings
    trades: bool
    folder: Path | None
    by: str


async def plan_report(store: "Store", asked: PlanRequest, found: FoundReport) -> "PlanRecord":
    """Keep a plan of the judge's actions on a report.

    Raises:
        ConfigError: it was not judged, or nothing of it can be planned.
    """
    if found.verdict is None:
        raise ConfigError(
            f"report {found.report_id} was not judged: `thinktwice replan {found.report_id}` asks the judge"
        )
    began = time.perf_counter()
    at = None if asked.trades else found.known_at
    facts = await read_plan_facts(store, asked.run, asked.settings, trades=asked.trades, at=at)
    proposed = [Proposed(action) for action in found.verdict.actions]
    kinds = ", ".join(action.kind for action in found.verdict.actions) or "nothing"
    source = (found.report_id, found.verdict.content_hash[:16])
    plan = drafted(
        asked, facts, proposed, "report", f"The judge decided on report {source[0]}: {kinds}.", source
    )
    said = detect_two_phase("", DetectionContext(live=asked.trades, typed=True), asked.settings.plans)
    return await _kept(store, asked, plan, said, began)


async def plan_text(store: "Store", asked: PlanRequest, text: str, *, forced: bool) -> "PlanRecord":
    """Keep a plan of what a person asks for.

    Raises:
        ConfigError: the text cannot be read, or nothing of it can be planned.
    """
    began = time.perf_counter()
    facts = await read_plan_facts(store, asked.run, asked.settings, trades=asked.trades)
    before = await store.plans.all(asked.run.run_id)
    missed = bool(before) and before[0].state in MISSED
    read = await read_change(
        text, facts.definitions, asked.settings, os.environ, symbols=asked.run.data["symbols"], now=facts.at
    )
    context = DetectionContext(
        live=asked.trades, last_plan_failed=missed, forced=forced, typed=read.model is None
    )
    said = detect_two_phase(text, context, asked.settings.plans)
    plan = drafted(asked, facts, read.proposed, "text", f"An operator asks: {' '.join(text.split())}")
    return await _kept(store, asked, plan, said, began, read.reasoning)


def drafted(
    asked: PlanRequest,
    facts: PlanFacts,
    proposed: Sequence[Proposed],
    trigger: Trigger,
    understanding: str,
    source: tuple[str | None, str | None] = (None, None),
) -> ChangePlan:
    """A plan; of a run that is over it waits in wall time.

    Raises:
        ConfigError: nothing is left to do (`empty_plan`), with each refusal; a checkpoint before a folder.
    """
    if asked.folder is not None and any(item.checkpoint for item in proposed):
        raise ConfigError(f"run {asked.run.run_id} is over: {WHOLE}")
    waits = facts.expires_at - facts.at
    later = [item for item in proposed if asked.folder is not None and item.action.kind in NEED_A_PROCESS]
    made = draft(
        [item for item in proposed if item not in later], facts, trigger, understanding=understanding,
        folder=None if asked.folder is None else str(asked.folder.absolute()),
        report_id=source[0], verdict_id=source[1],
    )  # fmt: skip
    if isinstance(made, EmptyPlan):
        told = [f"{item.action.kind} is refused: {item.code}, {item.reason}" for item in made.refused]
        told += [f"{item.action.kind}: {NO_FOLDER}" for item in later]
        said = "; ".join(told) or "the judge wanted nothing"
        raise ConfigError(f"empty_plan: there is nothing to change in run {asked.run.run_id}: {said}")
    left = [RefusedStep(action=item.action, code="needs_a_process", reason=NO_FOLDER) for item in later]
    made = made.model_copy(update={"refused": (*made.refused, *left)})
    if asked.trades:
        return made
    return in_wall_time(made, waits)


def in_wall_time(made: ChangePlan, waits: int) -> ChangePlan:
    """A plan of a run that is over, made now; it waits for so many ns."""
    now = time.time_ns()
    return made.model_copy(update={"made_at": now, "expires_at": now + waits})


async def _kept(
    store: "Store",
    asked: PlanRequest,
    plan: ChangePlan,
    said: TwoPhase,
    began: float,
    reasoning: str | None = None,
) -> "PlanRecord":
    elapsed_ms = round((time.perf_counter() - began) * 1e3)
    told: dict[str, Any] = {"two_phase": said.payload(), "reasoning": reasoning, "elapsed_ms": elapsed_ms}
    who = Operator(asked.by, time.time_ns(), plan.made_at) if asked.trades else None
    return await store.plans.put(asked.run.run_id, plan, who, **told)
