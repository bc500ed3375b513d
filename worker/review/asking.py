"""A question about a run and its answer: evidence is gathered, told by rules, refined, checked and cited.

The store is only read. With a model in the settings it plans the calls and may write the answer again; what
it gets wrong leaves the answer of the rules.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from agents.answering.citing import cite, without_marks
from agents.answering.evidence_critic import EvidenceCritic, keep_believed
from agents.answering.rules import rule_answer
from agents.answering.statements import Statement
from agents.planning.gathering import gather
from agents.planning.rule_planner import NOT_THERE
from agents.tool_hosts.in_process import untold
from schemas.deliberation import Deliberation
from schemas.evidence_plan import EvidenceCall, GatheredEvidence
from schemas.fact_check import CheckedClaim
from schemas.settings import Settings
from schemas.settings.planner import OWN
from schemas.tool import ToolReply
from services.evidence_tools.run_view import REGIMES, RunView, iso, row_of
from services.model_calls.quoting import quoted_json
from services.ports import EvidenceQuestion, ToolHost, ToolProgress
from services.store.conversations import ConversationTurn
from worker.review.answer_models import USAGE, AnswerModels, answer_models
from worker.review.evidence import store_tools
from worker.review.run_facts import facts_of
from worker.review.run_views import RunViews
from worker.studies.deliberated import TextRequest, refine_one, with_mode

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
    """An answer as its document, and what the tools brought for it, by the id of the call.

    `names_nothing` says that the question names what the run does not have.
    """

    document: dict[str, Any]
    results: dict[str, Any] = field(default_factory=dict)
    names_nothing: bool = False


async def ask(
    store: "Store", asked: AskedQuestion, settings: Settings, environment: Mapping[str, str]
) -> Answer:
    """The answer to a question, with everything that was asked for it.

    Raises:
        ToolRefused: the run had begun at no bar by then.
        ConfigError: a model without a key, a price or a cassette.
        StoreError: a row is damaged.
    """
    views = RunViews(store, run=asked.run.run_id, at=asked.at)
    view = await views.view(asked.run.run_id, None, asked.progress)
    question = EvidenceQuestion(asked.text, describe_known(view, asked.turns), told_turns(asked.turns))
    hosts = {OWN: store_tools(views), **asked.hosts}
    async with answer_models(settings, environment) as asking:
        found = await gather(question, asking.planner, hosts, settings.planner, attended=asked.attended)
        told = {"question": asked.text, "run_id": view.run_id, "known_at": view.moment}
        if found.status != "gathered":
            names_nothing = found.plans[-1].reasoning == NOT_THERE
            return Answer(document_of(told, found, usage=asking.usage), names_nothing=names_nothing)
        if refused := _find_refusal(found):
            status = "clarify" if asked.attended else "abstained"
            back = {**document_of(told, found, usage=asking.usage), "status": status}
            return Answer({**back, "clarification": refused}, names_nothing=True)
        left_out = found.clarification if found.plans[0].intent is not None else None  # as the rules say it
        facts = facts_of(view, asked.run, ended=asked.at is None)
        said = rule_answer(found.calls, row_of(view.index.events[-1]), asked.text)
        statements, false = keep_believed(said, facts)
        lines = {statement.text.rstrip("."): statement.rows for statement in statements if statement.told}
        critic = EvidenceCritic(replace(facts, told=lines), calls=found.calls)

        def document(done: Deliberation) -> dict[str, Any]:
            claims = [*false, *_claims(done)]
            text, citations = cite(without_marks(done.final), statements, claims)
            text = "\n".join(line for line in (_how_far(asked), left_out, text) if line)
            return document_of(
                told, found, answer=text, usage=asking.usage, failure=done.error,
                citations=[item.payload() for item in citations], claims=[item.payload() for item in claims],
            )  # fmt: skip

        refining = asked.text, statements, found.calls, critic, settings
        if asked.first is not None and asking.texts is not None:
            asked.first(document(await _refine(*refining, replace(asking, texts=None))))
        done = await _refine(*refining, asking)
        results = {call.id: call.reply.payload() for call in found.calls}
        return Answer(document(done), results)


def _how_far(asked: AskedQuestion) -> str | None:
    """That a run is not over, where all of it is asked about."""
    is_over = asked.run.status == "finished" or asked.at is not None
    return None if is_over else f"The run is {asked.run.status}: this is as far as it came."


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
        "regimes": sorted(REGIMES),
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
    for call in reversed(turn.document["answer"]["tool_calls"]):
        result = turn.document.get("results", {}).get(call["id"])
        content = {} if result is None or call["client"] != OWN else ToolReply(**result).content or {}
        trades: list[dict[str, Any]] = content.get("episodes") or []
        fill = trades[0].get("fill_id") if len(trades) == 1 else None
        yield {**call["arguments"], **({"fill_id": fill} if fill else {})}


def told_turns(turns: Sequence[ConversationTurn]) -> tuple[tuple[str, str], ...]:
    """Question and answer of each turn, oldest first."""
    told = (turn.document["answer"] for turn in turns)
    return tuple((answer["question"], answer["answer"] or answer["clarification"] or "") for answer in told)


async def _refine(
    question: str,
    statements: tuple[Statement, ...],
    calls: tuple[EvidenceCall, ...],
    critic: EvidenceCritic,
    settings: Settings,
    asking: AnswerModels,
) -> Deliberation:
    """The rules' text in the preset `quality`: a model may write it again, out of the evidence."""
    parts = groupby(statements, key=lambda statement: statement.part)
    text = "\n".join(" ".join(statement.text for statement in group) for _, group in parts)
    results = [
        {"tool": f"{call.client}.{call.method}", "result": call.reply.text[:LONGEST_RESULT]} for call in calls
    ]
    material = quoted_json(results) if asking.texts is not None else ""
    told = with_mode(settings.deliberation, "quality", "critique_only")
    request = TextRequest(text, "quality", question, material)
    return await refine_one(request, told, asking.texts, critic)


def _claims(done: Deliberation) -> list[CheckedClaim]:
    """The claims of what stands, behind those that were struck or corrected on the way."""
    last = [claim for check in done.fact_checks[-1:] for claim in check.claims]
    return [claim for check in done.fact_checks[:-1] for claim in check.failures] + last


def document_of(
    told: Mapping[str, Any],
    found: GatheredEvidence,
    *,
    usage: Mapping[str, int],
    answer: str | None = None,
    failure: str | None = None,
    citations: list[dict[str, Any]] | None = None,
    claims: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """The document of what was gathered, and of the answer if there is one."""
    failures = [plan.failure for plan in found.plans if plan.failure is not None]
    reasons = [plan.reasoning for plan in found.plans if plan.reasoning]
    return empty_document(
        **told,
        status="answered" if found.status == "gathered" else found.status,
        answer=answer,
        clarification=None if found.status == "gathered" else found.clarification,
        confidence=found.confidence,
        citations=citations or [],
        claims=claims or [],
        tool_calls=[_call(call) for call in found.calls],
        iterations=found.iterations,
        refined=found.refined,
        complete=found.complete,
        reasoning="\n".join([*failures, *reasons, *([failure] if failure else [])]),
        usage=dict(usage),
    )


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
        "clarification": None, "confidence": 0.0, "citations": [], "claims": [], "tool_calls": [],
        "iterations": 0, "refined": False, "complete": False, "reasoning": "", "two_phase": None,
        "plan_id": None, "usage": dict(USAGE),
    }  # fmt: skip
    return {**document, **known}
