"""A strategist asked again outside any run, with a template of the caller's: what each reply comes to.

The reply takes the way of the running system, through `ModelStrategist`: read, applied to its base, asked
once more when it cannot be used. What comes out is named as a run counts it, and no two outcomes share a
name. Nothing is written to a run.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agents.language_models.accounted import AccountedModel, LiveSource, RecordedSource, ReplySource
from agents.language_models.cassette import CassetteWriter
from agents.strategies.strategist_reply import FORM, FaultKind
from prompts import PromptTemplate
from schemas.errors import ConfigError
from schemas.proposal import StrategistAnswer
from schemas.settings import Settings
from schemas.vocabulary import PlanKind
from services.clock import SimulatedClock
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.account import ModelAccount
from services.model_calls.record import LATE, TIMEOUT
from services.model_calls.wording import Wordings
from trading_core.tick_guard import TickGuard
from worker.bootstrap import model_strategist
from worker.models import Models, caller_of, check_models, configured_cassette, configured_models
from worker.studies.models.strategist_questions import StrategistQuestion

# What the model itself did. Any other failure is of the connection, the provider or a limit: no reply.
SAID_BY_THE_MODEL = frozenset({*(str(kind) for kind in FaultKind), "refusal", "cut", TIMEOUT, LATE})


@dataclass(frozen=True)
class Decided:
    """What one asking came to.

    Attributes:
        decision: `propose PLAYBOOK DIRECTION`, `hold`, `tighten`, `abstain`, or how it failed.
        replied: whether the model had its say; else the decision is nobody's.
        plan: content hash of the proposal.
        usd: what it cost.
    """

    decision: str
    replied: bool
    plan: str | None = None
    tokens: int = 0
    usd: float = 0.0


def decided(answer: StrategistAnswer) -> Decided:
    """An answer by its name; the rules' answer in the model's place goes by why they gave it."""
    if answer.fallback is not None:
        return Decided(answer.fallback, answer.fallback in SAID_BY_THE_MODEL)
    proposal = answer.proposal
    if answer.kind is not PlanKind.PROPOSE or proposal is None:
        return Decided(str(answer.kind), True)
    name = f"{answer.kind} {proposal.playbook_id} {proposal.direction}"
    return Decided(name, True, proposal.content_hash)


class StrategistPanel:
    """One strategist with one template; its account has counted what was asked."""

    def __init__(
        self, settings: Settings, template: PromptTemplate, wordings: Wordings, source: ReplySource
    ) -> None:
        """Open the account.

        Args:
            settings: model, prices, limits, deadline and envelope.
            template: words the question.
            wordings: of the data in it.
            source: of replies.
        """
        self._settings = settings
        self._template = template
        self._wordings = wordings
        self._clock = SimulatedClock()
        self.account = ModelAccount(settings.llm, JournalWriter(MemorySink()), self._clock)
        caller = caller_of(settings, settings.llm.strategist_model, FORM, template.hash)
        self._model = AccountedModel(caller, source, self.account, TickGuard())

    async def sample(self, question: StrategistQuestion) -> Decided:
        """What the strategist decides; questions come in the order of their bars.

        Raises:
            CassetteMiss: it is played back and was not recorded.
        """
        settings = self._settings
        self._clock.advance(question.snapshot.known_at)
        self.account.open_event(question.snapshot.symbol)
        before = replace(self.account.ledger.run)
        strategist = model_strategist(
            settings,
            self._model,
            question.rules(settings),
            question.playbooks,
            question.frozen.get,
            lambda snapshot: question.background,
            self._wordings,
            self._template,
        )
        said = decided(await strategist.answer(question.snapshot, None))
        spent = self.account.ledger.run
        return replace(said, tokens=spent.tokens - before.tokens, usd=spent.usd - before.usd)


@asynccontextmanager
async def open_strategist(
    settings: Settings, template: PromptTemplate, wordings: Wordings, environment: Mapping[str, str]
) -> AsyncIterator[StrategistPanel]:
    """The configured strategist, live or from a cassette; closed at the end.

    Raises:
        ConfigError: no key, no price, or a cassette that cannot be read or written.
    """
    check_models(settings, environment)
    cassette = configured_cassette(settings)
    asked = Models() if cassette is not None else configured_models(settings, TickGuard(), environment)
    try:
        live = None if asked.strategist is None else LiveSource(asked.strategist)
        source = live if cassette is None else RecordedSource(cassette)
        if source is None:
            raise ConfigError("no model is configured for the strategist: set policy_loop.strategist")
        panel = StrategistPanel(settings, template, wordings, source)
        if settings.runtime.llm == "record":
            panel.account.keep = CassetteWriter(Path(str(settings.runtime.cassette))).keep
        yield panel
    finally:
        await asked.close()
