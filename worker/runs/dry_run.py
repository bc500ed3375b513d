"""A run by rules that counts what models would be asked, and asks nothing.

Where a reply leads to further questions, a strategist's and that of who writes reports, it is the rules' own:
their first plan, a report's count of trades. Everybody else does not answer, so that the rules decide as
where a model fails. Second questions after a reply that cannot be used, corrections, and plans of a model
that are not the rules' own are not known without replies: they come on top.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.strategies.model_strategist import PROMPT as STRATEGIST
from prompts import load_prompt
from schemas.errors import ConfigError, ModelError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from schemas.settings.llm import EventLimits, ModelLimits, RunLimits
from schemas.tool import Tools
from services.high_level.report_sections import TOPICS
from services.journal.sinks import DiscardingSink
from services.journal.writer import JournalWriter
from services.model_calls.budget import BYTES_PER_TOKEN, LIMITS
from services.model_calls.language_model import ModelReply
from services.model_calls.record import Usage
from trading_core.bars import BarSeries
from worker.feeds.doubts import doubt_documents
from worker.models import Overrides, one_model
from worker.runs.backtest import Progress, run_backtest
from worker.session import Session

NOT_ASKED = "dry_run"
WITHOUT_LIMITS = {
    "per_event": EventLimits(calls=None),
    "per_day": ModelLimits(),
    "per_run": RunLimits(usd=None),
}


@dataclass(frozen=True)
class QuestionCounter:
    """A model that uses what the budget estimates at most; `reply_to` gives None where it does not answer."""

    reply_to: Callable[[str], Any] = lambda prompt: None

    async def complete(
        self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float, tools: Tools = ()
    ) -> ModelReply:
        """The reply, or none.

        Raises:
            ModelError: there is none; with the tokens of the question and the bound of its reply.
        """
        size = len(system.encode()) + len(prompt.encode())
        usage = Usage(input_tokens=-(-size // BYTES_PER_TOKEN), output_tokens=max_tokens)
        if (reply := self.reply_to(prompt)) is not None:
            return ModelReply(json.dumps(reply), NOT_ASKED, latency_ms=0.0, **usage.model_dump())
        raise ModelError("nobody is asked in a dry run", kind=NOT_ASKED, requests=0, usage=usage)


def first_plan(prompt: str) -> dict[str, Any] | None:
    """The reply of a strategist who takes the rules' first plan that was not sent back, if there is one.

    Its reasons are the rules' in an order of its own: they are looked at as those of a model are.
    """
    before = load_prompt(STRATEGIST).text.partition("{{bases}}")[0].rpartition("}}")[2].lstrip()
    bases, _ = json.JSONDecoder().raw_decode(prompt.partition(before)[2])
    base = next((base for base in bases if base["origin"] != "refused"), None)
    if base is None:
        return None
    reason, *others = base["plan"]["because"]
    return {"because": [*others, reason], "answer": "propose", "base": base["id"], "changes": []}


def count_trades(_: str) -> dict[str, Any]:
    """The reply of a narrator who says of each topic how many trades there were."""
    claim = {"kind": "value", "measure": "report_trades", "of": {}}
    return {"sections": [{"topic": topic, "claims": [claim], "comment": None} for topic in TOPICS]}


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

    silent = one_model(settings, QuestionCounter())
    free = settings.model_copy(update={"llm": settings.llm.model_copy(update=WITHOUT_LIMITS)})
    done = await run_backtest(
        free, bars, JournalWriter(DiscardingSink()), definitions=definitions, progress=progress,
        own=Overrides(
            replace(silent, slow=QuestionCounter(count_trades), strategist=QuestionCounter(first_plan)),
            prepare=prepare,
        ),
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
        "data": {"doubts": doubt_documents(bars, settings.data)},
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
