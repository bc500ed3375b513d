"""How a question that is given up ends: live and played back in the same words."""

import asyncio

import pytest

from schemas.errors import ModelError
from services.model_calls.asking import NoReply, ask
from services.model_calls.language_model import ModelReply
from services.model_calls.record import GIVEN_UP


class Failing:
    def __init__(self, said: str, kind: str) -> None:
        self.error = ModelError(said, kind=kind)

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        raise self.error


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        (f"model 'm': {GIVEN_UP}", "timeout", "no answer within 50 ms"),
        ("model 'm': no whole reply within 50 ms", "timeout", "model 'm': no whole reply within 50 ms"),
        ("model 'm': HTTP 429", "throttled", "model 'm': HTTP 429"),
    ],
)
def test_call_that_was_given_up_is_played_back_in_the_words_that_it_ended_with(said, kind, told):
    asked = ask(Failing(said, kind), system="s", prompt="p", max_tokens=1, deadline_ms=50.0)
    assert asyncio.run(asked) == NoReply(kind, told)
