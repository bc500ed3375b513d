"""The models of a judge beside a stored run: asked live, in the run's words, with an account of their own.

What they say stands in the verdict that is delivered, and in no journal: a cassette of the run is neither
played nor written.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from schemas.errors import ConfigError
from schemas.settings import Settings
from services.model_calls.wording import Wordings
from worker.models import check_models, text_models_of
from worker.operations.logs import EventSink
from worker.review.replanning import judging_settings
from worker.slow_worker.ports import Clock
from worker.slow_worker.wiring import JudgeModels
from worker.studies.asked_models import asked_models


@asynccontextmanager
async def judge_models(
    settings: Settings,
    symbols: Sequence[str],
    environment: Mapping[str, str],
    clock: Clock,
    note: EventSink,
) -> AsyncIterator[JudgeModels | None]:
    """The model of the judge and that of its planner; None where rules judge, or where none can be asked.

    Args:
        settings: of the run.
        symbols: of its bars.
        environment: holds the key.
        clock: by which days of the account begin.
        note: told why no model is asked although the settings name one: `judge_without_model`.
    """
    if settings.judge.replan == "rules":
        yield None
        return
    asking = judging_settings(settings, "model")
    try:
        check_models(asking, environment)
    except ConfigError as error:
        note("judge_without_model", {"reason": str(error)})
        yield None
        return
    async with asked_models(asking, environment, text_models_of(asking), clock) as (models, account):
        wordings = Wordings.of_run(symbols, anonymise=settings.llm.anonymise)
        yield JudgeModels(models.judge, models.texts, wordings, account.open_event)
