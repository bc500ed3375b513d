"""Contracts of seed 002, step 1: names, closed sets, and what is hashed."""

from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from schemas.invocation import ReflectionInvocationMeta
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.reflection import Finding, PolicyLevelReflectionRequest, PolicyLevelReflectionResult, Remedy
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from schemas.tick_validation import TickValidationEvent, TickValidationResult
from schemas.vocabulary import (
    CheckName,
    InvocationOutcome,
    RecommendedAction,
    ReflectionStatus,
    Severity,
    TickEventKind,
)
from tests.services.policy_checks.plans import PLAN_IDS, PLANS, changed, right_request

SEED_FIELDS: dict[type, set[str]] = {
    PolicyLevelReflectionResult: {
        "status",
        "coherence_findings",
        "invariant_findings",
        "memory_findings",
        "expectation_findings",
        "requested_revisions",
        "latency_ms",
    },
    HighLevelReflectionReport: {
        "window_start",
        "window_end",
        "n_episodes",
        "regime_cluster_summary",
        "playbook_findings",
        "drift_findings",
        "recommendations",
        "evidence_refs",
    },
    PolicyLevelReflectionRequest: {"snapshot", "proposal", "state", "memory", "invariants"},
    HighLevelReflectionRequest: {
        "episode_ids",
        "drift_inputs",
        "judge_actions",
        "window_start",
        "window_end",
    },
    ReflectionInvocationMeta: {"cadence", "source", "skip_reason", "latency_ms", "batch_size"},
    TickValidationEvent: {"kind", "symbol", "ts_event", "known_at"},
    TickValidationResult: {"bars_validated", "events", "llm_calls", "memory_reads", "policy_writes"},
}
META = ReflectionInvocationMeta(cadence="policy_loop", source="heartbeat", outcome=InvocationOutcome.RAN)
FINDING = Finding(check=CheckName.COHERENCE, code="stop_on_wrong_side", severity=Severity.MAJOR, message="x")


def result(**changes: Any) -> PolicyLevelReflectionResult:
    values: dict[str, Any] = {
        "status": "revise",
        "coherence_findings": ["stop_on_wrong_side: x"],
        "findings": [FINDING],
        "snapshot_hash": "s" * 64,
        "proposal_hash": "p" * 64,
        "playbook_hash": "b" * 64,
        "prompt_hash": "t" * 64,
        "meta": META,
    }
    return PolicyLevelReflectionResult(**(values | changes))


def report(**changes: Any) -> HighLevelReflectionReport:
    values: dict[str, Any] = {
        "window_start": datetime(2020, 1, 1, tzinfo=UTC),
        "window_end": datetime(2020, 2, 1, tzinfo=UTC),
        "n_episodes": 3,
        "insufficient_sample": True,
        "narrative": "Quiet.",
        "prompt_hash": "t" * 64,
        "request_hash": "r" * 64,
        "known_at": 1,
        "meta": changed(META, {"cadence": "high_level", "batch_size": 3}),
    }
    return HighLevelReflectionReport(**(values | changes))


@pytest.mark.parametrize("contract", SEED_FIELDS, ids=lambda contract: contract.__name__)
def test_reflection_schema_keeps_every_field_of_the_seed(contract):
    assert SEED_FIELDS[contract] <= set(contract.model_fields)


def test_reflection_schema_status_and_actions_are_the_seeds_closed_sets():
    assert [status.value for status in ReflectionStatus] == ["pass", "revise", "block"]
    assert {action.value for action in RecommendedAction} == {
        "hold",
        "replan",
        "policy_adjust",
        "research_experiment",
    }


def test_reflection_schema_invocation_outcome_is_not_a_status():
    outcomes = {outcome.value for outcome in InvocationOutcome}
    assert outcomes == {"ran", "degraded", "skipped", "error", "disabled"}
    assert not outcomes & {status.value for status in ReflectionStatus}
    assert set(get_args(ReflectionInvocationMeta.model_fields["cadence"].annotation)) == {
        "policy_loop",
        "high_level",
    }


@pytest.mark.parametrize("status", ["approve", "skipped", "error", "PASS", ""])
def test_reflection_schema_unknown_status_error(status):
    with pytest.raises(ValidationError, match="status"):
        result(status=status)


@pytest.mark.parametrize("build", [result, report])
def test_reflection_schema_unknown_field_error(build):
    with pytest.raises(ValidationError, match="extra"):
        build(new_trigger="rsi_14 < 30")


