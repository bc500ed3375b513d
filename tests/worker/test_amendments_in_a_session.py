"""Stop moves, keeps and stand-downs in a session: reflected on, judged and frozen, or not done."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest

from schemas.invocation import ReflectionInvocationMeta
from schemas.judge import BoundaryVerdict
from schemas.reflection import PolicyLevelReflectionResult
from schemas.settings import ExecutionSettings, ReflectionSettings, Settings
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import InvocationOutcome, JudgeDecision, PlanKind, ReflectionStatus
from services.journal.chain import JournalRow
from services.journal.index import Event, JournalIndex
from services.journal.lineage import LineageNode, trace
from services.journal.references import check_references
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.ports import Plan, PlanEnd, PlanRound
from tests.services.journal.rows import stream
from tests.services.policy_checks.plans import right_request
from tests.worker.settings_walk.runs_seen import never_today
from tests.worker.shared_runs import embedded_bars, embedded_run
from tests.worker.test_session_wires import finished, late_by, payloads, plans_changed, session
from worker.models import Overrides
from worker.runs.backtest import run_backtest
from worker.session import Session

Rows = list[tuple[str, dict[str, Any]]]


def evaluations(rows: Any) -> list[tuple[dict[str, Any], Rows, dict[str, Any]]]:
    """(snapshot, rows in between, policy_evaluation) of every evaluation that took a snapshot."""
    ended, open_ = [], dict[str, tuple[dict[str, Any], Rows]]()
    for row in rows:
        payload = json.loads(row.payload)
        if row.kind == "policy_snapshot":
            open_[row.symbol] = (payload["snapshot"], [])
        elif row.kind == "policy_evaluation" and row.symbol in open_:
            ended.append((*open_.pop(row.symbol), payload))
        elif row.symbol in open_:
            open_[row.symbol][1].append((row.kind, payload))
    return ended


def tightening(made: Session, level: Callable[[Any], float | None], reason: str = "scripted") -> None:
    """Let every answer in a position ask for a stop at `level` of the snapshot."""
    provide = made.policy_loop.provider.provide

    async def moved(snapshot: Any, *rest: Any, **named: Any) -> Plan:
        if snapshot.position is None:
            return await provide(snapshot, *rest, **named)
        answer = StrategistAnswer(kind=PlanKind.TIGHTEN, reason=reason, tighter_stop=level(snapshot))
        return Plan(PlanEnd.NO_PROPOSAL, (PlanRound(answer),), reason)

    made.policy_loop.provider.provide = moved  # type: ignore[method-assign]


def refused_rows() -> list[JournalRow]:
    """Rows of two years in which a critic of the caller's own sends every plan back."""
    journal = JournalWriter(sink := MemorySink())
    own = Overrides(critics=(never_today,))
    asyncio.run(run_backtest(Settings(), embedded_bars("2003-01-01", "2004-12-31"), journal, own=own))
    return sink.rows


def halfway(snapshot: Any) -> float:
    position, close = snapshot.position, float(snapshot.close)
    return float(position.stop) + 0.5 * (close - float(position.stop))


def test_run_every_evaluation_with_a_position_or_a_policy_is_reflected_judged_and_frozen() -> None:
    held = 0
    for snapshot, between, ended in evaluations(embedded_run().rows):
        kinds = [kind for kind, _ in between]
        if snapshot["position"] is not None or snapshot["active_policy_id"] is not None:
            assert "policy_reflection" in kinds
            assert "boundary_verdict" in kinds
            assert ("policy_frozen" in kinds) != ("policy_amended" in kinds), "exactly one is put in force"
        if snapshot["position"] is not None:
            held += 1
            assert ended["outcome"] in ("held", "tightened")
            assert ended["amendment_id"] is not None
    assert held > 300


def test_run_last_reflected_proposal_of_every_evaluation_has_a_verdict() -> None:
    refused = 0
    for _, between, ended in evaluations([*embedded_run().rows, *refused_rows()]):
        for plans in (True, False):
            met = [
                payload["reflection_hash"]
                for kind, payload in between
                if kind == "policy_reflection" and (payload["amendment"] is None) is plans
            ]
            judged = {payload["reflection_hash"] for kind, payload in between if kind == "boundary_verdict"}
            assert set(met[-1:]) <= judged
        refused += ended["reason"].startswith(("no other eligible", "identical")) and bool(met or judged)
    assert refused >= 30, "these ended reflected and unjudged"


