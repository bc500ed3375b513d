"""What a report that was made elsewhere closes as it arrives: the drift window, overrides, deferred items."""

import asyncio
import json
from dataclasses import replace
from typing import Any

from schemas.judge import JudgeAction, ReplanVerdict
from schemas.vocabulary import OverrideReason, RecommendedAction
from services.slow_loop.cadence import Run
from services.slow_loop.loop_facts import LoopFacts
from tests.worker.test_session_wires import session
from worker.session import Session, Timing

BAR = 86_400 * 10**9


def stepped() -> Session:
    """A session after half a year, with a report known at its present."""
    made = session()

    async def drive() -> None:
        timing = Timing()
        while made.engine.t < 250:
            await made.step(timing, end=250)

    asyncio.run(drive())
    return made


def read_requests(made: Session) -> tuple[Any, Any]:
    return asyncio.run(made.slow_loop.reflect_now(made.engine.t - 1))


def heard(made: Session, request: Any, report: Any, *actions: JudgeAction) -> None:
    verdict = ReplanVerdict(
        decision=RecommendedAction.HOLD,
        report_id=report.content_hash[:16],
        actions=actions,
        reason="-",
        known_at=report.known_at,
    )
    before = made.slow_loop.counters.errors
    made.slow_loop.apply_report(request, report, verdict, made.engine.t - 1)
    assert made.slow_loop.counters.errors == before


def breached(made: Session, at: int, limit: str = "max_drawdown") -> None:
    made.journal.append("envelope_breach", ts_event=at, known_at=at, payload={"limit": limit})


def wished(made: Session, raised_at: int, known_at: int) -> None:
    """A reflection deferred a need."""
    made.journal.append(
        "policy_reflection",
        ts_event=raised_at,
        known_at=known_at,
        symbol="AAPL",
        payload={"result": {"deferred": ["a wish"]}, "reflection_hash": "0" * 64},
    )


def override_of(made: Session, at: int) -> OverrideReason | None:
    return made.slow_loop.facts.cadence(at, at).safety_override


def wishes(made: Session) -> list[str]:
    return [item.text for item in read_requests(made)[0].deferred_items]


def counts(request: Any, side: str) -> dict[str, Any]:
    empty = {"armed": 0, "activated": 0, "expired": 0, "r": ()}
    fires = request.drift_inputs["fires"]
    return {name: pair[side] for name, pair in fires.items() if pair[side] != empty}


def test_hear_closes_the_drift_window_so_that_the_next_report_compares_two_windows() -> None:
    made = stepped()
    first, report = read_requests(made)
    assert counts(first, "now")
    assert not counts(first, "before")
    heard(made, first, report)
    again, _ = read_requests(made)
    assert counts(again, "before") == counts(first, "now")
    assert not counts(again, "now")


def test_hear_leaves_what_happened_after_the_clock_of_the_report_to_the_next_window() -> None:
    made = stepped()
    whole, report = read_requests(made)
    outcomes = sorted(episode.known_at for episode in made.slow_loop.facts.learnable(made.clock.now))
    early = whole.model_copy(update={"slot": outcomes[0], "known_at": outcomes[0]})
    heard(made, early, report)
    again, _ = read_requests(made)
    later = [r for fires in counts(again, "now").values() for r in fires["r"]]
    before = [r for fires in counts(again, "before").values() for r in fires["r"]]
    assert (len(before), len(later)) == (1, len(outcomes) - 1)
    assert later


def test_hear_clears_the_override_that_the_report_knew_and_keeps_a_later_one() -> None:
    made = stepped()
    now = made.clock.now
    request, report = read_requests(made)
    breached(made, now)
    assert override_of(made, now) is OverrideReason.ENVELOPE_BREACH
    heard(made, request, report)
    assert override_of(made, now) is None
    breached(made, now + BAR, "kill_switch")
    heard(made, request, report)
    assert override_of(made, now) is None, "not known yet"
    assert override_of(made, now + BAR) is OverrideReason.KILL_SWITCH


