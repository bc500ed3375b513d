"""The study table: question by template by model by sample, asked outside any run.

One way of asking is a template and the settings of a model; a study holds what came of it, question by
question and sample by sample. Spread, comparison and diff are views of such studies. Accounted, retried and
within the budget; nothing is written to a run.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from agents.language_models.accounted import AccountedModel, LiveSource, RecordedSource, ReplySource
from agents.language_models.cassette import CassetteWriter
from prompts import PromptTemplate
from schemas.errors import ConfigError
from schemas.settings import Settings
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.account import ModelAccount
from services.model_calls.reply_format import ReplyFormat
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard
from worker.models import Models, caller_of, check_models, configured_cassette, configured_models

Progress = Callable[[int, int], None]


class Moment(Protocol):
    """Where a question stands in a run."""

    @property
    def known_at(self) -> int:
        """Ns."""
        ...

    @property
    def symbol(self) -> str | None:
        """That it is about; None: none alone."""
        ...


class RecordedQuestion(Protocol):
    """A question of a run."""

    @property
    def snapshot(self) -> Moment:
        """What it was asked at."""
        ...


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one asking cost; `usd` is None where no price is known."""

    tokens: int = 0
    usd: float | None = None


Q = TypeVar("Q", bound=RecordedQuestion)
A = TypeVar("A", bound=Cost)


class Panel(ABC, Generic[Q, A]):
    """One model with one template; `account` has counted what was asked.

    Attributes:
        form: of its replies.
        seat: of the model among the configured ones.
        setting: what has to be set for it.
        model_setting: the setting of `llm` that names it.
    """

    form: ClassVar[ReplyFormat]
    seat: ClassVar[str]
    model_setting: ClassVar[str]
    setting: ClassVar[str]

    def __init__(
        self, settings: Settings, template: PromptTemplate, questions: Any, source: ReplySource
    ) -> None:
        """Open the account.

        Args:
            settings: prices, limits, budgets, deadline and envelope.
            template: words the question.
            questions: that are asked; they know how their data is worded.
            source: of replies.
        """
        self._settings = settings
        self._template = template
        self._questions = questions
        self._clock = SimulatedClock()
        self.account = ModelAccount(settings.llm, JournalWriter(MemorySink()), self._clock)
        caller = caller_of(settings, getattr(settings.llm, self.model_setting), self.form, template.hash)
        self._model = AccountedModel(caller, source, self.account, TickGuard())

    async def sample(self, question: Q) -> A:
        """Ask once; questions come in the order of their bars.

        Raises:
            CassetteMiss: it is played back and was not recorded.
        """
        self._clock.advance(question.snapshot.known_at)
        self.account.open_event(question.snapshot.symbol)
        spent = self.account.ledger.run
        before = replace(spent)
        sample = await self._ask(question)
        return replace(sample, tokens=spent.tokens - before.tokens, usd=spent.usd - before.usd)

    @abstractmethod
    async def _ask(self, question: Q) -> A:
        """What came of one asking, but for its cost."""


class Questions(Protocol[Q, A]):
    """What a run asked one of its models."""

    @property
    def asks(self) -> type[Panel[Q, A]]:
        """How it is asked."""
        ...


@dataclass(frozen=True)
class Study(Generic[Q, A]):
    """What one way of asking came to: `samples` holds those of each question, in order."""

    asked: Sequence[Q]
    samples: Sequence[Sequence[A]]
    latency_ms: dict[str, Any]

    @property
    def every(self) -> list[A]:
        """All samples, question after question."""
        return list(chain.from_iterable(self.samples))


async def study(
    questions: Questions[Q, A],
    asked: Sequence[Q],
    settings: Settings,
    template: PromptTemplate,
    environment: Mapping[str, str],
    *,
    samples: int,
    progress: Progress,
) -> Study[Q, A]:
    """Ask each question `samples` times, live or from a cassette.

    Raises:
        ConfigError: no key, no price, or a cassette that cannot be read or written.
        CassetteMiss: a sample is played back and was not recorded.
    """
    told: list[list[A]] = []
    async with open_panel(questions, settings, template, environment) as panel:
        for number, question in enumerate(asked):
            told.append([])
            for taken in range(samples):
                progress(number * samples + taken, len(asked) * samples)
                told[-1].append(await panel.sample(question))
        progress(len(asked) * samples, len(asked) * samples)
        latency = panel.account.document()["latency_ms"]
    return Study(asked, told, latency)


@asynccontextmanager
async def open_panel(
    questions: Questions[Q, A], settings: Settings, template: PromptTemplate, environment: Mapping[str, str]
) -> AsyncIterator[Panel[Q, A]]:
    """The configured model, live or from a cassette; closed at the end.

    Raises:
        ConfigError: no key, no price, or a cassette that cannot be read or written.
    """
    check_models(settings, environment)
    cassette = configured_cassette(settings)
    models = Models() if cassette is not None else configured_models(settings, TickGuard(), environment)
    try:
        model = getattr(models, questions.asks.seat)
        if cassette is None and model is None:
            raise ConfigError(f"no model is configured for {questions.asks.setting}")
        source = LiveSource(model) if cassette is None else RecordedSource(cassette)
        panel = questions.asks(settings, template, questions, source)
        if settings.runtime.llm == "record":
            panel.account.keep = CassetteWriter(Path(str(settings.runtime.cassette))).keep
        yield panel
    finally:
        await models.close()


def tally(names: Iterable[str | None]) -> dict[str, int]:
    """How often each name occurs, by name; None is none."""
    return dict(sorted(Counter(name for name in names if name is not None).items()))


def dollars(samples: Iterable[Cost]) -> float | None:
    """What the samples cost; None where that is not known."""
    known = [sample.usd for sample in samples if sample.usd is not None]
    return sum(known) if known else None
