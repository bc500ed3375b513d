"""Phase 1 of a change plan by command: of the verdict on a report, of a typed change, or of words."""

import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.change_reader import ChangeReading, UnreadableText, check_characters, read_with_model
from agents.change_reply import PROMPT
from schemas.errors import ConfigError, OperatorError
from schemas.plan import CHANGE_FORMS, ChangeKind, ChangePlan, Proposed, RefusedStep, Trigger, fields_of
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.model_calls.wording import Wording, Wordings
from services.plans.detection import DetectionContext, detect_two_phase
from services.plans.drafting import EmptyPlan, PlanFacts, draft
from services.plans.editing import WHOLE
from services.plans.typed_changes import propose_change
from services.store.change_plans import Operator
from worker.review.plan_facts import read_plan_facts
from worker.review.report_finder import FoundReport

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from services.store.plan_records import StoredPlan

NEED_A_PROCESS = ("replan", "open_experiment")  # nothing of them is in a folder of playbooks
NO_FOLDER = "it needs a run that trades: a folder holds none"
MISSED = ("stale", "failed", "expired")


@dataclass(frozen=True)
class PlanRequest:
    """What is to be planned.

    Attributes:
        run: its run.
        settings: of the run.
        trades: whether a process trades it.
        folder: where the playbooks that result are written; None for a run that trades.
        by: who makes the plan.
    """

    run: "RunRecord"
    settings: Settings
    trades: bool
    folder: Path | None
    by: str


async def plan_report(store: "Store", request: PlanRequest, found: FoundReport) -> "StoredPlan":
    """Keep a plan of the judge's actions on a report.

    Raises:
        ConfigError: it was not judged, or nothing of it can be planned.
    """
    if found.verdict is None:
        raise ConfigError(
            f"report {found.report_id} was not judged: `thinktwice replan {found.report_id}` asks the judge"
        )
    began = time.perf_counter()
    at = None if request.trades else found.known_at
    facts = await read_plan_facts(store, request.run, request.settings, trades=request.trades, at=at)
    proposed = [Proposed(action) for action in found.verdict.actions]
    kinds = ", ".join(action.kind for action in found.verdict.actions) or "nothing"
    understanding = f"The judge decided on report {found.report_id}: {kinds}."
    source = (found.report_id, found.verdict.content_hash[:16])
    plan = draft_asked(request, facts, proposed, "report", understanding, source)
    return await _keep(store, request, plan, began)


async def plan_change(
    store: "Store", request: PlanRequest, kind: ChangeKind, fields: Mapping[str, Any], reason: str
) -> "StoredPlan":
    """Keep a plan of one typed change.

    Raises:
        ConfigError: a field is missing, or the action contract refuses the change.
    """
    began = time.perf_counter()
    facts = await read_plan_facts(store, request.run, request.settings, trades=request.trades)
    proposed = propose_change(kind, fields, facts.definitions, request.settings.judge, reason)
    text = describe_change(kind, fields)
    try:
        plan = draft_asked(request, facts, [proposed], "text", f"An operator asks: {text}")
    except ConfigError as error:
        raise ConfigError(
            f"{error}; `thinktwice plans make {name_command(kind)} --help` has its fields"
        ) from error
    return await _keep(store, request, plan, began, text)


def name_command(kind: str) -> str:
    """The word under which `plans make` has a kind of change."""
    return kind.replace("_", "-")


def describe_change(kind: ChangeKind, fields: Mapping[str, Any]) -> str:
    """A typed change on one line: `set-risk-fraction squeeze_breakout, value 0.0025`."""
    given = {name: fields[name] for name in fields_of(kind) if fields.get(name) is not None}
    subject = given.pop("playbook_id", "")
    named = [
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in given.items()
    ]
    return ", ".join([f"{name_command(kind)} {subject}".rstrip(), *named])


async def plan_text(
    store: "Store", request: PlanRequest, text: str, *, forced: bool, reader: Settings | None = None
) -> "StoredPlan":
    """Keep a plan of what a person asks for in words, which a model of `reader` or of the run reads.

    Raises:
        UnreadableText: no model read it into actions.
        ConfigError: the text cannot be used, or nothing of it can be planned.
    """
    began = time.perf_counter()
    facts = await read_plan_facts(store, request.run, request.settings, trades=request.trades)
    before = await store.plans.all(request.run.run_id)
    missed = bool(before) and before[0].state in MISSED
    settings = reader if reader is not None and reader.uses_models else request.settings
    settings = settings.model_copy(update={"judge": request.settings.judge})
    symbols = request.run.data["symbols"]
    read = await read_change(text, facts.definitions, settings, os.environ, symbols=symbols, now=facts.at)
    context = DetectionContext(live=request.trades, last_plan_failed=missed, forced=forced)
    plan = draft_asked(request, facts, read.proposed, "text", f"An operator asks: {' '.join(text.split())}")
    return await _keep(store, request, plan, began, text, context, read.reasoning)


