from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from schemas.errors import DataError
from schemas.settings import DataSettings
from tests.worker.shared_runs import embedded_bars
from trading_core.bars import BarSeries
from trading_core.resampling import resample
from worker.feeds.doubts import Doubt, check_doubts, list_doubts

N, AT = 120, 60


def walk(freq: str = "D") -> pd.DataFrame:
    close = 100.0 + np.random.default_rng(3).uniform(-1.0, 1.0, N).cumsum()
    opens = np.concatenate([[100.0], close[:-1]])
    high, low = np.maximum(opens, close) + 0.5, np.minimum(opens, close) - 0.5
    index = pd.date_range("2024-01-01", periods=N, freq=freq, tz="UTC")
    return pd.DataFrame({"open": opens, "high": high, "low": low, "close": close, "volume": 5.0}, index=index)


PRICES = ["open", "high", "low", "close"]


def stepped(factor: float, later: int = N) -> Callable[[pd.DataFrame], None]:
    def step(frame: pd.DataFrame) -> None:
        frame.iloc[AT:later, :4] *= factor

    return step


def flattened(count: int) -> Callable[[pd.DataFrame], None]:
    def flatten(frame: pd.DataFrame) -> None:
        frame.iloc[AT : AT + count, :4] = frame["close"].iloc[AT - 1]

    return flatten


def doubts(spoil: Callable[[pd.DataFrame], None], freq: str = "D", plausibility: str = "live") -> list[Doubt]:
    frame = walk(freq)
    spoil(frame)
    return list_doubts(
        BarSeries.from_frame({"A": frame}), DataSettings.model_validate({"plausibility": plausibility})
    )


@pytest.mark.parametrize("ratio", [1.5, 2.0, 4.0, 10.0, 1 / 3, 1 / 20])
def test_step_by_a_ratio_of_shares_that_stays_is_a_split_and_no_tick(ratio):
    [found] = doubts(stepped(1.0 / ratio))
    assert (found.kind, found.label) == ("split", walk().index[AT].value)
    assert found.ratio == pytest.approx(ratio)


@pytest.mark.parametrize("factor", [10.0, 0.1])
def test_bar_of_ten_times_the_price_is_a_tick_and_no_split(factor):
    [found] = doubts(stepped(factor, AT + 1))
    assert (found.kind, found.bars, found.label) == ("tick", 1, walk().index[AT].value)


@pytest.mark.parametrize("factor", [10.0, 0.1, 3.7])
def test_two_bad_bars_in_a_row_are_ticks_and_no_splits(factor):
    [found] = doubts(stepped(factor, AT + 2))
    assert (found.kind, found.bars, found.label) == ("tick", 2, walk().index[AT].value)
    assert "data.plausibility = 'always'" in found.text


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("factor", "kind", "plausibility"),
    [
        (0.5, "tick", "live"),
        (1.5, "tick", "live"),
        (0.67, "stretch", "live"),
        (1.4, "stretch", "live"),
        (0.67, "stretch", "always"),
        (1.4, "stretch", "always"),
    ],
)
def test_few_bad_bars_are_one_doubt_inside_the_band_of_the_guard_and_outside(
    count, factor, kind, plausibility
):
    [found] = doubts(stepped(factor, AT + count), plausibility=plausibility)
    assert (found.kind, found.bars, found.label) == (kind, count, walk().index[AT].value)
    assert found.ratio == (1.0 if kind == "tick" else pytest.approx(factor))


@pytest.mark.parametrize("move", [0.002, 0.005, 0.01, 0.02, 0.04])
def test_clean_series_have_no_doubt_whatever_their_usual_move(move):
    generator = np.random.default_rng(11)
    close = 100.0 * np.exp(generator.normal(0.0, move, 2_000).cumsum())
    opens = np.concatenate([[100.0], close[:-1]]) * np.exp(generator.normal(0.0, move / 2, 2_000))
    index = pd.date_range("2015-01-01", periods=2_000, freq="D", tz="UTC")
    high, low = np.maximum(opens, close), np.minimum(opens, close)
    frame = pd.DataFrame({"open": opens, "high": high, "low": low, "close": close, "volume": 5.0}, index)
    assert list_doubts(BarSeries.from_frame({"A": frame}), DataSettings()) == []


