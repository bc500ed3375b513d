"""A promotion waits for a person: declined when nobody decides, asked again, edited, approved, it acts."""

import asyncio
import json
from functools import cache
from typing import Any

from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.plans.editing import StepEdit, revise
from services.playbooks.loader import load_playbooks
from services.playbooks.measures import alter
from tests.services.plans.plan_worlds import DeskWorld, settings_with
from tests.worker.momentum_worlds import momentum_world
from worker.bootstrap import assemble
from worker.session import Timing
from worker.studies.scenarios import PLANTED

NAME, CAREFUL, EDITED = "buys_strength", 0.002, 0.003
BEFORE_THE_NEXT_SLOT = {"expires_s": 1.0, "expires_bars": 1}  # slots are a day apart, a day has two bars


def until(world: DeskWorld, condition: Any) -> None:
    """Step until a condition holds; the bars must not end before."""

    async def drive() -> None:
        while not condition():
            assert not world.session.engine.done, "the bars ended before it happened"
            await world.session.step(Timing())

    asyncio.run(drive())


@cache
def approved_world() -> tuple[DeskWorld, dict[str, Any]]:
    """A run in which the first plan of a promotion is left alone, and the second is edited and approved."""
    (planted,) = load_playbooks(PLANTED)
    (other,) = (book for book in load_playbooks(None) if book.id == "mean_reversion")
    books = (alter(planted, risk_fraction=CAREFUL), other)
    sink = MemorySink()
    settings = settings_with(approval="ask", max_move_atr=100.0, **BEFORE_THE_NEXT_SLOT)
    session = assemble(
        settings, momentum_world(strength=1.0, bars=900, symbols=12), JournalWriter(sink), books
    )
    world = DeskWorld(session, sink)
    session.begin()
    desk, seen = world.desk, dict[str, Any]()
    until(world, lambda: desk.waiting)
    seen["first"], seen["waited"] = next(iter(desk.waiting.values())).plan, world.in_force(NAME)
    until(world, lambda: not desk.waiting)
    seen["declined"], seen["shadows"] = world.in_force(NAME), session.books.lifecycle.shadows()
    until(world, lambda: desk.waiting)
    second = next(iter(desk.waiting.values())).plan
    seen["second"] = second
    edited = revise(second, edits=[StepEdit(1, "value", str(EDITED))], judge=settings.judge)
    seen["told"], seen["edited"] = world.decide(edited), edited
    return world, seen


def test_promotion_waits_and_its_candidate_stays_in_shadow() -> None:
    _, seen = approved_world()
    first = seen["first"]
    assert first.trigger == "candidate"
    (step,) = first.steps
    assert (step.action.kind, step.action.value) == ("set_risk_fraction", 2 * CAREFUL)
    assert first.basis.evidence[step.candidate]["e_value"] >= 40.0
    assert (seen["waited"].version, seen["declined"].version) == (1, 1)
    assert step.candidate in {trial.version_hash for trial in seen["shadows"]}


def test_promotion_that_nobody_decided_is_declined_and_asked_again_at_a_later_slot() -> None:
    world, seen = approved_world()
    decided = world.rows("plan_decided")
    assert [(row["by"], row["state"]) for row in decided] == [
        ("unattended", "declined"),
        ("ann", "approved"),
    ]
    assert decided[0]["plan_id"] == seen["first"].plan_id != seen["second"].plan_id
    assert seen["second"].made_at > seen["first"].expires_at


def test_promotion_with_an_edited_value_acts_with_the_approved_bytes() -> None:
    world, seen = approved_world()
    assert seen["told"]["state"] == "completed", seen["told"]
    (made,) = seen["edited"].steps[0].makes
    assert world.in_force(NAME).canonical_text() == made.definition.canonical_text()
    assert world.in_force(NAME).risk_fraction == EDITED
    stored = [json.loads(row.payload) for row in world.sink.rows if row.kind == "playbook_version"]
    assert (stored[-1]["version_hash"], stored[-1]["state"]) == (made.version_hash, "active")


def test_promotion_trades_with_what_was_approved_from_the_next_bar_on() -> None:
    world, _ = approved_world()
    until(world, lambda: _frozen(world, EDITED))


def _frozen(world: DeskWorld, risk: float) -> bool:
    policies = world.session.policy_loop.policies.values()
    return any((policy.playbook_id, policy.risk_fraction) == (NAME, risk) for policy in policies)
