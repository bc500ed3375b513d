"""Results that a store keeps: commands read them, `tt.load` does, and what cannot be played again says so."""

import asyncio
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import thinktwice as tt
from tests.services.store.stores import seal_again
from tests.test_library import DONCHIAN, END, START, frame_of
from tests.worker.shared_runs import embedded_bars
from worker.cli import app

FRAMES = ("trades", "equity", "episodes", "findings", "skips", "reports", "policies")


@pytest.fixture(scope="module")
def frame():
    bars = embedded_bars(START, END)
    return pd.concat([frame_of(bars, name).assign(symbol=name) for name in ("AAPL", "IBM")])


@pytest.fixture(scope="module")
def made(frame):
    """Bars of a DataFrame and a playbook as an object: no file has either."""
    return tt.backtest(frame, playbooks=tt.Playbook("donchian", long=DONCHIAN))


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'x.sqlite'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request):
    """The address of an empty store of either kind."""
    return request.getfixturevalue("url" if request.param == "sqlite" else "postgres_url")


def read_text(url, *words, code=0):
    done = CliRunner().invoke(app, [*words, "--db", url])
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def test_saved_result_is_a_run_that_every_command_reads(made, store, tmp_path):
    assert made.save(store) == "r0001"
    assert made.head_hash[:8] in read_text(store, "runs")
    fill = made.trades["fill_id"].iloc[0]
    assert fill[:12] in read_text(store, "why", fill, "--run", "r0001")
    text = read_text(store, "verify", "r0001")
    assert f"replay same: {len(made.rows):,} of {len(made.rows):,} rows equal" in text
    assert "stored holds: document, bars and orders are as they were written" in text
    assert "page of run r0001" in read_text(store, "page", "r0001", "--html", str(tmp_path / "run.html"))
    read_text(store, "journal", "r0001")
    read_text(store, "reports", "r0001")


def test_loaded_run_has_everything_of_its_result(made, store, tmp_path):
    made.save(store)
    loaded = tt.load("latest", db=store)
    assert isinstance(loaded, tt.BacktestResult)
    assert (loaded.run_id, loaded.head_hash) == ("r0001", made.head_hash)
    assert loaded.summary == made.summary
    for name in FRAMES:
        pd.testing.assert_frame_equal(getattr(loaded, name), getattr(made, name))
    fill = made.trades["fill_id"].iloc[0]
    assert str(loaded.why(fill)) == str(made.why(fill))
    assert loaded.verify()
    assert loaded.save() == "r0001"
    read_text(store, "page", "r0001", "--html", str(tmp_path / "command.html"))
    page = loaded.to_html(tmp_path / "library.html").read_bytes()
    assert page == (tmp_path / "command.html").read_bytes()
    assert len(loaded.plot("IBM").children) > 2


def test_run_of_the_command_is_loaded_and_is_the_run_of_the_library(url):
    read_text(url, "backtest", "--from", START, "--to", END)
    loaded, here = tt.load("r0001", db=url), tt.backtest(start=START, end=END)
    assert loaded.head_hash == here.head_hash
    pd.testing.assert_frame_equal(loaded.equity, here.equity)
    assert loaded.verify()


def test_result_that_is_saved_twice_is_one_run(made, store, frame):
    assert made.save(store) == made.save(store) == "r0001"
    again = tt.backtest(frame, playbooks=tt.Playbook("donchian", long=DONCHIAN))
    assert again.save(store) == "r0001"
    assert tt.backtest(start=START, end=END).save(store) == "r0002"


def test_run_of_own_parts_is_read_and_says_why_it_is_not_played(frame, url, tmp_path):
    def never(request):
        return tt.finding("never", "no") if request.snapshot.symbol == "IBM" else None

    own = tt.backtest(frame, critics=never)
    own.save(url)
    reason = (
        "run r0001 asked parts of a Python script that no store keeps \\(critic never\\): run that script"
    )
    text = read_text(url, "verify", "r0001", code=1)
    assert "chain holds" in text
    assert "replay cannot be replayed: run r0001 asked parts" in text
    assert "DIFFERS" not in text
    loaded = tt.load(db=url)
    pd.testing.assert_frame_equal(loaded.trades, own.trades)
    assert loaded.summary == own.summary
    with pytest.raises(tt.ConfigError, match=f"its chain holds; {reason}"):
        loaded.verify()
    with pytest.raises(tt.ConfigError, match=f"^{reason}"):
        _ = loaded.equity
    refused = CliRunner().invoke(app, ["page", "--html", str(tmp_path / "x.html"), "--db", url])
    assert refused.exit_code == 2
    assert "critic never" in refused.output


