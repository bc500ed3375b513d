"""Phase 1 of a change plan by command: from the verdict on a report, or from a text that a model may read."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.change_reader import ChangeReading, read_with_model
from agents.change_reply import PROMPT
from schemas.errors import ConfigError, OperatorError
from schemas.plan import ChangePlan, RefusedStep, Trigger
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.model_calls.wording import Wording, Wordings
from services.plans.detection import DetectionContext, TwoPhase, detect_two_phase
from services.plans.drafting import EmptyPlan, PlanFacts, Proposed, draft
from services.plans.editing import WHOLE
from services.plans.text_forms import UnreadableText, read_text
from services.store.change_plans import Operator
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
    plan = draft_asked(
        asked, facts, proposed, "report", f"The judge decided on report {source[0]}: {kinds}.", source
    )
    said = detect_two_phase("", DetectionContext(live=asked.trades, typed=True), asked.settings.plans)
    return await _keep(store, asked, plan, said, began)


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
    plan = draft_asked(asked, facts, read.proposed, "text", f"An operator asks: {' '.join(text.split())}")
    return await _keep(store, asked, plan, said, began, read.reasoning)


async def read_change(
    text: str,
    definitions: Mapping[str, PlaybookDefinition],
    settings: Settings,
    environment: Mapping[str, str],
    *,
    symbols: Sequence[str] = (),
    now: int = 0,
) -> ChangeReading:
    """The actions that a text asks for.

    Args:
        text: what was said.
        definitions: versions in force by playbook id.
        settings: of the run; where they ask a model, it reads what has no form, asked live.
        environment: holds the key.
        symbols: of the run, which are not told where `llm.anonymise` is on.
        now: the run's last bar in ns, from which times are told then.

    Raises:
        UnreadableText: the text has no form, and no model read it into any.
        ConfigError: the text cannot be used.
    """
    try:
        return ChangeReading(read_text(text, definitions, settings.judge))
    except UnreadableText as error:
        if not settings.uses_models:
            raise
        told = error
    wording = Wordings.of_run(symbols, anonymise=settings.llm.anonymise).at(now)
    live = settings.runtime.model_copy(update={"llm": "live", "cassette": None})
    try:
        return await _ask(
            text, definitions, settings.model_copy(update={"runtime": live}), environment, wording
        )
    except OperatorError as error:
        raise UnreadableText(f"{told}; {error}") from error


async def _ask(
    text: str,
    definitions: Mapping[str, PlaybookDefinition],
    settings: Settings,
    environment: Mapping[str, str],
    wording: Wording,
) -> ChangeReading:
    # The engine comes with the models: a text in a form waits for neither.
    from trading_core.clock import SimulatedClock
    from worker.models import models_in_use
    from worker.studies.asked_models import asked_models

    names, slow = models_in_use(settings), settings.llm.slow_model
    asked = {PROMPT: slow if slow in names else names[0]}
    clock = SimulatedClock(wording.now or 0)
    async with asked_models(settings, environment, asked, clock) as (models, account):
        account.open_event()
        return await read_with_model(
            text, definitions, settings.judge, models.texts[PROMPT],
            max_tokens=settings.plans.analysis_tokens, wording=wording,
        )  # fmt: skip


def draft_asked(
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
        folder=None if asked.folder is None else str(asked.folder.resolve()),
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


async def _keep(
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
