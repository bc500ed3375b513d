"""How a question that is given up ends: live and played back in the same words."""

import asyncio

import pytest

from schemas.errors import ModelError
from services.model_calls.asking import NoReply, ask
from services.model_calls.language_model import GIVEN_UP, ModelReply


class Failing:
    def __init__(self, text: str, kind: str) -> None:
        self.error = ModelError(text, kind=kind)

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        raise self.error


@pytest.mark.parametrize(
    ("quoted", "kind", "shown"),
    [
        (f"model 'm': {GIVEN_UP}", "timeout", "no answer within 50 ms"),
        ("model 'm': no whole reply within 50 ms", "timeout", "model 'm': no whole reply within 50 ms"),
        ("model 'm': HTTP 429", "throttled", "model 'm': HTTP 429"),
    ],
)
def test_call_that_was_given_up_is_played_back_in_the_words_that_it_ended_with(quoted, kind, shown):
    request = ask(Failing(quoted, kind), system="s", prompt="p", max_tokens=1, deadline_ms=50.0)
    assert asyncio.run(request) == NoReply(kind, shown)
