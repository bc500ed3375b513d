"""`ablate`, `check` and `gate` of the library say what the commands say."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

import thinktwice as tt
from worker.cli import app

START, END = "2003-01-01", "2003-12-31"


def told_by_command(*words):
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code in (0, 3, 4), done.output
    return json.loads(done.stdout)


def without(document, *names):
    """A document without these keys, wherever they stand."""
    if isinstance(document, dict):
        return {key: without(value, *names) for key, value in document.items() if key not in names}
    return [without(item, *names) for item in document] if isinstance(document, list) else document


def test_ablation_is_that_of_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = (
        "ablate",
        "--from",
        START,
        "--to",
        END,
        "--seeds",
        "2",
        "--db",
        f"sqlite:///{tmp_path / 'a.sqlite'}",
    )
    found = tt.ablate(start=START, end=END, seeds=2)
    assert found.document == told_by_command(*words)
    assert str(found).splitlines()[0] == "# Worth of each tier"
    assert list(found.arms.index) == [arm["arm"] for arm in found.document["arms"]]
    assert found.arms["trades"].dropna().gt(0).any()
    assert set(found.tiers["answer"].dropna()) == {"unknown"}
    assert len(found.shadow_ledger) == len(found.document["shadow_ledger"])


def test_ablation_with_a_store_keeps_its_runs(tmp_path):
    url = f"sqlite:///{tmp_path / 'kept.sqlite'}"
    found = tt.ablate(start=START, end="2003-06-30", seeds=0, db=url)
    runs = told_by_command("runs", "--db", url)
    assert {run["run_id"] for run in runs} == set(found.arms["run_id"].dropna())
    with pytest.raises(tt.ConfigError, match="seeds is -1: give 0 or more"):
        tt.ablate(seeds=-1)


@pytest.fixture(scope="module")
def plan():
    return json.loads(CliRunner().invoke(app, ["check", "--example"]).stdout)


def test_check_is_that_of_the_command(plan, tmp_path):
    plan = plan | {"proposal": plan["proposal"] | {"conviction": 1.0}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    reply = without(told_by_command("check", str(tmp_path / "plan.json")), "latency_ms")
    for given in (plan, tmp_path / "plan.json", tt.PolicyLevelReflectionRequest.model_validate(plan)):
        found = tt.check(given)
        assert without(found.document, "latency_ms") == reply
    printed = CliRunner().invoke(app, ["check", str(tmp_path / "plan.json")]).stdout.splitlines()
    assert repr(found).splitlines()[:-1] == printed[:-1]  # the last line has a time in it
    assert found.status == "revise"
    assert "over_confident" in set(found.findings["code"])


def test_check_asks_own_critics_and_an_own_model(plan):
    class Prose:
        def complete(self, **request):
            return "no"

    assert tt.check(plan).status == "pass"
    blocked = tt.check(plan, critics=lambda request: tt.finding("never", "not today"))
    assert (blocked.status, list(blocked.findings["check"])) == ("block", ["memory", "own"])
    noted = plan | {"invariants": plan["invariants"] | {"max_risk_fraction": 1e-4}}  # a finding of weight
    question = tt.check(noted, reflection="full", model=Prose())
    assert question.document["model"]["unusable"] == 1
    with pytest.raises(tt.DataError, match="request: proposal.conviction"):
        tt.check(plan | {"proposal": plan["proposal"] | {"conviction": "much"}})


def test_gate_is_that_of_the_command_on_the_trades_of_a_result(tmp_path):
    result = tt.backtest(start="2003-01-01", end="2006-12-31")
    result.trades.to_csv(tmp_path / "trades.csv", index=False)
    found = tt.gate(result.trades, looks="monthly")
    assert found.document == told_by_command("gate", str(tmp_path / "trades.csv"), "--looks", "monthly")
    assert found.document == tt.gate(tmp_path / "trades.csv", looks="monthly").document
    assert (
        f"{found}\n"
        == CliRunner().invoke(app, ["gate", str(tmp_path / "trades.csv"), "--looks", "monthly"]).stdout
    )
    assert found.family["size"] == found.document["family"]["size"] > 0
    assert set(result.trades["playbook_id"]) <= set(found.clusters["playbook"])
    with pytest.raises(tt.ConfigError, match=r"looks 'yearly' is not daily, weekly, monthly"):
        tt.gate(result.trades, looks="yearly")  # type: ignore[arg-type]  # what a script may hand over
    with pytest.raises(tt.DataError, match="'r'"):
        tt.gate(result.trades.drop(columns="r"))
    with pytest.raises(tt.DataError, match="has no rows"):
        tt.gate(pd.DataFrame())