def test_hear_clears_the_deferred_items_that_the_report_knew_and_keeps_later_ones() -> None:
    made = stepped()
    request, report = read_requests(made)
    now = made.clock.now
    wished(made, now - BAR, now)
    assert wishes(made) == ["a wish"]
    heard(made, request, report)
    assert wishes(made) == []
    early = request.model_copy(update={"slot": now - BAR, "known_at": now - BAR})
    other = stepped()
    wished(other, now - BAR, now)
    heard(other, early, report)
    assert wishes(other) == ["a wish"], "raised before its clock, known after it"


def test_hear_of_a_lifted_ban_counts_as_a_promotion_for_what_begins_after_it() -> None:
    made = stepped()
    request, report = read_requests(made)
    trials, first, later = made.slow_loop._trials, "sideways/low", "sideways/mid"

    def changed(cell: str, *, eligible: bool) -> None:
        action = JudgeAction(
            kind="set_eligibility",
            playbook_id="mean_reversion",
            regime=cell,
            eligible=eligible,
            life_blocks=20,
            reason="-",
        )
        heard(made, request, report, action)

    def needed() -> dict[str, Any]:
        trials.step(made.engine.t - 1, made.clock.now)
        return {version: shown["e_needed"] for (version, _), shown in trials.measured.items()}

    changed(first, eligible=False)
    assert list(needed().values()) == [40.0]
    trials.proven = dict(trials.measured)
    changed(first, eligible=True)
    changed(later, eligible=False)
    assert list(needed().values()) == [60.0], "120 for a second trial, half of it after a promotion"


def test_hear_of_a_report_that_cannot_be_carried_out_consumes_nothing_of_it() -> None:
    made = stepped()
    loop, now = made.slow_loop, made.clock.now
    request, report = read_requests(made)
    wished(made, now, now)
    breached(made, now)
    before, signals = loop.facts.cadence(now, now), read_requests(made)[0].untraded_signals
    too_much = JudgeAction(
        kind="set_risk_fraction", playbook_id="mean_reversion", value=0.5, reason="out of bounds"
    )
    verdict = ReplanVerdict(
        decision=RecommendedAction.POLICY_ADJUST,
        report_id=report.content_hash[:16],
        actions=(too_much,),
        reason="-",
        known_at=report.known_at,
    )
    loop.apply_report(request, report, verdict, made.engine.t - 1)
    assert loop.counters.errors == 1
    again, _ = read_requests(made)
    assert loop.facts.cadence(now, now) == replace(before, last_attempt=request.slot)
    assert again.drift_inputs == request.drift_inputs
    assert [item.text for item in again.deferred_items] == ["a wish"]
    assert again.untraded_signals == signals != ()
    assert again.judge_history == (), "what was not carried out is no action"
    failure = read_from_the_journal(made, again)
    assert failure["report_id"] == report.content_hash[:16]
    heard(made, *read_requests(made))
    assert override_of(made, now) is None


def read_from_the_journal(made: Session, wanted: Any) -> dict[str, Any]:
    """The error of a report, after which a worker counts the same facts as new."""
    asyncio.run(made.journal.flush())
    facts, failures = LoopFacts(made.settings), list[dict[str, Any]]()
    for row in made.journal._sink.rows:  # type: ignore[attr-defined]
        facts.add(row)
        failures += [json.loads(row.payload)] if row.kind == "error" else []
    (failure,) = failures
    now = made.clock.now
    read = facts.request(Run(now, "batch", structural_allowed=True), now, None)
    assert read.drift_inputs == wanted.drift_inputs
    assert read.new_episodes == len(facts.learnable(now)) > 0
    assert read.judge_history == ()
    cadence = facts.cadence(now, now)
    assert (cadence.last_run, cadence.last_structural) == (None, None)
    assert cadence.last_attempt == wanted.slot, "nothing is examined early before the next slot"
    return failure