@pytest.mark.parametrize(("count", "kinds"), [(3, ["stretch"]), (7, ["stretch"]), (30, ["split", "split"])])
def test_step_that_goes_back_within_a_few_bars_is_no_split(count, kinds):
    found = doubts(stepped(10.0, AT + count))
    assert [doubt.kind for doubt in found] == kinds
    if kinds == ["stretch"]:
        assert (found[0].bars, found[0].label) == (count, walk().index[AT].value)
        assert f"{count} bars at 10 times the price around them" in found[0].text


@pytest.mark.parametrize("factor", [10.0, 0.1, 13.7])
@pytest.mark.parametrize(("count", "words"), [(1, "the first bar is"), (2, "the first 2 bars are")])
def test_bad_first_bar_is_told_as_what_cannot_be_told_from_a_split(factor, count, words):
    def spoil(frame: pd.DataFrame) -> None:
        frame.iloc[:count, :4] *= factor

    [found] = doubts(spoil)
    assert (found.kind, found.bars, found.label) == ("start", count, walk().index[0].value)
    assert f"{words} {factor:.4g} times the next" in found.text
    assert "bad or before a split" in found.text


@pytest.mark.parametrize("factor", [1.7, 2.6, 0.4])
def test_step_by_no_plain_ratio_that_stays_is_a_step_and_no_tick(factor):
    [found] = doubts(stepped(factor))
    assert (found.kind, found.label) == ("step", walk().index[AT].value)
    assert f"a step of {1 / factor:.4g} from close to open that stays" in found.text


@pytest.mark.parametrize(
    ("factor", "kinds"),
    [(0.55, []), (0.527, []), (0.7, []), (0.25, ["split"]), (0.05, ["split"]), (2 / 3, ["split"])],
)
def test_step_at_many_times_the_volume_behind_it_is_news_unless_it_is_a_plain_ratio(factor, kinds):
    def spoil(frame: pd.DataFrame) -> None:
        stepped(factor)(frame)
        frame.loc[frame.index[AT], "volume"] *= 6

    assert [doubt.kind for doubt in doubts(spoil)] == kinds


@pytest.mark.parametrize(("ratio", "night"), [(4.0, 0.01), (20.0, -0.01), (1.5, 0.01), (0.1, -0.01)])
def test_split_at_many_times_the_volume_is_told_where_its_night_moved_as_others_do(ratio, night):
    def spoil(frame: pd.DataFrame) -> None:
        for place in range(1, len(frame)):  # nights of up to one and a half percent
            frame.iloc[place:, :4] *= 1.0 + 0.015 * (-1) ** place * (place % 5) / 4
        stepped((1.0 + night) / ratio)(frame)
        frame.loc[frame.index[AT], "volume"] *= 6

    [found] = doubts(spoil)
    assert (found.kind, found.label) == ("split", walk().index[AT].value)


def test_step_that_the_market_makes_by_itself_is_no_doubt():
    assert doubts(stepped(1.2)) == []


@pytest.mark.parametrize(
    ("close", "opens", "named"),
    [(499.23, 127.58, "4:1"), (2447.0, 125.25, "20:1"), (100.0, 68.7, "3:2"), (100.0, 48.5, "2:1"),
     (1.0, 9.7, "1:10")],
)  # fmt: skip
def test_split_over_a_night_in_which_the_market_moved_is_named_by_its_plain_ratio(close, opens, named):
    [found] = doubts(stepped(opens / close))
    assert found.kind == "split"
    assert f"as at a split of {named}: " in found.text


