"""The one loop of every text that is looked at again: draft, critique, accept or revise, and choose.

It stops by rounds, calls and tokens, never by a clock, and always comes back with an outcome: whatever a
collaborator does not answer, or answers too late, ends the loop with the best text so far.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from schemas.canonical import content_hash
from schemas.claims import Section
from schemas.contract import Contract
from schemas.deliberation import (
    Author,
    CallUsage,
    Critique,
    CritiqueSource,
    Deliberation,
    DeliberationEvent,
    DeliberationStatus,
    StopReason,
    TextCandidate,
)
from schemas.errors import ModelError
from services.deliberation.budget import Budget
from services.deliberation.policies import (
    INDEPENDENT,
    STRICTNESS,
    Acceptance,
    Application,
    Guard,
    Round,
    Selection,
    aggregate,
    best_verified,
    brings_nothing_new,
)
from services.model_calls.asking import GRACE_MS, NoReply
from services.model_calls.language_model import TIMEOUT
from services.model_calls.quoting import printable, visible

BUDGET_SPENT = "budget"
FACTS_FAILED = "facts_failed"  # to be read
CLAIM_REFUSED = "claim_refused"  # of a claim that does not hold
NOTHING_LEFT = "nothing_left"  # of a text that a reviser by rules would strike whole
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Task:
    """What a text is to say: the question, and the material that it may use.

    `topics` are what it has to cover.
    """

    question: str
    material: str = ""
    topics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Draft:
    """A text that somebody wrote, with what it cost.

    Attributes:
        cleaned: characters that nobody sees and that were taken out.
        source: the data that the text was rendered from.
    """

    text: str
    author: Author = "model"
    reasoning: str = ""
    usage: CallUsage = CallUsage()
    cleaned: int = 0
    source: tuple[Contract, ...] = ()

    def __post_init__(self) -> None:
        plain = printable(self.text)
        object.__setattr__(self, "cleaned", self.cleaned + len(self.text) - len(plain))
        object.__setattr__(self, "text", plain)


class ClaimWriter(Protocol):
    """Writes the claims of a text in words."""

    def draft(self, sections: Sequence[Section], *, reasoning: str) -> Draft:
        """The text of what holds; empty where no claim does."""
        ...


def sections_of(candidate: TextCandidate | Draft) -> tuple[Section, ...]:
    """The sections that a text was rendered from; none of a text that was given."""
    return tuple(part for part in candidate.source if isinstance(part, Section))


@dataclass
class Trace:
    """What happened, in order; times beside what is hashed. A preset notes what is an event of its own."""

    events: list[DeliberationEvent] = field(default_factory=list)

    def add(self, kind: str, elapsed_ms: float = 0.0, **fields: object) -> None:
        """One event."""
        self.events.append(DeliberationEvent(kind=kind, fields=fields, elapsed_ms=max(0.0, elapsed_ms)))

    def note_critique(self, critique: Critique, elapsed_ms: float) -> None:
        """A critic has spoken."""

    def note_revision(self, draft: Draft, before: str, elapsed_ms: float) -> None:
        """A text has come in the place of another."""


class Generator(Protocol):
    """Writes a text."""

    async def generate(self, task: Task, budget: Budget) -> Draft | NoReply:
        """The text, or why there is none."""
        ...


class Critic(Protocol):
    """Looks at one candidate; a critic without a model uses no call."""

    @property
    def name(self) -> str:
        """In the critiques."""
        ...

    @property
    def source(self) -> CritiqueSource:
        """What its word rests on."""
        ...

    async def critique(
        self, task: Task, candidate: TextCandidate, rounds: Sequence[Round], budget: Budget
    ) -> Critique | NoReply:
        """The critique, or why there is none."""
        ...


class Reviser(Protocol):
    """Writes the next candidate."""

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """A text in the place of the newest one, or why there is none."""
        ...


@dataclass(frozen=True)
class Policies:
    """The rules of one loop; see `policies`."""

    acceptance: Acceptance = Acceptance()
    application: Application = brings_nothing_new
    selection: Selection = best_verified
    guard: Guard | None = None
    critique_again: bool = True


@dataclass
class Loop:
    """One refinement under way."""

    task: Task
    critics: Sequence[Critic]
    reviser: Reviser | None
    policies: Policies
    budget: Budget
    trace: Trace
    preset: str
    rounds: list[Round] = field(default_factory=list)
    failure: NoReply | None = None
    cleaned: int = 0

    async def look_at(self, draft: Draft, number: int) -> Round:
        """Add a candidate with its critiques; models are asked only where no rule wants it changed."""
        self.cleaned += draft.cleaned
        parent = self.rounds[-1].candidate.number if self.rounds else None
        candidate = TextCandidate(
            number=number,
            text=draft.text,
            hash=content_hash(draft.text),
            author=draft.author,
            parent=parent,
            round=number,
            reasoning=draft.reasoning,
            source=draft.source,
        )
        independent = [critic for critic in self.critics if critic.source in INDEPENDENT]
        critiques = await self._ask_critics(independent, candidate)
        view = aggregate(critiques)
        if STRICTNESS[view.verdict] == 0 and (number == 0 or self.policies.critique_again):
            others = [critic for critic in self.critics if critic.source not in INDEPENDENT]
            heard = await self._ask_critics(others, candidate)
            critiques += tuple(_with_agreement(critique, critiques) for critique in heard)
            view = aggregate(critiques)
        seen = Round(candidate, critiques, view)
        self.rounds.append(seen)
        return seen

    async def _ask_critics(self, critics: Sequence[Critic], candidate: TextCandidate) -> tuple[Critique, ...]:
        heard = []
        for critic in critics:
            if critic.source == "model" and not self.budget.allows_call:
                self.failure = NoReply(BUDGET_SPENT, "no call is left")
                break
            started = self.budget.elapsed_ms
            reply = await await_within(
                critic.critique(self.task, candidate, tuple(self.rounds), self.budget), self.budget
            )
            if isinstance(reply, NoReply):
                self.failure = reply
            else:
                heard.append(reply)
                self.trace.note_critique(reply, self.budget.elapsed_ms - started)
        return tuple(heard)

    async def next_draft(self) -> Draft | StopReason:
        """The reviser's text, or why there is none."""
        if self.reviser is None:
            return "no_revision"
        started, newest = self.budget.elapsed_ms, self.rounds[-1].candidate
        reply = await await_within(
            self.reviser.revise(self.task, tuple(self.rounds), self.budget), self.budget
        )
        if isinstance(reply, NoReply) and reply.kind == NOTHING_LEFT:
            return "no_revision"
        if isinstance(reply, NoReply):
            self.failure = reply
            return "budget" if reply.kind == BUDGET_SPENT else "model_failed"
        self.trace.note_revision(reply, newest.text, self.budget.elapsed_ms - started)
        is_same = reply.author != "model" and (reply.text, reply.source) == (newest.text, newest.source)
        return "no_revision" if is_same else reply

    async def run(self, draft: Draft) -> StopReason:
        """Rounds until one of the reasons to stop."""
        while True:
            seen = await self.look_at(draft, len(self.rounds))
            reason = self._stop(seen)
            if reason is not None:
                return reason
            following = await self.next_draft()
            if not isinstance(following, Draft):
                return following
            draft = following

    def _stop(self, seen: Round) -> StopReason | None:
        reason = self.policies.acceptance.stop(self.rounds, self.budget.rounds)
        if self.failure is not None and reason != "blocker" and STRICTNESS[seen.view.verdict] == 0:
            return "budget" if self.failure.kind == BUDGET_SPENT else "model_failed"
        return reason


