import pytest

from schemas.reflection import Finding
from schemas.vocabulary import CheckName, ReflectionStatus, Severity
from services.journal.consolidations import AnsweredConsolidation
from tests.services.policy_checks.plans import right_request
from worker.studies.models.comparison import Pair, compare_pairs, sign_test
from worker.studies.models.second_reader import Sample

PASS, REVISE, BLOCK = ReflectionStatus
MINOR = Finding(
    check=CheckName.MEMORY, code="failure_pattern_recurs", severity=Severity.MINOR, message="2 are chop"
)


def pair(before: ReflectionStatus, after: ReflectionStatus | None, *findings: Finding, **sample) -> Pair:
    plan = AnsweredConsolidation(
        seq=1,
        reflection_hash="r" * 64,
        prompt_hash="t" * 64,
        request=right_request(),
        findings=findings,
        final=before,
        source="heartbeat",
    )
    return Pair(plan, Sample(final=after, **sample))


@pytest.mark.parametrize(
    ("stricter", "milder", "p_value"),
    [(0, 0, None), (1, 0, 1.0), (5, 0, 0.0625), (0, 6, 0.03125), (3, 3, 1.0), (8, 2, 0.109375)],
)
def test_sign_test_is_the_exact_two_sided_binomial(stricter, milder, p_value):
    assert sign_test(stricter, milder) == p_value


def test_sign_test_of_many_moves_stays_a_number():
    assert sign_test(2_000, 1_000) == pytest.approx(0.0, abs=1e-60)


def test_compared_counts_moves_by_transition_milder_first_and_by_finding():
    found = compare_pairs(
        [
            pair(PASS, BLOCK, MINOR),
            pair(PASS, BLOCK),
            pair(BLOCK, PASS, MINOR, MINOR),
            pair(PASS, PASS),
            pair(REVISE, REVISE, refused="model_scope_refused"),
        ]
    )
    assert found["transitions"] == [
        {"from": "block", "to": "pass", "count": 1, "findings": {"failure_pattern_recurs": 1}},
        {"from": "pass", "to": "block", "count": 2, "findings": {"failure_pattern_recurs": 1, "none": 1}},
    ]
    assert (found["stricter"], found["milder"], found["unchanged"]) == (2, 1, 2)
    assert not found["same"]
    assert found["refused"] == {"model_scope_refused": 1}


def test_compared_without_an_answer_is_not_the_same():
    found = compare_pairs([pair(PASS, PASS), pair(PASS, None, failure="timeout")])
    assert (found["same"], found["answered"], found["unchanged"]) == (False, 1, 1)
    assert compare_pairs([pair(PASS, PASS)])["same"]