@pytest.mark.parametrize("built", [result(), report(), META, FINDING])
def test_reflection_schema_frozen_contract_assignment_error(built):
    name = next(iter(type(built).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(built, name, getattr(built, name))


@pytest.mark.parametrize("code", ["Stop On Wrong Side", "", "9lives", "stop-side"])
def test_reflection_schema_finding_code_that_is_not_stable_text_error(code):
    with pytest.raises(ValidationError, match="code"):
        Finding(check=CheckName.COHERENCE, code=code, severity=Severity.MAJOR, message="x")


def test_reflection_schema_latency_is_telemetry_and_never_hashed():
    slow = result(latency_ms=900, meta=changed(META, {"latency_ms": 899.5}))
    assert slow.content_hash == result().content_hash
    assert slow.telemetry() == {"latency_ms": 900}
    assert "latency_ms" not in slow.payload()
    assert "latency_ms" not in slow.payload()["meta"]
    assert report(latency_ms=5).content_hash == report().content_hash


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "block"},
        {"findings": []},
        {"snapshot_hash": "x" * 64},
        {"proposal_hash": "x" * 64},
        {"playbook_hash": "x" * 64},
        {"prompt_hash": "x" * 64},
        {"deferred": ["look into it"]},
        {"meta": changed(META, {"outcome": "degraded", "skip_reason": "llm_timeout"})},
        {"findings": [changed(FINDING, {"remedy": Remedy(field="stop", op="at_most", value=1.0)})]},
    ],
)
def test_reflection_schema_everything_decided_is_hashed(changes):
    assert result(**changes).content_hash != result().content_hash


@pytest.mark.parametrize("built", [result(), report()])
def test_reflection_schema_result_survives_json_with_its_hash(built):
    again = type(built).model_validate_json(built.model_dump_json())
    assert again == built
    assert again.content_hash == built.content_hash


@pytest.mark.parametrize(("playbook", "direction"), PLANS, ids=PLAN_IDS)
def test_reflection_schema_request_survives_json_with_its_hashes(playbook, direction):
    request = right_request(playbook, direction)
    again = PolicyLevelReflectionRequest.model_validate_json(request.model_dump_json())
    assert again.content_hash == request.content_hash
    assert again.snapshot.content_hash == request.snapshot.content_hash
    assert again.proposal.content_hash == request.proposal.content_hash


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("proposal.conviction", 1.1),
        ("proposal.direction", "up"),
        ("proposal.horizon_bars", 0),
        ("snapshot.close", 0),
    ],
)
def test_reflection_schema_request_out_of_bounds_error(path, value):
    with pytest.raises(ValidationError, match=path.rpartition(".")[2]):
        changed(right_request(), {path: value})


def test_reflection_schema_tick_result_counts_below_zero_error():
    with pytest.raises(ValidationError, match="llm_calls"):
        TickValidationResult(bars_validated=1, events={}, llm_calls=-1, memory_reads=0, policy_writes=0)


def test_reflection_schema_tick_event_of_unknown_kind_error():
    with pytest.raises(ValidationError, match="kind"):
        TickValidationEvent.model_validate(
            {"kind": "llm_called", "symbol": "AAA", "bar_label": 1, "ts_event": 1, "known_at": 1}
        )


def test_reflection_schema_tick_event_of_known_kind_is_hashed_whole():
    event = TickValidationEvent(
        kind=TickEventKind.STOP_BREACH,
        symbol="AAA",
        bar_label=1,
        ts_event=2,
        known_at=2,
        detail={"stop": 9.5},
    )
    assert changed(event, {"detail": {"stop": 9.6}}).content_hash != event.content_hash


@pytest.mark.parametrize("name", ["thesis", "rationale", "playbook_id", "activation"])
def test_contract_half_of_a_surrogate_pair_is_refused_with_the_name_of_its_field(name):
    values = right_request().proposal.payload() | {name: "a dip \ud800"}
    with pytest.raises(ValidationError) as caught:
        PolicyProposal.model_validate(values)
    (error,) = caught.value.errors()
    assert (error["loc"], error["type"]) == ((name,), "string_unicode")


def test_contract_half_of_a_surrogate_pair_within_a_list_or_a_mapping_is_refused_with_its_place():
    values = right_request().playbook.model_dump()
    values["timeframes"] = ("1d", "\udfff")
    values["parameters"] = dict(values["parameters"]) | {"\udfff": values["parameters"]["stop_atr"]}
    with pytest.raises(ValidationError) as caught:
        PlaybookDefinition.model_validate(values)
    found = {error["loc"][0]: error for error in caught.value.errors()}
    assert found["timeframes"]["loc"] == ("timeframes", 1)
    assert found["parameters"]["loc"][-1] == "[key]"
    assert {error["type"] for error in found.values()} == {"string_unicode"}


def test_contract_whole_surrogate_pair_and_empty_text_are_texts():
    values = right_request().proposal.payload() | {"thesis": "\U0001f4c8 a dip", "rationale": ""}
    assert len(PolicyProposal.model_validate(values).content_hash) == 64
