"""Looks at change plans: which texts take two phases, and what becomes of changes that a run wants."""

import os
from asyncio import run
from pathlib import Path
from typing import Any

import pytest

from agents.change_reader import UnreadableText
from schemas.errors import ConfigError
from schemas.judge import JudgeAction, ReplanVerdict
from schemas.settings import Settings
from schemas.vocabulary import RecommendedAction
from services.plans.detection import DetectionContext, detect_two_phase
from services.plans.same_change import plan_diff
from services.playbooks.loader import load_playbooks
from services.store import open_store
from tests.agents.language_models.wire_server import answer, events, message, stream
from tests.services.plans.plan_worlds import NAME, DeskWorld, desk_world, risk
from tests.services.store.stores import new_run
from tests.worker.settings_walk.walking import Entry, content
from tests.worker.wire import wire
from worker.review.plan_decisions import OperatorDecision
from worker.review.plan_making import in_wall_time, read_change

REPLAN = JudgeAction(kind="replan", reason="the cluster loses")
LESS = JudgeAction(
    kind="set_risk_fraction", playbook_id=NAME, value=0.0025, lowers_exposure=True, reason="it loses"
)
TEXTS = ("Rewrite the rules and deploy them.", "Raise the risk cap on all symbols.", "Go live.", "Hello.")
REQUESTED = {"plans.approval": "ask"}
ALL_ASKED = REQUESTED | {"plans.lowering": "ask"}
ASKING = {"reflection.mode": "full", "llm.model": "anthropic/claude-haiku-5-5"}


def detected(settings: Settings) -> Any:
    """What detection says of texts, on paper and live."""
    contexts = DetectionContext(), DetectionContext(live=True)
    return [
        detect_two_phase(text, context, settings.plans).payload() for text in TEXTS for context in contexts
    ]


def read_tokens(settings: Settings) -> Any:
    """With how many tokens a model is asked to read a text."""
    handlers = answer(message("{}")), stream(events("{}"))
    definitions = {book.id: book for book in load_playbooks()}
    with pytest.MonkeyPatch.context() as monkeypatch, wire(monkeypatch, *handlers) as server:
        with pytest.raises(UnreadableText):
            run(read_change("please trade less", definitions, settings, os.environ))
        return [body["max_tokens"] for _, body in server.requests]


def settled(settings: Settings) -> Any:
    """What becomes of a lower risk and of a replan of a judge, up to the deadline of their plans."""
    world = _world(settings)
    for action in (LESS, REPLAN):
        verdict = ReplanVerdict(
            decision=RecommendedAction.REPLAN,
            report_id="r" * 16,
            actions=(action,),
            reason="-",
            known_at=world.now,
        )
        world.session.slow_loop._apply(verdict, "v" * 16, world.now)
    deadline = world.desk.next_deadline
    if deadline is not None:
        world.desk.expire(deadline)
    made = [row["refused"] for row in world.rows("two_phase_phase1_complete")]
    decided = [(row["by"], row["state"], row["reasons"]) for row in world.rows("plan_decided")]
    return world.kinds(), content(made), decided, deadline


def moved(settings: Settings) -> Any:
    """What becomes of a plan that is approved a bar after it was made, with the closes a little elsewhere."""
    world = _world(settings)
    name = next(held for held, symbols in world.desk.facts(world.now).symbols.items() if symbols)
    plan = world.plan(risk(0.008, name))
    world.to_row(world.session.engine.t + 1)
    return [reason for reason in world.decide(plan)["reasons"] if "ATR" in reason]


def may_edit(settings: Settings) -> Any:
    """Whether a command edits a plan of a run with these settings."""
    plan = in_wall_time(_world(settings).plan(risk(0.004), folder=str(Path("out").absolute())), 10**15)

    async def edits() -> Any:
        async with await open_store("sqlite:///walk.db", create=True) as store:
            made = await store.runs.create(new_run(config=settings.payload()))
            await store.plans.put(made.run_id, plan)
            stored = await store.plans.find(plan.plan_id, made.run_id)
            try:
                after = await OperatorDecision(store, made, stored, "ann").edit(
                    ["steps.1.value=0.003"], [], None
                )
            except ConfigError as error:
                return str(error).replace(made.run_id, "it")
        return plan_diff(stored.plan, after.plan)

    return run(edits())


def _world(settings: Settings) -> DeskWorld:
    return desk_world(**{name: getattr(settings.plans, name) for name in type(settings.plans).model_fields})


PLANS: dict[str, Entry] = {
    "plans.enabled": Entry(False, settled),
    "plans.approval": Entry("ask", settled),
    "plans.unattended": Entry("reduce_only", settled, ALL_ASKED),
    "plans.lowering": Entry("ask", settled, REQUESTED),
    "plans.auto_detect": Entry(False, detected),
    "plans.threshold": Entry(0.3, detected),
    "plans.live_threshold": Entry(0.75, detected),
    "plans.analysis_tokens": Entry(100, read_tokens, ASKING),
    "plans.execution_tokens": Entry(16, settled),
    "plans.allow_edit": Entry(False, may_edit),
    "plans.expires_s": Entry(1_000_000.0, settled, REQUESTED),
    "plans.expires_bars": Entry(10, settled, REQUESTED),
    "plans.max_move_atr": Entry(0.01, moved, REQUESTED),
}
