"""Evidence for a question: plan the calls, make them, look whether they are enough, and plan once more.

A host or a planner may be another's: whatever it does ends its own call and nothing else. A reply is data;
only the planner's words say what is called next, and only calls that pass the check are made.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agents.planning.call_check import CallKey, call_key, checked_plan
from agents.planning.completeness import missing
from schemas.errors import DataError, ModelError
from schemas.evidence_plan import EvidenceCall, EvidencePlan, EvidenceStep, GatheredEvidence, PlannedCall
from schemas.settings.planner import OWN, PlannerSettings
from schemas.tool import ToolDefinition, ToolReply
from services.model_calls.quoting import count_noun, visible
from services.ports import EvidencePlanner, EvidenceQuestion, ToolHost

LOG = logging.getLogger("thinktwice.planner")
LONGEST_QUESTION = 8_000
AT_ONCE = 4
DEADLINE_S = 10.0
LOGGED = 200
REPHRASE = "What do you want to know? Name a symbol or playbook, or the id of a report or fill."
Status = Literal["gathered", "clarify", "abstained"]


async def gather(
    question: EvidenceQuestion,
    planner: EvidencePlanner,
    hosts: Mapping[str, ToolHost],
    settings: PlannerSettings,
    *,
    attended: bool,
    deadline_s: float | None = DEADLINE_S,
) -> GatheredEvidence:
    """The calls that answer a question, with their replies.

    Args:
        question: 1 to 8,000 characters.
        planner: says which tools are called.
        hosts: by client; one that lists no tools within the deadline has none.
        settings: threshold of confidence, and how many plans.
        attended: whether somebody reads a question back; otherwise the planner abstains.
        deadline_s: of each call, and of each list of tools. None: one call after the other, and nothing waits
            but a host or a planner that does.

    Raises:
        DataError: the question is empty or too long.
        ModelError: the planner's model failed at the first plan.
    """
    demand_question(question.text)
    work = _Gathering(question, planner, hosts, await usable_tools(hosts, deadline_s), deadline_s)
    plan = await work.plan_next(1)
    asks_back = plan.confidence < settings.confidence_threshold
    if asks_back or not plan.tools:
        words = plan.clarification or REPHRASE
        work.note("planner_requesting_clarification", 1, confidence=plan.confidence, question=words)
        return work.result("clarify" if attended else "abstained", plan, words, complete=False)
    await work.call(plan, 1)
    lacks = work.missing()
    last = settings.max_iterations if settings.enable_reflection else 1
    if not lacks:
        work.note("planner_complete_first_pass", 1)
    for iteration in range(2, last + 1):
        if not lacks:
            break
        work.note("planner_attempting_refinement", iteration, missing=lacks)
        refined = await work.plan_next(iteration)
        if not refined.tools:
            break
        await work.call(refined, iteration)
        lacks = work.missing()
    return work.result("gathered", plan, plan.clarification, complete=not lacks)


def demand_question(text: str) -> None:
    """Refuse what is no question.

    Raises:
        DataError: it is empty or too long.
    """
    if not text.strip():
        raise DataError(
            f"the question {text[:20]!r} is empty: ask about a symbol, a playbook, a trade or a fill"
        )
    if len(text) > LONGEST_QUESTION:
        raise DataError(
            f"the question {text[:20]!r}... has {len(text):,} characters: ask with at most "
            f"{LONGEST_QUESTION:,}"
        )


async def usable_tools(
    hosts: Mapping[str, ToolHost], deadline_s: float | None = DEADLINE_S
) -> dict[str, tuple[ToolDefinition, ...]]:
    """Tools by client, of other hosts those alone that only read; of a silent host none, with a warning."""
    if deadline_s is None:
        return {name: await _list_tools(name, host, None) for name, host in hosts.items()}
    listed = await asyncio.gather(*(_list_tools(name, host, deadline_s) for name, host in hosts.items()))
    return dict(zip(hosts, listed, strict=True))


async def _list_tools(client: str, host: ToolHost, deadline_s: float | None) -> tuple[ToolDefinition, ...]:
    try:
        async with asyncio.timeout(deadline_s):
            tools = await host.tools()
    except Exception as error:  # noqa: BLE001 - of another's host; the others still answer
        LOG.warning("tool_host_silent", extra={"client": client, "error": type(error).__name__})
        return ()
    if client == OWN:  # of ours one notes what it tried, and changes nothing else
        return tools
    writing = [tool.name for tool in tools if not tool.reads_only]
    if writing:
        LOG.warning("tools_that_may_write_left_out", extra={"server": client, "tools": writing})
    return tuple(tool for tool in tools if tool.reads_only)


@dataclass
class _Gathering:
    """What was planned and called for one question so far."""

    question: EvidenceQuestion
    planner: EvidencePlanner
    hosts: Mapping[str, ToolHost]
    tools: Mapping[str, Sequence[ToolDefinition]]
    deadline_s: float | None
    plans: list[EvidencePlan] = field(default_factory=list)
    calls: list[EvidenceCall] = field(default_factory=list)
    steps: list[EvidenceStep] = field(default_factory=list)

    def note(self, step: str, iteration: int, **facts: Any) -> None:
        """Keep an event of the work, and log it."""
        self.steps.append(EvidenceStep(step=step, iteration=iteration, facts=facts))
        request = visible(self.question.text)[:LOGGED]
        LOG.info(step, extra={"iteration": iteration, "asked": request, **facts})

    async def plan_next(self, iteration: int) -> EvidencePlan:
        """The next plan, with the calls of it that can be made."""
        plan = await self._raw_plan(iteration)
        first = iteration == 1
        if plan.failure is not None:
            name = "planner_invalid_json" if first else "planner_refinement_invalid_json"
            self.note(name, iteration, failure=plan.failure, reasoning=plan.reasoning)
        elif plan.reasoning:
            name = "planner_reasoning" if first else "planner_refinement_reasoning"
            self.note(name, iteration, reasoning=plan.reasoning)
        if first:
            self.note("planner_confidence", iteration, confidence=plan.confidence)
        made: list[CallKey] = [call_key(call.client, call.method, call.params) for call in self.calls]
        checked = checked_plan(plan, self.tools, made)
        for dropped in checked.dropped:
            LOG.warning("planner_call_dropped", extra={"iteration": iteration, **dropped.payload()})
        self.plans.append(checked)
        return checked

    async def _raw_plan(self, iteration: int) -> EvidencePlan:
        try:
            return await self.planner.plan(self.question, self.tools, tuple(self.calls))
        except ModelError as error:
            if iteration == 1:
                raise
            failed = str(error.context.get("kind", "error"))
            return EvidencePlan(confidence=0.0, failure=failed)  # what was brought before stays

    async def call(self, plan: EvidencePlan, iteration: int) -> None:
        """Make the calls of a plan, at most 4 at once."""
        replies = await self._replies(plan.tools)
        for number, (call, (reply, spent)) in enumerate(
            zip(plan.tools, replies, strict=True), 1 + len(self.calls)
        ):
            self.calls.append(
                EvidenceCall(
                    id=f"c{number}",
                    client=call.client,
                    method=call.method,
                    params=call.params,
                    iteration=iteration,
                    reply=reply,
                    latency_ms=spent,
                )
            )

    async def _replies(self, calls: Sequence[PlannedCall]) -> list[tuple[ToolReply, float]]:
        """Replies in the order of the calls, with milliseconds."""
        places = asyncio.Semaphore(AT_ONCE)
        if self.deadline_s is None:
            return [await self._time_call(call, places) for call in calls]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._time_call(call, places)) for call in calls]
        return [
            (_fail(call, "was cancelled"), 0.0) if task.cancelled() else task.result()
            for call, task in zip(calls, tasks, strict=True)
        ]

    async def _time_call(self, call: PlannedCall, places: asyncio.Semaphore) -> tuple[ToolReply, float]:
        async with places:
            started = time.perf_counter()
            reply = await self._reply(call)
            return reply, (time.perf_counter() - started) * 1e3

    async def _reply(self, call: PlannedCall) -> ToolReply:
        try:
            async with asyncio.timeout(self.deadline_s):
                reply = await self.hosts[call.client].call(call.method, call.params)
        except TimeoutError:
            return _fail(call, f"did not answer within {self.deadline_s:g} s: ask for less")
        except Exception as error:  # noqa: BLE001 - of another's host: it ends this call and nothing else
            LOG.warning("planner_call_failed", extra={"client": call.client, "error": type(error).__name__})
            return _fail(call, "broke off: ask again, or without it")
        return reply if _is_read(reply) else _fail(call, "answered no JSON object")

    def missing(self) -> tuple[str, ...]:
        """What the calls so far leave unanswered."""
        return missing(self.question, self.calls)

    def result(
        self, status: Status, plan: EvidencePlan, words: str | None, *, complete: bool
    ) -> GatheredEvidence:
        """All of it."""
        iterations = len(self.plans)
        LOG.info(
            "planner_gathered",
            extra={"status": status, "calls": count_noun(len(self.calls), "call"), "iterations": iterations},
        )
        return GatheredEvidence(
            question=self.question.text,
            status=status,
            confidence=plan.confidence,
            clarification=words,
            plans=tuple(self.plans),
            calls=tuple(self.calls),
            steps=tuple(self.steps),
            iterations=iterations,
            refined=iterations > 1,
            complete=complete,
        )


def _is_read(reply: ToolReply) -> bool:
    """Whether its document can be read, where it should have one."""
    try:
        return reply.is_error or reply.content is not None
    except (ValueError, TypeError, RecursionError):
        return False


def _fail(call: PlannedCall, what: str) -> ToolReply:
    return ToolReply(text=f"{call.client}.{call.method} {what}", is_error=True)
