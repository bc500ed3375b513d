"""Chunked writing: an outline, then section by section what was thought and what is written, then the whole.

Sections are asked for at once, or each is told what stands before it. A section that does not come is left
out and said so; without an outline the text is written in one piece.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.claims import Section
from schemas.deliberation import CallUsage, Deliberation
from schemas.settings.deliberation import ChunkedSettings
from services.deliberation.budget import Budget
from services.deliberation.claim_critics import ClaimText
from services.deliberation.forms import OUTLINE, SECTION, OutlineReply, SectionReply, read_text_reply
from services.deliberation.refine import Draft, Task, Trace, sections_of
from services.deliberation.text_models import MALFORMED, TextModels, quote_parts, read_as, usage_of
from services.model_calls.asking import NoReply
from services.model_calls.language_model import ModelReply
from services.model_calls.quoting import quoted_json
from services.model_calls.reply_text import MalformedReply

NAME = "chunked"
FEWEST_CHUNKS = 3
WRITTEN_SHOWN = 8_000  # characters of what stands before a section
Refined = Callable[[Draft, Budget], Awaitable[Deliberation]]


def calls_of(settings: ChunkedSettings) -> int:
    """Model calls at most: the outlines and one for each section."""
    return settings.outline_retries + settings.max_chunks


def is_long(settings: ChunkedSettings, requested_tokens: int) -> bool:
    """Whether a text of so many tokens is written in sections."""
    return settings.enabled and requested_tokens >= settings.auto_threshold


def as_count(settings: ChunkedSettings) -> str:
    """How many sections an outline is asked for."""
    if not settings.auto_outline or settings.max_chunks <= FEWEST_CHUNKS:
        return str(settings.max_chunks)
    return f"{FEWEST_CHUNKS} to {settings.max_chunks}"


@dataclass
class SectionedGenerator:
    """Writes a text section by section.

    Attributes:
        refined: what each section goes through before the next one is written; None: nothing.
        chunks: what was written, for the record.
        failed: why the last of the sections that are missing did not come.
    """

    models: TextModels
    settings: ChunkedSettings
    trace: Trace
    claims: ClaimText
    refined: Refined | None = None
    chunks: list[dict[str, Any]] = field(default_factory=list)
    failed: NoReply | None = None

    async def generate(self, task: Task, budget: Budget) -> Draft | NoReply:
        """The assembled text, or why there is none."""
        topics = self.claims.topics
        labels = await generate_outline(self.models, self.settings, task, topics, budget, self.trace)
        if isinstance(labels, NoReply):
            return labels
        written: list[Section] = []
        thoughts: list[str] = []
        together, started = self.settings.at_once and self.refined is None, budget.elapsed_ms
        drafts: list[Draft | NoReply] = []
        if together:
            drafts = await self._chunks(task, labels, budget)
        for index, label in enumerate(labels):
            if not together:
                started = budget.elapsed_ms
                drafts.append(await self._section(task, labels, index, written, budget))
            draft = drafts[index]
            self._tell(labels, index, draft, budget.elapsed_ms - started)
            if isinstance(draft, NoReply):
                self.failed = draft
                continue
            written += sections_of(draft)
            thoughts.append(f"{label}: {draft.reasoning}")
        if not written:
            return self.failed or NoReply(MALFORMED, "no section came")
        return replace(self.claims.draft(written), reasoning="\n".join(thoughts))

    async def _section(
        self, task: Task, labels: tuple[str, ...], index: int, written: Sequence[Section], budget: Budget
    ) -> Draft | NoReply:
        [draft] = await self._chunks(task, labels, budget, [index], self.claims.write(written).text)
        if isinstance(draft, Draft) and self.refined is not None:
            done = await self.refined(draft, budget)
            source = draft.source if done.standing is None else done.standing.source
            draft = replace(draft, text=done.final, source=source, cleaned=draft.cleaned + done.cleaned)
        return draft

    async def _chunks(
        self,
        task: Task,
        labels: tuple[str, ...],
        budget: Budget,
        wanted: Sequence[int] | None = None,
        written: str = "",
    ) -> list[Draft | NoReply]:
        """Sections asked for at once, with what was thought before each; or why there is none.

        `wanted` are their places among the labels, None for all; `written` stands before them.
        """
        values = quote_parts(task) | {
            "outline": quoted_json(list(labels)),
            "written": quoted_json(written[-WRITTEN_SHOWN:]),
        }
        places = list(range(len(labels))) if wanted is None else list(wanted)
        requests = [values | {"label": quoted_json(labels[place])} for place in places]
        tokens = self.settings.tokens_per_chunk
        replies = await self.models.ask_at_once(SECTION, tokens, budget, requests)
        return [self._read(reply, labels[place]) for reply, place in zip(replies, places, strict=True)]

    def _read(self, reply: ModelReply | NoReply, label: str) -> Draft | NoReply:
        answer_given = read_as(reply, lambda text: read_text_reply(text, SectionReply))
        if isinstance(answer_given, NoReply) or isinstance(reply, NoReply):
            return (
                answer_given if isinstance(answer_given, NoReply) else NoReply(MALFORMED, "no section came")
            )
        section = Section(topic=label, claims=answer_given.claims, comment=answer_given.comment)
        return self.claims.draft([section], reasoning=answer_given.reasoning, usage=usage_of(reply))

    def _tell(self, labels: tuple[str, ...], index: int, draft: Draft | NoReply, elapsed_ms: float) -> None:
        chunk = _chunk(index, labels[index], draft)
        self.chunks.append(chunk | {"reasoning": "" if isinstance(draft, NoReply) else draft.reasoning})
        tell_chunk(self.trace, index, draft.kind if isinstance(draft, NoReply) else "ok", chunk, elapsed_ms)


async def generate_outline(
    models: TextModels,
    settings: ChunkedSettings,
    task: Task,
    topics: Sequence[str],
    budget: Budget,
    trace: Trace,
) -> tuple[str, ...] | NoReply:
    """Some of the topics as labels of the sections, asked for again where they are not usable.

    Or why there are none.
    """
    failed = NoReply(MALFORMED, "no outline came")
    for attempt in range(settings.outline_retries):
        started = budget.elapsed_ms
        values = quote_parts(task) | {"count": as_count(settings), "topics": quoted_json(list(topics))}
        reply = await models.ask(OUTLINE, settings.outline_tokens, budget, **values)
        labels = read_as(reply, lambda text: _labels(text, settings, topics))
        if not isinstance(labels, NoReply):
            tell_outline(trace, attempt, "ok", labels, budget.elapsed_ms - started)
            return labels
        failed = labels
        tell_outline(trace, attempt, failed.kind, (), budget.elapsed_ms - started)
        if failed.kind != MALFORMED:
            break
    return failed


def tell_outline(
    trace: Trace, attempt: int, status: str, labels: Sequence[str], elapsed_ms: float = 0.0
) -> None:
    """One outline, as an event."""
    payload = {"status": status, "chunk_count": len(labels), "outline": list(labels)}
    trace.add("chunk_outline", elapsed_ms, iter=attempt, name="generate_outline", **payload)


def tell_chunk(
    trace: Trace, index: int, status: str, chunk: Mapping[str, Any], elapsed_ms: float = 0.0
) -> None:
    """One section, as an event."""
    trace.add("chunk_write", elapsed_ms, iter=index + 1, name="write_chunk", status=status, **chunk)


def _labels(text: str, settings: ChunkedSettings, topics: Sequence[str]) -> tuple[str, ...]:
    """The labels of a reply; too many are cut.

    Raises:
        MalformedReply: it has none, too few, one that is empty or stands twice, or one that is no topic.
    """
    labels = tuple(label.strip() for label in read_text_reply(text, OutlineReply).chunks)
    least = min(FEWEST_CHUNKS, settings.max_chunks) if settings.auto_outline else settings.max_chunks
    if "" in labels or len({label.casefold() for label in labels}) < len(labels):
        raise MalformedReply.in_our_words("a label is empty or stands twice")
    if not set(labels) <= set(topics):
        raise MalformedReply.in_our_words(f"a label is none of the topics {', '.join(topics)}")
    if len(labels) < least:
        raise MalformedReply.in_our_words(f"{len(labels)} sections, fewer than {least}")
    return labels[: settings.max_chunks]


def _chunk(index: int, label: str, draft: Draft | NoReply) -> dict[str, Any]:
    """What an event says of a section; tokens are shared out between thought and text by their length."""
    usage, thought, text = CallUsage(), "", ""
    if isinstance(draft, Draft):
        usage, thought, text = draft.usage, draft.reasoning, draft.text
    length = len(thought) + len(text)
    reasoning = round(usage.output_tokens * len(thought) / length) if length else 0
    return {
        "chunk_index": index,
        "chunk_label": label,
        "reasoning_tokens": reasoning,
        "content_tokens": usage.output_tokens - reasoning,
    }


def result_fields(done: Deliberation) -> dict[str, Any]:
    """The result as the preset's own fields have it: the outline and its sections."""
    outlines = [event.fields for event in done.events if event.kind == "chunk_outline"]
    labels = list(outlines[-1]["outline"]) if outlines else []
    return {"chunk_count": len(labels), "outline": labels, "chunks": list(done.details.get("chunks", ()))}
