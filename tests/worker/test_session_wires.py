"""The wires of the policy loop, cut one by one in a running session: each cut is seen and none of them
trades.
"""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from schemas.canonical import datetime_to_ns
from schemas.no_learn import NoLearnZone
from schemas.reflection import PolicyLevelReflectionResult
from schemas.settings import EnvelopeSettings, PolicyLoopSettings, ReflectionSettings, Settings
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import JudgeDecision, PlanKind, ReflectionStatus
from schemas.vocabulary import PolicyEventKind as KIND
from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.policy_checks.bases import SnapshotCheck
from services.ports import Plan, PlanEnd, PlanRound
from tests.worker.shared_runs import embedded_bars, played
from worker.bootstrap import assemble
from worker.session import Session, Timing

BARS = ("2003-01-01", "2004-06-30")


def session(settings: Settings | None = None, period: tuple[str, str] = BARS) -> Session:
    made = assemble(settings or Settings(), embedded_bars(*period), JournalWriter(MemorySink()))
    made.begin()
    return made


def finished(made: Session) -> list[JournalRow]:
    played(made)
    rows: list[JournalRow] = made.journal._sink.rows  # type: ignore[attr-defined]
    return rows


def payloads(rows: list[JournalRow], kind: str) -> list[dict[str, Any]]:
    return [json.loads(row.payload) for row in rows if row.kind == kind]


def plans_changed(made: Session, change: Callable[[Plan], Plan]) -> None:
    """Let every plan of the provider pass through `change`."""
    provide = made.policy_loop.provider.provide

    async def changed(*args: Any, **named: Any) -> Plan:
        return change(await provide(*args, **named))

    made.policy_loop.provider.provide = changed  # type: ignore[method-assign]


def without_reflection(plan: Plan) -> Plan:
    if plan.end is not PlanEnd.PASSED:
        return plan
    return Plan(plan.end, (PlanRound(plan.last.answer, plan.last.request, None),), plan.reason)


def with_foreign_reflection(plan: Plan) -> Plan:
    if plan.end is not PlanEnd.PASSED or not isinstance(plan.last.reflection, PolicyLevelReflectionResult):
        return plan
    foreign = plan.last.reflection.model_copy(update={"proposal_hash": "0" * 64})
    return Plan(plan.end, (PlanRound(plan.last.answer, plan.last.request, foreign),), plan.reason)


def test_session_untouched_trades_so_that_the_cuts_below_mean_something() -> None:
    made = session()
    rows = finished(made)
    assert len(payloads(rows, "order_accepted")) > 5
    assert made.policy_loop.counters.errors == 0


def test_session_plan_with_a_foreign_reflection_is_not_approved_and_never_trades() -> None:
    made = session()
    plans_changed(made, with_foreign_reflection)
    rows = finished(made)
    assert sum(made.policy_loop.counters.decisions.values()) > 0
    assert made.policy_loop.counters.decisions["approve"] == 0
    assert payloads(rows, "order_accepted") == []


def test_session_plan_without_a_reflection_is_an_error_and_never_trades() -> None:
    made = session()
    plans_changed(made, without_reflection)
    rows = finished(made)
    assert made.policy_loop.counters.errors > 0
    assert made.policy_loop.counters.errors == len(payloads(rows, "error"))
    assert payloads(rows, "policy_frozen") == []
    assert payloads(rows, "order_accepted") == []


def blocked(plan: Plan) -> Plan:
    """The plan as if the reflection had blocked it."""
    reflection = plan.last.reflection
    if not isinstance(reflection, PolicyLevelReflectionResult):
        return plan
    reply = reflection.model_copy(update={"status": ReflectionStatus.BLOCK})
    return Plan(PlanEnd.BLOCKED, (PlanRound(plan.last.answer, plan.last.request, reply),), "blocked")


def test_session_blocked_proposal_gives_no_order() -> None:
    made = session()
    plans_changed(made, blocked)
    rows = finished(made)
    assert made.policy_loop.counters.reflections["block"] > 0
    assert made.policy_loop.counters.outcomes["stood_down"] > 0
    assert payloads(rows, "order_accepted") == []


