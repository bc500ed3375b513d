"""The port of a language model: one call with one deadline, and the reply with what it cost."""

from dataclasses import dataclass
from typing import Protocol

from schemas.tool import Tools, ToolUse


@dataclass(frozen=True)
class ModelReply:
    """Raw text of a model with what it cost; validation is the caller's.

    `requests` were sent for it, of which `lost` failed in a way that may be billed although none was counted.
    `uses` are the calls that it asks for, of the tools that came with the question.
    """

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    latency_ms: float
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    requests: int = 1
    lost: int = 0
    uses: tuple[ToolUse, ...] = ()


class LanguageModel(Protocol):
    """One call, one deadline; every failure is a `ModelError`."""

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        """The model's raw reply within the deadline."""
        ...


class ToolCallingModel(Protocol):
    """A language model that can be given tools to call, by its provider's own means."""

    async def complete(
        self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float, tools: Tools = ()
    ) -> ModelReply:
        """The model's raw reply within the deadline, with the calls that it asks for."""
        ...
