"""`tt.sweep`: sets as `simulate` trades them, the worth of the search before any set, worlds to test it."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thinktwice as tt
from benchmarks.sweep_worlds import FEW, null_world, planted_world, sweep_days, sweep_world
from trading_core.research import sweep as kernel_sweep
from worker.studies.sweep import result as sweeping
from worker.studies.sweep.sets import Family
from worker.studies.sweep.worth import Looking, Worth, worth_of

RULE = "crosses_above(sma_{f}, sma_{s})"
GRID: dict[str, list[float]] = {"f": [5, 10, 15], "s": [20, 40], "stop_pct": [0.02, 0.04]}


def frame(seed=1, rows=800):
    draw = np.random.default_rng(seed)
    close = 100.0 * np.exp(np.cumsum(draw.normal(0.0, 0.01, rows)))
    opened = np.concatenate([[100.0], close[:-1]])
    index = pd.date_range("2019-01-01", periods=rows, tz="UTC", name="time")
    high, low = np.maximum(opened, close) * 1.002, np.minimum(opened, close) * 0.998
    return pd.DataFrame(
        {"open": opened, "high": high, "low": low, "close": close, "volume": 1.0}, index=index
    )


@pytest.fixture(scope="module")
def bars():
    return frame()


@pytest.fixture(scope="module")
def found(bars):
    return tt.sweep(bars, RULE, GRID, target_pct=0.06)


def test_sweep_table_has_a_row_for_each_set_as_simulate_trades_it(bars, found):
    table = found.table
    assert list(table.columns) == ["f", "s", "stop_pct", "trades", "total_r", "return", "sharpe"]
    assert len(table) == 12
    for row in table.to_dict("records"):
        entry = RULE.format(f=row["f"], s=row["s"])
        alone = tt.simulate(bars, entry, stop_pct=row["stop_pct"], target_pct=0.06)
        assert (row["trades"], row["total_r"]) == (len(alone.trades), float(alone.trades["r"].sum()))


def test_sweep_prints_its_worth_first_and_no_figure_of_the_winner(found):
    first, second, *rest = str(found).splitlines()
    assert first == f"12 sets tried: {found.worth.verdict}"
    assert second.startswith("out of sample")
    best = found.best(i_know=True)
    assert f"{best['total_r']:.2f}" not in str(found)
    assert f"{best['sharpe']:.2f}" not in first + second
    assert "every set: .table" in rest[-1]


def test_sweep_worth_is_computed_when_it_is_first_read(bars, monkeypatch):
    asked = []
    monkeypatch.setattr(sweeping, "worth_of", lambda *given: asked.append(1))
    made = tt.sweep(bars, RULE, {"f": [5], "s": [20, 30]})
    assert len(made.table) == 2
    assert asked == []
    _ = made.worth, made.worth
    assert asked == [1]


def worth(**given):
    figures = {"pbo": 0.1, "deflated_sharpe": 0.9, "spa_p": 0.01, "in_sample": 0.5}
    figures |= {"out_of_sample": 0.2, "out_of_sample_p": 0.02}
    return Worth(sets_tried=9, trades=40, folds=(), **(figures | given))


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({}, "real"), ({"spa_p": 0.05}, "real"), ({"spa_p": 0.051}, "not shown"),
        ({"spa_p": None}, "not shown"),
        ({"pbo": 0.5}, "not shown"), ({"pbo": None}, "not shown"), ({"out_of_sample": 0.0}, "not shown"),
        ({"out_of_sample_p": 0.05}, "real"), ({"out_of_sample_p": 0.051}, "not shown"),
        ({"out_of_sample_p": None}, "not shown"),
        ({"out_of_sample": None}, "not shown"), ({"deflated_sharpe": None}, "real"),
    ],
)  # fmt: skip
def test_sweep_is_real_where_all_say_so(given, verdict):
    assert worth(**given).verdict == verdict


@pytest.mark.parametrize("pbo", [None, 0.51, 0.5])
def test_sweep_best_of_an_overfitted_search_is_refused(bars, found, monkeypatch, pbo):
    one = sweeping.SweepResult(found.bars, found.family, found.points, found.rows)
    monkeypatch.setattr(sweeping, "worth_of", lambda *_: worth(pbo=pbo))
    if pbo == 0.5:
        assert one.best()["trades"] > 0
        return
    with pytest.raises(tt.ConfigError, match="probability of overfitting is .*i_know=True"):
        one.best()
    assert one.document()["best"] is None
    assert one.document(i_know=True)["best"] is not None
    assert one.best(i_know=True)["trades"] > 0


def test_sweep_bad_set_is_a_row_with_its_reason(bars):
    made = tt.sweep(bars, "{kind}_{n} < close", {"kind": ["sma", "smma_of"], "n": [10, 20]})
    assert made.table["problem"].isna().tolist() == [True, True, False, False]
    assert "smma_of_10" in made.table["problem"][2]
    assert "2 sets could not be traded" in str(made)
    assert made.worth.sets_tried == 2


def test_sweep_random_draws_the_same_sets_by_its_seed(bars):
    grid: dict[str, Any] = {"f": range(2, 30), "s": np.arange(40, 90)}
    one, same, other = (tt.sweep(bars, RULE, grid, random=9, seed=seed).points for seed in (1, 1, 2))
    assert one == same != other
    assert len({tuple(point.values()) for point in one}) == 9
    whole = Family({"entry": RULE}, {"f": [1, 2], "s": [3, 4, 5]}, draws=None).points()
    drawn = Family({"entry": RULE}, {"f": [1, 2], "s": [3, 4, 5]}, draws=5).points()
    assert [point for point in whole if point in drawn] == drawn


def test_sweep_of_symbols_and_rules_takes_them_from_the_grid():
    made = tt.sweep(
        None, "close > open", end="2003-12-31",
        grid={"symbols": ["AAPL", "IBM"], "entry": ["rsi_14 < 30", "rsi_14 < {n}"], "n": [20, 25]},
    )  # fmt: skip
    alone = tt.simulate(None, "rsi_14 < 25", symbols=["IBM"], end="2003-12-31")
    row = made.table.query("symbols == 'IBM' and n == 25").iloc[1]
    assert row["total_r"] == float(alone.trades["r"].sum())


def test_sweep_of_a_playbook_takes_the_values_that_it_allows(bars):
    book = tt.Playbook(
        "channel",
        long={"setup": "close > highest_{n}", "stop": "close - {k} * atr_14", "target": "close + 3 * atr_14"},
        short={"setup": "close < lowest_{n}", "stop": "close + {k} * atr_14", "target": "close - 3 * atr_14"},
        parameters={"n": tt.Parameter(value=20, grid=(10, 20)), "k": tt.Parameter(value=2, grid=(1, 2, 3))},
        horizon_bars=30, break_even_r=1.0,
    )  # fmt: skip
    made = tt.sweep(bars, book)
    assert len(made.table) == 12
    short = made.table.query("direction == 'short' and n == 10 and k == 3").iloc[0]
    alone = tt.simulate(
        bars, "close < lowest_10", direction="short", stop="close + 3 * atr_14", target="close - 3 * atr_14",
        time_stop_bars=30, break_even_r=1.0,
    )  # fmt: skip
    assert (short["trades"], short["total_r"]) == (len(alone.trades), float(alone.trades["r"].sum()))
    assert len(tt.sweep(bars, book, {"k": [1, 2]}, direction="long").table) == 2


def test_sweep_heatmap_is_the_mean_over_the_other_values(found):
    heat = found.heatmap("f", "s", "total_r")
    own = found.table.query("f == 10 and s == 40")["total_r"].mean()
    assert heat.loc[40, 10] == pytest.approx(own)
    assert (heat.shape, found.heatmap().shape) == ((2, 3), (2, 2))
    with pytest.raises(tt.ConfigError, match="give two of f, s, stop_pct"):
        found.heatmap("g")


def test_sweep_page_and_parquet_hold_every_set(found, tmp_path):
    page = found.page(tmp_path / "sweep.html").read_text("utf-8")
    assert page.count("<tr>") == 13
    assert f"<h1>12 sets tried: {found.worth.verdict}</h1>" in page
    assert page.count("<rect") == 4
    pd.testing.assert_frame_equal(pd.read_parquet(found.to_parquet(tmp_path / "s.parquet")), found.table)
    json.dumps(found.document(), allow_nan=False)


def test_sweep_over_lists_and_values_of_several_kinds_has_a_heat_map_a_page_and_a_file(tmp_path):
    bars = pd.concat([frame().assign(symbol="A"), frame(2).assign(symbol="B")])
    grid: dict[str, Any] = {
        "f": np.array([5, 10]),
        "symbols": [None, "A", ["A", "B"]],
        "s": [np.int64(20)],
        "entry_at": ["", 3],
    }
    made = tt.sweep(bars, RULE, grid, stop_pct=0.02)
    kept = pd.read_parquet(made.to_parquet(tmp_path / "s.parquet"))
    assert kept["symbols"].unique().tolist() == ["null", '"A"', '["A","B"]']
    assert list(made.heatmap("f", "symbols", "trades").index) == kept["symbols"].unique().tolist()
    assert made.page(tmp_path / "s.html").read_text("utf-8").count("<tr>") == 13
    with pytest.raises(tt.ConfigError, match="cannot be written .*: name another"):
        made.to_parquet(tmp_path / "nowhere" / "s.parquet")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"grid": {"f": [5], "s": [20], "g": [1]}}, "grid: 'g' is no parameter in braces and no keyword"),
        ({"grid": {"f": [5]}}, r"no values for \{s\}"),
        ({"grid": {"f": [5], "s": []}}, "s is .*: give a list of at least one value"),
        ({"grid": {"f": [5], "s": 20}}, "s is 20: give a list"),
        ({"grid": {"entry": 20}}, "entry is 20: give a list"),
        ({"grid": {"f": [5], "s": "20"}}, "s is '20': give a list"),
        ({"grid": {"f": range(400), "s": range(400)}}, "160,000 sets: give 1 to 100,000"),
        ({"stop_pc": 0.02}, "'stop_pc' is no keyword of a sweep at level 'rule'. Did you mean 'stop_pct'"),
        ({"strategist": "mine:Agent"}, "'strategist' is no keyword of a sweep at level 'rule'"),
        ({"random": 0}, "0 sets: give 1 to"),
        ({"folds": 0}, "folds 0 of 800 bars: give 1 to 20"),
        ({"scheme": "forward"}, "'forward' is none of anchored"),
        ({"embargo": 0.7}, "embargo 0.7"),
        ({"rule": 7}, "rule is a int: give the text"),
        ({"random": 2.5}, "random 2.5: give a whole number of sets"),
        ({"seed": -1}, "seed = -1"),
        ({"seed": "one"}, "seed = 'one'"),
        ({"folds": 2.5}, "folds 2.5 of 800 bars: give 1 to 20"),
        ({"embargo": "much"}, "embargo 'much'"),
        ({"grid": {"f": [5, float("nan")], "s": [20]}}, "f nan is no value of a set: give finite numbers"),
        ({"grid": {"f": [pd.Timestamp("2020-01-01")], "s": [20]}}, r"f Timestamp\(.* is no value of a set"),
        ({"stop_pct": float("inf")}, "stop_pct inf is no value of a set"),
        ({"grid": {"f": [5, 7, 5], "s": [20]}}, "grid: f has 5 twice: give each value once"),
        ({"resume": 5}, "resume 5: give the path of a file or folder"),
        ({"keep": 5}, "keep 5: give the path of a file or folder"),
        ({"grid": {5: [5], "s": [20]}}, "grid: 5 cannot name a parameter"),
        ({"rule": "sma_{sharpe} > 0", "grid": {"sharpe": [5]}}, "grid: 'sharpe' cannot name a parameter"),
    ],
)
def test_sweep_that_cannot_be_is_refused_by_name(bars, given, message):
    with pytest.raises(tt.ConfigError, match=message):
        tt.sweep(bars, **({"rule": RULE, "grid": {"f": [5], "s": [20]}} | given))


def test_sweep_with_a_store_is_one_row_before_it_begins(bars, tmp_path, monkeypatch):
    url, seen = f"sqlite:///{tmp_path / 's.sqlite'}", []
    run_sets = kernel_sweep.run_sets

    def looking(*given):
        seen.append((tmp_path / "s.sqlite").exists())
        return run_sets(*given)

    monkeypatch.setattr(sweeping, "run_sets", looking)
    one = tt.sweep(bars, RULE, GRID, db=url)
    again = tt.sweep(bars, RULE, GRID, db=url)
    other = tt.sweep(bars, RULE, {"f": [5], "s": [20]}, db=url)
    assert seen == [True] * 3
    assert (one.before, again.before, other.before) == (0, 0, 12)
    assert other.worth.sets_tried == 13


def test_sweep_without_a_store_writes_nothing(bars, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    str(tt.sweep(bars, RULE, {"f": [5], "s": [20, 30]}))
    assert list(tmp_path.iterdir()) == []


def test_sweep_looks_out_of_sample_as_it_is_asked_to(bars):
    made = tt.sweep(bars, RULE, GRID, folds=4, scheme="combinatorial", embargo=0.0)
    assert made.looking == Looking(4, "combinatorial", 0.0, 0)
    assert len(made.worth.folds) == 6


def test_trades_near_a_stretch_that_is_looked_at_do_not_choose_for_it(found):
    inside = [
        sum(
            fold.trades_inside
            for fold in worth_of(found.bars, found.rows, Looking(4, "combinatorial", embargo)).folds
        )
        for embargo in (0.0, 0.1)
    ]
    assert inside[0] > inside[1] > 0


def test_what_was_tried_before_deflates_the_best_of_a_search(found):
    alone, after = (worth_of(found.bars, found.rows, found.looking, before=before) for before in (0, 5_000))
    assert (alone.sets_tried, after.sets_tried) == (12, 5_012)
    assert alone.deflated_sharpe is not None
    assert after.deflated_sharpe is not None
    assert alone.deflated_sharpe > after.deflated_sharpe > 0.0
    assert (alone.pbo, alone.spa_p) == (after.pbo, after.spa_p)


def test_sweep_of_a_walk_without_an_edge_is_not_shown():
    verdicts = [sweep_world(null_world(seed), seed).verdict for seed in range(3)]
    assert verdicts.count("real") == 0


@pytest.mark.parametrize("seed", [4, 14])
def test_sweep_of_few_trades_is_not_shown_and_says_how_many_are_needed(seed):
    found = sweep_days(seed, FEW["rare losses"])
    assert found.spa_p is not None
    assert found.spa_p <= 0.05
    assert found.pbo is not None
    assert found.pbo < 0.5
    assert (found.out_of_sample or 0.0) > 0.0
    assert (found.out_of_sample_p, found.verdict) == (None, "not shown")
    assert f"out of sample {found.trades} bets, apart in time: 30 are needed" in found.notes[0]


def test_sweep_of_a_planted_edge_is_real():
    worths = [sweep_world(planted_world(seed, edge=0.6), seed) for seed in range(2)]
    assert [found.verdict for found in worths] == ["real", "real"]
