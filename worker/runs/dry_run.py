"""A run by rules that counts what models would be asked, and asks nothing.

Whom a question would go to hears that nobody answers, so that the rules decide as where a model fails. Second
questions after a reply that cannot be used, revisions that a model makes and texts that are looked at again
are not known without replies: they come on top.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from schemas.errors import ConfigError, ModelError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from schemas.settings.llm import EventLimits, ModelLimits, RunLimits
from schemas.tool import Tools
from services.journal.sinks import DiscardingSink
from services.journal.writer import JournalWriter
from services.model_calls.budget import BYTES_PER_TOKEN, LIMITS
from services.model_calls.language_model import ModelReply
from services.model_calls.record import Usage
from trading_core.bars import BarSeries
from worker.models import Overrides, one_model
from worker.runs.backtest import Progress, run_backtest
from worker.session import Session

NOT_ASKED = "dry_run"
WITHOUT_LIMITS = {
    "per_event": EventLimits(calls=None),
    "per_day": ModelLimits(),
    "per_run": RunLimits(usd=None),
}


class QuestionCounter:
    """A model that counts what it would have used at most, as the budget estimates it."""

    async def complete(
        self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float, tools: Tools = ()
    ) -> ModelReply:
        """No reply.

        Raises:
            ModelError: always, with the tokens of the question and the bound of its reply.
        """
        size = len(system.encode()) + len(prompt.encode())
        usage = Usage(input_tokens=-(-size // BYTES_PER_TOKEN), output_tokens=max_tokens)
        raise ModelError("nobody is asked in a dry run", kind=NOT_ASKED, requests=0, usage=usage)


async def count_questions(
    settings: Settings,
    bars: BarSeries,
    definitions: Sequence[PlaybookDefinition] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """What the models of a run over these bars would be asked, by prompt; `usd` and `tokens` are at most.

    `limits` are those of `llm.per_run` that would end the asking before.

    Raises:
        ConfigError: the settings ask no model, or one without a price.
    """
    if not settings.uses_models:
        raise ConfigError(
            "no model is asked by these settings, so there is nothing to count: set --strategist model or "
            "--reflection full, and llm.model"
        )
    counted: Counter[str] = Counter()

    def prepare(session: Session) -> None:
        session.models.account.keep = lambda call: counted.update([call.prompt])

    free = settings.model_copy(update={"llm": settings.llm.model_copy(update=WITHOUT_LIMITS)})
    done = await run_backtest(
        free, bars, JournalWriter(DiscardingSink()), definitions=definitions, progress=progress,
        own=Overrides(one_model(settings, QuestionCounter()), prepare=prepare),
    )  # fmt: skip
    used = done.session.models.account.ledger.run
    bounds = {name: getattr(settings.llm.per_run, name) for name in LIMITS}
    return {
        "questions": used.calls,
        "by_prompt": dict(sorted(counted.items())),
        "tokens": used.tokens,
        "usd": used.usd,
        "limits": {
            name: most for name, most in bounds.items() if most is not None and getattr(used, name) > most
        },
        "bars": done.session.bars_validated,
    }


def describe_questions(found: dict[str, Any]) -> str:
    """What a dry run counted, in one line."""
    by_prompt = ", ".join(f"{name} {count:,}" for name, count in found["by_prompt"].items()) or "none"
    over = ", ".join(f"llm.per_run.{name} = {most:g}" for name, most in found["limits"].items())
    return (
        f"{found['questions']:,} questions to models over {found['bars']:,} bars ({by_prompt}): at most "
        f"{found['tokens']:,} tokens and ${found['usd']:,.2f}, corrections and revisions on top"
        + (f"; {over} would end the asking before" if over else "")
    )
