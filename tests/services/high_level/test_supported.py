"""What a second opinion leads to: less exposure, at default settings and weighed again by the judge."""

import numpy as np
import pytest

from schemas.settings import GateSettings
from schemas.slow_reflection import SecondOpinion
from schemas.vocabulary import EvidenceGrade, RecommendedAction
from services.high_level.leanings import nearest_claim
from services.slow_loop.counters import SlowCounters
from tests.services.high_level.builders import episode
from tests.test_high_level_reflection import BOOKS, reflect, replan

LOSER, FAIR = BOOKS[0], BOOKS[1]
WEEKS_A_MONTH = 4.35


def monthly(definition, mean, seed, months=62, regimes=("up/mid", "sideways/low")):
    """One trade a month in turn of the regimes."""
    r = np.random.default_rng(seed).standard_normal(months) * 0.9 + mean
    return [
        episode(
            definition,
            number=1_000 * seed + k,
            r=float(value),
            week=int(k * WEEKS_A_MONTH),
            regime=regimes[k % 2],
        )
        for k, value in enumerate(r)
    ]


def batch(mean=-0.55):
    return [*monthly(LOSER, mean, 1), *monthly(FAIR, 0.0, 2)]


def of(report, definition):
    return next(item for item in report.clusters if item.playbook_id == definition.id and item.regime is None)


def supported(report):
    return [item for item in report.recommendations if item.supported]


def with_opinion(report, **changes):
    """The report with another second opinion in print."""
    clusters = []
    for item in report.clusters:
        if item.second_opinion is not None:
            forged = SecondOpinion(**(item.second_opinion.payload() | changes))
            item = item.model_copy(update={"second_opinion": forged})
        clusters.append(item)
    return report.model_copy(update={"clusters": tuple(clusters)})


def test_unproven_loss_that_the_second_opinion_claims_lowers_exposure_at_default_settings():
    report = reflect(batch())
    assert of(report, LOSER).second_opinion.claim == "losing"
    assert of(report, LOSER).grade is not EvidenceGrade.SIGNIFICANT
    assert {item.playbook_id for item in supported(report)} == {LOSER.id}
    actions = [item for item in replan(report).actions if item.playbook_id == LOSER.id]
    lowering = [item for item in actions if item.lowers_exposure]
    assert lowering
    assert {item.kind for item in actions} <= {"set_risk_fraction", "set_eligibility", "open_experiment"}
    assert all("second opinion" in item.reason for item in lowering)


def test_fair_playbooks_get_no_second_opinion():
    report = reflect(batch(mean=0.0))
    assert [of(report, item).second_opinion for item in (LOSER, FAIR)] == [None, None]
    assert supported(report) == []


def test_gain_of_a_second_opinion_never_raises_risk():
    report = reflect(batch(mean=0.55))
    assert of(report, LOSER).second_opinion.claim == "gaining"
    assert supported(report) == []
    assert not [item for item in replan(report).actions if item.kind == "set_risk_fraction"]


def test_without_looks_there_is_no_second_opinion():
    report = reflect(batch(), gate=GateSettings(looks=0))
    assert of(report, LOSER).second_opinion is None
    assert supported(report) == []


@pytest.mark.parametrize(
    "forged", [{"bound": 1.0}, {"looks": 4, "look": 4}, {"claim": "gaining"}, {"t": -0.5}]
)
def test_judge_refuses_a_second_opinion_whose_numbers_do_not_carry_it(forged):
    verdict = replan(with_opinion(reflect(batch()), **forged))
    refused = [item.code for item in verdict.refused]
    assert "not_supported" in refused
    assert not [item for item in verdict.actions if item.lowers_exposure]


def test_judge_refuses_a_raise_that_is_called_supported():
    report = reflect(batch())
    higher = [
        item.model_copy(
            update={
                "regime": None,
                "change": {"kind": "set_risk_fraction", "value": LOSER.risk_fraction * 1.5},
                "action": RecommendedAction.POLICY_ADJUST,
            }
        )
        for item in supported(report)[:1]
    ]
    verdict = replan(report.model_copy(update={"recommendations": tuple(higher)}))
    assert [item.code for item in verdict.refused] == ["raises_exposure"]
    assert verdict.actions == ()


def test_every_cluster_has_its_shrunken_mean_and_what_it_still_takes():
    report = reflect(batch())
    for item in report.clusters:
        assert item.shrunken_lower <= item.shrunken_mean <= item.shrunken_upper
        assert item.to_prove
    loser = of(report, LOSER)
    assert loser.mean_r < loser.shrunken_mean < 0.0
    assert 0 < loser.blocks_needed_declared <= loser.blocks_needed
    assert loser.years_needed == pytest.approx(loser.blocks_needed * WEEKS_A_MONTH / 52.18, rel=0.05)
    assert {row.symbol for row in report.shrunken_means} == {"AAA"}
    assert sum(row.n for row in report.shrunken_means) == len(batch())


def test_forecast_names_the_time_until_the_yearly_look_only_before_the_claim_stands():
    claimed, coming = (of(reflect(monthly(LOSER, -0.5, 1, months)), LOSER) for months in (62, 40))
    assert (claimed.second_opinion is None, coming.second_opinion is None) == (False, True)
    assert "yearly look" not in claimed.to_prove
    assert " years by the yearly look" in coming.to_prove


def test_trades_of_one_block_are_said_to_be_too_few_blocks():
    few = of(reflect(monthly(LOSER, -0.5, 1, months=1)), LOSER)
    assert few.to_prove == "open: 0 complete weeks of trades, 2 are the least"


def test_nearest_claim_is_the_one_of_the_least_time():
    """Few blocks of a playbook that hardly trades last longer than many of one that trades each week."""
    assert (
        nearest_claim([("rare", 40.0, "in 3"), ("busy", 1.5, "in 78"), ("never", None, "")]) == "busy in 78"
    )
    assert nearest_claim([("proven", 0.0, "proven")]) == ""


def test_report_of_a_run_names_the_claim_of_the_least_time():
    report = reflect(batch())
    far, near = (
        item.model_copy(update={"blocks_needed": blocks, "years_needed": years, "to_prove": words})
        for item, blocks, years, words in zip(
            report.clusters, (3, 78), (40.0, 1.5), ("in 3", "in 78"), strict=False
        )
    )
    counters = SlowCounters()
    counters.count(report.model_copy(update={"clusters": (far, near)}), "r", report.known_at)
    assert counters.reports[0]["nearest_claim"].endswith(" in 78")