class Terse:
    """Answers every prompt with words that no part can read."""

    name = "terse-1"

    def complete(self, *, system, prompt, max_tokens, deadline_ms):
        return "No."


@pytest.mark.usefixtures("over_the_cap")
@pytest.mark.filterwarnings("ignore:playbook .* is above the cap:UserWarning")
@pytest.mark.filterwarnings("ignore:0 of .* calls of a model failed:UserWarning")
def test_run_of_a_model_of_the_callers_own_is_played_from_its_replies(store, tmp_path, frame):
    frame.rename_axis("time").to_csv(tmp_path / "bars.csv")
    request = tt.backtest(tmp_path / "bars.csv", model=Terse(), reflection="full")
    request.save(store)
    loaded = tt.load(db=store)
    assert loaded.document["model"]["calls"] == request.document["model"]["calls"] > 0
    assert loaded.verify()
    (tmp_path / "bars.csv").rename(tmp_path / "moved.csv")
    assert "replay same" in read_text(store, "verify", "r0001", "--data", str(tmp_path / "moved.csv"))


@pytest.mark.parametrize("way", ["disk", "last step"])
def test_store_that_cannot_be_written_holds_nothing_of_the_run(made, url, tmp_path, way, monkeypatch):
    tt.backtest(start=START, end="2003-06-30").save(url)
    file = tmp_path / "x.sqlite"
    if way == "disk":
        pages = sqlite3.connect(file).execute("PRAGMA page_count").fetchone()[0]
        opened = sqlite3.Connection.__init__

        def small(self, *args, **named):
            opened(self, *args, **named)
            self.execute(f"PRAGMA max_page_count = {pages + 3}")

        monkeypatch.setattr("services.store.engine.StoreConnection.__init__", small)
        with pytest.raises(tt.ThinktwiceError, match="full"):
            made.save(url)
        monkeypatch.undo()
    else:
        monkeypatch.setattr("services.store.run_repository.close_run", refused)
        with pytest.raises(tt.ThinktwiceError, match="not now"):
            made.save(url)
        monkeypatch.undo()
    assert tt.load(db=url).run_id == "r0001"
    with sqlite3.connect(file) as connection:
        for table in ("runs", "journal", "paper_bars"):
            query = f"SELECT COUNT(*) FROM {table} WHERE run_id != 'r0001'"
            assert connection.execute(query).fetchone() == (0,)


async def refused(*args, **named):
    raise tt.ThinktwiceError("not now")


def test_run_that_was_not_over_or_is_not_there_is_named(url):
    with pytest.raises(tt.ThinktwiceError, match="no such|there is no|nothing"):
        tt.load(db=url)
    read_text(url, "backtest", "--from", START, "--to", END)
    with pytest.raises(tt.ConfigError, match="no run 'r0009'"):
        tt.load("r0009", db=url)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE runs SET status = 'running', document = NULL")
    seal_again(Path(url.removeprefix("sqlite:///")))
    with pytest.raises(
        tt.ConfigError, match="run r0001 is under way, or was killed: load it when it is over"
    ):
        tt.load(db=url)


def test_result_is_saved_and_loaded_inside_an_event_loop(made, store):
    async def cell():
        made.save(store)
        return tt.load(db=store).equity

    pd.testing.assert_frame_equal(asyncio.run(cell()), made.equity)


def test_changed_bar_of_a_saved_run_is_noticed(made, url):
    made.save(url)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE paper_bars SET bars = replace(bars, '.', '.1') WHERE number = 5")
    assert not tt.load(db=url).verify()
    assert "CHANGED: row 5 of its bars is damaged" in read_text(url, "verify", "r0001", code=1)
