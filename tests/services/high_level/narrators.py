"""Models that write a narrative, true or not."""

import json
from dataclasses import dataclass, field
from typing import Any

from services.model_calls.language_model import ModelReply
from tests.services.deliberation.claim_texts import LIE, MEAN, TRADES
from tests.services.deliberation.scripted import section

TRUE = (section(MEAN, TRADES),)
FALSE = (section(LIE),)


@dataclass
class Narrator:
    """Answers with the sections of one narrative after the other, the last one again and again.

    A reply that is a text is given as it is; it keeps what it was asked.
    """

    narratives: list[Any]
    prompts: list[str] = field(default_factory=list)

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        self.prompts.append(prompt)
        shown = self.narratives[min(len(self.prompts), len(self.narratives)) - 1]
        text = shown if isinstance(shown, str) else json.dumps({"sections": list(shown)})
        return ModelReply(text, "m", 1, 1, 0.0)
