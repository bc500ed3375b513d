"""Puts one worker together: an open store, a run in it, a clock, and the reflection beside the event loop.

The bars that a paper run took, for a worker that reflects: values of a playbook's grid are tried on them.

Read from the store and computed in a thread, on arrays of its own: waker, lease and watchdog go on meanwhile,
and the process that trades shares nothing with it.
"""

import asyncio
import os
import platform
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agents.judging import evidence_of, judge_of
from agents.planning.plan_reply import PROMPT as PLANNER
from schemas.episode import Episode
from schemas.evidence_plan import RecommendationEvidence
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from schemas.timeframes import close_in_run
from services.evidence_tools.evidence_buffer import KINDS, EvidenceBuffer
from services.feeds.port import series_of
from services.model_calls.language_model import LanguageModel
from services.model_calls.wording import PLAIN_RUN, Wordings
from services.slow_loop.assembly import assemble_reflection
from services.slow_loop.untraded_signals import PaperBars
from services.store import Store
from trading_core.bars import BarSeries
from trading_core.market import Market
from trading_core.research.counterfactual import PaperPlans
from trading_core.rules.columns import RuleColumns
from worker.slow_worker.lease_holder import LeaseHolder
from worker.slow_worker.ports import Reflect
from worker.slow_worker.slot_runner import PaperBarsAt, RunOfSlots, SlotRunner, WorkerContext
from worker.slow_worker.worker import JudgeStep, ReadEvidence, SlowWorker

BarsUntil = Callable[[int], Awaitable[BarSeries]]


@dataclass(frozen=True)
class JudgeModels:
    """The models that a worker's judge asks about a report.

    Attributes:
        judge: asked for the verdict; None: rules alone.
        texts: the planner's by its prompt.
        wordings: how the run's data is worded.
        open_event: told that the account begins with another report.
    """

    judge: LanguageModel | None = None
    texts: Mapping[str, LanguageModel] = field(default_factory=dict)
    wordings: Wordings = PLAIN_RUN
    open_event: Callable[[], None] | None = None


NO_MODELS = JudgeModels()


def new_owner() -> str:
    """A name no other process has or will have: host, process and a random part."""
    return f"{platform.node()}:{os.getpid()}:{secrets.token_hex(4)}"


def threaded_reflection(settings: Settings, bars_until: BarsUntil | None = None) -> Reflect:
    """The high-level reflection by rules, in a thread: waker, lease and watchdog go on meanwhile.

    With `bars_until` a time, values of the playbooks' grids are tried on them.
    """

    async def reflect(
        request: HighLevelReflectionRequest,
        episodes: Sequence[Episode],
        definitions: Sequence[PlaybookDefinition],
    ) -> HighLevelReflectionReport:
        bars = None if bars_until is None else await bars_until(request.known_at)

        def reflect_in_thread() -> HighLevelReflectionReport:
            market = None if bars is None else Market.of(bars, settings.policy_loop.regime, request.known_at)
            return asyncio.run(assemble_reflection(settings, market).reflect(request, episodes, definitions))

        return await asyncio.to_thread(reflect_in_thread)

    return reflect


def assemble_worker(
    context: WorkerContext,
    *,
    reflect: Reflect | None = None,
    traded: bool = False,
    models: JudgeModels | None = None,
) -> SlowWorker:
    """A worker for the slow loop of one run.

    Args:
        context: store, run and surroundings.
        reflect: what makes a report; None for the rules in a thread.
        traded: whether a process trades the run: then that one asks the judge, and the bars that it took are
            there to try values of the playbooks' grids on.
        models: what the judge asks where no process trades the run; None: rules alone.
    """
    store, run, settings = context.store, context.run, context.run.settings
    tenure = LeaseHolder(store.leases, run.lease_name, context.owner, context.lease_ms, context.note)
    if traded:
        bars = bars_of_run(store, run.run_id)
        runner = SlotRunner(context, reflect or threaded_reflection(settings, bars), _paper_bars(bars))
        return SlowWorker(context, tenure, runner, None)
    runner = SlotRunner(context, reflect or threaded_reflection(settings))
    request = models or NO_MODELS
    judge = judge_of(settings, request.judge, request.wordings)
    step = JudgeStep(context, judge, evidence_of_store(store, run, request), request.open_event)
    return SlowWorker(context, tenure, runner, step)


def evidence_of_store(store: Store, run: RunOfSlots, models: JudgeModels = NO_MODELS) -> ReadEvidence | None:
    """What a judge that asks a model reads beside a report, from the stored rows of the run; None: nothing.

    The model of the planner's prompt plans it as in a run; where none is given, rules do.
    """
    settings, kept = run.settings, EvidenceBuffer(run.settings)
    if settings.judge.replan == "rules":
        return None
    if settings.planner.judge == "model" and PLANNER not in models.texts:
        by_rules = settings.planner.model_copy(update={"judge": "rules"})
        settings = settings.model_copy(update={"planner": by_rules})
    reader = evidence_of(settings, models.texts, models.wordings, kept)
    if reader is None:
        return None

    async def read(report: HighLevelReflectionReport) -> tuple[RecommendationEvidence, ...]:
        last = kept.rows[-1].seq if kept.rows else -1
        async for row in store.journal.rows(run.run_id, kinds=KINDS, after=last):
            kept.add(row)
        return await reader.read(report, kept.rows[-1].seq + 1) if kept.rows else ()

    return read


def bars_of_run(store: Store, run_id: str) -> BarsUntil:
    """The bars that a run took and that were closed at a time, ns."""

    async def bars(clock: int) -> BarSeries:
        data = (await store.runs.find(run_id)).data
        rows = [row async for row in store.trading.rows(run_id) if close_in_run(row.label, data) <= clock]
        return series_of(
            tuple(data["symbols"]), data["timeframe"], data["label"], rows, data.get("zone", "UTC")
        )

    return bars


def _paper_bars(bars_until: BarsUntil) -> PaperBarsAt:
    """Plans on paper over the bars that were closed at a time, ns."""

    async def walk(clock: int) -> PaperBars:
        return PaperPlans(RuleColumns(await bars_until(clock)))

    return walk
