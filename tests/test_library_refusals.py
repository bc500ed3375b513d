"""Values that the library cannot use: each refusal names the caller's own argument and the next step."""

import pandas as pd
import pytest

import thinktwice as tt


@pytest.fixture(scope="module")
def result():
    return tt.backtest(start="2003-01-01", end="2003-04-30", symbols=("AAPL", "IBM"))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda done: tt.backtest(strategist="model"), r"from argument strategist\)$"),
        (lambda done: tt.backtest(judge="model"), r"from argument judge\)$"),
        (lambda done: tt.backtest(symbols=[]), r"^symbols \[\]: name at least one, or leave it out"),
        (lambda done: tt.simulate(symbols=5), "^symbols 5: name at least one, or leave it out"),  # type: ignore[arg-type]
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
def test_value_of_a_wrong_kind_is_refused_by_its_argument_with_the_next_step(call, said, result):
    with pytest.raises(tt.ConfigError, match=said):
        call(result)


def test_bars_with_a_label_off_the_phase_of_its_neighbours_warn_and_are_read():
    hours = pd.date_range("2024-01-01", periods=40, freq="h", tz="UTC")
    times = pd.DatetimeIndex([*hours, pd.Timestamp("2024-01-03T12:10:00Z")])
    frame = pd.DataFrame({"open": 1.0, "high": 2.0, "low": 1.0, "close": 1.5, "volume": 1.0}, index=times)
    with pytest.warns(
        UserWarning, match="1 label off the phase of the neighbours.* BARS at 2024-01-03T12:10"
    ):
        tt.simulate(frame, "close > 1000")
