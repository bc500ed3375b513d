"""A model asked again about recorded plans, outside any run: accounted, retried and within the budget.

Nothing is written to a run. There is no hurry: a reply that would have come too late for a run is a reply,
and its lateness is counted.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agents.language_models.accounted import AccountedModel, LiveSource, RecordedSource, ReplySource
from agents.language_models.cassette import Cassette, CassetteWriter
from prompts import PromptTemplate
from schemas.errors import ConfigError, ModelError
from schemas.settings import Settings
from schemas.vocabulary import PolicyEventKind, ReflectionStatus
from services.clock import SimulatedClock
from services.journal.consolidations import AnsweredConsolidation
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.account import ModelAccount
from services.policy_checks.consolidation import FORM, weigh_reply
from services.policy_checks.findings import status_of
from trading_core.tick_guard import TickGuard
from worker.models import Models, caller_of, check_models, configured_cassette, configured_models
from worker.studies.models.model_questions import RecordedQuestions

PATIENCE_MS = 60_000.0


@dataclass(frozen=True)
class Sample:
    """What one more asking gave.

    Attributes:
        final: verdict with the reply weighed in; None when there is none to weigh.
        refused: code of the finding for which the reply counted for nothing.
        failure: kind of the failure when no reply came.
        late: whether a run would not have waited for it; None where no budget is known.
        cited: ids of findings with which the reply lowered the verdict.
        usd: what it cost; None where no price is known.
    """

    final: ReflectionStatus | None = None
    refused: str | None = None
    failure: str | None = None
    late: bool | None = None
    cited: tuple[str, ...] = ()
    tokens: int = 0
    usd: float | None = None


class Panel:
    """One model with one template; `account` has counted what was asked."""

    def __init__(
        self,
        settings: Settings,
        template: PromptTemplate,
        questions: RecordedQuestions,
        source: ReplySource,
    ) -> None:
        """Open the account.

        Args:
            settings: model, prices, limits and budgets.
            template: words the question.
            questions: of the run: how they are worded, and the bound of a reply.
            source: of replies.
        """
        self._reflection = settings.reflection
        self._template = template
        self._questions = questions
        self._clock = SimulatedClock()
        self.account = ModelAccount(settings.llm, JournalWriter(MemorySink()), self._clock)
        caller = caller_of(settings, settings.llm.fast_model, FORM, template.hash)
        self._model = AccountedModel(caller, source, self.account, TickGuard())

    async def sample(self, plan: AnsweredConsolidation) -> Sample:
        """Ask once about a plan; plans come in the order of their bars.

        Raises:
            CassetteMiss: it is played back and was not recorded.
        """
        snapshot = plan.request.snapshot
        self._clock.advance(snapshot.known_at)
        self.account.open_event(snapshot.symbol)
        spent = self.account.ledger.run
        before = replace(spent)
        sample = await self._ask(plan)
        return replace(sample, tokens=spent.tokens - before.tokens, usd=spent.usd - before.usd)

    async def _ask(self, plan: AnsweredConsolidation) -> Sample:
        try:
            reply = await self._model.complete(
                system=self._template.system,
                prompt=self._questions.text(self._template, plan),
                max_tokens=self._questions.max_tokens,
                deadline_ms=PATIENCE_MS,
            )
        except ModelError as error:
            return Sample(failure=str(error.context.get("kind", "error")))
        wording = self._questions.wordings.of(plan.request.snapshot)
        added = weigh_reply(reply.text, plan.request, plan.findings, wording)
        final = status_of((*plan.findings, *added.findings))
        cited = added.findings[0].evidence if final is not plan.rules else ()
        late = reply.latency_ms > self._budget_ms(plan.source)
        return Sample(final=final, refused=added.refused, late=late, cited=cited)

    def _budget_ms(self, source: str) -> float:
        heartbeat = source == PolicyEventKind.HEARTBEAT
        return self._reflection.budget_heartbeat_ms if heartbeat else self._reflection.budget_event_ms


@asynccontextmanager
async def open_panel(
    settings: Settings,
    template: PromptTemplate,
    questions: RecordedQuestions,
    environment: Mapping[str, str],
) -> AsyncIterator[Panel]:
    """The configured model of the fast reflection, live or from a cassette; closed at the end.

    Raises:
        ConfigError: no key, no price, or a cassette that cannot be read or written.
    """
    check_models(settings, environment)
    cassette = configured_cassette(settings)
    asked = Models() if cassette is not None else configured_models(settings, TickGuard(), environment)
    try:
        panel = Panel(settings, template, questions, _source(cassette, asked))
        if settings.runtime.llm == "record":
            panel.account.keep = CassetteWriter(Path(str(settings.runtime.cassette))).keep
        yield panel
    finally:
        await asked.close()


def _source(cassette: Cassette | None, asked: Models) -> ReplySource:
    if cassette is not None:
        return RecordedSource(cassette)
    if asked.fast is None:
        raise ConfigError("no model is configured for the fast reflection: set reflection.mode to 'full'")
    return LiveSource(asked.fast)