def test_step_that_comes_back_within_the_bars_behind_it_is_no_step():
    def spoil(frame: pd.DataFrame) -> None:
        for number in range(8):  # bar by bar, never from close to open
            place = AT + number
            start, end = 0.6 + 0.05 * number, 0.65 + 0.05 * number
            base = frame["open"].iloc[AT]
            frame.iloc[place : place + 1, :4] = [base * start, base * end, base * start, base * end]
        frame.iloc[AT + 8 :, :4] *= base / frame["open"].iloc[AT + 8]

    assert [found.kind for found in doubts(spoil) if found.kind != "tick"] == []


@pytest.mark.parametrize(
    ("freq", "count", "expected"),
    [("D", 5, ["flat"]), ("D", 3, []), ("h", 24, []), ("7D", 5, ["flat"]), ("4h", 30, ["flat"])],
)
def test_five_days_without_movement_are_a_doubt_whatever_a_bar_lasts(freq, count, expected):
    found = doubts(flattened(count), freq)
    assert [doubt.kind for doubt in found] == expected
    assert [doubt.bars for doubt in found] == [count] * len(expected)


def test_bars_that_are_left_out_or_taken_without_a_word_are_no_ticks():
    assert doubts(stepped(10.0, AT + 1), plausibility="off") == []
    assert doubts(stepped(0.25), plausibility="off") == []
    assert doubts(stepped(10.0, AT + 1), plausibility="always") == []


def test_doubt_is_named_with_the_next_step_or_refuses_the_bars():
    frame = walk()
    stepped(0.25)(frame)
    bars = BarSeries.from_frame({"A": frame})
    [text] = check_doubts(bars, DataSettings())
    assert text.startswith(
        "A at 2024-03-01T00:00:00Z: the price steps by 4 from close to open and stays, as at a split of 4:1"
    )
    with pytest.raises(DataError, match=r"^A at 2024.*; data\.on_doubt = 'warn' trades them$"):
        check_doubts(bars, DataSettings(on_doubt="refuse"))


@pytest.mark.parametrize(("spoil", "kind"), [(stepped(0.25), "split"), (flattened(6), "flat")])
def test_longer_bars_keep_the_doubts_of_the_bars_they_are_made_of(spoil, kind):
    frame = walk()
    spoil(frame)
    bars = BarSeries.from_frame({"A": frame})
    [found] = list_doubts(resample(bars, "1w", lambda note: None), DataSettings())
    assert (found.kind, found.label) == (kind, frame.index[AT].value)
    later = resample(bars, "1w", lambda note: None).select(None, frame.index[AT + 20].value, None)
    assert list_doubts(later, DataSettings()) == []


def test_embedded_bars_have_no_doubt():
    assert list_doubts(embedded_bars(), DataSettings()) == []


@pytest.mark.parametrize(("places", "years"), [([-1], 198), ([0], -200), ([0, 1, 2], -124)])
def test_bars_of_a_year_far_from_the_others_are_doubted(places, years):
    frame = walk()
    times = frame.index.to_list()
    for place in places:
        times[place] += pd.DateOffset(years=years)
    found = list_doubts(BarSeries.from_frame({"A": frame.set_axis(pd.DatetimeIndex(times))}), DataSettings())
    far = [doubt for doubt in found if doubt.kind == "far"]
    assert [(doubt.label, doubt.bars) for doubt in far] == [(times[places[0]].value, len(places))]
    assert "farther from the others than those reach, as by a slip in the year" in far[0].text


@pytest.mark.parametrize(("at", "pause"), [(N - 3, "300D"), (N // 2, "9000D"), (3, "100D")])
def test_pause_of_a_symbol_is_no_slip_in_the_year(at, pause):
    frame = walk()
    times = [time + pd.Timedelta(pause if k >= at else "0D") for k, time in enumerate(frame.index)]
    found = list_doubts(BarSeries.from_frame({"A": frame.set_axis(pd.DatetimeIndex(times))}), DataSettings())
    assert "far" not in [doubt.kind for doubt in found]
