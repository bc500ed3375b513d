"""A person's text as typed actions: in its forms, or read into them by a model where the settings ask one."""

from collections.abc import Mapping, Sequence

from agents.change_reader import ChangeReading, read_with_model
from agents.change_reply import PROMPT
from schemas.errors import OperatorError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.model_calls.wording import Wording, Wordings
from services.plans.text_forms import UnreadableText, read_text


async def read_change(
    text: str,
    definitions: Mapping[str, PlaybookDefinition],
    settings: Settings,
    environment: Mapping[str, str],
    *,
    symbols: Sequence[str] = (),
    now: int = 0,
) -> ChangeReading:
    """The actions that a text asks for.

    Args:
        text: what was said.
        definitions: versions in force by playbook id.
        settings: of the run; where they ask a model, it reads what has no form, asked live.
        environment: holds the key.
        symbols: of the run, which are not told where `llm.anonymise` is on.
        now: the run's last bar in ns, from which times are told then.

    Raises:
        UnreadableText: the text has no form, and no model read it into any.
        ConfigError: the text cannot be used.
    """
    try:
        return ChangeReading(read_text(text, definitions, settings.judge))
    except UnreadableText as error:
        if not settings.uses_models:
            raise
        told = error
    wording = Wordings.of_run(symbols, anonymise=settings.llm.anonymise).at(now)
    live = settings.runtime.model_copy(update={"llm": "live", "cassette": None})
    try:
        return await _asked(
            text, definitions, settings.model_copy(update={"runtime": live}), environment, wording
        )
    except OperatorError as error:
        raise UnreadableText(f"{told}; {error}") from error


async def _asked(
    text: str,
    definitions: Mapping[str, PlaybookDefinition],
    settings: Settings,
    environment: Mapping[str, str],
    wording: Wording,
) -> ChangeReading:
    # The engine comes with the models: a text in a form waits for neither.
    from trading_core.clock import SimulatedClock
    from worker.models import models_in_use
    from worker.studies.asked_models import asked_models

    names, slow = models_in_use(settings), settings.llm.slow_model
    asked = {PROMPT: slow if slow in names else names[0]}
    clock = SimulatedClock(wording.now or 0)
    async with asked_models(settings, environment, asked, clock) as (models, account):
        account.open_event()
        return await read_with_model(
            text, definitions, settings.judge, models.texts[PROMPT],
            max_tokens=settings.plans.analysis_tokens, wording=wording,
        )  # fmt: skip
