"""A model plans which tools answer a question.

Its reply is read and nothing in it is believed: what cannot be read is a plan without a call that says why,
and a call of an unknown server is dropped. Whether a call fits its tool is asked by whoever makes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agents.planning.call_check import Offered
from agents.planning.plan_reply import (
    PROMPT,
    NamedCall,
    PlanReply,
    read_arguments,
    read_plan,
    read_plan_with_uses,
    without_reasoning,
)
from agents.planning.summaries import summaries
from agents.planning.tool_listing import tool_listing, tools_to_call
from prompts import load_prompt
from schemas.errors import nearest
from schemas.evidence_plan import DroppedCall, EvidenceCall, EvidencePlan, PlannedCall
from schemas.settings.planner import PlannerSettings
from schemas.tool import ToolUse
from services.evidence.tools import LONGEST_SHOWN, quote_value
from services.model_calls.asking import NoReply, ask
from services.model_calls.language_model import LanguageModel, ModelReply
from services.model_calls.quoting import visible
from services.model_calls.reply_text import SEEN, MalformedReply
from services.model_calls.wording import PLAIN, Wording
from services.ports import EvidenceQuestion

DEADLINE_MS = 60_000.0
LONGEST_TURN = 2_000
GIVEN = "given to you to call"
NOT_ANSWERED = "the model did not answer"
UNREADABLE = "its params cannot be read"


class ModelPlanner:
    """Asks a model for each plan.

    Args:
        model: with the prompt `evidence_planner`.
        settings: how many turns it is shown, and whether it calls tools by its provider's own means.
        max_tokens: of a reply.
        deadline_ms: for a reply.
        wording: of the question; names that it disguises are those of the market again in the plan.
    """

    def __init__(
        self,
        model: LanguageModel,
        settings: PlannerSettings,
        *,
        max_tokens: int,
        deadline_ms: float = DEADLINE_MS,
        wording: Wording = PLAIN,
    ) -> None:
        self._model, self._settings = model, settings
        self._max_tokens, self._deadline_ms = max_tokens, deadline_ms
        self._wording = wording
        self._symbols = {disguise: symbol for symbol, disguise in wording.symbols.items()}

    async def plan(
        self, question: EvidenceQuestion, tools: Offered, earlier: Sequence[EvidenceCall] = ()
    ) -> EvidencePlan:
        """The calls that the model names; after `earlier` ones none may be missing, and it is sure."""
        template = load_prompt(PROMPT)
        to_call = tools_to_call(tools) if self._settings.native_tools else {}
        reply = await ask(
            self._model,
            system=template.system,
            prompt=template.render(
                **self._describe_question(question, GIVEN if to_call else tool_listing(tools), earlier)
            ),
            max_tokens=self._max_tokens,
            deadline_ms=self._deadline_ms,
            tools=[sent for _, _, sent in to_call.values()],
        )
        plan = self._read_plan(reply, tools, {name: there[:2] for name, there in to_call.items()})
        plan = plan.model_copy(update={"prompt_hash": template.hash})
        return _accept_refinement(plan) if earlier else plan

    def _describe_question(
        self, question: EvidenceQuestion, available: Any, earlier: Sequence[EvidenceCall]
    ) -> dict[str, str]:
        kept = question.turns[max(0, len(question.turns) - self._settings.history) :]
        payload = {
            "available_tools": available,
            "context": dict(question.context),
            "turns": [
                {"question": request[:LONGEST_TURN], "answer": answered[:LONGEST_TURN]}
                for request, answered in kept
            ],
            "prior_results": list(summaries(earlier)),
            "question": question.text,
        }
        return {name: self._wording.json(value) for name, value in payload.items()}

    def _read_plan(
        self, reply: ModelReply | NoReply, tools: Offered, names: Mapping[str, tuple[str, str]]
    ) -> EvidencePlan:
        if isinstance(reply, NoReply):
            text = f"{NOT_ANSWERED} ({reply.kind}): {visible(reply.detail)[:SEEN]}"
            return EvidencePlan(confidence=0.0, failure=text)
        try:
            read = read_plan_with_uses(reply.text) if reply.uses else read_plan(reply.text)
        except MalformedReply as error:
            return EvidencePlan(
                confidence=0.0,
                reasoning=without_reasoning(reply.text)[0],
                model=reply.model,
                failure=f"the model's reply cannot be used: {error.plain}",
            )
        calls, dropped = self._calls([*read.tools, *_name_calls(reply.uses, names)], tools)
        return EvidencePlan(
            confidence=read.confidence,
            clarification=_sentence(read),
            tools=tuple(calls),
            reasoning=read.reasoning,
            dropped=tuple(dropped),
            model=reply.model,
        )

    def _calls(
        self, named: Iterable[NamedCall], tools: Offered
    ) -> tuple[list[PlannedCall], list[DroppedCall]]:
        calls, dropped = list[PlannedCall](), list[DroppedCall]()
        for call in named:
            try:
                calls.append(self._call(call, tools))
            except MalformedReply as error:
                client, method = (_name(part) for part in (call.client, call.method))
                dropped.append(DroppedCall(client=client, method=method, reason=str(error)))
        return calls, dropped

    def _call(self, one: NamedCall, tools: Offered) -> PlannedCall:
        """The call.

        Raises:
            MalformedReply: its server is unknown, it names no tool, or its params cannot be read.
        """
        known = f"there are {', '.join(sorted(tools))}"
        if not isinstance(one.client, str):
            raise MalformedReply(f"it names no server: {known}")
        if one.client not in tools:
            raise MalformedReply(f"no server {quote_value(one.client)}: {known}.{nearest(one.client, tools)}")
        if not isinstance(one.method, str) or not one.method:
            raise MalformedReply(f"it names no tool of {one.client}")
        try:
            read = read_arguments(one.params)  # null is how a strict tool leaves an argument out
            given = {name: self._back(value) for name, value in read.items() if value is not None}
            call = PlannedCall(client=one.client, method=one.method, params=given)
            call.content_hash.encode()
        except ValueError as error:
            raise MalformedReply(f"{UNREADABLE}: write them as one JSON object") from error
        return call

    def _back(self, value: Any) -> Any:
        """A value with the names of the market, where the question disguised them."""
        if isinstance(value, list):
            return [self._back(item) for item in value]
        return self._symbols.get(value, value) if isinstance(value, str) else value


def _accept_refinement(plan: EvidencePlan) -> EvidencePlan:
    """A plan after earlier calls: only whether it could be read has a say."""
    confidence = 1.0 if plan.failure is None else 0.0
    return plan.model_copy(update={"confidence": confidence, "clarification": None})


def _name_calls(uses: Sequence[ToolUse], names: Mapping[str, tuple[str, str]]) -> list[NamedCall]:
    """The calls that a model asks for by its provider's means."""
    found = []
    for use in uses:
        client, method = names.get(use.name, (None, use.name))
        found.append(NamedCall(client=client, method=method, params=use.arguments))
    return found


def _sentence(read: PlanReply) -> str | None:
    text = " ".join((read.clarification or "").split())
    return visible(text) or None


def _name(part: Any) -> str:
    return visible(part)[:LONGEST_SHOWN] if isinstance(part, str) else ""