async def refine(
    task: Task,
    draft: str | Draft | Generator,
    critics: Sequence[Critic],
    reviser: Reviser | None,
    policies: Policies,
    budget: Budget,
    *,
    preset: str,
    trace: Trace | None = None,
) -> Deliberation:
    """What stands of a text.

    Args:
        task: what is asked.
        draft: the text as it is, alone or with what it was rendered from, or who writes it.
        critics: rules before models; each sees the rounds so far.
        reviser: who writes the next candidate; None: nobody does.
        policies: when to skip, stop and choose.
        budget: what it may cost.
        preset: for the record.
        trace: where events go; None: a new one.
    """
    loop = Loop(task, critics, reviser, policies, budget, Trace() if trace is None else trace, preset)
    given = Draft(draft, "given") if isinstance(draft, str) else draft
    if isinstance(given, Draft):
        skipped = policies.guard(given.text) if policies.guard is not None else None
        if skipped is not None:
            loop.cleaned = given.cleaned
            as_given = draft if isinstance(draft, str) else given.text
            return _end(loop, "skipped", as_given, given.text, skip_reason=skipped)
        first: Draft | NoReply = given
    else:
        first = await await_within(given.generate(task, budget), budget)
    if isinstance(first, NoReply):
        loop.failure = first
        return _end(loop, "failed", "", "", "model_failed")
    reason = await loop.run(first)
    initial = draft if isinstance(draft, str) else first.text
    chosen = _chosen(loop)
    status: DeliberationStatus = "unchanged" if chosen is loop.rounds[0] else "best_effort"
    if chosen.view.verdict == "reject":
        status = "blocked"
    elif loop.failure is None and policies.acceptance.accepts(chosen):
        status = "accepted"
    return _end(loop, status, initial, chosen.candidate.text, reason, chosen=chosen)


