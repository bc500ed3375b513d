import asyncio
from typing import Any

import pytest

from agents.judge_agent_client import JudgeAgentClient
from schemas.invocation import ReflectionInvocationMeta
from schemas.proposal import PolicyProposal
from schemas.reflection import Finding, PolicyLevelReflectionResult
from schemas.regime import RegimeLabels, RegimeView
from schemas.settings import JudgeSettings, ReflectionSettings
from schemas.snapshot import DataWindow, MemoryBaseRates, PolicySnapshot, RiskState
from schemas.vocabulary import (
    AmendmentKind,
    CheckName,
    FindingClass,
    InvocationOutcome,
    JudgeDecision,
    PolicyState,
    ReflectionStatus,
    Severity,
    Structure,
    Trend,
    VolatilityBand,
)
from services.policy_checks.amendment import AMENDMENT_CHECKS
from services.policy_level_reflection_service import PolicyLevelReflectionService
from tests.each_case import check_each
from tests.services.high_level.builders import playbook
from tests.services.policy_checks.amendments import amendment_request, policy_of, position_of

D, C = JudgeDecision, FindingClass
BOOK = playbook()
ALL_CHECKS = (CheckName.INVARIANT, CheckName.COHERENCE, CheckName.MEMORY, CheckName.EXPECTATION)


def snapshot(trend=Trend.UP, regime=True, halted=False, kill_switch=False):
    labels = RegimeLabels(trend=trend, volatility=VolatilityBand.MID, structure=Structure.NEUTRAL)
    return PolicySnapshot(
        symbol="AAA", timeframe="1h", bar_label=2, ts_event=2, known_at=2, close=100.0, events=("heartbeat",),
        state=PolicyState.IDLE, regime=RegimeView(labels=labels, fingerprint=(0.5,) * 5) if regime else None,
        features={}, position=None, active_policy_id=None,
        risk=RiskState(
            equity=1.0, cash=1.0, gross_exposure=0.0, drawdown=0.0, daily_loss=0.0, risk_fraction=0.005,
            halted=halted, kill_switch=kill_switch,
        ),
        base_rates=MemoryBaseRates(population=0, winners=0, losers=0), expectations=(),
        data_window=DataWindow(first_label=0, last_label=2, bars=2), staleness_bars=0,
    )  # fmt: skip


def proposal(**changes):
    fields: dict[str, Any] = {
        "playbook_id": "pullback", "direction": "long", "thesis": "dip", "setup": "close > 1",
        "stop": "close - 1", "target": "close + 1", "invalidation": "close < 1", "horizon_bars": 5,
        "conviction": 0.4, "rationale": "dip",
    }  # fmt: skip
    return PolicyProposal(**(fields | changes))


def finding(check=CheckName.COHERENCE, severity=Severity.MAJOR, code="stop_too_close", evidence=()):
    return Finding(check=check, code=code, severity=severity, message=f"{code} found", evidence=evidence)


def result(
    *findings, status=ReflectionStatus.PASS, outcome=InvocationOutcome.RAN, checks=ALL_CHECKS, **changes
):
    fields: dict[str, Any] = {
        "status": status,
        "findings": findings,
        "snapshot_hash": snapshot().content_hash,
        "proposal_hash": proposal().content_hash,
        "playbook_hash": BOOK.content_hash,
        "prompt_hash": None,
        "meta": ReflectionInvocationMeta(cadence="policy_loop", source="heartbeat", outcome=outcome),
        "checks_run": checks,
    }
    return PolicyLevelReflectionResult(**(fields | changes))


def judge(reflection, seen=None, plan=None, book=BOOK, off=False):
    client = JudgeAgentClient(JudgeSettings(), reflection_off=off)
    return asyncio.run(client.validate_boundary(seen or snapshot(), plan or proposal(), reflection, book))


def test_passed_reflection_is_approved_for_exactly_its_hashes():
    verdict = judge(result())
    assert (verdict.decision, verdict.finding_class) == (D.APPROVE, C.NONE)
    assert verdict.snapshot_hash == snapshot().content_hash
    assert verdict.proposal_hash == proposal().content_hash
    assert verdict.reflection_hash == result().content_hash


