"""What the slow loop tries on paper, put together: its reflection with the grids, and its shadow trials."""

from prompts import load_prompt
from schemas.settings import Settings
from schemas.trials import TrialLedger
from services.deliberation.text_models import TextModels
from services.high_level.narrator import Narrator
from services.high_level_reflection_service import PROMPT_NAME, HighLevelReflectionService
from services.model_calls.language_model import LanguageModel
from services.model_calls.wording import Wordings
from services.playbooks.lifecycle import PlaybookLifecycle
from services.ports import EventJournal
from services.slow_loop.shadow_ledger import ShadowLedgers
from services.slow_loop.shadow_trials import ShadowTrials
from trading_core.market import Market


def assemble_reflection(
    settings: Settings,
    market: Market | None = None,
    model: LanguageModel | None = None,
    wordings: Wordings | None = None,
    texts: TextModels | None = None,
) -> HighLevelReflectionService:
    """The high-level reflection of a run, or of a worker beside it.

    Args:
        settings: the resolved configuration.
        market: on which grids are tried; None tries none.
        model: writes the narrative; None leaves it to the rules.
        wordings: how questions word their data.
        texts: look at the narrative again.
    """
    grid = None if market is None else ShadowLedgers(market, settings.execution, settings.envelope)
    narrator = None
    if model is not None:
        narrator = Narrator(
            load_prompt(PROMPT_NAME), model, settings.deliberation, texts or TextModels({}, {})
        )
    return HighLevelReflectionService(settings, grid, narrator, wordings=wordings)


def assemble_trials(
    settings: Settings,
    market: Market,
    lifecycle: PlaybookLifecycle,
    journal: EventJournal,
    before: TrialLedger,
) -> ShadowTrials:
    """The trials of a run; `before` says what was tried on its bars when it began."""
    ledgers = ShadowLedgers(market, settings.execution, settings.envelope)
    return ShadowTrials(ledgers, lifecycle, settings.gate, settings.judge, journal, before)
