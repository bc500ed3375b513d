"""Models that are asked beside a run: about a text, a change or a question, with an account of their own."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from schemas.settings import Settings
from services.context import RunContext
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.account import ModelAccount
from services.ports import Clock
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard
from worker.models import Models, Names, Replies, assemble_models, check_models


@dataclass(frozen=True)
class OpenModels:
    """What is asked, and the account that admits and counts it; `clock` is its, unless it has another."""

    models: Models
    account: ModelAccount
    clock: SimulatedClock

    def at(self, known_at: int, symbol: str | None) -> Models:
        """What is asked at a moment, ns, about a symbol: an event of the account, in the order of bars."""
        self.clock.advance(known_at)
        self.account.open_event(symbol)
        return self.models


@asynccontextmanager
async def open_models(
    settings: Settings,
    environment: Mapping[str, str],
    texts: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    names: Names | None = None,
    *,
    decides: bool = False,
    given: Models | None = None,
    journal: JournalWriter | None = None,
) -> AsyncIterator[OpenModels]:
    """The models that the settings ask, closed at the end.

    Args:
        settings: that ask a model.
        environment: holds the key.
        texts: the model's name by prompt about texts; None: as the settings have it.
        clock: of the account, whose days begin by it; None: one of its own.
        names: of the run, by the field of a reply that takes them; None: any name can be written.
        decides: whether anything is decided, for which texts leave something.
        given: asked instead of the configured ones.
        journal: of the calls; None: nobody reads it.

    Raises:
        ConfigError: a model without a key, a price or a cassette.
    """
    if given is None:
        check_models(settings, environment)
    journal, own = journal or JournalWriter(MemorySink()), SimulatedClock()
    context = RunContext(settings, clock or own, journal, TickGuard())
    made = assemble_models(context, environment, Replies(given), texts=texts, names=names, decides=decides)
    try:
        yield OpenModels(made.accounted, made.account, own)
    finally:
        await made.live.close()
