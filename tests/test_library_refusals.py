"""Values that the library cannot use: each refusal names the caller's own argument and the next step."""

import traceback
from pathlib import Path

import pandas as pd
import pytest

import thinktwice as tt
from tests.each_case import check_each
from tests.test_library import frame_of
from tests.worker.shared_runs import embedded_bars


@pytest.fixture(scope="module")
def result():
    return tt.backtest(start="2003-01-01", end="2003-04-30", symbols=("AAPL", "IBM"))


@pytest.mark.parametrize(
    ("call", "quoted"),
    [
        (lambda done: tt.backtest(strategist="model"), r"from argument strategist\)$"),
        (lambda done: tt.backtest(judge="model"), r"from argument judge\)$"),
        (lambda done: tt.backtest(symbols=[]), r"^symbols \[\]: name at least one, or leave it out"),
        (lambda done: tt.simulate(symbols=5), "^symbols 5: name at least one, or leave it out"),
        (lambda done: tt.backtest(settings=5), "^settings 5: give what tt.settings returns, or the path"),  # type: ignore[arg-type]
        (lambda done: tt.backtest(critics=5), "^critic 5 cannot be called: give a function"),  # type: ignore[arg-type]
        (lambda done: tt.ablate(seeds="x"), "^seeds is 'x': give 0 or more, a whole number"),  # type: ignore[arg-type]
        (lambda done: tt.ablate(seeds=1.5), "^seeds is 1.5: give 0 or more, a whole number"),  # type: ignore[arg-type]
        (lambda done: tt.ablate(db=5), "^db 5: give the URL of a store, such as 'sqlite:///"),  # type: ignore[arg-type]
        (lambda done: tt.load(1), "^run 1: give its id, a unique start of one, or 'latest'"),  # type: ignore[arg-type]
        (lambda done: tt.load("latest", db=b"x"), "^db b'x': give the URL of a store"),  # type: ignore[arg-type]
        (lambda done: tt.load("latest", db="x"), "^db 'x' has no scheme: write sqlite:///PATH"),
        (lambda done: done.save(5), "^db 5: give the URL of a store, such as 'sqlite:///"),
        (lambda done: done.plot(5), "^symbol 5: the run had AAPL"),
        (lambda done: done.to_html(5), "^path 5: name the file to write, such as 'run.html'"),
        (lambda done: done.to_html(None), "^path None: name the file to write, such as 'run.html'"),
    ],
)
def test_value_of_a_wrong_kind_is_refused_by_its_argument_with_the_next_step(call, quoted, result):
    with pytest.raises(tt.ConfigError, match=quoted):
        call(result)


def test_bars_with_a_label_off_the_phase_of_its_neighbours_warn_and_are_read():
    hours = pd.date_range("2024-01-01", periods=40, freq="h", tz="UTC")
    times = pd.DatetimeIndex([*hours, pd.Timestamp("2024-01-03T12:10:00Z")])
    frame = pd.DataFrame({"open": 1.0, "high": 2.0, "low": 1.0, "close": 1.5, "volume": 1.0}, index=times)
    with pytest.warns(
        UserWarning, match="1 label off the phase of the neighbours.* BARS at 2024-01-03T12:10"
    ):
        tt.simulate(frame, "close > 1000")


def a_frame():
    return frame_of(embedded_bars("2003-01-01", "2003-04-30"), "AAPL")


REFUSED = {
    "column": (lambda: tt.backtest(pd.DataFrame({"close": [1.0]})), tt.DataError),
    "cell": (lambda: tt.backtest(a_frame().assign(close="much")), tt.DataError),
    "file": (lambda: tt.backtest("nowhere.csv"), tt.DataError),
    "setting": (lambda: tt.backtest(account__cahs=5), tt.ConfigError),
    "value": (lambda: tt.backtest(account__cash=-5), tt.ConfigError),
    "range": (lambda: tt.backtest(start="2050-01-01"), tt.DataError),
    "strategist": (lambda: tt.backtest(strategist="nobody"), tt.ConfigError),
    "settings": (lambda: tt.settings(account__cahs=5), tt.ConfigError),
    "playbook": (lambda: tt.Playbook("Not A Name", long={}), tt.ConfigError),
    "finding": (lambda: tt.finding("NOT A CODE", "no"), tt.ConfigError),
    "rule": (lambda: tt.simulate(entry="crosses_above(sma_10, moon)"), tt.RuleError),
    "bracket": (lambda: tt.simulate(stop_pct=-1.0), tt.ConfigError),
    "store": (lambda: tt.load(db="mysql://x"), tt.ConfigError),
    "run": (lambda: tt.load(db="sqlite:///nowhere.db"), tt.ThinktwiceError),
    "request": (lambda: tt.check({"no": "request"}), tt.DataError),
    "trades": (lambda: tt.gate(pd.DataFrame({"r": [1.0]})), tt.DataError),
    "arms": (lambda: tt.ablate(seeds=-1), tt.ConfigError),
}


@check_each("name", REFUSED)
def test_library_error_shows_the_line_of_the_script_and_one_frame_of_ours(name):
    call, kind = REFUSED[name]
    with pytest.raises(kind) as caught:
        call()
    own = [frame for frame in traceback.extract_tb(caught.value.__traceback__) if frame.filename != __file__]
    assert [Path(frame.filename).parent.name for frame in own] == ["thinktwice"]
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count("Traceback") == 1
    assert shown.rstrip().endswith(str(caught.value))


@check_each("name", [name for name in REFUSED if REFUSED[name][1] is not tt.ThinktwiceError])
def test_library_error_of_bad_input_is_caught_as_a_value_error(name):
    with pytest.raises(ValueError, match=r"\w"):
        REFUSED[name][0]()


def test_error_that_the_script_raised_keeps_the_frames_of_the_script():
    def my_progress(done: int, total: int) -> None:
        raise tt.DataError("mine")

    with pytest.raises(tt.DataError, match="mine") as caught:
        tt.backtest(a_frame(), progress=my_progress)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "my_progress"


def test_frames_that_an_error_does_not_show_are_in_the_log(caplog):
    with caplog.at_level("DEBUG", "thinktwice.boundary"), pytest.raises(tt.DataError):
        tt.backtest("nowhere.csv")
    assert "in bars_of" in caplog.text