def _chosen(loop: Loop) -> Round:
    first = loop.rounds[0]
    applied = [first, *(later for later in loop.rounds[1:] if loop.policies.application(first, later))]
    allowed = [seen for seen in applied if seen.view.verdict != "reject"] or [first]
    return loop.policies.selection(allowed)


def _end(
    loop: Loop, status: DeliberationStatus, initial: str, final: str,
    reason: StopReason | None = None, *, skip_reason: str | None = None, chosen: Round | None = None,
) -> Deliberation:  # fmt: skip
    scores = [score for seen in loop.rounds if (score := _model_score(seen)) is not None]
    return Deliberation(
        preset=loop.preset,
        status=status,
        skip_reason=skip_reason,
        initial=initial,
        final=final,
        candidates=tuple(seen.candidate for seen in loop.rounds),
        critiques=tuple(critique for seen in loop.rounds for critique in seen.critiques),
        stop_reason=reason,
        degraded_from=None if loop.failure is None else f"full: {loop.failure.kind}",
        error=None if loop.failure is None else visible(loop.failure.detail),
        self_reported_gain=round(scores[-1] - scores[0], 9) if len(scores) > 1 else None,
        verified_gain=None if chosen is None else loop.rounds[0].failures - chosen.failures,
        usage=loop.budget.used,
        cleaned=loop.cleaned,
        events=tuple(loop.trace.events),
        elapsed_ms=loop.budget.elapsed_ms,
    )


def _model_score(seen: Round) -> float | None:
    lines = [c.overall for c in seen.critiques if c.source not in INDEPENDENT and c.overall is not None]
    return lines[-1] if lines else None


def _with_agreement(critique: Critique, rules: Sequence[Critique]) -> Critique:
    """A model's critique with whether the rules came to the same: that no change is wanted."""
    if not rules or critique.verdict == "unknown":
        return critique
    same = (critique.verdict == "accept") == (aggregate(rules).verdict == "accept")
    return critique.model_copy(update={"agreed": same})


async def await_within(answer: Awaitable[Answer | NoReply], budget: Budget) -> Answer | NoReply:
    """An answer within what is left of the deadline, or why there is none."""
    try:
        # Whoever asks a model keeps the deadline; this one is for a collaborator that does not.
        async with asyncio.timeout((budget.left_ms + 2 * GRACE_MS) / 1_000):
            return await answer
    except TimeoutError:
        return NoReply(TIMEOUT, "no answer within the deadline of the text")
    except ModelError as error:
        return NoReply(str(error.context.get("kind", "error")), str(error))
