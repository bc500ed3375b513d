"""How a question to a model's API went wrong: one table of kinds for every SDK, and words without the key."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.language_models.key_mask import KeyMask
from schemas.errors import ModelError
from services.model_calls.quoting import visible
from services.model_calls.record import RAW_CHARACTERS, Usage
from services.model_calls.reply_text import quote_beginning
from services.model_calls.retry_after import Pause, pause_of

KIND_OF_STATUS = {
    408: "timeout", 409: "conflict", 429: "throttled", 503: "overloaded", 504: "timeout", 529: "overloaded",
}  # fmt: skip
KIND_OF_EVENT = {
    "overloaded_error": "overloaded", "rate_limit_error": "throttled", "rate_limit_exceeded": "throttled",
    "timeout_error": "timeout", "api_error": "server", "server_error": "server",
}  # fmt: skip
# By what a complaint names a parameter; one about the effort may name the field that also holds the form.
NAMED_BY = {
    "bound": {"max_tokens", "max_completion_tokens"},
    "temperature": {"temperature"},
    "effort": {"reasoning", "reasoning_effort", "effort", "think", "thinking"},
    "form": {"response_format", "output_config", "output_format", "json_schema", "schema"},
    "tools": {"tool", "tools", "tool_choice"},
}
WORD, QUOTED = re.compile(r"[\w-]+"), re.compile(r"""(?<!\w)([`'"])([\w.\[\]]+)\1""")
UNTAKEN = "not support "  # before what a server does not
BESIDE = 3  # words at the start of a complaint, and behind that, among which its subject stands
NO_TOOLS = "; a server whose models call no tools needs planner.native_tools = false"
SUCCESS, PAYMENT, TOO_MANY = 200, 402, 429


class AnsweredError(Exception):
    """An error where a reply belongs, in an answer that is called a success; `body` is what stands there."""

    def __init__(self, body: Any) -> None:
        super().__init__()
        self.body = body


class UnusableReply(ValueError):
    """A reply that is none, in words of ours."""


@dataclass
class Attempt:
    """A question on its way: what came in last and was counted, what refused parameters cost, its form."""

    received: bytearray = field(default_factory=bytearray)
    usage: Usage | None = None
    refused: int = 0
    formless: bool = False
    temperature_sent: bool | None = None


@dataclass(frozen=True)
class FailedCalls:
    """Words the failures of one model, whose key its mask takes out: a gateway may echo the request."""

    model: str
    mask: KeyMask

    def describe(
        self, kind: str, reason: str, attempt: Attempt, *, retryable: bool = False, **context: Any
    ) -> ModelError:
        """The failure of a kind, with what was received."""
        if attempt.usage is not None:
            context["usage"] = attempt.usage
        raw = self.mask(bytes(attempt.received).decode("utf-8", "backslashreplace"))
        if attempt.refused:
            context["requests"] = context.get("requests", 1) + attempt.refused
        return ModelError(
            f"model {self.model!r}: {self.mask(reason)}",
            retryable=retryable,
            kind=kind,
            raw=raw[:RAW_CHARACTERS],
            temperature_sent=attempt.temperature_sent,
            **context,
        )

    def describe_malformed(self, reason: str, attempt: Attempt, **context: Any) -> ModelError:
        """That a reply is none, with its size and how it begins."""
        begun = self.mask(bytes(attempt.received[:RAW_CHARACTERS]).decode("utf-8", "backslashreplace"))
        size = f"{len(attempt.received)} bytes, beginning {quote_beginning(begun)}"
        reason = f"the reply is no message: {reason}; {size}"
        return self.describe("malformed", reason, attempt, retryable=True, **context)

    def describe_error(self, error: Any, attempt: Attempt, *, with_tools: bool) -> ModelError:
        """What an SDK raised of an answer: a status, or an error event within a stream."""
        name, words = read_complaint(error.body)
        quoted = quote_beginning(self.mask(words)) if words else ""
        status = getattr(error, "status_code", SUCCESS)
        if status == SUCCESS:
            status, headers = _code_of(error.body), {}
            parts = [f"error event {self.mask(name or words)[:80]!r}", name and quoted]
        else:
            headers = error.response.headers
            parts = [f"HTTP {status}", "" if name == str(status) else visible(self.mask(name))[:80], quoted]
        reason, pause = " ".join(filter(None, parts)), _pause(headers, error.body)
        kind = _kind_of(status, name or words, pause)
        if status and 300 <= status < 400:
            reason += "; a redirect is not followed with the key: set llm.base_url to where it leads"
        if with_tools and kind == "rejected" and "tools" in refused_parameters(error.body):
            reason += NO_TOOLS
        context: dict[str, Any] = {"status": status} if status else {}
        if pause is not None:
            context["retry_after_ms"] = pause.wait_s * 1_000
            reason += f"; {pause.shown}" if pause.shown else ""
        return self.describe(kind, reason, attempt, retryable=kind != "rejected", **context)


def answered_error(document: Any) -> Any:
    """The error in an answer called a success, of the whole or of its first choice; None: there is none."""
    if not isinstance(document, dict):
        return None
    choices = document.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    parts = [part for part in (document, first) if isinstance(part, dict)]
    return next((found for part in parts if (found := part.get("error") or part.get("errors"))), None)


def read_complaint(body: Any) -> tuple[str, str]:
    """What an error says of itself: its type, and its message."""
    error = _innermost(body)
    if not isinstance(error, dict):
        return "", error if isinstance(error, str) else ""
    name = error.get("type") or error.get("code")
    words = error.get("message") or error.get("msg")
    return str(name or ""), words if isinstance(words, str) else ""


def _kind_of(status: int | None, name: str, pause: Pause | None) -> str:
    """The kind of failure that a status is, or an error in the place of a reply.

    A server that wants no more questions, or its money, and names a pause that is kept, is throttling; one
    that names a longer pause turns a run away, whatever it calls that.
    """
    if status is None:
        return KIND_OF_EVENT.get(name, "rejected")
    if status in (PAYMENT, TOO_MANY) and pause is not None and math.isfinite(pause.asked_s):
        return "rejected" if pause.shown else "throttled"
    return KIND_OF_STATUS.get(status, "server" if status >= 500 else "rejected")


def _code_of(body: Any) -> int | None:
    """The status that an error would have had as an answer of its own."""
    error = _innermost(body)
    texts = [str(error.get(key)) for key in ("code", "type")] if isinstance(error, dict) else []
    codes = [int(text) for text in texts if text.isdecimal()]
    return next((code for code in codes if 400 <= code < 600), None)


def _innermost(body: Any) -> Any:
    """The object or the text of a complaint, which servers wrap in lists and in fields of their own."""
    while True:
        if isinstance(body, list) and body:
            body = body[0]
        elif isinstance(body, dict) and (inside := _unwrap(body)) is not None:
            body = inside
        else:
            return body


def _unwrap(body: dict[str, Any]) -> Any:
    """What an object wraps; None where it has words of its own."""
    error, words = body.get("error") or body.get("errors"), body.get("message")
    if isinstance(error, dict | list) and error:
        return error
    return None if words and isinstance(words, str) else error or body.get("detail") or words or None


def refused_parameters(body: Any) -> set[str]:
    """The parameters that a complaint is about: the one that it names apart, or the subjects of its words.

    One that is only mentioned, in a sentence about something else, is none.
    """
    error = _innermost(body)
    apart = (error.get("param") or error.get("loc")) if isinstance(error, dict) else None
    subjects = [str(apart)] if apart else _subjects(read_complaint(body)[1])
    named = {word.lower() for subject in subjects for word in WORD.findall(subject)}
    found = {part for part, names in NAMED_BY.items() if names & named}
    return found - {"form"} if "effort" in found else found


def _subjects(words: str) -> list[str]:
    """What a message quotes, begins with, ends on behind a colon, or says is not supported."""
    last = words.rpartition(": ")[2].split()
    return [
        *(quoted[2] for quoted in QUOTED.finditer(words)),
        *words.split()[:BESIDE],
        *words.partition(UNTAKEN)[2].split()[:BESIDE],
        *(last if len(last) == 1 else ()),
    ]


def note_unsent(error: BaseException) -> dict[str, int]:
    """That no request was sent, where no connection was made: nothing of it can be billed then."""
    from httpx2 import ConnectError, ConnectTimeout

    unsent = isinstance(error.__cause__ or error, (ConnectError, ConnectTimeout))
    return {"requests": 0} if unsent else {}


def _pause(headers: Mapping[str, str], body: Any) -> Pause | None:
    """How long the server asks to wait; without end where it names a date, which needs a clock to be read.

    Google's APIs ask for it in the details of an error, like `{"retryDelay": "27s"}`.
    """
    for name, unit_s in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is not None:
            dated = Pause(math.inf if "GMT" in text else 0.0)  # below zero or no number: no wait
            return pause_of(headers, name=name, unit_s=unit_s) or dated
    error = _innermost(body)
    details = error.get("details") if isinstance(error, dict) else None
    parts = details if isinstance(details, list) else ()
    questions = [str(part["retryDelay"]) for part in parts if isinstance(part, dict) and "retryDelay" in part]
    return pause_of({"retry-after": questions[0].removesuffix("s")}) if questions else None