@pytest.mark.parametrize(
    ("check", "severity", "status", "decision", "kind"),
    [
        (CheckName.INVARIANT, Severity.BLOCKER, "block", D.STAND_DOWN, C.STRUCTURAL_VIOLATION),
        (CheckName.COHERENCE, Severity.BLOCKER, "block", D.REJECT, C.STRUCTURAL_VIOLATION),
        (CheckName.MEMORY, Severity.BLOCKER, "block", D.REJECT, C.MEMORY_CONTRADICTION),
        (CheckName.CONSOLIDATION, Severity.BLOCKER, "block", D.REJECT, C.STATISTICAL_SUSPICION),
        (CheckName.COHERENCE, Severity.MAJOR, "revise", D.REVISE, C.STRUCTURAL_VIOLATION),
        (CheckName.MEMORY, Severity.MAJOR, "revise", D.REVISE, C.MEMORY_CONTRADICTION),
        (CheckName.EXPECTATION, Severity.MAJOR, "revise", D.REVISE, C.STATISTICAL_SUSPICION),
        (CheckName.EXPECTATION, Severity.MINOR, "pass", D.APPROVE, C.STATISTICAL_SUSPICION),
        (CheckName.MEMORY, Severity.INFO, "pass", D.APPROVE, C.NONE),
        (CheckName.MEMORY, Severity.MAJOR, "pass", D.REJECT, C.STRUCTURAL_VIOLATION),
    ],
)
def test_verdict_follows_the_reflection_and_names_its_kind(check, severity, status, decision, kind):
    verdict = judge(result(finding(check, severity, evidence=("case1",)), status=ReflectionStatus(status)))
    assert (verdict.decision, verdict.finding_class) == (decision, kind)
    assert verdict.evidence_ids == ("stop_too_close", "case1")


def test_heaviest_finding_decides_the_class():
    light, heavy = finding(CheckName.MEMORY, Severity.MINOR, "thin"), finding(CheckName.EXPECTATION)
    verdict = judge(result(light, heavy, status=ReflectionStatus.REVISE))
    assert verdict.finding_class is C.STATISTICAL_SUSPICION
    assert verdict.evidence_ids == ("thin", "stop_too_close")


@pytest.mark.parametrize("name", ["snapshot_hash", "proposal_hash", "playbook_hash"])
def test_reflection_about_something_else_is_refused(name):
    verdict = judge(result(**{name: "0" * 64}))
    assert (verdict.decision, verdict.evidence_ids) == (D.REJECT, ("hash_mismatch",))
    assert name.removesuffix("_hash") in verdict.reason


@pytest.mark.parametrize(
    "outcome", [InvocationOutcome.ERROR, InvocationOutcome.SKIPPED, InvocationOutcome.DISABLED]
)
def test_result_of_a_reflection_that_did_not_run_is_refused(outcome):
    assert judge(result(outcome=outcome)).evidence_ids == ("reflection_did_not_run",)


def test_degraded_reflection_with_its_deterministic_checks_is_approved():
    assert judge(result(outcome=InvocationOutcome.DEGRADED)).decision is D.APPROVE


@pytest.mark.parametrize("missing", ALL_CHECKS)
def test_pass_without_one_of_the_checks_is_refused(missing):
    verdict = judge(result(checks=tuple(name for name in ALL_CHECKS if name is not missing)))
    assert (verdict.decision, verdict.evidence_ids) == (D.REJECT, ("checks_missing",))


def test_block_that_ended_after_the_first_check_needs_no_others():
    blocked = result(
        finding(CheckName.INVARIANT, Severity.BLOCKER),
        status=ReflectionStatus.BLOCK,
        checks=(CheckName.INVARIANT,),
    )
    assert judge(blocked).decision is D.STAND_DOWN


def test_block_without_a_finding_stands_down():
    assert judge(result(status=ReflectionStatus.BLOCK)).evidence_ids == ("no_finding",)


@pytest.mark.parametrize(
    ("outcome", "off", "decision"),
    [
        (InvocationOutcome.DISABLED, True, D.APPROVE),
        (InvocationOutcome.DISABLED, False, D.REJECT),
        (InvocationOutcome.SKIPPED, True, D.REJECT),
        (InvocationOutcome.ERROR, True, D.REJECT),
        (InvocationOutcome.RAN, True, D.REJECT),
    ],
)
def test_invocation_record_stands_in_for_a_result_only_when_the_settings_switch_reflection_off(
    outcome, off, decision
):
    record = ReflectionInvocationMeta(cadence="policy_loop", source="heartbeat", outcome=outcome)
    verdict = judge(record, off=off)
    assert verdict.decision is decision
    assert verdict.reflection_hash == record.content_hash


@pytest.mark.parametrize(
    ("facts", "code"), [({"kill_switch": True}, "kill_switch"), ({"halted": True}, "halted")]
)
def test_halted_account_stands_down_whatever_the_reflection_said(facts, code):
    seen = snapshot(**facts)
    verdict = judge(result(snapshot_hash=seen.content_hash), seen)
    assert (verdict.decision, verdict.evidence_ids) == (D.STAND_DOWN, (code,))


@pytest.mark.parametrize(
    ("seen", "book", "plan", "code"),
    [
        (snapshot(trend=Trend.DOWN), BOOK, proposal(), "not_eligible"),
        (snapshot(regime=False), BOOK, proposal(), "not_eligible"),
        (snapshot(), playbook(enabled=False), proposal(), "direction_not_allowed"),
        (snapshot(), BOOK, proposal(direction="short"), "direction_not_allowed"),
        (snapshot(), playbook("other"), proposal(), "playbook_mismatch"),
    ],
)
def test_plan_that_its_playbook_does_not_allow_is_rejected_by_the_judge_itself(seen, book, plan, code):
    passed = result(
        snapshot_hash=seen.content_hash, proposal_hash=plan.content_hash, playbook_hash=book.content_hash
    )
    verdict = judge(passed, seen, plan, book)
    assert (verdict.decision, verdict.evidence_ids) == (D.REJECT, (code,))