def test_run_every_evaluation_ends_with_invocation_records_that_are_counted() -> None:
    run = embedded_run()
    counted: dict[str, int] = {}
    for ended in run.of("policy_evaluation"):
        assert ended["invocations"]
        for met in ended["invocations"]:
            assert (met["outcome"] == "ran") == (met["skip_reason"] is None)
            counted[met["outcome"]] = counted.get(met["outcome"], 0) + 1
    loop = run.document["policy_loop"]
    assert {name: count for name, count in loop["invocations"].items() if count} == counted
    assert counted["ran"] == len(run.of("policy_reflection"))
    assert counted["skipped"] > 100, "abstentions with nothing to reflect on"
    assert loop["degraded_share"] == 0.0


def test_session_skipped_invocation_says_why() -> None:
    made = session()
    plans_changed(made, resubmitted)
    reasons = {
        met["skip_reason"]
        for ended in payloads(finished(made), "policy_evaluation")
        for met in ended["invocations"]
        if met["outcome"] == "skipped"
    }
    assert reasons >= {"identical resubmission", "nothing to reflect on"}


PROPOSED = right_request().proposal


@pytest.mark.parametrize("end", [PlanEnd.BLOCKED, PlanEnd.STAND_DOWN])
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (StrategistAnswer(kind=PlanKind.PROPOSE, reason="scripted", proposal=PROPOSED), "not looked at"),
        (StrategistAnswer(kind=PlanKind.ABSTAIN, reason="scripted"), "nothing to reflect on"),
    ],
    ids=["proposal", "bare"],
)
def test_session_block_or_stand_down_without_a_reflection_leaves_a_skipped_invocation_record(
    end: PlanEnd, answer: StrategistAnswer, why: str
) -> None:
    made = session(period=("2003-01-01", "2003-06-30"))
    plans_changed(made, lambda plan: Plan(end, (PlanRound(answer),), "not looked at"))
    ended = payloads(finished(made), "policy_evaluation")
    met = [
        [(episode["outcome"], episode["skip_reason"]) for episode in evaluation["invocations"]]
        for evaluation in ended
    ]
    assert len(met) > 2
    assert all(entry == [("skipped", why)] for entry in met)
    assert made.policy_loop.counters.invocations["skipped"] == len(met)


def resubmitted(plan: Plan) -> Plan:
    """Every plan that passed as one that was sent back and came again unchanged."""
    met = plan.last.reflection
    if plan.end is not PlanEnd.PASSED or not isinstance(met, PolicyLevelReflectionResult):
        return plan
    sent_back = met.model_copy(update={"status": ReflectionStatus.REVISE})
    again = PlanRound(plan.last.answer)
    first = PlanRound(plan.last.answer, plan.last.request, sent_back)
    return Plan(PlanEnd.STAND_DOWN, (first, again), "identical resubmission")


