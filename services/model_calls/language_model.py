"""The port of a language model: one call with one deadline, and the reply with what it cost."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from schemas.tool import ToolUse

TIMEOUT = "timeout"  # the kind of a failure: no reply within the deadline
GIVEN_UP = "given up before it answered"


@dataclass(frozen=True)
class ModelReply:
    """Raw text of a model with what it cost; validation is the caller's.

    `requests` were sent for it, of which `lost` may be billed although nothing was counted: they failed, or
    the reply tells no count that can be.
    Of the tokens written to a cache `cache_hour_tokens` are kept for an hour, `cache_write_tokens` for less.
    `uses` are the calls that it asks for, of the tools that came with the question. `temperature_sent` tells
    whether the server was sent the one asked for; None: none was. `mask` takes the key out of what is stored
    of the texts.
    """

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    latency_ms: float
    cache_write_tokens: int = 0
    cache_read_tokens: int = 0
    cache_hour_tokens: int = 0
    requests: int = 1
    lost: int = 0
    uses: tuple[ToolUse, ...] = ()
    temperature_sent: bool | None = None
    mask: Callable[[str], str] = field(default=str, compare=False, repr=False)


class LanguageModel(Protocol):
    """One call, one deadline; every failure is a `ModelError`. One that calls tools takes `tools`, too."""

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        """The model's raw reply within the deadline."""
        ...
