"""Asks the models for the symbols of one bar at the same time; the run goes on as if one after the other.

For each symbol a plan is asked for on parts that write nothing. Its replies wait for the symbol's turn, so
journal, budgets and breakers are those of a run that waits for one symbol after the other, and a replay,
whose replies are there already, needs none of this.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from agents.language_models.accounted import AccountedModel
from agents.language_models.early import EarlyModel
from agents.strategies.configured import configured_strategist
from agents.strategies.plan_provider import assemble_provider
from schemas.settings import Settings
from schemas.settings.llm import OWN_PROVIDER
from services.memory.episode_memory import EpisodeMemory
from services.model_calls.early_replies import EarlyReplies
from services.model_calls.language_model import LanguageModel
from services.model_calls.wording import Wordings
from services.policy_loop.evaluation import Evaluation
from services.policy_loop.invariant_context import invariant_context
from services.policy_loop_service import PolicyLoopService
from services.ports import PlanProvider, PlaybookReader, RevisionBudget
from trading_core.market import Market
from worker.models import Models, RunModels

Answered = Callable[[Evaluation], Awaitable[None]]


async def in_turn(evaluation: Evaluation) -> None:
    """Nothing was asked before: its turn asks."""


@dataclass(frozen=True)
class SymbolsTogether:
    """The asking of one run.

    Attributes:
        settings: of the run; at most `llm.at_once` symbols are asked at the same time.
        market: its clock is pinned to the bar of each evaluation.
        playbooks: active versions.
        provider: of plans, over models that are asked before their turn.
        models: those models.
        early: keeps their replies.
    """

    settings: Settings
    market: Market
    playbooks: PlaybookReader
    provider: PlanProvider
    models: Sequence[EarlyModel]
    early: EarlyReplies

    @asynccontextmanager
    async def asking(self, evaluations: Iterable[Evaluation]) -> AsyncIterator[Answered]:
        """Ask for evaluations that are open; what is given back waits until one of them is answered."""
        due = [found for found in evaluations if found.snapshot is not None and found.error is None]
        at_once = min(len(due), self.settings.llm.at_once)
        asks = at_once > 1 and any(model.waits for model in self.models)
        places = asyncio.Semaphore(at_once)
        tasks = {
            evaluation.event_id: asyncio.create_task(self._ask(evaluation, places))
            for evaluation in (due if asks else ())
        }

        async def answered(evaluation: Evaluation) -> None:
            if evaluation.event_id in tasks:
                await tasks[evaluation.event_id]

        try:
            yield answered
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
            self.early.clear()

    async def _ask(self, evaluation: Evaluation, places: asyncio.Semaphore) -> None:
        snapshot = evaluation.snapshot
        if snapshot is None:
            return
        invariants = invariant_context(self.settings, snapshot, self.playbooks, self.market.bars.symbols)
        budget = RevisionBudget(self.settings.policy_loop.max_revisions)
        # Nothing comes of a failure here: the turn meets it again, or asks for itself what was not asked.
        async with places:
            with suppress(Exception), self.market.clock.pin(snapshot.known_at), self.early.turn():
                await self.provider.provide(snapshot, invariants, budget)


def assemble_together(
    settings: Settings,
    market: Market,
    playbooks: PlaybookReader,
    memory: EpisodeMemory,
    run_models: RunModels,
    policy_loop: PolicyLoopService,
    wordings: Wordings,
    *,
    market_waits: bool,
) -> SymbolsTogether | None:
    """The asking of a run; None where no symbol asks, or an object of the caller's answers one at a time."""
    early = _early_models(run_models.accounted)
    models = [model for model in (early.fast, early.strategist) if isinstance(model, EarlyModel)]
    if not models or settings.provider == OWN_PROVIDER or len(market.bars.symbols) < 2:
        return None
    strategist = configured_strategist(
        settings, playbooks, early.strategist, lambda: policy_loop.policies,
        lambda: policy_loop.backgrounds, wordings, early.text_models(), market.bars.symbols,
    )  # fmt: skip
    provider = assemble_provider(
        settings, strategist, playbooks, market.columns, memory.reader(counted=False), early.fast, wordings,
        market_waits=market_waits,
    )  # fmt: skip
    return SymbolsTogether(settings, market, playbooks, provider, models, run_models.account.early)


def _early_models(models: Models) -> Models:
    """The models that answer for symbols, asked before their turn."""
    texts = {name: _early(model) for name, model in models.texts.items()}
    return Models(
        fast=_early(models.fast),
        strategist=_early(models.strategist),
        texts={name: model for name, model in texts.items() if model is not None},
    )


def _early(model: LanguageModel | None) -> LanguageModel | None:
    return EarlyModel(model) if isinstance(model, AccountedModel) else None
