"""Who plans the calls for an answer and who refines its text: the rules, or a model before them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.planning.rule_planner import RulePlanner
from schemas.settings import Settings
from services.ports import EvidencePlanner
from worker.studies.deliberated import models_asked

if TYPE_CHECKING:
    from services.deliberation.text_models import TextModels
    from services.model_calls.account import ModelAccount

USAGE = {"calls": 0, "input_tokens": 0, "output_tokens": 0}


@dataclass(frozen=True)
class AnswerModels:
    """Who plans, and who refines where there is a model."""

    planner: EvidencePlanner
    texts: "TextModels | None" = None
    account: "ModelAccount | None" = None

    @property
    def usage(self) -> dict[str, int]:
        """Calls and tokens of models so far."""
        if self.account is None:
            return dict(USAGE)
        payload = self.account.document()
        tokens = {f"{way}_tokens": payload["tokens"][way] for way in ("input", "output")}
        return {"calls": payload["calls"], **tokens}


@asynccontextmanager
async def answer_models(
    settings: Settings, environment: Mapping[str, str], names: Mapping[str, tuple[str, ...]]
) -> AsyncIterator[AnswerModels]:
    """The rules, with the configured model before them where there is one; `names` are those of the run.

    Raises:
        ConfigError: a model without a key, a price or a cassette.
    """
    if not settings.uses_models:
        yield AnswerModels(RulePlanner())
        return
    from agents.evidence_planner import ModelPlanner
    from agents.planning.backed_planner import BackedPlanner
    from agents.planning.plan_reply import PROMPT
    from worker.studies.study_models import open_models

    request = {PROMPT: settings.llm.slow_model, **models_asked(settings, "quality")}
    async with open_models(settings, environment, request, names=names) as opened:
        opened.account.open_event()
        quality = settings.deliberation.quality
        first = ModelPlanner(
            opened.models.texts[PROMPT], settings.planner,
            max_tokens=quality.improvement_tokens, deadline_ms=quality.deadline_ms,
        )  # fmt: skip
        yield AnswerModels(BackedPlanner(first, RulePlanner()), opened.models.text_models(), opened.account)
