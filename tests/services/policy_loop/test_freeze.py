"""Freeze refuses whatever was not reflected and approved for exactly its hashes."""

import asyncio

import pytest

from schemas.errors import FreezeRefused
from schemas.invocation import ReflectionInvocationMeta
from schemas.judge import BoundaryVerdict
from schemas.settings import ReflectionSettings
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import (
    AmendmentKind,
    FindingClass,
    InvocationOutcome,
    JudgeDecision,
    PlanKind,
    ReflectionStatus,
)
from services.policy_level_reflection_service import PolicyLevelReflectionService
from services.policy_loop.freeze import ApprovedPlan, JudgedAmendment, amend, changed_fields, freeze
from services.ports import PlanRound
from tests.services.policy_checks.amendments import amendment_request
from tests.services.policy_checks.plans import right_request

REQUEST = right_request()
RESULT = asyncio.run(PolicyLevelReflectionService(ReflectionSettings()).reflect(REQUEST, source="test"))


def verdict(**changes: object) -> BoundaryVerdict:
    values: dict = dict(  # type: ignore[type-arg]
        decision=JudgeDecision.APPROVE, finding_class=FindingClass.NONE, reason="fine",
        snapshot_hash=REQUEST.snapshot.content_hash, proposal_hash=REQUEST.proposal.content_hash,
        reflection_hash=RESULT.content_hash,
    )  # fmt: skip
    return BoundaryVerdict(**(values | changes))


def frozen(reflection=RESULT, judged=None, proposal=REQUEST.proposal, snapshot=REQUEST.snapshot, **more):
    answer = StrategistAnswer(kind=PlanKind.PROPOSE, reason="test", proposal=proposal)
    approved = ApprovedPlan(PlanRound(answer, REQUEST, reflection), judged or verdict())
    return freeze(approved, snapshot, REQUEST.playbook, **more)


def test_freeze_of_a_passed_and_approved_proposal_carries_every_hash() -> None:
    policy = frozen()
    assert policy.snapshot_hash == REQUEST.snapshot.content_hash
    assert policy.proposal_hash == REQUEST.proposal.content_hash
    assert policy.reflection_hash == RESULT.content_hash
    assert policy.verdict_hash == verdict().content_hash
    assert policy.playbook_hash == REQUEST.playbook.content_hash


@pytest.mark.parametrize(
    ("reflection", "says"),
    [
        (None, "no reflection"),
        (RESULT.model_copy(update={"status": ReflectionStatus.REVISE}), "revise"),
        (RESULT.model_copy(update={"status": ReflectionStatus.BLOCK}), "block"),
        (RESULT.model_copy(update={"proposal_hash": "0" * 64}), "another proposal"),
        (RESULT.model_copy(update={"snapshot_hash": "0" * 64}), "another proposal or snapshot"),
    ],
)
def test_freeze_without_a_passing_reflection_of_its_own_is_refused(reflection: object, says: str) -> None:
    with pytest.raises(FreezeRefused, match=says):
        frozen(reflection=reflection)


@pytest.mark.parametrize(
    "changes",
    [
        {"decision": JudgeDecision.REVISE},
        {"decision": JudgeDecision.REJECT},
        {"decision": JudgeDecision.STAND_DOWN},
        {"proposal_hash": "0" * 64},
        {"snapshot_hash": "0" * 64},
        {"reflection_hash": "0" * 64},
    ],
)
def test_freeze_without_an_approving_verdict_of_its_own_is_refused(changes: dict) -> None:  # type: ignore[type-arg]
    with pytest.raises(FreezeRefused):
        frozen(judged=verdict(**changes))


def test_freeze_of_a_changed_proposal_under_an_old_verdict_is_refused() -> None:
    looser = REQUEST.proposal.model_copy(update={"horizon_bars": REQUEST.proposal.horizon_bars + 1})
    with pytest.raises(FreezeRefused):
        frozen(proposal=looser)


def test_freeze_with_reflection_off_needs_the_record_and_the_setting() -> None:
    off = ReflectionInvocationMeta(cadence="policy_loop", source="test", outcome=InvocationOutcome.DISABLED)
    judged = verdict(reflection_hash=off.content_hash)
    assert frozen(reflection=off, judged=judged, reflection_off=True).reflection_hash == off.content_hash
    with pytest.raises(FreezeRefused, match="reflection is on"):
        frozen(reflection=off, judged=judged)
    skipped = off.model_copy(update={"outcome": InvocationOutcome.SKIPPED})
    with pytest.raises(FreezeRefused):
        frozen(reflection=skipped, judged=verdict(reflection_hash=skipped.content_hash), reflection_off=True)


def test_freeze_names_the_fields_that_changed_against_the_policy_before() -> None:
    previous = frozen()
    tighter = REQUEST.proposal.model_copy(update={"horizon_bars": 5, "conviction": 0.1})
    assert changed_fields(previous, tighter) == ("horizon_bars", "conviction")
    assert changed_fields(None, tighter) == ()


AMENDING = amendment_request(AmendmentKind.TIGHTEN, held=True, stop=97.0)
PASSED = PolicyLevelReflectionService(ReflectionSettings()).reflect_amendment(AMENDING, source="test")


def amended(
    reflection=PASSED, amendment=AMENDING.amendment, snapshot=AMENDING.snapshot, off=False, **changes
):
    values = {
        "snapshot_hash": AMENDING.snapshot.content_hash,
        "proposal_hash": AMENDING.amendment.content_hash,
        "reflection_hash": PASSED.content_hash if reflection is None else reflection.content_hash,
    }
    judged = JudgedAmendment(amendment, reflection, verdict(**(values | changes)))
    return amend(judged, snapshot, amended_at=1, reflection_off=off)


def test_amend_of_a_passed_and_approved_amendment_carries_every_hash():
    frozen_amendment = amended()
    assert frozen_amendment.amendment == AMENDING.amendment
    assert frozen_amendment.snapshot_hash == AMENDING.snapshot.content_hash
    assert frozen_amendment.amendment_hash == AMENDING.amendment.content_hash
    assert frozen_amendment.reflection_hash == PASSED.content_hash


@pytest.mark.parametrize(
    "given",
    [
        {"reflection": None},
        {"reflection": PASSED.model_copy(update={"status": ReflectionStatus.REVISE})},
        {"reflection": PASSED.model_copy(update={"proposal_hash": "0" * 64})},
        {"reflection": PASSED.model_copy(update={"snapshot_hash": "0" * 64})},
        {"decision": JudgeDecision.REVISE},
        {"decision": JudgeDecision.STAND_DOWN},
        {"proposal_hash": "0" * 64},
        {"snapshot_hash": "0" * 64},
        {"reflection_hash": "0" * 64},
        {"amendment": AMENDING.amendment.model_copy(update={"stop": 98.0})},
        {"snapshot": AMENDING.snapshot.model_copy(update={"close": 101.0})},
    ],
)
def test_amend_without_a_reflection_and_a_verdict_of_its_own_is_refused(given):
    with pytest.raises(FreezeRefused):
        amended(**given)


def test_amend_with_reflection_off_needs_the_record_and_the_setting():
    off = ReflectionInvocationMeta(cadence="policy_loop", source="test", outcome=InvocationOutcome.DISABLED)
    assert amended(reflection=off, off=True).reflection_hash == off.content_hash
    with pytest.raises(FreezeRefused, match="reflection is on"):
        amended(reflection=off)
