"""Tables in which rows may be one trade or several, as users have them: no claim hangs on it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import thinktwice as tt
from benchmarks.gate_worlds.calendar import HOUR_NS, CellTrades, spread_over_week
from benchmarks.gate_worlds.catalogue import REGIMES, world_of

WEEKS, SYMBOLS = 104, 8


def frame(entry_ns, exit_ns, r, playbook="fade", regime="up/mid", **columns):
    """A table of trades without symbol, direction and position_id."""
    times = {"entry_time": pd.to_datetime(entry_ns, utc=True), "exit_time": pd.to_datetime(exit_ns, utc=True)}
    return pd.DataFrame(
        {"playbook": playbook, "regime": regime, "timeframe": "1h", **times, "r": r, **columns}
    )


def bets_of_symbols(seed, mean, alike):
    """Two bets a week in eight symbols at once; outcomes of the side `alike` are equal, the others differ.

    `alike` -1: losers stop at exactly -1R, winners make 2R on average; +1: the mirror image of that.
    """
    draw = np.random.default_rng(seed)
    _, entry = spread_over_week(WEEKS, 2)
    chance = (1.0 - alike * mean) / 3.0
    common = draw.random(len(entry))[:, None] < chance
    won = np.where(draw.random((len(entry), SYMBOLS)) < 0.7, common, draw.random(common.shape) < chance)
    size = np.where(won, 2.0 + 0.3 * draw.standard_normal(won.shape), -1.0)
    entries = np.repeat(entry, SYMBOLS)
    return frame(entries, entries + HOUR_NS, -alike * size.ravel())


def claims(found):
    return set(found.clusters["claim"].dropna())


@pytest.mark.parametrize(("alike", "mean", "false"), [(-1, -0.2, "gaining"), (1, 0.2, "losing")])
@pytest.mark.parametrize("kind", ["frame", "csv", "other columns", "picked rows"])
def test_gate_of_equal_outcomes_of_one_side_never_proves_the_other(tmp_path: Path, kind, alike, mean, false):
    for seed in range(8):
        table = bets_of_symbols(seed, mean, alike)
        if kind == "other columns":
            table = table.assign(comment="stop", account=7)
        if kind == "picked rows":
            table = table.set_index(np.arange(len(table)) * 3)
        table.to_csv(tmp_path / "trades.csv", index=False)
        found = tt.gate(tmp_path / "trades.csv" if kind == "csv" else table)
        assert false not in claims(found), seed
        whole = found.clusters.iloc[0]
        assert whole["n"] == len(table) == found.document["positions"]["positions"]
        assert found.document["positions"]["equal"] == int(table.duplicated().sum()) > 300
        assert found.document["positions"]["mean"] == pytest.approx(table["r"].mean())
        assert found.document["positions"]["mean_otherwise"] == pytest.approx(
            table.drop_duplicates()["r"].mean()
        )


def test_gate_refuses_a_claim_whose_side_depends_on_equal_rows_and_says_so():
    # Each bet is 20 rows. Losers are equal, winners differ: -0.5R by row, clearly above zero without copies.
    _, entry = spread_over_week(WEEKS, 5)
    draw = np.random.default_rng(4)
    won = np.repeat(draw.random(len(entry)) < 0.25, 20)
    entries = np.repeat(entry, 20)
    table = frame(entries, entries + HOUR_NS, np.where(won, 1.0 + 0.01 * draw.random(len(won)), -1.0))
    found = tt.gate(table)
    whole = found.clusters.iloc[0]
    assert whole["mean"] < -0.4 < 0.4 < whole["mean_otherwise"]
    assert whole["e_losing"] > 1e3, "the rows as they stand would prove a loss"
    assert (found.family["selected"], claims(found), whole["leaning"]) == ([], set(), None)
    assert "by which rows are a trade: its side depends on that, and no claim stands" in whole["reason"]
    assert "position_id" in whole["reason"]


def test_gate_lets_a_claim_stand_that_equal_rows_do_not_turn():
    _, entry = spread_over_week(WEEKS, 5)
    r = np.random.default_rng(5).choice([-1.0, 1.0, -0.9, 0.5], len(entry))
    twice = frame(np.repeat(entry, 2), np.repeat(entry, 2) + HOUR_NS, np.repeat(r - 0.6, 2))
    found = tt.gate(twice)
    assert found.document["positions"]["equal"] == len(entry)
    assert claims(found) == {"losing"}
    whole = found.clusters.iloc[0]
    assert whole["mean_otherwise"] == pytest.approx(whole["mean"])
    assert "are a trade" not in whole["reason"]


DAYS = 300


def of_days(equal, others, **columns):
    """Each day rows of (how many, R) that are equal, and as many as said that exit at different times."""
    (alike, r_alike), (apart, r_apart) = equal, others
    days = np.repeat(
        np.datetime64("2023-01-02", "ns").astype(np.int64) + 24 * HOUR_NS * np.arange(DAYS), alike + apart
    )
    exits = days + HOUR_NS * np.tile([9] * alike + [*range(1, apart + 1)], DAYS)
    return frame(days, exits, np.tile([r_alike] * alike + [r_apart] * apart, DAYS), **columns)


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["gaining", "losing"])
@pytest.mark.parametrize(
    ("equal", "others", "columns"),
    [
        ((5, -1.0), (6, 0.85), {"symbol": "EURUSD", "direction": "long"}),  # +0.01R by row, +0.59R merged
        ((5, -1.0), (6, 0.85), {}),
        ((5, 1.0), (1, -0.99), {}),  # +0.67R by row, +0.005R without equal rows
        ((5, 1.0), (1, -0.99), {"symbol": "EURUSD", "direction": "long"}),
    ],
)
def test_gate_of_two_readings_claims_only_what_both_of_them_prove(sign, equal, others, columns):
    table = of_days((equal[0], sign * equal[1]), (others[0], sign * others[1]), **columns)
    found = tt.gate(table, looks="monthly")
    assert (claims(found), found.family["selected"]) == (set(), [])
    assert found.clusters["first_significant_at"].isna().all()
    for _, item in found.clusters.iterrows():
        own = item["e_losing"] if sign < 0 else item["e_gaining"]
        assert item["leaning"] == ("losing" if sign < 0 else "gaining")
        assert item["e_value"] < 10.0
        assert (own > 1e3) == ("the smaller one counts" in item["reason"]) == (item["e_value"] < own)
        assert item["mean"] * item["mean_otherwise"] > 0.0


@pytest.mark.parametrize(
    ("equal", "others"),
    [((3, -1.0), (2, 1.0)), ((5, -1.0), (1, 0.99))],  # without equal rows +0.33R, and -0.005R
)
def test_gate_raises_no_decay_alarm_that_only_one_reading_of_the_rows_raises(equal, others):
    table = of_days(equal, others)
    payload = tt.gate(table).clusters.iloc[0]["decay"]
    assert (payload["alarmed_at"], payload["highest"] < payload["limit"]) == (None, True)
    by_row = tt.gate(table.assign(position_id=np.arange(len(table)))).clusters.iloc[0]["decay"]
    assert by_row["alarmed_at"] is not None
    both = tt.gate(of_days((3, -1.0), (2, 0.3))).clusters.iloc[0]["decay"]
    assert both["alarmed_at"] is not None


def scaled_out(seed):
    """Positions of three rows: losers leave at once at -1R, winners at three times; -0.25R a row."""
    draw = np.random.default_rng(seed)
    _, entry = spread_over_week(WEEKS, 5)
    won = np.repeat(draw.random(len(entry)) < 0.25, 3)
    part = np.tile(np.arange(3), len(entry))
    entries = np.repeat(entry, 3)
    exits = entries + HOUR_NS * (1 + np.where(won, part, 0))
    r = np.where(won, 2.0 + 0.1 * draw.standard_normal(len(won)), -1.0)
    return frame(entries, exits, r, symbol="EURUSD", direction="long")


def test_gate_of_winners_scaled_out_over_several_rows_proves_no_gain_by_symbol_and_direction():
    for seed in range(5):
        table = scaled_out(seed)
        found = tt.gate(table)
        assert claims(found) == set(), seed
        held = found.document["positions"]
        assert held["by"] == "symbol, direction, entry and exit"
        assert held["mean"] > 0.3 > -0.1 > held["mean_otherwise"] == pytest.approx(table["r"].mean())
        assert "no claim stands" in found.clusters.iloc[0]["reason"]
        named = table.assign(position_id=np.repeat(np.arange(len(table) // 3), 3))
        assert claims(tt.gate(named)) <= {"losing"}


def equal_fills(cells: list[CellTrades], regimes: int):
    """The copies of a world as a broker lists them: fills of one bet in one bar, equal in every column."""
    return pd.concat(
        frame(
            cell.entry_ns // HOUR_NS * HOUR_NS,
            cell.exit_ns // HOUR_NS * HOUR_NS,
            cell.r,
            f"playbook_{index // regimes}",
            REGIMES[index % regimes],
        )
        for index, cell in enumerate(cells)
    )


@pytest.mark.parametrize(
    ("kind", "given"),
    [("copies", {"rows_low": 8, "rows_high": 8}), ("copies", {"target": 4.0}), ("symbols", {"target": 3.0})],
)
def test_gate_of_a_null_world_of_copies_in_tables_flags_at_most_one_year_in_twenty(kind, given):
    world = world_of(kind, given)
    flagged = 0
    for run in range(40):
        cells = world.draw(np.random.Generator(np.random.PCG64([41, run])))
        found = tt.gate(equal_fills(cells, world.regimes), looks="monthly")
        flagged += bool(found.clusters["first_significant_at"].notna().any())
        assert found.document["positions"]["equal"] > 0
    assert flagged <= 2
