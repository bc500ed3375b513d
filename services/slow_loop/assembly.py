"""What the slow loop tries on paper, put together: its reflection with the grids, and its shadow trials."""

from schemas.settings import Settings
from schemas.trials import TrialLedger
from services.context import RunContext
from services.high_level_reflection_service import HighLevelReflectionService, ReportNarrator
from services.model_calls.wording import Wordings
from services.playbooks.assembly import RunPlaybooks
from services.playbooks.expectations import ExpectationBook
from services.slow_loop.measured_expectations import ExpectationMeter
from services.slow_loop.shadow_ledger import ShadowLedgers
from services.slow_loop.shadow_trials import ShadowTrials
from trading_core.market import Market


def assemble_reflection(
    settings: Settings,
    market: Market | None = None,
    narrator: ReportNarrator | None = None,
    wordings: Wordings | None = None,
) -> HighLevelReflectionService:
    """The high-level reflection of a run, or of a worker beside it.

    Args:
        settings: the resolved configuration.
        market: on which grids are tried; None tries none.
        narrator: asks a model for the narrative; None leaves it to the rules.
        wordings: how questions word their data.
    """
    grid = None if market is None else ShadowLedgers(market, settings.execution, settings.envelope)
    return HighLevelReflectionService(settings, grid, narrator, wordings=wordings)


def assemble_trials(
    context: RunContext,
    market: Market,
    books: RunPlaybooks,
    expectations: ExpectationBook,
    before: TrialLedger,
) -> ShadowTrials:
    """The trials of a run; `before` says what was tried on its bars when it began."""
    ledgers = ShadowLedgers(market, context.settings.execution, context.settings.envelope)
    meter = ExpectationMeter(ledgers, expectations, books.reader, context.events)
    return ShadowTrials(context, ledgers, books.lifecycle, meter.measure, before)
