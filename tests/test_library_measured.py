"""A playbook may leave its expectation to the bars: measured at slots by its rules alone, else a prior."""

import json
from typing import Any

import pandas as pd
import pytest

import thinktwice as tt
from services.playbooks.loader import read_playbook
from tests.test_library import frame_of
from tests.worker.shared_runs import embedded_bars

RULES = {"setup": "close > highest_20", "stop": "lowest_10", "exit": "close < lowest_10"}
YEARS: dict[str, Any] = {"start": "2003-01-01", "end": "2006-12-31"}
FILE = """id = "donchian"
expectation = "measured"
[rules.long]
setup = "close > highest_20"
stop = "lowest_10"
exit = "close < lowest_10"
"""
DONCHIAN = tt.Playbook("donchian", long=RULES, expectation="measured")


def rows_of(result: tt.BacktestResult, kind: str) -> list[tuple[int, dict[str, Any]]]:
    return [(row.known_at, json.loads(row.payload)) for row in result.rows if row.kind == kind]


@pytest.fixture(scope="module")
def run() -> tt.BacktestResult:
    return tt.backtest(playbooks=DONCHIAN, **YEARS)


def test_expectation_is_a_prior_until_twenty_trades_and_then_measured_at_slots(run):
    measured = rows_of(run, "expectation_measured")
    first_at, first = measured[0]
    assert first["expectation"]["trades"] >= 20
    assert all(fields["expectation"]["known_at"] == at for at, fields in measured)
    slots = {at for kind in ("slow_skip", "high_level_request") for at, _ in rows_of(run, kind)}
    assert {at for at, _ in measured} <= slots  # never inside an evaluation of the policy loop
    figures = [{**fields["expectation"], "known_at": None} for _, fields in measured]
    assert all(before != after for before, after in zip(figures, figures[1:], strict=False))
    in_force: dict[str, Any] = {}
    for row in run.rows:
        payload = json.loads(row.payload)
        if row.kind == "expectation_measured":
            in_force = payload["expectation"]
        elif row.kind == "policy_snapshot":
            (seen,) = payload["snapshot"]["expectations"]
            assert seen["prior"]["source"] == ("measured" if in_force else "prior")
            assert (row.known_at > first_at) == bool(in_force) or row.known_at == first_at
            if in_force:
                assert seen["prior"] == in_force
    assert run.verify()


def test_measured_expectation_is_what_the_rules_alone_have_made(run):
    alone = tt.backtest(playbooks=tt.Playbook("donchian", long=RULES), reflection="off", **YEARS)
    (part,) = alone.document["signals"]["playbooks"]
    _, last = rows_of(run, "expectation_measured")[-1]
    assert 20 < last["expectation"]["trades"] <= part["rules_alone_trades"]
    assert last["expectation"]["mfe_p50_r"] > 0 > last["expectation"]["winner_mae_p80_r"]
    assert 0 < last["expectation"]["hit_rate"] < 1


@pytest.mark.filterwarnings("ignore:.*the price steps by:UserWarning")
def test_measured_expectation_knows_nothing_of_bars_after_it(run):
    bars = embedded_bars(*YEARS.values())
    frame = pd.concat([frame_of(bars, symbol).assign(symbol=symbol) for symbol in bars.symbols])
    frame.loc[frame.index >= "2006-01-01", ["open", "high", "low", "close"]] *= 3.0
    changed = tt.backtest(frame, playbooks=DONCHIAN)
    cut = pd.Timestamp("2006-01-01", tz="UTC").value
    known = [
        [shown for at, shown in rows_of(done, "expectation_measured") if at <= cut] for done in (run, changed)
    ]
    assert known[0] == known[1] != []
    ends = [rows_of(done, "expectation_measured")[-1][1] for done in (run, changed)]
    assert ends[0] != ends[1]


def test_playbook_file_that_says_measured_is_the_same_as_one_in_python(tmp_path):
    path = tmp_path / "donchian.toml"
    path.write_text(FILE, "utf-8")
    assert read_playbook(path).content_hash == DONCHIAN.content_hash
    assert DONCHIAN.expectation.source == "prior"
    path.write_text(FILE.replace('"measured"', '"known"'), "utf-8")
    with pytest.raises(tt.ConfigError, match="expectation"):
        read_playbook(path)


@pytest.mark.parametrize("expectation", [None, "measured"])
def test_playbook_without_a_target_is_never_refused_for_its_reach(expectation):
    rules = {"setup": "close > sma_50", "stop": "close - 2 * atr_14", "exit": "close < sma_50"}  # often true
    book = tt.Playbook("above_average", long=rules, expectation=expectation)
    result = tt.backtest(playbooks=book, start="2003-01-01", end="2005-12-31")
    assert result.summary["trades"] > 30
    loop = result.document["policy_loop"]
    assert "target_beyond_mfe" not in loop["finding_codes"] | loop["passed_over"]
    assert result.trades["entry_label"].max().year == 2005