def test_session_error_and_switched_off_reflection_leave_their_invocation_records() -> None:
    broken, off = session(), session(Settings(reflection=ReflectionSettings(mode="off")))

    async def failing(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken on purpose")

    broken.policy_loop.provider.provide = failing  # type: ignore[method-assign, assignment]
    for made, outcome, reason in ((broken, "error", "RuntimeError"), (off, "disabled", "reflection off")):
        ended = payloads(finished(made), "policy_evaluation")
        met = [item for evaluation in ended for item in evaluation["invocations"]]
        assert len(met) >= len(ended) > 20
        assert {(episode["outcome"], episode["skip_reason"]) for episode in met} <= {
            (outcome, reason),
            ("skipped", "nothing to reflect on"),
        }
        assert made.policy_loop.counters.invocations[outcome] > 20


def test_session_tightened_stop_moves_in_the_engine_and_the_position_exits_there() -> None:
    made = session()
    tightening(made, halfway)
    rows = finished(made)
    ends = evaluations(rows)
    moved = [ended for snapshot, _, ended in ends if snapshot["position"] is not None]
    assert {episode["outcome"] for episode in moved} <= {"tightened", "stale", "held"}
    tightened = [payload for payload in payloads(rows, "stop_tightened") if payload.get("amendment_id")]
    assert len(tightened) == made.policy_loop.counters.outcomes["tightened"] > 10
    levels = {policy["policy_id"]: policy["stop"] for policy in tightened}
    breached = [
        payload
        for payload in payloads(rows, "stop_breach")
        if levels.get(payload["policy_id"]) == payload["level"]
    ]
    assert len(breached) > 3, "exits at the very level that the amendment set"


TICK = 0.25
ON_A_GRID = Settings(execution=ExecutionSettings(tick_size=TICK))


def test_session_stop_in_force_on_a_tick_grid_is_the_level_that_was_reflected_judged_and_frozen() -> None:
    made = session(ON_A_GRID)
    tightening(made, halfway)
    rows = finished(made)
    reflected = {
        payload["proposal_hash"] for payload in payloads(rows, "policy_reflection") if payload["amendment"]
    }
    judged = {payload["proposal_hash"] for payload in payloads(rows, "boundary_verdict")}
    amended = {payload["amendment_id"]: payload["amended"] for payload in payloads(rows, "policy_amended")}
    moved = [payload for payload in payloads(rows, "stop_tightened") if payload.get("amendment_id")]
    rounded = {payload["proposal_hash"]: payload for payload in payloads(rows, "proposal_clamped")}
    assert len(moved) == made.policy_loop.counters.outcomes["tightened"] > 5
    for entry in moved:
        frozen = amended[entry["amendment_id"]]
        assert entry["stop"] == frozen["amendment"]["stop"] == rounded[frozen["amendment_hash"]]["allowed"]
        assert entry["stop"] % TICK == 0 != rounded[frozen["amendment_hash"]]["asked"] % TICK
        assert frozen["amendment_hash"] in reflected & judged
    assert made.policy_loop.counters.errors == 0
    index = asyncio.run(JournalIndex.read(stream(rows)))
    assert check_references(index, finished=True).ok


def test_session_stop_move_of_less_than_a_tick_is_a_finding_and_no_error() -> None:
    made = session(ON_A_GRID)
    tightening(
        made, lambda seen: seen.position.stop + (0.2 if seen.position.direction == "long" else -0.2) * TICK
    )
    rows = finished(made)
    counters = made.policy_loop.counters
    assert counters.amendment_codes["stop_loosens"] == counters.outcomes["held"] > 5
    assert counters.outcomes["tightened"] == counters.outcomes["error"] == counters.errors == 0
    assert not [payload for payload in payloads(rows, "stop_tightened") if payload["by"] == "policy"]


REFUSED: tuple[tuple[str, str, Callable[[Any], float | None]], ...] = (
    ("stop_loosens", "why", lambda seen: seen.position.stop - (seen.close - seen.position.stop)),
    ("stop_beyond_price", "why", lambda seen: seen.close + (seen.close - seen.position.stop)),
    ("stop_within_costs", "why", lambda seen: seen.close - (seen.close - seen.position.stop) * 1e-9),
    ("stop_not_a_price", "why", lambda seen: float("nan")),
    ("stop_not_a_price", "why", lambda seen: None),
    ("reason_missing", " ", halfway),
)


def test_session_stop_move_that_does_not_pass_leaves_the_stop_where_it_is() -> None:
    """One that does not pass after the other, in each evaluation of a position."""
    made, turns = session(), cycle(REFUSED)
    provide, expected = made.policy_loop.provider.provide, Counter[str]()

    async def moved(snapshot: Any, *rest: Any, **named: Any) -> Plan:
        if snapshot.position is None:
            return await provide(snapshot, *rest, **named)
        code, reason, level = next(turns)
        expected[code] += 1
        answer = StrategistAnswer(kind=PlanKind.TIGHTEN, reason=reason, tighter_stop=level(snapshot))
        return Plan(PlanEnd.NO_PROPOSAL, (PlanRound(answer),), reason)

    made.policy_loop.provider.provide = moved  # type: ignore[method-assign]
    rows = finished(made)
    outcomes = made.policy_loop.counters.outcomes
    assert outcomes["held"] == expected.total() > 10
    assert min(expected[code] for code, *_ in REFUSED) >= 3
    assert outcomes["tightened"] == outcomes["error"] == made.policy_loop.counters.errors == 0
    codes = made.policy_loop.counters.amendment_codes
    assert {code: codes[code] for code in expected} == expected
    assert not [payload for payload in payloads(rows, "stop_tightened") if payload["by"] == "policy"]


def foreign(met: PolicyLevelReflectionResult) -> PolicyLevelReflectionResult:
    return met.model_copy(update={"proposal_hash": "0" * 64})


def sent_back(met: PolicyLevelReflectionResult) -> PolicyLevelReflectionResult:
    return met.model_copy(update={"status": ReflectionStatus.REVISE})


def disabled(met: PolicyLevelReflectionResult) -> ReflectionInvocationMeta:
    return met.meta.model_copy(update={"outcome": InvocationOutcome.DISABLED})


@pytest.mark.parametrize("change", [foreign, sent_back, disabled])
def test_session_amendment_without_a_passing_reflection_of_its_own_moves_no_stop_and_keeps_no_policy(
    change: Callable[[PolicyLevelReflectionResult], Any],
) -> None:
    made = session()
    tightening(made, halfway)
    reflect = made.policy_loop.provider.reflect_amendment
    made.policy_loop.provider.reflect_amendment = lambda request: change(reflect(request))  # type: ignore
    rows = finished(made)
    assert len(payloads(rows, "order_accepted")) > 5
    assert payloads(rows, "policy_amended") == []
    assert not [payload for payload in payloads(rows, "stop_tightened") if payload["by"] == "policy"]
    assert made.policy_loop.counters.outcomes["kept_previous"] == 0
    stood_down = [
        payload for payload in payloads(rows, "policy_evaluation") if payload["outcome"] == "stood_down"
    ]
    assert stood_down, "a stand-down happens all the same"
    assert made.policy_loop.counters.errors == len(payloads(rows, "error")) > 0, "and says what was wrong"


def test_session_amendment_that_the_judge_does_not_approve_is_not_carried_out() -> None:
    unwilling_ones = (JudgeDecision.REJECT, JudgeDecision.REVISE, JudgeDecision.STAND_DOWN)
    made, decisions, given = session(), cycle(unwilling_ones), Counter[str]()
    tightening(made, halfway)
    validate = made.policy_loop._judge.validate_amendment

    def unwilling(*args: Any) -> BoundaryVerdict:
        decision = next(decisions)
        given[decision] += 1
        return validate(*args).model_copy(update={"decision": decision})

    made.policy_loop._judge.validate_amendment = unwilling  # type: ignore[method-assign, assignment]
    rows = finished(made)
    assert min(given[decision] for decision in unwilling_ones) > 3
    assert payloads(rows, "policy_amended") == []
    assert not [payload for payload in payloads(rows, "stop_tightened") if payload["by"] == "policy"]
    assert made.policy_loop.counters.outcomes["held"] > 10


def test_session_stand_down_retires_the_policy_and_its_armed_thesis() -> None:
    made = session()
    plans_changed(made, resubmitted_once_in_force)
    rows = finished(made)
    down = [ended for _, _, ended in evaluations(rows) if ended["outcome"] == "stood_down"]
    amended = {
        payload["amendment_id"]: payload["amended"]["amendment"]
        for payload in payloads(rows, "policy_amended")
    }
    carried = [amended[entry["amendment_id"]] for entry in down if entry["amendment_id"] is not None]
    assert len(carried) > 10
    assert {event["kind"] for event in carried} == {"stand_down"}
    gone = {policy["policy_id"] for policy in carried}
    after = [
        row
        for row in rows
        if row.kind in ("order_accepted", "thesis_armed")
        and json.loads(row.payload)["policy_id"] in gone
        and row.known_at > min(e.known_at for e in rows_of(rows, "policy_amended", json.loads(row.payload)))
    ]
    assert after == []


def rows_of(rows: list[JournalRow], kind: str, owner: dict[str, Any]) -> list[JournalRow]:
    return [
        row for row in rows if row.kind == kind and json.loads(row.payload)["policy_id"] == owner["policy_id"]
    ]


def resubmitted_once_in_force(plan: Plan) -> Plan:
    return resubmitted(plan) if in_force_at(plan) else plan


def test_session_amendment_is_stale_when_its_position_has_changed() -> None:
    made = session(period=("2000-03-01", "2002-06-30"))
    tightening(made, halfway)
    late_by(made, 1, "provide")
    rows = finished(made)
    outcomes = made.policy_loop.counters.outcomes
    assert outcomes["tightened"] > 2
    stale = [
        payload["reason"] for payload in payloads(rows, "policy_evaluation") if payload["outcome"] == "stale"
    ]
    assert [reason for reason in stale if reason.startswith("the position was")]
    assert made.policy_loop.counters.errors == outcomes["error"] == 0


def test_session_stop_move_is_stale_when_the_stop_has_trailed_beyond_it_meanwhile() -> None:
    made = session()
    tightening(made, halfway)
    provide = made.policy_loop.provider.provide

    async def overtaken(snapshot: Any, *rest: Any, **named: Any) -> Plan:
        plan = await provide(snapshot, *rest, **named)
        if snapshot.position is not None:
            level = snapshot.position.stop + 0.9 * (snapshot.close - snapshot.position.stop)
            made.engine.tighten_stop(made.bars.symbols.index(snapshot.symbol), level)
        return plan

    made.policy_loop.provider.provide = overtaken  # type: ignore[method-assign]
    rows = finished(made)
    outcomes = made.policy_loop.counters.outcomes
    stale = [
        payload["reason"] for payload in payloads(rows, "policy_evaluation") if payload["outcome"] == "stale"
    ]
    assert len(stale) == outcomes["stale"] > 10
    assert all("any more" in reason for reason in stale)
    assert outcomes["tightened"] == outcomes["error"] == made.policy_loop.counters.errors == 0


def test_session_keep_is_stale_when_its_policy_has_gone_meanwhile() -> None:
    made = session()
    plans_changed(made, lambda plan: abstained(plan) if in_force_at(plan) else plan)
    provide = made.policy_loop.provider.provide

    async def expired(snapshot: Any, *rest: Any, **named: Any) -> Plan:
        plan = await provide(snapshot, *rest, **named)
        if snapshot.active_policy_id is not None:
            made.engine.state["policy"][made.bars.symbols.index(snapshot.symbol)] = -1
        return plan

    made.policy_loop.provider.provide = expired  # type: ignore[method-assign]
    rows = finished(made)
    ended = [
        payload
        for payload in payloads(rows, "policy_evaluation")
        if payload["reason"].endswith("and is none")
    ]
    assert len(ended) > 5
    assert {episode["outcome"] for episode in ended} == {"stale"}
    assert made.policy_loop.counters.outcomes["kept_previous"] == 0


def in_force_at(plan: Plan) -> bool:
    request = plan.last.request
    return request is not None and request.snapshot.active_policy_id is not None


def abstained(plan: Plan) -> Plan:
    answer = StrategistAnswer(kind=PlanKind.ABSTAIN, reason="scripted")
    return Plan(PlanEnd.NO_PROPOSAL, (PlanRound(answer),), "scripted")


def test_session_why_of_a_stop_exit_leads_to_the_amendment_that_moved_the_stop() -> None:
    made = session()
    tightening(made, halfway)
    rows = finished(made)
    index = JournalIndex()
    for row in rows:
        index.add(Event(row, json.loads(row.payload)))
    assert check_references(index, finished=True).dangling == ()
    moved = {payload["policy_id"]: payload["amendment_id"] for payload in payloads(rows, "policy_amended")}
    shown = 0
    for event in index.events:
        if event.row.kind != "exit_filled" or event.payload["reason"] != "stop":
            continue
        nodes = list(walk(trace(index, event)))
        amended = [node for node in nodes if node.kind == "policy_amended"]
        shown += bool(amended)
        assert all(node.found for node in nodes)
        for node in amended:
            assert node.facts["kind"] == "tighten"
            assert {child.kind for child in node.children} == {
                "policy_event",
                "policy_snapshot",
                "policy_reflection",
                "boundary_verdict",
            }
    assert shown > 3
    assert moved


def walk(node: LineageNode) -> Any:
    yield node
    for child in node.children:
        yield from walk(child)


def test_session_reference_to_an_amendment_that_is_not_there_dangles() -> None:
    made = session()
    tightening(made, halfway)
    index = JournalIndex()
    for row in finished(made):
        if row.kind != "policy_amended":
            index.add(Event(row, json.loads(row.payload)))
    lost = check_references(index, finished=True).dangling
    assert [line for line in lost if "(stop_tightened): amendment_id" in line]
    assert [line for line in lost if "(policy_evaluation): amendment_id" in line]


def test_session_same_answers_make_the_same_head_twice() -> None:
    heads = []
    for _ in range(2):
        made = session()
        tightening(made, halfway)
        asyncio.run(made.journal.flush())
        finished(made)
        heads.append(made.journal.head_hash)
    assert heads[0] == heads[1]


def test_session_amend_refuses_a_disabled_record_even_under_a_judge_that_approves_it() -> None:
    made = session()
    tightening(made, halfway)
    reflect = made.policy_loop.provider.reflect_amendment
    made.policy_loop.provider.reflect_amendment = lambda request: disabled(reflect(request))  # type: ignore
    made.policy_loop._judge._reflection_off = True  # type: ignore[attr-defined]
    rows = finished(made)
    assert payloads(rows, "policy_amended") == []
    assert {payload["type"] for payload in payloads(rows, "error")} == {"FreezeRefused"}
