"""The worth of a tier where it is known: a veto that helps, one that hurts, one that does not matter."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from schemas.settings import DataSettings
from services.statistics.paired import PairedResult
from tests.worker.studies.ablation.planted import SEEDS, books, planted, run, settings
from trading_core.bars import COLUMNS
from worker.feeds.sample_data.worlds import make_world
from worker.runs.backtest import sifted_bars
from worker.studies.ablation.arms import Arm, settings_of
from worker.studies.ablation.worth import CHANCE, answer_of, worth_document


def tier(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(item for item in document["tiers"] if item["tier"] == name)


def result(answer: Any) -> PairedResult:
    return PairedResult("month", 60, 60, 0.0, -1.0, 1.0, 0.5, 0.05, answer, "")


def test_worth_of_a_veto_that_refuses_the_losing_playbook_is_helped():
    ablation, document = planted("right")
    fast = tier(document, "fast reflection")
    assert fast["answer"] == "helped"
    assert fast["difference"]["per_year"]["lower"] > 0.0
    assert fast["against_chance"]["answer"] == "higher"
    assert fast["against_chance"]["beaten"] == SEEDS
    assert ablation.rates[0].revise > 0.2


def test_worth_of_a_veto_that_refuses_the_winning_playbook_is_hurt():
    _, document = planted("wrong")
    fast = tier(document, "fast reflection")
    assert fast["answer"] == "hurt"
    assert fast["difference"]["per_year"]["upper"] < 0.0
    assert "less than a coin" in fast["reason"]
    (ledger,) = (reason for reason in document["shadow_ledger"] if reason["reason"] == "revised")
    assert ledger["answer"] == "won"
    assert 0 < ledger["n"] < ledger["plans"]


def test_worth_of_a_veto_where_nothing_can_be_foreseen_is_unknown():
    _, document = planted("random")
    fast = tier(document, "fast reflection")
    assert fast["answer"] == "unknown"
    assert fast["difference"]["per_year"]["lower"] < 0.0 < fast["difference"]["per_year"]["upper"]
    assert fast["difference"]["differing"] >= 20


@pytest.mark.parametrize(
    ("alone", "chance", "answer"),
    [
        ("higher", "higher", "helped"),
        ("higher", "unknown", CHANCE),
        ("higher", "lower", CHANCE),
        ("lower", "unknown", "hurt"),
        ("lower", "higher", "hurt"),
        ("unknown", "higher", "unknown"),
        ("unknown", "unknown", "unknown"),
    ],
)
def test_answer_needs_more_than_trading_less(alone, chance, answer):
    assert answer_of(result(alone), result(chance)) == answer


def test_answer_without_a_coin_is_that_of_the_comparison():
    assert [answer_of(result(word), None) for word in ("higher", "lower", "unknown")] == [
        "helped",
        "hurt",
        "unknown",
    ]


def test_worth_shows_exposure_beside_every_answer():
    ablation, document = planted("wrong")
    shown = tier(document, "fast reflection")["exposure"]
    arms = ablation.arms
    assert shown["with"]["bars"] == pytest.approx(arms[Arm.FAST_ONLY].exposure)
    assert shown["without"]["gross"] == pytest.approx(arms[Arm.NO_REFLECTION].mean_gross)
    assert shown["with"]["bars"] < shown["without"]["bars"]
    assert shown["random_veto"]["bars"] < shown["without"]["bars"]


def test_worth_of_a_model_without_one_is_not_run():
    _, document = planted("right")
    assert tier(document, "model")["answer"] is None
    arm = next(item for item in document["arms"] if item["arm"] == "full")
    assert (arm["status"], arm["run"]) == ("not run: no model configured", None)


def test_worth_of_an_arm_with_errors_is_unknown():
    ablation, _ = planted("right")
    broken = copy.deepcopy(ablation)
    broken.arms[Arm.FAST_ONLY].document["errors"] = 1
    base = settings()
    document = worth_document(broken, [], "4h", base.seed, base.gate)
    fast = tier(document, "fast reflection")
    assert (fast["answer"], fast["reason"]) == ("unknown", "errors in fast_only")
    assert tier(document, "both by rules")["answer"] == "helped"


def test_blocks_of_an_arm_multiply_to_its_return_and_pair_with_every_other():
    ablation, _ = planted("wrong")
    one = ablation.arms[Arm.NO_REFLECTION]
    total = one.document["performance"]["total_return"]
    for unit in ("week", "month"):
        assert (1.0 + one.block_returns(unit)).prod() - 1.0 == pytest.approx(total)
        sizes = {len(other.block_returns(unit)) for other in (*ablation.arms.values(), *ablation.vetoes)}
        assert len(sizes) == 1


def test_arms_change_the_tiers_and_nothing_else():
    base = settings()
    for arm in (Arm.NO_REFLECTION, Arm.FAST_ONLY, Arm.DETERMINISTIC, Arm.RANDOM_VETO):
        payload, own = settings_of(arm, base).payload(), base.payload()
        for part in (payload, own):
            part["reflection"].pop("mode")
            part["high_level"].pop("enabled")
        assert payload == own
    assert settings_of(Arm.FAST_ONLY, base).high_level.enabled is False
    assert settings_of(Arm.RANDOM_VETO, base).reflection.mode == "off"


def test_vetoed_runs_trade_less_often_by_about_the_refused_share():
    ablation, document = planted("right")
    plans = {str(arm): entry.document["policy_loop"]["frozen"] for arm, entry in ablation.arms.items()}
    coin = [vetoe.document["policy_loop"]["frozen"] for vetoe in ablation.vetoes]
    assert max(coin) < plans["no_reflection"]
    assert sum(coin) / len(coin) == pytest.approx(plans["fast_only"], rel=0.25)
    assert len({item["head_hash"] for item in document["random_veto"]["seeds"]}) == SEEDS


def test_worth_of_a_model_that_may_know_the_bars_is_unknown_whatever_it_made():
    ablation, _ = planted("right")
    shown = copy.deepcopy(ablation)
    shown.arms[Arm.FULL] = shown.arms[Arm.FAST_ONLY]
    shown.arms[Arm.DETERMINISTIC] = shown.arms[Arm.NO_REFLECTION]
    base = settings()
    clean = tier(worth_document(shown, [], "4h", base.seed, base.gate), "model")
    shown.arms[Arm.FULL].document["contamination"]["reason"] = "all of the window lies before"
    known = tier(worth_document(shown, [], "4h", base.seed, base.gate), "model")
    assert clean["answer"] == "helped"
    assert (known["answer"], known["reason"]) == ("unknown", "contaminated: all of the window lies before")


def test_worth_of_runs_that_leave_bars_out_is_that_of_the_bars_they_traded(tmp_path):
    """Slips, one of them in a whole row: labels, curves and refused plans are those of the other bars."""
    world = make_world("reverting", seed=5, bars=700, symbols=2)
    columns = {name: getattr(world, name).copy() for name in COLUMNS}
    for row, column in ((300, 0), (300, 1), (420, 0), (421, 0), (560, 1)):
        for name in ("open", "high", "low", "close"):
            columns[name][row, column] *= 100.0
    slipped = replace(world, **columns)
    always = settings().model_copy(update={"data": DataSettings(plausibility="always")})
    clean = sifted_bars(slipped, always.data).bars
    assert (slipped.shape[0] - clean.shape[0], slipped.bar_count - clean.bar_count) == (1, 5)
    found, expected = (
        run(bars, always, books("right"), f"sqlite:///{tmp_path / name}.db", seeds=1)
        for bars, name in ((slipped, "slipped"), (clean, "clean"))
    )
    arm = found[0].arms[Arm.FAST_ONLY]
    assert len(arm.labels) + 1 == len(arm.curve) == clean.shape[0] + 1
    ledgers = [
        [
            [group[name] for name in ("reason", "n", "unresolved", "mean_r")]
            for group in document["shadow_ledger"]
        ]
        for _, document in (found, expected)
    ]
    assert ledgers[0] == ledgers[1] != [], "a doubt opens a boundary, so the number of plans may differ"
