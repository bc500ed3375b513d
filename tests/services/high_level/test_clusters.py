from hypothesis import given
from hypothesis import strategies as st

from schemas.settings import GateSettings
from services.high_level.cluster_figures import regime_marginals, split_population
from services.high_level.clusters import EVERY_TRADE, measure
from services.high_level.grading import grade_clusters
from services.high_level.hypotheses import declared_hypotheses
from services.high_level.trade_bounds import reference_of
from services.playbooks.measures import eligible_cells
from tests.services.high_level.builders import episode, playbook

AT = 10**19  # every block of the trades is complete


def clusters(batch, starts=EVERY_TRADE):
    """Trades and hypothesis of each cluster, by its key below the playbook."""
    return {
        (item.cluster.regime, item.cluster.timeframe): (item.episodes, item.cluster.tested_as)
        for item in measure(batch, GateSettings(), {}, AT, starts=starts)
    }


CELLS = ("sideways/low", "sideways/mid", "up/low", "up/mid")


def test_declared_family_is_read_from_the_files_alone():
    names = declared_hypotheses([playbook("b"), playbook("a"), playbook("off", enabled=False)], ["1h"])
    assert names == ("a", *(f"a|{cell}" for cell in CELLS), "b", *(f"b|{cell}" for cell in CELLS))
    assert len(declared_hypotheses([playbook("a")], ["1h", "4h"])) == 1 + 4 * 3


def test_banned_cell_is_not_eligible_and_makes_the_rest_of_the_family_no_cheaper():
    rules = playbook().eligibility["long"].model_copy(update={"banned": ("up/low",)})
    banned = playbook(eligibility={"long": rules})
    assert "up/low" not in eligible_cells(banned)
    assert eligible_cells(banned, with_banned=True) == CELLS
    assert declared_hypotheses([banned], ["1h"]) == declared_hypotheses([playbook()], ["1h"])


def test_clusters_have_three_levels_and_one_timeframe_shares_its_cells_hypothesis():
    batch = [
        episode(number=0),
        episode(number=1, regime="up/low"),
        episode(number=2, regime="up/low", timeframe="4h"),
    ]
    assert {key: (len(trades), name) for key, (trades, name) in clusters(batch).items()} == {
        (None, None): (3, "pullback"),
        ("up/mid", None): (1, "pullback|up/mid"),
        ("up/mid", "1h"): (1, "pullback|up/mid"),
        ("up/low", None): (2, "pullback|up/low"),
        ("up/low", "1h"): (1, "pullback|up/low|1h"),
        ("up/low", "4h"): (1, "pullback|up/low|4h"),
    }


def test_cluster_of_the_one_timeframe_of_its_cell_is_measured_and_graded_with_it():
    """Of each cell with one timeframe one path is walked and one finding made; both differ in name alone."""
    batch = [episode(number=0), episode(number=1, regime="up/low"), episode(number=2, regime="up/low")]
    measures = measure(batch, GateSettings(), {}, AT)
    assert len({id(item.cluster.track) for item in measures}) == 3
    findings = grade_clusters(measures, None, GateSettings(), {})
    assert [(finding.regime, finding.timeframe) for finding in findings] == [
        (item.cluster.regime, item.cluster.timeframe) for item in measures
    ]
    for whole, single in (findings[1:3], findings[3:5]):
        assert single == whole.model_copy(update={"timeframe": "1h"})
        assert single.content_hash != whole.content_hash


def test_clusters_hold_trades_from_the_start_of_their_own_epoch():
    early, late = episode(number=0), episode(number=1)
    starts = {"pullback|*": late.entry_label}
    found = {key: trades for key, (trades, _) in clusters([early, late], starts).items()}
    assert found[None, None] == (late,)
    assert found["up/mid", None] == (early, late)
    starts = {"pullback|up/mid": late.entry_label}
    found = {key: trades for key, (trades, _) in clusters([early, late], starts).items()}
    assert found[None, None] == (early, late)
    assert found["up/mid", None] == found["up/mid", "1h"] == (late,)


@given(st.lists(st.sampled_from(CELLS), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_levels_hold_every_trade_once_in_any_order(regimes, random):
    batch = [episode(number=k, regime=regime) for k, regime in enumerate(regimes)]
    shuffled = list(batch)
    random.shuffle(shuffled)
    assert clusters(batch) == clusters(shuffled)
    for level in (0, 1, 2):
        members = [trades for key, (trades, _) in clusters(batch).items() if 2 - key.count(None) == level]
        assert sorted(entry.episode_id for group in members for entry in group) == sorted(
            entry.episode_id for entry in batch
        )


def test_regime_marginals_sum_over_playbooks():
    batch = [
        *(episode(playbook("a"), number=k, r=1.0) for k in range(3)),
        *(episode(playbook("b"), number=k, r=-1.0, failure_mode="chop") for k in range(2)),
    ]
    (row,) = regime_marginals(batch, GateSettings())
    assert (row["regime"], row["n"], row["mean_r"], row["win_rate"]) == ("up/mid", 5, 0.2, 0.6)
    assert (row["playbooks"], row["recurring"]) == ({"a": 3, "b": 2}, ["chop"])


def test_population_excludes_what_may_not_teach_and_says_why():
    book = playbook()
    batch = [
        episode(book, number=0),
        episode(book, number=1, no_learn=True),
        episode(book, number=2, ledger="shadow"),
        episode(book, number=3, playbook_hash="older"),
        episode(playbook("retired"), number=4),
        episode(book, number=5),
    ]
    split = split_population(batch, [book], {"pullback": batch[5].entry_label})
    assert [item.episode_id for item in split.tested] == [batch[5].episode_id]
    assert split.excluded == {"before_epoch": 1, "earlier_version": 2, "no_learn": 1, "shadow": 1}
    assert len(split.live) == 4


def test_reference_is_the_setting_until_a_measured_contract_is_frozen():
    design = playbook()
    measured = playbook(
        expectation=design.expectation.model_copy(update={"source": "measured", "expectancy_r": 0.15})
    )
    gate = GateSettings(reference_r=-0.05)
    assert [reference_of(item, gate) for item in (None, design, measured)] == [-0.05, -0.05, 0.15]