def late_by(made: Session, bars: int, where: str) -> None:
    """Let the feed run on for `bars` while an answer is made, as a live feed does."""
    owner: Any = made.policy_loop.provider if where == "provide" else made.policy_loop._judge
    answer = getattr(owner, where)

    async def late(*args: Any, **named: Any) -> Any:
        reply = await answer(*args, **named)
        row = made.engine.t + bars
        while made.engine.t < min(row, made.bars.times.size):
            made.engine.advance(row)
        made.clock.advance(int(made.bars.close_times[made.engine.t - 1]))
        return reply

    setattr(owner, where, late)


@pytest.mark.parametrize("where", ["provide", "validate_boundary"])
def test_session_answer_more_than_its_bars_late_is_stale_and_never_trades(where: str) -> None:
    made = session()
    late_by(made, 2, where)
    rows = finished(made)
    outcomes = made.policy_loop.counters.outcomes
    assert outcomes["stale"] > 5
    assert outcomes["error"] == made.policy_loop.counters.errors == 0
    assert outcomes["stale"] == sum(
        row["outcome"] == "stale" for row in payloads(rows, "policy_evaluation")
    ), "each is a row with its reason"
    last = int(made.bars.close_times[-3])  # after it the feed ends before the answer is late
    assert [row for row in rows if row.kind == "policy_frozen" and row.known_at <= last] == []


def test_session_answer_one_bar_late_is_taken_unless_the_world_has_changed() -> None:
    made = session()
    late_by(made, 1, "provide")
    finished(made)
    outcomes = made.policy_loop.counters.outcomes
    assert outcomes["frozen"] > 5
    assert outcomes["stale"] > 0, "some regimes change on that very bar"
    assert made.policy_loop.counters.errors == 0


def test_session_failure_while_the_snapshot_is_taken_is_an_error_and_freezes_nothing() -> None:
    made = session()

    def broken(*questions: Any) -> None:
        raise RuntimeError("the builder broke")

    made.policy_loop._builder.build = broken  # type: ignore[assignment,method-assign]
    rows = finished(made)
    assert made.policy_loop.counters.outcomes["error"] == made.policy_loop.counters.evaluations > 20
    assert made.policy_loop.counters.errors == len(payloads(rows, "error")) > 20
    assert payloads(rows, "policy_frozen") == []


def test_session_boundary_of_a_symbol_that_is_being_answered_is_skipped_as_single_flight() -> None:
    made = session()
    loop, entered, again = made.policy_loop, [0], list[Any]()
    provide, opens = loop.provider.provide, loop.open

    def remembered(boundary: Any, **named: Any) -> Any:
        again[:] = [boundary]
        return opens(boundary, **named)

    async def twice(*args: Any, **named: Any) -> Plan:
        entered[0] += 1
        before = loop.counters.evaluations
        assert opens(again[0]) is None
        assert loop.counters.evaluations == before, "nobody is asked twice at once"
        return await provide(*args, **named)

    loop.open = remembered  # type: ignore[method-assign]
    loop.provider.provide = twice  # type: ignore[method-assign]
    rows = finished(made)
    skips = [row for row in payloads(rows, "policy_skip") if row["reason"] == "single_flight"]
    assert len(skips) >= entered[0] > 20
    assert loop.counters.errors == 0


def test_session_bars_and_boundaries_repeated_within_a_policy_window_reflect_only_once() -> None:
    made = session()
    loop, close = made.policy_loop, made.policy_loop.close
    repeated = [0]

    def thrice(evaluation: Any) -> None:
        close(evaluation)
        boundary = evaluation.boundary
        before = (loop.counters.evaluations, sum(loop.counters.decisions.values()))
        quiet = set(boundary.events) <= {KIND.HEARTBEAT, KIND.REGIME_CHANGE, KIND.VOLATILITY_BAND_SHIFT}
        for _ in range(2 if quiet and not boundary.overrides else 0):
            assert loop.open(boundary) is None
            repeated[0] += 1
        assert (loop.counters.evaluations, sum(loop.counters.decisions.values())) == before

    loop.close = thrice  # type: ignore[method-assign]
    finished(made)
    assert repeated[0] > 50
    assert loop.counters.errors == 0