def test_client_counts_its_decisions():
    client = JudgeAgentClient(JudgeSettings())
    for reflection in (result(), result(finding(), status=ReflectionStatus.REVISE), result()):
        asyncio.run(client.validate_boundary(snapshot(), proposal(), reflection, BOOK))
    assert {name: count for name, count in client.boundary_counts.items() if count} == {
        D.APPROVE: 2,
        D.REVISE: 1,
    }


def test_proposal_while_a_position_is_open_is_rejected_by_the_judge_itself():
    seen = snapshot().model_copy(update={"position": position_of(policy_of())})
    verdict = judge(result(snapshot_hash=seen.content_hash), seen)
    assert (verdict.decision, verdict.evidence_ids) == (D.REJECT, ("entry_while_in_position",))


K = AmendmentKind
AMENDMENTS = [
    amendment_request(K.TIGHTEN, held=True, stop=97.0),
    amendment_request(K.TIGHTEN, held=True, direction="short", stop=103.0),
    amendment_request(K.KEEP),
    amendment_request(K.KEEP, held=True),
    amendment_request(K.STAND_DOWN),
]
SERVICE = PolicyLevelReflectionService(ReflectionSettings())


def amended(request, off=False, **changes):
    met = SERVICE.reflect_amendment(request, source="heartbeat").model_copy(update=changes)
    return JudgeAgentClient(JudgeSettings(), reflection_off=off).validate_amendment(request, met)


@pytest.mark.parametrize("request_", AMENDMENTS)
def test_amendment_that_passed_is_approved_for_exactly_its_hashes(request_):
    verdict = amended(request_)
    assert verdict.decision is D.APPROVE
    assert verdict.proposal_hash == request_.amendment.content_hash
    assert verdict.snapshot_hash == request_.snapshot.content_hash


@check_each("request_", AMENDMENTS)
@check_each(
    ("changes", "code"),
    [
        ({"proposal_hash": "0" * 64}, "hash_mismatch"),
        ({"snapshot_hash": "0" * 64}, "hash_mismatch"),
        ({"playbook_hash": "0" * 64}, "hash_mismatch"),
        ({"checks_run": (CheckName.INVARIANT,)}, "checks_missing"),
    ],
)
def test_amendment_under_a_reflection_of_something_else_or_half_of_one_is_rejected(request_, changes, code):
    verdict = amended(request_, **changes)
    assert (verdict.decision, verdict.evidence_ids) == (D.REJECT, (code,))


@pytest.mark.parametrize(("off", "decision"), [(True, D.APPROVE), (False, D.REJECT)])
@pytest.mark.parametrize("request_", AMENDMENTS)
def test_amendment_with_a_disabled_record_is_approved_only_when_the_settings_say_off(request_, off, decision):
    record = ReflectionInvocationMeta(
        cadence="policy_loop", source="heartbeat", outcome=InvocationOutcome.DISABLED
    )
    client = JudgeAgentClient(JudgeSettings(), reflection_off=off)
    assert client.validate_amendment(request_, record).decision is decision


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (amendment_request(K.TIGHTEN, held=True, stop=94.0), "stop_not_tighter"),
        (amendment_request(K.TIGHTEN, held=True, stop=100.0), "stop_not_tighter"),
        (amendment_request(K.TIGHTEN, held=True, direction="short", stop=106.0), "stop_not_tighter"),
        (amendment_request(K.TIGHTEN, stop=97.0), "no_position"),
        (amendment_request(K.KEEP, playbook=None), "playbook_replaced"),
        (amendment_request(K.KEEP, playbook__version=2), "playbook_replaced"),
        (amendment_request(K.KEEP, snapshot__regime=None), "not_eligible"),
        (
            amendment_request(K.KEEP, snapshot__risk__kill_switch=True, invariants__kill_switch=True),
            "kill_switch",
        ),
    ],
)
def test_amendment_is_looked_at_by_the_judge_itself_whatever_the_reflection_said(request_, code):
    lenient = amended(request_, status=ReflectionStatus.PASS, findings=(), checks_run=AMENDMENT_CHECKS)
    assert lenient.decision is not D.APPROVE
    assert lenient.evidence_ids == (code,)


def test_keep_of_a_position_is_approved_with_what_no_longer_holds():
    verdict = amended(
        amendment_request(
            K.KEEP, held=True, playbook=None, snapshot__risk__kill_switch=True, invariants__kill_switch=True
        )
    )
    assert (verdict.decision, verdict.evidence_ids) == (D.APPROVE, ("playbook_replaced",))
