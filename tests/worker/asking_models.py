"""A strategist's model inside the process: it agrees with the rules and remembers what it was asked."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from schemas.settings import LlmSettings, PolicyLoopSettings, Settings
from schemas.settings.deliberation import DeliberationSettings
from schemas.settings.llm import ModelPrice
from services.model_calls.language_model import ModelReply
from tests.agents.strategies.questions import HOLD, Question, propose, question
from tests.worker.shared_runs import Run, fewer_bars, run_on
from worker.models import Models

PERIOD = ("2003-01-01", "2004-06-30")
PRICES = (ModelPrice(model="claude-test", input_usd=1.0, output_usd=5.0),)


def agreeing(request: Question) -> dict[str, Any]:
    """The rules' first choice that was not refused; a position is held."""
    if request.task == "manage":
        return HOLD
    books = [base["id"] for base in request.bases if base["origin"] == "playbook"]
    return propose(books[0] if books else request.bases[-1]["id"])


class Asked:
    """Stands for a model: answers as told, or always the same, and keeps every request."""

    def __init__(self, decide: Callable[[Question], dict[str, Any]] | str = agreeing) -> None:
        self.decide = decide
        self.requests: list[dict[str, Any]] = []

    async def complete(self, **request: Any) -> ModelReply:
        self.requests.append(request)
        decide = self.decide
        text = decide if isinstance(decide, str) else json.dumps(decide(question(request["prompt"])))
        return ModelReply(text, "claude-test", 1, 1, 0.1)

    @property
    def questions(self) -> list[Question]:
        return [question(request["prompt"]) for request in self.requests]


ONE_CALL = DeliberationSettings.model_validate({"pass": {"enabled": False}})  # of a plan: its proposal alone


def asking(**llm: Any) -> Settings:
    """Settings of a run whose strategist is the model `claude-test`."""
    models = {"model": "anthropic/claude-test"}
    settings = {"prices": PRICES, **models, **llm}
    return Settings(
        policy_loop=PolicyLoopSettings(strategist="model"),
        llm=LlmSettings.model_validate(settings),
        deliberation=ONE_CALL,
    )


@cache
def agreeing_run(anonymise: bool = False) -> tuple[Run, Asked]:
    """A run whose model agrees with the rules, and what it was asked."""
    model = Asked()
    bars = fewer_bars(*PERIOD)
    return run_on(bars, asking(anonymise=anonymise), models=Models(strategist=model)), model
