"""`thinktwice worlds`: rates where the truth is known, by the running gate."""

import json

import pytest
from typer.testing import CliRunner

from schemas.config import GateSettings
from services.high_level.table_gate import grade_table
from worker.cli import app
from worker.worlds.draws import WORLDS, batches, table_of
from worker.worlds.flags import flags_of, hypotheses_of
from worker.worlds.rates import setting_of


def run(*words):
    return CliRunner().invoke(app, ["worlds", *words])


def document(*words):
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def nulls():
    return document("--kind", "null", "--runs", "50", "--seed", "3")


@pytest.fixture(scope="module")
def planted():
    return document("--kind", "planted", "--runs", "50", "--seed", "3")


def test_null_worlds_hardly_ever_lead_to_a_structural_recommendation(nulls):
    assert {(one["world"], one["cells"]) for one in nulls["worlds"]} == {
        (w, c) for w in WORLDS for c in (12, 24)
    }
    assert nulls["any_structural_rate"] == max(one["any_structural_rate"] for one in nulls["worlds"]) <= 0.05
    assert nulls["false_share"] <= 0.10
    assert nulls["power"] is nulls["median_delay_trades"] is None


def test_other_rules_on_the_same_null_draws_recommend_nearly_always(nulls):
    for one in nulls["worlds"]:
        rules = one["other_rules"]
        assert rules["count_and_win_rate"]["any_structural_rate"] >= 0.7
        assert rules["weekly_t_tests"]["cell_rate"] >= 0.2


def test_planted_loss_is_found_within_a_year_and_little_else(planted):
    told = [one for one in planted["worlds"] if one["world"] == "t3"]
    assert planted["power"] == min(one["power"] for one in told) >= 0.9
    assert 100 <= planted["median_delay_trades"] <= 220
    assert planted["false_share"] <= 0.10


def test_decay_is_seen_after_it_began_and_not_before():
    found = document("--kind", "decay", "--runs", "10", "--cells", "12")
    assert found["power"] >= 0.9
    assert 40 <= found["median_delay_trades"] <= 180
    assert all(one["false_alarm_rate"] <= 0.1 for one in found["worlds"])


def test_same_seed_gives_the_same_bytes_and_another_seed_other_worlds():
    words = ("--kind", "planted", "--cells", "12", "--runs", "6")
    first, again, other = (run(*words, "--seed", seed, "--json").stdout for seed in ("5", "5", "6"))
    assert first == again != other


@pytest.mark.parametrize(("kind", "world"), [("planted", "t3"), ("planted", "ar1"), ("decay", "t3")])
def test_flags_are_those_of_the_gate_asked_at_every_look_about_every_cluster(kind, world):
    setting = setting_of(kind, world, 12)
    gate = GateSettings(reference_r=setting.reference)
    (batch,) = batches(world, setting.grid, setting.mean, 3, 2)
    selected = 0
    for r in batch:
        table = table_of(r, setting.grid, setting.reference)
        (flags,) = flags_of([hypotheses_of(table, gate)], gate, setting.grid.looks)
        graded = grade_table(table, gate, setting.grid.looks)
        asked = {
            item.cluster.tested_as: item.first_significant_at
            for item in graded.clusters
            if item.first_significant_at is not None
        }
        assert {name: setting.grid.looks[look] for name, look in flags.significant.items()} == asked
        selected += len(asked)
    assert selected > 0


def test_more_runs_begin_with_the_fewer():
    setting = setting_of("null", "t3", 12)
    few, many = (
        [run for batch in batches("t3", setting.grid, setting.mean, runs, 1) for run in batch]
        for runs in (3, 60)
    )
    assert len(few) == 3
    assert len(many) == 60
    assert all(a.tobytes() == b.tobytes() for a, b in zip(few, many, strict=False))


def test_worlds_table_begins_with_the_worst_null_and_the_power():
    text = run("--runs", "2", "--cells", "12").stdout
    assert text.startswith("worst null world: a structural recommendation in ")
    assert "-0.4R a trade found in" in text.splitlines()[0]
    assert all(f"{kind} worlds" in text for kind in ("null", "planted", "decay"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kind", "nul"), "--kind 'nul' is not one of null, planted, decay"),
        (("--cells", "13"), "--cells '13' is not 12 or 24"),
        (("--runs", "0"), "--runs 0 is not between 1"),
        (("--seed", "-1"), "--seed -1 is not between 0"),
    ],
)
def test_worlds_refuse_what_draws_nothing(words, message):
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
