"""A strategist behind the Messages API: it reads what it was asked and answers as a test decides."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from schemas.settings import LlmSettings, PolicyLoopSettings, ReflectionSettings, Settings
from schemas.settings.deliberation import DeliberationSettings
from schemas.settings.llm import ModelPrice
from tests.agents.language_models.wire_formats import FORMATS
from tests.agents.language_models.wire_server import WireServer, answer, message
from tests.agents.strategies.questions import HOLD, Question, propose, question
from tests.worker.wire import AGREES

PRICES = (ModelPrice(model="claude-test", input_usd=1.0, output_usd=5.0),)
USAGE = {
    "input_tokens": 100,
    "output_tokens": 50,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 4_000,
}
MARK = "You are the strategist"

Decision = Callable[[Question], dict[str, Any] | str]


class StrategistOnTheWire:
    """Handler of a wire server; whoever else asks hears that the rules are right."""

    def __init__(self, decide: Decision, provider: str = "anthropic") -> None:
        self._decide = decide
        self._provider = provider
        self.server = WireServer("")

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        body = self.server.requests[-1][1]
        shown = FORMATS[self._provider]
        request = shown.system_of(body).startswith(MARK)
        reply = self._decide(question(shown.prompt_of(body))) if request else AGREES
        text = reply if isinstance(reply, str) else json.dumps(reply)
        if self._provider == "anthropic":
            await answer(message(text, usage=USAGE))(writer)
        else:
            await answer(shown.body(text))(writer)

    @property
    def requested(self) -> list[dict[str, Any]]:
        """Bodies of the requests for a strategist, in order."""
        return [body for _, body in self.server.requests if is_strategy(body)]

    @property
    def questions(self) -> list[Question]:
        return [question(prompt_of(body)) for body in self.requested]


def is_strategy(body: dict[str, Any]) -> bool:
    return str(body["system"][0]["text"]).startswith(MARK)


def prompt_of(body: dict[str, Any]) -> str:
    return str(body["messages"][0]["content"])


def first_plan(request: Question) -> dict[str, Any]:
    """The rules' own first choice, or the next one when that was refused; a position is held."""
    if request.task == "manage":
        return HOLD
    return propose(request.base()) if request.task == "choose" else propose(request.bases[-1]["id"])


def proposing(mode: str = "deterministic", **llm: Any) -> Settings:
    """Settings of a run whose strategist is the model `claude-test`."""
    models: dict[str, Any] = {"model": "anthropic/claude-test"}
    patience = {"budget_event_ms": 20_000.0, "budget_heartbeat_ms": 20_000.0}
    return Settings(
        policy_loop=PolicyLoopSettings(strategist="model"),
        reflection=ReflectionSettings.model_validate({"mode": mode, **patience}),
        llm=LlmSettings(**({"prices": PRICES} | models | llm)),
        deliberation=DeliberationSettings.model_validate({"pass": {"enabled": False}}),
    )
