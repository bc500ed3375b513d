import sys
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import rankdata

from schemas.errors import ConfigError, DataError
from services.statistics.selection import deflated_sharpe, overfitting_probability, superior_ability


def noise(seed, rows, columns):
    return np.random.default_rng(seed).standard_normal((rows, columns)) * 0.01


def sharpe(values):
    return values.mean(axis=0) / values.std(axis=0, ddof=1)


def cross_validate_slowly(returns, groups):
    """The formulas of Bailey et al. one split after the other, with scipy's ranks."""
    parts = np.split(returns, groups)
    logits = []
    for half in combinations(range(groups), groups // 2):
        trained = sharpe(np.concatenate([parts[at] for at in half]))
        tested = sharpe(np.concatenate([parts[at] for at in range(groups) if at not in half]))
        best = int(np.argmax(trained))
        share = rankdata(tested)[best] / (len(tested) + 1)
        logits.append(np.log(share / (1 - share)))
    return np.array(logits)


@pytest.mark.parametrize("columns", [4, 10])
def test_overfitting_is_that_of_the_formulas_one_split_after_the_other(columns):
    returns = noise(3, 96, columns)
    found = overfitting_probability(returns, groups=8)
    logits = cross_validate_slowly(returns, 8)
    assert np.sort(found.logits) == pytest.approx(np.sort(logits))
    assert found.pbo == pytest.approx((logits <= 0).mean())


def test_overfitting_is_a_coin_in_noise_and_none_where_one_is_better():
    null = [overfitting_probability(noise(seed, 400, 20), groups=8).pbo for seed in range(60)]
    assert np.mean(null) == pytest.approx(0.5, abs=0.08)
    planted = noise(1, 400, 20)
    planted[:, 7] += 0.004
    assert overfitting_probability(planted, groups=8).pbo < 0.01


def test_overfitting_sees_configurations_that_are_good_in_one_half_alone():
    # Each earns in its own half of the time and loses in the other: the best inside is the worst outside.
    returns = noise(2, 320, 10)
    early = np.repeat([0.01, -0.01], 160)[:, None]
    returns += early * np.repeat([1, -1], 5)
    assert overfitting_probability(returns, groups=2).pbo == 1.0


def test_overfitting_of_copies_is_the_mid_rank_and_a_coin():
    found = overfitting_probability(np.repeat(noise(4, 64, 1), 5, axis=1), groups=4)
    assert found.pbo == 0.5
    assert not found.logits.any()


def test_overfitting_does_not_hang_on_the_order_of_configurations():
    returns = noise(5, 120, 9)
    returns[:90, :4] = 0.0  # four that begin late are equally good in many halves: 0
    returns[:, 8] = returns[:, 0]
    one, other = (overfitting_probability(table, groups=6) for table in (returns, returns[:, ::-1]))
    assert one.pbo == other.pbo
    assert np.array_equal(one.logits, other.logits)


def test_overfitting_leaves_out_what_never_trades_and_counts_a_flat_half_as_nothing():
    returns = np.column_stack((noise(6, 80, 3), np.zeros((80, 40))))
    found = overfitting_probability(returns, groups=4)
    assert found.pbo == overfitting_probability(returns[:, :3], groups=4).pbo
    losers = -np.abs(noise(7, 80, 3)[:, :2])
    assert overfitting_probability(losers, groups=2).pbo == 0.0
    losers[:40, 1] = 0.0  # nothing is more than a loss: the best of the first half is the worst of the second
    assert overfitting_probability(losers, groups=2).pbo == 1.0


@pytest.mark.parametrize(
    ("returns", "groups", "match"),
    [
        (np.zeros((64, 3)), 8, "0 of 3 configurations trade"),
        (noise(1, 15, 3), 8, "15 rows for 8 groups: 16 are needed"),
        (np.full((64, 2), np.nan), 8, "row 0, column 0: nan is not finite"),
        (noise(1, 64, 3), 7, "groups is 7: give an even number"),
        (np.zeros((0, 3)), 8, "returns of shape"),
    ],
)
def test_overfitting_refuses_what_says_nothing(returns, groups, match):
    with pytest.raises((DataError, ConfigError), match=match):
        overfitting_probability(returns, groups=groups)


def test_superior_ability_names_what_is_better_and_nothing_in_noise():
    returns = noise(8, 400, 12)
    benchmark = noise(9, 400, 1)[:, 0]
    assert superior_ability(returns, benchmark, seed=1).better == ()
    returns[:, [2, 9]] += 0.004
    found = superior_ability(returns, benchmark, seed=1)
    assert (found.better, found.p < 0.01) == ((2, 9), True)
    assert found == superior_ability(returns, benchmark, seed=1)


def test_superior_ability_is_not_blinded_by_a_wild_loser():
    # Without division by the deviation, the resamples of the wild one hide the quiet gain.
    returns = noise(10, 400, 2)
    returns += np.array([0.0025, 0.0]) - returns.mean(axis=0)
    returns[:, 1] *= 50.0
    assert superior_ability(returns, np.zeros(400), seed=1).better == (0,)


@pytest.mark.parametrize("columns", [1, 4])
def test_superior_ability_of_losers_is_none(columns):
    found = superior_ability(noise(13, 400, columns) - 0.005, np.zeros(400), seed=1)
    assert (found.p, found.better) == (1.0, ())


def test_superior_ability_finds_all_where_every_one_is_better():
    steps = noise(11, 400, 3) + np.array([0.01, 0.01, 0.0018])
    assert superior_ability(steps, np.zeros(400), seed=1).better == (0, 1, 2)


def test_superior_ability_is_wrong_in_no_more_nulls_than_it_says():
    p = [superior_ability(noise(seed, 250, 10), np.zeros(250), seed=seed, reps=199).p for seed in range(150)]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)
    assert np.mean(p) == pytest.approx(0.5, abs=0.1)


def test_superior_ability_without_arch_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arch.bootstrap", None)
    with pytest.raises(ConfigError, match=r"pip install 'thinktwice\[research\]'"):
        superior_ability(noise(1, 60, 2), np.zeros(60), seed=1)


@pytest.mark.parametrize(
    ("rows", "benchmark", "match"),
    [(60, np.zeros(59), "for 60 rows"), (60, np.full(60, np.inf), "one finite"), (9, np.zeros(9), "9 rows")],
)
def test_superior_ability_refuses_what_says_nothing(rows, benchmark, match):
    with pytest.raises(DataError, match=match):
        superior_ability(noise(1, rows, 2), benchmark, seed=1)


def test_deflated_sharpe_of_the_best_of_noise_is_no_proof_and_a_planted_one_is():
    returns = noise(12, 500, 50)
    tried = sharpe(returns)
    best = deflated_sharpe(returns[:, np.argmax(tried)], tried)
    alone = deflated_sharpe(returns[:, np.argmax(tried)], tried[:1])
    assert best is not None
    assert alone is not None
    assert best < 0.9 < alone
    returns[:, 3] += 0.004
    planted = deflated_sharpe(returns[:, 3], sharpe(returns))
    assert planted is not None
    assert planted > 0.99
    assert deflated_sharpe(returns[:, 3], np.full(5, 0.1)) is None
