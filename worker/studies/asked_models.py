"""Models that are asked beside a run: about a text, a change or a question, with an account of their own."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from schemas.settings import Settings
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.account import Clock, ModelAccount
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard
from worker.models import Models, Names, assemble_models, check_models


@asynccontextmanager
async def asked_models(
    settings: Settings,
    environment: Mapping[str, str],
    asked: Mapping[str, str],
    clock: Clock | None = None,
    names: Names | None = None,
    *,
    decides: bool = False,
) -> AsyncIterator[tuple[Models, ModelAccount]]:
    """The model of each prompt, admitted and counted by the account, which an event is to be opened in.

    Args:
        settings: that ask a model.
        environment: holds the key.
        asked: the model's name by prompt.
        clock: of the account, whose days begin by it; None stands still.
        names: of the run, by the field of a reply that takes them; None: any name can be written.
        decides: whether the judge is asked too, for whom something is left.

    Raises:
        ConfigError: a model without a key, a price or a cassette.
    """
    check_models(settings, environment)
    made = assemble_models(
        settings,
        JournalWriter(MemorySink()),
        clock or SimulatedClock(),
        TickGuard(),
        environment,
        texts=asked,
        names=names,
        decides=decides,
    )
    try:
        yield made.accounted, made.account
    finally:
        await made.live.close()
