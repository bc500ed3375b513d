"""A question about a run and its answer: evidence is gathered, and what it says is claims that code checks.

The store is only read. With a model in the settings it plans the calls and picks the claims; each is held
against the run, and where nothing of them holds the claims of the calls stand.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents.planning.gathering import gather
from agents.planning.rule_planner import NOT_THERE
from agents.tool_hosts.in_process import untold
from schemas.claims import WrittenSection
from schemas.errors import ToolRefused
from schemas.evidence_plan import EvidenceCall, GatheredEvidence
from schemas.settings import Settings
from schemas.settings.planner import OWN
from services.claims.subjects import names_for_claims
from services.deliberation.budget import Budget
from services.deliberation.claim_critics import ClaimText
from services.deliberation.model_revisers import FirstDraft
from services.deliberation.presets import quality
from services.deliberation.refine import Task, sections_of
from services.evidence.run_facts import RunFacts
from services.evidence_tools.run_view import RunView, iso
from services.model_calls.quoting import quoted_json
from services.ports import EvidenceQuestion, ToolHost, ToolProgress
from services.store.conversations import ConversationTurn
from worker.review.answer_models import USAGE, AnswerModels, answer_models
from worker.review.evidence import store_tools
from worker.review.rule_trial import NoteTrial
from worker.review.run_facts import facts_of
from worker.review.run_views import RunViews

if TYPE_CHECKING:
    from services.store import RunRecord, Store

LONGEST_RESULT = 6_000  # characters of a result in a model's material
RECENT = {"recent_symbol": "symbol", "recent_playbook": "playbook_id", "recent_fill": "fill_id"}


@dataclass(frozen=True)
class AskedQuestion:
    """What is asked, and of what.

    Attributes:
        text: the question.
        run: that it is about.
        at: the clock, ns; None: what the store holds.
        attended: whether somebody reads a question back.
        turns: those before in the conversation, oldest first.
        hosts: further hosts of tools, by name.
        first: told of the answer of the rules as soon as it is there, where a model is to write it again.
        progress: told how far the reading of the run is, where it has many rows.
    """

    text: str
    run: "RunRecord"
    at: int | None = None
    attended: bool = False
    turns: tuple[ConversationTurn, ...] = ()
    hosts: Mapping[str, ToolHost] = field(default_factory=dict)
    first: Callable[[dict[str, Any]], None] | None = None
    progress: ToolProgress = untold


@dataclass(frozen=True)
class Answer:
    """An answer as its document; `names_nothing` says that the question names what the run does not have."""

    document: dict[str, Any]
    names_nothing: bool = False


async def ask_tool(
    store: "Store",
    tool: str,
    arguments: Mapping[str, Any],
    at: int | None = None,
    note: NoteTrial | None = None,
) -> dict[str, Any]:
    """The document of one call of a tool.

    Args:
        store: open; nothing is written to it.
        tool: its name.
        arguments: as a client gives them.
        at: the clock, ns; None: what the store holds.
        note: enters a rule that is tried in the ledger of trials.

    Raises:
        ToolRefused: an argument does not fit, or the run has no such thing.
    """
    reply = await store_tools(RunViews(store, at=at), note).call(tool, dict(arguments))
    if reply.is_error:
        raise ToolRefused(reply.text)
    call = EvidenceCall(id="c1", client=OWN, method=tool, params=dict(arguments), iteration=1, reply=reply)
    content = reply.content or {}
    return _document_of_calls(
        {"question": None, "run_id": content.get("run_id"), "known_at": content.get("known_at")},
        (call,), _sections((call,)), confidence=1.0, iterations=1, complete=True,
    )  # fmt: skip


async def ask(
    store: "Store", asked_question: AskedQuestion, settings: Settings, environment: Mapping[str, str]
) -> Answer:
    """The answer to a question, with everything that was asked for it.

    Raises:
        ToolRefused: the run had begun at no bar by then.
        ConfigError: a model without a key, a price or a cassette.
        StoreError: a row is damaged.
    """
    views = RunViews(store, run=asked_question.run.run_id, at=asked_question.at)
    view = await views.view(asked_question.run.run_id, None, asked_question.progress)
    question = EvidenceQuestion(
        asked_question.text, describe_known(view, asked_question.turns), quote_turns(asked_question.turns)
    )
    hosts = {OWN: store_tools(views), **asked_question.hosts}
    names = names_for_claims(view.playbook_ids, view.symbols)
    async with answer_models(settings, environment, names) as asking:
        found = await gather(
            question, asking.planner, hosts, settings.planner, attended=asked_question.attended
        )
        known: dict[str, Any] = {
            "question": asked_question.text,
            "run_id": view.run_id,
            "known_at": view.moment,
        }
        known |= {"confidence": found.confidence, "reasoning": _reasoning(found)}
        known |= {"iterations": found.iterations, "refined": found.refined, "complete": found.complete}
        refused = _find_refusal(found) if found.status == "gathered" else None
        if found.status != "gathered" or refused:
            status = (
                found.status if refused is None else "clarify" if asked_question.attended else "abstained"
            )
            nothing = refused is not None or found.plans[-1].reasoning == NOT_THERE
            back = refused or found.clarification
            payload = {"status": status, "clarification": back, "usage": asking.usage}
            calls = [_call(call) for call in found.calls]
            return Answer(empty_document(**known, **payload, tool_calls=calls), nothing)
        document = _document_of_calls(
            known, found.calls, _sections(found.calls), note=_how_far(asked_question)
        )
        if asking.texts is not None:
            if asked_question.first is not None:
                asked_question.first(document)
            facts = facts_of(view, asked_question.run, ended=asked_question.at is None)
            document = await _write_with_model(
                document, found, facts, settings, asking, _how_far(asked_question)
            )
        return Answer({**document, "usage": dict(asking.usage)})


def _sections(calls: Sequence[EvidenceCall]) -> list[WrittenSection]:
    return [
        WrittenSection.model_validate(
            {"topic": call.method, "statements": (call.reply.content or {})["statements"]}
        )
        for call in calls
        if call.client == OWN and not call.reply.is_error
    ]


def _document_of_calls(
    known: Mapping[str, Any],
    calls: Sequence[EvidenceCall],
    sections: Sequence[WrittenSection],
    note: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    return empty_document(
        **known,
        status="answered",
        answer=_join_statements(note, sections),
        sections=[section.model_dump(mode="json") for section in sections],
        tool_calls=[_call(call) for call in calls],
        results={call.id: _result(call) for call in calls if not call.reply.is_error},
        **more,
    )


def _join_statements(note: str | None, sections: Sequence[WrittenSection]) -> str:
    lines = (note, *(reply.text for section in sections for reply in section.statements))
    return "\n".join(dict.fromkeys(filter(None, lines)))


def _result(call: EvidenceCall) -> dict[str, Any]:
    content = dict(call.reply.content or {})
    return {name: value for name, value in content.items() if name != "statements" or call.client != OWN}


async def _write_with_model(
    document: dict[str, Any],
    found: GatheredEvidence,
    facts: RunFacts,
    settings: Settings,
    asking: AnswerModels,
    note: str | None,
) -> dict[str, Any]:
    """The document with the claims that a model picked out of the evidence, where any of them holds."""
    if (texts := asking.texts) is None:
        return document
    results = [
        {"tool": f"{call.client}.{call.method}", "result": call.reply.text[:LONGEST_RESULT]}
        for call in found.calls
    ]
    claims, shown = ClaimText(facts), settings.deliberation.quality
    draft = FirstDraft(texts, claims, shown.improvement_tokens)
    budget = Budget(0, quality.calls_of(shown) + 1, deadline_ms=shown.deadline_ms)
    task = Task(found.question, quoted_json(results))
    done = await quality.run_quality(task, draft, shown, budget, models=texts, facts=claims)
    text = claims.write(() if done.standing is None else sections_of(done.standing))
    failure = done.error or ("" if text.text else "no claim of the model's text holds")
    if done.status == "failed" or not text.text:
        return {**document, "reasoning": "\n".join(filter(None, (document["reasoning"], failure)))}
    return {
        **document,
        "answer": _join_statements(note, text.sections),
        "sections": [section.model_dump(mode="json") for section in text.sections],
        "refused": [refused.model_dump(mode="json") for refused in text.refused],
        "dropped_comments": text.dropped_comments,
    }


def _reasoning(found: GatheredEvidence) -> str:
    failures = [plan.failure for plan in found.plans if plan.failure is not None]
    return "\n".join([*failures, *(plan.reasoning for plan in found.plans if plan.reasoning)])


def _how_far(asked_question: AskedQuestion) -> str | None:
    """That a run is not over, where all of it is asked about."""
    is_over = asked_question.run.status == "finished" or asked_question.at is not None
    return None if is_over else f"The run is {asked_question.run.status}: this is as far as it came."


def _find_refusal(found: GatheredEvidence) -> str | None:
    """What our own tools refused, where they refused all that was asked, as an id that is not there."""
    if any(call.client != OWN or not call.reply.is_error for call in found.calls):
        return None
    return " ".join(dict.fromkeys(f"{call.reply.text.strip().rstrip('.')}." for call in found.calls)) or None


def describe_known(view: RunView, turns: tuple[ConversationTurn, ...] = ()) -> dict[str, Any]:
    """What a planner knows before it looks: the run, its names, and what a conversation was about."""
    return {
        "run_id": view.run_id,
        "known_from": iso(view.index.events[0].row.known_at),
        "known_at": view.moment,
        "symbols": list(view.symbols),
        "playbooks": list(view.playbook_ids),
        "regimes": list(view.regimes),
        **recent(turns),
    }


def recent(turns: Sequence[ConversationTurn]) -> dict[str, str]:
    """The symbol, the playbook and the fill that were told last, where any was.

    `recent_trade` is the fill of the one trade that the newest turn told of.
    """
    found: dict[str, str] = {}
    for number, turn in enumerate(reversed(turns)):
        for named in _names_in(turn):
            if number == 0 and "fill_id" in named:
                found.setdefault("recent_trade", named["fill_id"])
            for name, argument in RECENT.items():
                value = named.get(argument)
                if name not in found and isinstance(value, str):
                    found[name] = value
    return found


def _names_in(turn: ConversationTurn) -> Iterator[Mapping[str, Any]]:
    """What the calls of a turn name, the newest first: their arguments, and the fill of a single trade."""
    answer = turn.document["answer"]
    for call in reversed(answer["tool_calls"]):
        result = answer["results"].get(call["id"], {}) if call["client"] == OWN else {}
        trades: list[dict[str, Any]] = result.get("trades") or [] if call["tool"] == "trades" else []
        fill = trades[0].get("fill_id") if len(trades) == 1 else None
        yield {**call["arguments"], **({"fill_id": fill} if fill else {})}


def quote_turns(turns: Sequence[ConversationTurn]) -> tuple[tuple[str, str], ...]:
    """Question and answer of each turn, oldest first."""
    shown = (turn.document["answer"] for turn in turns)
    return tuple((answer["question"], answer["answer"] or answer["clarification"] or "") for answer in shown)


def _call(call: EvidenceCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "client": call.client,
        "tool": call.method,
        "arguments": dict(sorted(call.params.items())),
        "status": "error" if call.reply.is_error else "ok",
        "latency_ms": round(call.latency_ms, 3),
        "iteration": call.iteration,
    }


def empty_document(**known: Any) -> dict[str, Any]:
    """Every field of an answer in its order, with what is known."""
    document: dict[str, Any] = {
        "question": None, "run_id": None, "known_at": None, "status": None, "answer": None,
        "clarification": None, "confidence": 0.0, "sections": [], "refused": [], "dropped_comments": 0,
        "tool_calls": [], "results": {}, "iterations": 0, "refined": False, "complete": False,
        "reasoning": "", "two_phase": None, "plan_id": None, "usage": dict(USAGE),
    }  # fmt: skip
    return {**document, **known}