@pytest.mark.parametrize("where", ["provide", "validate_boundary"])
def test_session_exception_in_the_loop_is_counted_shown_and_fails_closed(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = session()

    async def broken(*args: Any, **named: Any) -> None:
        raise RuntimeError("broken on purpose")

    owner = made.policy_loop.provider if where == "provide" else made.policy_loop._judge
    monkeypatch.setattr(owner, where, broken)
    rows = finished(made)
    errors = payloads(rows, "error")
    assert errors
    assert {error["message"] for error in errors} == {"broken on purpose"}
    assert made.policy_loop.counters.errors == len(errors)
    assert made.policy_loop.counters.outcomes["error"] == len(errors)
    assert payloads(rows, "order_accepted") == []


@pytest.mark.parametrize("decision", [JudgeDecision.REJECT, JudgeDecision.STAND_DOWN, JudgeDecision.REVISE])
def test_session_judge_that_does_not_approve_gives_no_order(
    decision: JudgeDecision, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = session()
    judge = made.policy_loop._judge
    validate = judge.validate_boundary

    async def unwilling(*args: Any, **named: Any) -> Any:
        return (await validate(*args, **named)).model_copy(update={"decision": decision})

    monkeypatch.setattr(judge, "validate_boundary", unwilling)
    rows = finished(made)
    assert made.policy_loop.counters.decisions[decision] > 0
    assert made.policy_loop.counters.errors == 0, "the loop obeys the judge; freeze does not have to stop it"
    assert payloads(rows, "policy_frozen") == []
    assert payloads(rows, "order_accepted") == []
    assert max(payload["rounds"] for payload in payloads(rows, "policy_evaluation")) <= 2


def test_session_reflection_and_judge_see_the_same_snapshot_and_proposal_hash() -> None:
    rows = finished(session())
    snapshots = {payload["snapshot_hash"] for payload in payloads(rows, "policy_snapshot")}
    proposals = {payload["proposal_hash"] for payload in payloads(rows, "policy_proposal")}
    for kind in ("policy_reflection", "boundary_verdict"):
        for payload in payloads(rows, kind):
            assert payload["snapshot_hash"] in snapshots
            assert payload["proposal_hash"] in proposals


def test_session_error_of_a_guardrail_itself_is_recorded_twice_and_the_symbol_stands_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a guardrail that breaks")

    made = session()
    asyncio.run(until_a_policy_is_in_force(made))
    before = {s for s in range(made.bars.shape[1]) if made.policy_loop.in_force(s)}
    monkeypatch.setattr("services.policy_loop.evaluator.invariant_context", broken)
    close, retired_at_once = made.policy_loop.close, list[bool]()

    def watched(evaluation: Any) -> None:
        held = made.policy_loop.in_force(evaluation.boundary.s)
        close(evaluation)
        if held is not None:
            retired_at_once.append(made.policy_loop.in_force(evaluation.boundary.s) is None)

    monkeypatch.setattr(made.policy_loop, "close", watched)
    rows = finished(made)
    counters = made.policy_loop.counters
    assert counters.errors == len(payloads(rows, "error")) == counters.outcomes["error"] + len(before) > 10
    assert not any(made.policy_loop.in_force(s) for s in range(made.bars.shape[1]))
    assert len(retired_at_once) > 1
    assert all(retired_at_once), "not only when its horizon is over"
    broken_at = next(row.seq for row in rows if row.kind == "error")
    assert not [
        row for row in rows if row.seq > broken_at and row.kind in ("policy_frozen", "policy_amended")
    ]


def test_session_heartbeat_with_another_event_is_reflected_as_that_event() -> None:
    rows = finished(session())
    seen = {
        payload["snapshot_hash"]: payload["snapshot"]["events"]
        for payload in payloads(rows, "policy_snapshot")
    }
    sources = [
        (payload["result"]["meta"]["source"], seen[payload["snapshot_hash"]])
        for payload in payloads(rows, "policy_reflection")
    ]
    both = [source for source, events in sources if "heartbeat" in events and len(events) > 1]
    assert both
    assert "heartbeat" not in both


def test_session_reflection_off_says_so_on_every_proposal_and_runs_no_slow_loop() -> None:
    made = session(Settings(reflection=ReflectionSettings(mode="off")))
    rows = finished(made)
    assert {payload["result"]["outcome"] for payload in payloads(rows, "policy_reflection")} == {"disabled"}
    assert payloads(rows, "policy_frozen")
    assert payloads(rows, "slow_skip") == payloads(rows, "high_level_report") == []


def test_session_events_switched_off_are_skipped_with_that_reason() -> None:
    made = session(
        Settings(
            policy_loop=PolicyLoopSettings(
                events=(KIND.REGIME_CHANGE, KIND.POSITION_OPENED, KIND.POSITION_CLOSED)
            )
        )
    )
    rows = finished(made)
    skips = [payload for payload in payloads(rows, "policy_skip") if payload["event"] == "heartbeat"]
    assert skips
    assert {skip["reason"] for skip in skips} == {"event_disabled"}
    assert all(
        "heartbeat" not in payload["snapshot"]["events"] or len(payload["snapshot"]["events"]) > 1
        for payload in payloads(rows, "policy_snapshot")
    )


@pytest.fixture
def unscreened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every base of ours is offered, whatever the checks say of it."""
    monkeypatch.setattr(SnapshotCheck, "findings", lambda *questions: ())


@pytest.mark.usefixtures("unscreened")
def test_session_no_learn_zone_episodes_are_kept_out_of_memory_and_statistics() -> None:
    zone = NoLearnZone(start=0, end=2**62, reason="the whole history")
    made = session(Settings(envelope=EnvelopeSettings(no_learn_zones=(zone,))))
    made.policy_loop._settings = Settings()  # the proposals themselves stay free of the zone
    rows = finished(made)
    episodes = payloads(rows, "episode")
    assert len(episodes) > 3
    assert all(episode["episode"]["no_learn"] for episode in episodes)
    assert len(made.experience.memory) == 0
    last = made.clock.now
    assert all(
        made.experience.expectations.summary(version.definition, last).n == 0
        for version in made.books.reader.active()
    )


@pytest.mark.usefixtures("unscreened")
def test_session_no_learn_zone_episodes_are_kept_out_of_the_slow_loop() -> None:
    zone = NoLearnZone(start=0, end=2**62, reason="the whole history")
    made = session(Settings(envelope=EnvelopeSettings(no_learn_zones=(zone,))), ("2000-03-01", "2004-06-30"))
    made.policy_loop._settings = Settings()  # the proposals themselves stay free of the zone
    finished(made)
    assert len(made.slow_loop.facts.episodes) >= made.settings.high_level.minimum_episodes
    assert made.slow_loop.counters.runs == 0
    assert set(made.slow_loop.counters.skips) == {"insufficient_episodes"}


@pytest.mark.usefixtures("unscreened")
def test_session_no_learn_zone_of_the_settings_blocks_the_plans_of_its_bars() -> None:
    """The zone lasts for two months and names one of the symbols."""
    start, end = (datetime_to_ns(datetime(2003, month, 1, tzinfo=UTC)) for month in (9, 11))
    zone = NoLearnZone(start=start, end=end, symbol="IBM", reason="feed gap")
    made = session(Settings(envelope=EnvelopeSettings(no_learn_zones=(zone,))))
    rows = finished(made)
    blocked = {
        (row.symbol, row.ts_event)
        for row in rows
        if row.kind == "policy_reflection" and "no_learn_zone_active" in row.payload
    }
    proposed = {
        (row.symbol, row.ts_event)
        for row in rows
        if row.kind == "policy_reflection" and json.loads(row.payload)["amendment"] is None
    }
    assert blocked == {("IBM", at) for symbol, at in proposed if symbol == "IBM" and start < at <= end}
    assert blocked


def test_session_bypassing_events_are_evaluated_within_the_minimum_interval() -> None:
    made = session(Settings(policy_loop=PolicyLoopSettings(minimum_interval_bars=30)))
    rows = finished(made)
    evaluated = [payload for payload in payloads(rows, "policy_event") if payload["evaluated"]]
    opened = [payload for payload in payloads(rows, "policy_event") if "position_opened" in payload["events"]]
    assert opened
    assert all(entry["evaluated"] for entry in opened)
    quiet = [
        event
        for event in evaluated
        if not {"position_opened", "position_closed"} & set(event["events"]) and not event["overrides"]
    ]
    assert len(quiet) < len(evaluated)


def test_session_position_gets_one_evaluation_and_then_hold_lock() -> None:
    rows = finished(session())
    lines = [payload for payload in payloads(rows, "policy_proposal") if payload["amendment"] is None]
    answers = {entry["snapshot_hash"]: entry["answer"] for entry in lines}
    for payload in payloads(rows, "policy_snapshot"):
        snapshot = payload["snapshot"]
        if snapshot["state"] == "POSITION_OPEN":
            assert "position_opened" in snapshot["events"]
            assert answers[payload["snapshot_hash"]] in (PlanKind.HOLD, PlanKind.TIGHTEN)
        if snapshot["state"] in ("HOLD_LOCK", "THESIS_ARMED"):
            assert {
                "invalidation_hit",
                "volatility_shock",
                "envelope_breach",
                "kill_switch",
                "stale_data",
            } & set(snapshot["events"])


FORBIDDEN = Settings(envelope=EnvelopeSettings(allowed_playbooks=("none_of_them",)))


@pytest.mark.parametrize("trouble", ["blocked", "error"])
@pytest.mark.parametrize("limits", [Settings(), FORBIDDEN])
def test_session_previous_policy_outlives_a_block_or_error_only_if_the_invariants_pass(
    trouble: str, limits: Settings
) -> None:
    made = session()
    asyncio.run(until_a_policy_is_in_force(made))
    kept = {s: made.policy_loop.in_force(s) for s in range(made.bars.shape[1])}

    async def trouble_making(*args: Any, **named: Any) -> Plan:
        if trouble == "error":
            raise RuntimeError("no plan today")
        return Plan(PlanEnd.BLOCKED, (PlanRound(ABSTENTION),), "blocked on purpose")

    made.policy_loop.provider.provide = trouble_making  # type: ignore[method-assign]
    made.policy_loop._settings = limits
    ended = evaluations_of(made, 40)
    assert ended
    before = {policy.policy_id for policy in kept.values() if policy is not None}
    stayed = {
        entry["policy_id"] for entry in ended if entry["policy_id"] is not None and not entry["in_position"]
    }
    assert stayed <= before
    assert bool(stayed) == (limits is not FORBIDDEN)
    if limits is FORBIDDEN:
        assert not any(made.policy_loop.in_force(s) for s in evaluated_symbols(made, ended))


ABSTENTION = StrategistAnswer(kind=PlanKind.ABSTAIN, reason="scripted")


async def until_a_policy_is_in_force(made: Session) -> None:
    timing = Timing()
    while not any(made.policy_loop.in_force(s) for s in range(made.bars.shape[1])):
        await made.step(timing)


def evaluations_of(made: Session, steps: int) -> list[dict[str, Any]]:
    """Step on and return the evaluations of these steps, with their symbol."""

    async def drive() -> list[dict[str, Any]]:
        timing = Timing()
        await made.journal.flush()
        first = made.journal.events
        for _ in range(steps):
            await made.step(timing)
        await made.journal.flush()
        rows: list[JournalRow] = made.journal._sink.rows[first:]  # type: ignore[attr-defined]
        seen = {
            payload["snapshot_hash"]: payload["snapshot"] for payload in payloads(rows, "policy_snapshot")
        }
        ended = [
            json.loads(row.payload) | {"symbol": row.symbol}
            for row in rows
            if row.kind == "policy_evaluation"
        ]
        return [
            snapshot | {"in_position": seen[snapshot["snapshot_hash"]]["position"] is not None}
            for snapshot in ended
        ]

    return asyncio.run(drive())


def evaluated_symbols(made: Session, ended: list[dict[str, Any]]) -> list[int]:
    return sorted({made.bars.symbols.index(entry["symbol"]) for entry in ended})


def test_session_risk_above_the_envelope_is_clamped_and_each_clamp_is_an_event() -> None:
    rows = finished(session(Settings(envelope=EnvelopeSettings(risk_fraction=0.002))))
    orders, clamps = payloads(rows, "order_accepted"), payloads(rows, "order_clamped")
    assert len(orders) > 5
    assert len([clamp for clamp in clamps if "risk_cap" in clamp["clamps"]]) == len(orders)
    assert max(order["quantity"] * order["planned_risk"] for order in orders) < 0.002 * 110_000


def test_session_symbol_that_loses_its_policy_gets_a_boundary_at_its_next_close() -> None:
    made = session()

    asyncio.run(until_a_policy_is_in_force(made))
    retired = made.policy_loop.retire_playbook(None)
    assert retired
    requested = [made.bars.symbols[s] for s, flag in enumerate(made.engine.state["requested"]) if flag]
    assert tuple(requested) == retired
    rows = finished(made)
    opened = [
        row.symbol
        for row in rows
        if row.kind == "policy_event" and "replan" in json.loads(row.payload)["events"]
    ]
    assert set(retired) <= set(opened)
