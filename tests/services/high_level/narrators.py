"""Models that tell a narrative, true or not."""

import json
from dataclasses import dataclass, field

from services.model_calls.language_model import ModelReply

LIE = (
    "All 60 trades of channel_breakout won and squeeze_breakout earned +0.96R a trade, which is significant."
)
TRUE = "channel_breakout earned +0.18R a trade over 141 trades."


@dataclass
class Narrator:
    """Answers with one narrative after the other, the last one again and again; keeps what it was asked."""

    narratives: list[str]
    prompts: list[str] = field(default_factory=list)

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        self.prompts.append(prompt)
        said = self.narratives[min(len(self.prompts), len(self.narratives)) - 1]
        return ModelReply(json.dumps({"narrative": said, "cited_evidence": []}), "m", 1, 1, 0.0)