async def read_change(
    text: str,
    definitions: Mapping[str, PlaybookDefinition],
    settings: Settings,
    environment: Mapping[str, str],
    *,
    symbols: Sequence[str] = (),
    now: int = 0,
) -> ChangeReading:
    """The actions that a model reads in a text, live.

    Args:
        text: a person's words.
        definitions: versions in force by playbook id.
        settings: that ask a model, and say how long a change lives.
        environment: holds the key.
        symbols: of the run, which are disguised where `llm.anonymise` is on.
        now: the run's last bar in ns, from which times are counted then.

    Raises:
        UnreadableText: no model is configured, or none read it into actions; the message has both ways.
        ConfigError: the text cannot be used.
    """
    check_characters(text)
    if not settings.uses_models:
        raise UnreadableText(
            "words are read by a model, and the settings ask none: give --config FILE with one "
            f'(`llm.model`, `reflection.mode = "full"`), or {name_typed(text)}'
        )
    wording = Wordings.of_run(symbols, anonymise=settings.llm.anonymise).at(now)
    live = settings.runtime.model_copy(update={"llm": "live", "cassette": None})
    try:
        return await _ask(
            text, definitions, settings.model_copy(update={"runtime": live}), environment, wording
        )
    except OperatorError as error:
        raise UnreadableText(f"{error}: {name_typed(text)}") from error


def name_typed(text: str) -> str:
    """The typed commands, with the one that is nearest to some words, where one is."""
    known = ", ".join(map(name_command, CHANGE_FORMS))
    near = find_nearest(text)
    if near is None:
        return f"type the change: `thinktwice plans make` with one of {known}"
    fields = [name for name in CHANGE_FORMS[near].needed if name not in ("playbook_id", "life_blocks")]
    subject = "PLAYBOOK" if "playbook_id" in fields_of(near) else ""
    words = " ".join([name_command(near), subject, *(f"--{name_command(name)} ..." for name in fields)])
    return f"type the change: `thinktwice plans make {words}` is nearest of {known}"


def find_nearest(text: str) -> ChangeKind | None:
    """The kind that shares most words with a text, words of several kinds counted less; None: no one."""
    given = {word.strip(".,:;!?").casefold() for word in text.split()}
    words = {
        kind: {form.effect.split()[0].casefold(), *"_".join([kind, *form.needed]).split("_")}
        for kind, form in CHANGE_FORMS.items()
    }
    shares = Counter(word for own in words.values() for word in own)
    scores = {kind: sum(1 / shares[word] for word in own & given) for kind, own in words.items()}
    best = [kind for kind, score in scores.items() if score == max(scores.values())]
    return best[0] if len(best) == 1 else None


async def _ask(
    text: str,
    definitions: Mapping[str, PlaybookDefinition],
    settings: Settings,
    environment: Mapping[str, str],
    wording: Wording,
) -> ChangeReading:
    # The engine comes with the models: a typed change waits for neither.
    from agents.model_seats import models_in_use
    from trading_core.clock import SimulatedClock
    from worker.studies.study_models import open_models

    names, slow = models_in_use(settings), settings.llm.slow_model
    seats = {PROMPT: slow if slow in names else names[0]}
    clock = SimulatedClock(wording.now or 0)
    playbooks = {"playbook_id": tuple(sorted(definitions))}
    async with open_models(settings, environment, seats, clock, playbooks) as opened:
        opened.account.open_event()
        return await read_with_model(
            text, definitions, settings.judge, opened.models.texts[PROMPT],
            max_tokens=settings.plans.analysis_tokens, wording=wording,
        )  # fmt: skip


def draft_asked(
    request: PlanRequest,
    facts: PlanFacts,
    proposed: Sequence[Proposed],
    trigger: Trigger,
    understanding: str,
    source: tuple[str | None, str | None] = (None, None),
) -> ChangePlan:
    """A plan; of a run that is over it waits in wall time.

    Raises:
        ConfigError: nothing is left to do (`empty_plan`), with each refusal; a checkpoint before a folder.
    """
    if request.folder is not None and any(item.checkpoint for item in proposed):
        raise ConfigError(f"run {request.run.run_id} is over: {WHOLE}")
    waits = facts.expires_at - facts.at
    later = [item for item in proposed if request.folder is not None and item.action.kind in NEED_A_PROCESS]
    made = draft(
        [item for item in proposed if item not in later], facts, trigger, understanding=understanding,
        folder=None if request.folder is None else str(request.folder.resolve()),
        report_id=source[0], verdict_id=source[1],
    )  # fmt: skip
    if isinstance(made, EmptyPlan):
        reasons = [f"{item.action.kind} is refused: {item.code}, {item.reason}" for item in made.refused]
        reasons += [f"{item.action.kind}: {NO_FOLDER}" for item in later]
        why = "; ".join(reasons) or "the judge wanted nothing"
        raise ConfigError(f"empty_plan: there is nothing to change in run {request.run.run_id}: {why}")
    left = [RefusedStep(action=item.action, code="needs_a_process", reason=NO_FOLDER) for item in later]
    made = made.model_copy(update={"refused": (*made.refused, *left)})
    if request.trades:
        return made
    return in_wall_time(made, waits)


def in_wall_time(made: ChangePlan, waits: int) -> ChangePlan:
    """A plan of a run that is over, made now; it waits for so many ns."""
    now = time.time_ns()
    return made.model_copy(update={"made_at": now, "expires_at": now + waits})


async def _keep(
    store: "Store",
    request: PlanRequest,
    plan: ChangePlan,
    began: float,
    text: str = "",
    context: DetectionContext | None = None,
    reasoning: str | None = None,
) -> "StoredPlan":
    """Store a plan with what its words say of two phases; without a context it was typed."""
    context = context or DetectionContext(live=request.trades, typed=True)
    who = Operator(request.by, time.time_ns(), plan.made_at) if request.trades else None
    made = await store.plans.put(
        request.run.run_id,
        plan,
        who,
        two_phase=detect_two_phase(text, context, request.settings.plans).payload(),
        reasoning=reasoning,
        elapsed_ms=round((time.perf_counter() - began) * 1e3),
    )
    return await store.plans.find(made.plan_id, made.run_id)
