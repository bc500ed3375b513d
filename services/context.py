"""What every part of a run shares, in one value: made once, and handed on as it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.settings import Settings
from services.model_calls.wording import PLAIN_RUN, Wordings
from services.ports import Clock, EventJournal
from trading_core.tick_guard import TickGuard


@dataclass(frozen=True)
class RunContext:
    """The surroundings of the parts of one run; a constructor takes it, and beside it what is its own.

    Attributes:
        settings: the resolved configuration.
        clock: the time up to which anything is known.
        events: takes the journal rows of the run.
        guard: of the tick path, on which nothing is asked, remembered or changed.
        wordings: how questions to models word their data.
        market_waits: no bar comes while a model thinks.
    """

    settings: Settings
    clock: Clock
    events: EventJournal
    guard: TickGuard
    wordings: Wordings = PLAIN_RUN
    market_waits: bool = True

    @classmethod
    def of(
        cls,
        settings: Settings,
        symbols: Sequence[str],
        clock: Clock,
        events: EventJournal,
        market_waits: bool,
    ) -> "RunContext":
        """Of a run over these symbols that begins."""
        wordings = Wordings.of_run(symbols, anonymise=settings.llm.anonymise)
        return cls(settings, clock, events, TickGuard(), wordings, market_waits)
