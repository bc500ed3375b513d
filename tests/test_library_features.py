"""Features of other symbols and of further columns in whole runs: played again, refused by name."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import thinktwice as tt
from tests.test_library import DONCHIAN, END, START, frame_of
from tests.worker.shared_runs import embedded_bars
from trading_core.features import own, resolve
from trading_core.rules import parse
from worker.cli import app

FILTERED = DONCHIAN | {
    "setup": f"{DONCHIAN['setup']} and x.funding > 0 and close@IBM > sma_5_1w@IBM and rank_cs(roc_20) > 0.5"
}


def frame_with_funding() -> pd.DataFrame:
    bars = embedded_bars(START, END)
    parts = [frame_of(bars, name).assign(symbol=name) for name in ("AAPL", "IBM")]
    found: pd.DataFrame = pd.concat(
        [part.assign(funding=np.sin(np.arange(len(part)) / 50.0)) for part in parts]
    )
    return found


@pytest.fixture(scope="module")
def frame():
    return frame_with_funding()


@pytest.fixture(scope="module")
def made(frame):
    return tt.backtest(frame, playbooks=tt.Playbook("filtered", long=FILTERED))


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'x.sqlite'}"


def read_text(url, *words, code=0):
    done = CliRunner().invoke(app, [*words, "--db", url])
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def test_rules_on_others_and_further_columns_filter_the_trades(frame, made):
    plain = tt.backtest(frame, playbooks=tt.Playbook("filtered", long=DONCHIAN))
    assert 0 < made.summary["trades"] < plain.summary["trades"]
    assert made.verify()


def test_snapshot_holds_what_the_rules_read_as_of_its_bar(frame, made):
    snapshots = [row.payload for row in made.rows if row.kind == "policy_snapshot"]
    snapshot = json.loads(snapshots[-1])["snapshot"]
    label = pd.Timestamp(snapshot["bar_label"], tz="UTC")
    payload = snapshot["features"]
    own = frame[frame["symbol"] == snapshot["symbol"]]
    ibm = frame[frame["symbol"] == "IBM"]
    assert payload["x.funding"] == own["funding"][label]
    assert payload["close@IBM"] == ibm["close"][label]
    assert payload["rank_cs(roc_20)"] in (0.5, 0.75, 1.0)


def test_run_of_a_frame_with_a_further_column_is_kept_and_played_again(made, url):
    made.save(url)
    loaded = tt.load(db=url)
    assert loaded.verify()
    assert "replay same" in read_text(url, "verify", "r0001")


@pytest.mark.filterwarnings("ignore:.*of further columns:UserWarning")
def test_run_of_a_file_with_another_column_than_it_had_is_not_played(frame, url, tmp_path):
    path = tmp_path / "bars.csv"
    frame.rename_axis("time").to_csv(path)
    made = tt.backtest(path, playbooks=tt.Playbook("filtered", long=FILTERED))
    made.save(url)
    assert "replay same" in read_text(url, "verify", "r0001")
    frame.assign(funding=frame["funding"] + 0.1).rename_axis("time").to_csv(path)
    assert "further columns are not those of the run (funding)" in read_text(url, "verify", "r0001", code=1)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (
            "close@SPY > 1",
            "playbook 'x', rules.long.setup: 'close@SPY': the bars hold no symbol 'SPY', only AAPL",
        ),
        ("x.fundin > 1", "playbook 'x', rules.long.setup: 'x.fundin': the bars have no column .*x.funding"),
        ("sma_5_15m > 1", "playbook 'x', rules.long.setup: 'sma_5_15m': no '15m' bars can be made"),
    ],
)
def test_rule_that_reads_what_the_bars_do_not_have_is_refused_at_the_start(frame, rule, words):
    with pytest.raises(tt.ConfigError, match=words):
        tt.backtest(frame, playbooks=tt.Playbook("x", long=DONCHIAN | {"setup": rule}))


def swing(open, high, low, close, volume):
    found = np.full(close.size, np.nan)
    found[20:] = close[20:] / close[:-20] - 1.0
    return found


@pytest.fixture
def own_features(monkeypatch):
    monkeypatch.setattr(own, "_defined", {})
    yield
    resolve.cache_clear()
    parse.cache_clear()


def test_run_of_an_own_feature_is_played_where_its_source_is_the_same_and_nowhere_else(
    frame, url, own_features
):
    tt.feature("swing", swing, 20)
    book = tt.Playbook("swings", long=DONCHIAN | {"setup": f"{DONCHIAN['setup']} and swing > 0.02"})
    made = tt.backtest(frame, playbooks=book)
    assert made.summary["trades"] > 0
    assert made.verify()
    assert made.save(url) == "r0001"
    loaded = tt.load(db=url)
    assert loaded.verify()

    def other(open, high, low, close, volume):
        return swing(open, high, low, close, volume) + 0.0

    tt.feature("swing", other, 20)
    with pytest.raises(tt.ConfigError, match=r"reads features that were defined otherwise since \(swing\)"):
        made.verify()
    with pytest.raises(tt.ConfigError, match=r"r0001 reads features of a Python script .* \(swing\)"):
        loaded.verify()
    assert tt.backtest(frame, playbooks=book).save(url) == "r0002"
    tt.feature("swing", swing, 20)
    assert loaded.verify()
    own._defined.clear()
    resolve.cache_clear()
    text = read_text(url, "verify", "r0001", code=1)
    assert "replay cannot be replayed: run r0001 reads features of a Python script" in text
    assert "chain holds" in text


def test_word_of_the_rule_language_is_no_name_of_a_feature(own_features):
    for name in ("and", "prev", "rank_cs", "true"):
        with pytest.raises(tt.ConfigError, match="is a word of the rule language"):
            tt.feature(name, swing, 20)


def test_simulate_reads_an_own_feature_and_refuses_one_that_looks_ahead(frame, own_features):
    tt.feature("swing", swing, 20)
    assert len(tt.simulate(frame, "swing > 0.05").trades) > 0
    tt.feature("swing", lambda open, high, low, close, volume: close - close.mean(), 20)
    with pytest.raises(tt.RuleError, match="feature 'swing' looks ahead"):
        tt.simulate(frame, "swing > 0.05")
