"""BarSeries at its door: what is refused, by name and place, and that labels are never moved."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from schemas.errors import DataError
from tests.trading_core.market import random_series
from trading_core.bars import BarSeries


def frame(rows: int = 5, freq: str = "1h", tz: str | None = "UTC") -> pd.DataFrame:
    index = pd.date_range("2024-01-01", periods=rows, freq=freq, tz=tz)
    base = np.linspace(100.0, 104.0, rows)
    return pd.DataFrame(
        {"open": base, "high": base + 2, "low": base - 2, "close": base + 1, "volume": 10.0}, index=index
    )


def test_bars_from_frame_keeps_labels_and_infers_the_timeframe() -> None:
    bars = BarSeries.from_frame(frame().tz_convert("Europe/Berlin"), symbol="X")
    assert bars.timeframe == "1h"
    assert bars.times.tolist() == [stamp.value for stamp in pd.DatetimeIndex(frame().index)]
    assert bars.close_times[0] - bars.times[0] == 3_600 * 10**9


def test_bars_from_frames_of_several_symbols_share_one_axis_and_invent_nothing() -> None:
    bars = BarSeries.from_frame({"B": frame(4), "A": frame(5).drop(frame(5).index[2])})
    assert bars.symbols == ("A", "B")
    assert bars.shape == (5, 2)
    assert bars.bar_count == 8
    assert np.isnan(bars.close[~bars.present]).all()


def change(column: str, value: float) -> pd.DataFrame:
    changed = frame()
    changed.loc[changed.index[2], column] = value
    return changed


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (frame(tz=None), "naive"),
        (frame().iloc[::-1], "comes before"),
        (pd.concat([frame(), frame().iloc[-1:]]), "repeats"),
        (frame().reset_index(drop=True), "not times"),
        (frame().drop(columns="close"), "no column 'close'"),
        (change("close", float("nan")), "2024-01-01T02:00:00Z"),
        (change("high", 1.0), "high below low"),
        (change("low", 0.0), "not above zero"),
        (change("open", 200.0), "outside low..high"),
        (change("volume", -1.0), "negative volume"),
        (change("high", float("inf")), "infinite"),
        (frame().assign(close="x"), "not a number"),
        (frame(freq="7min"), "no timeframe"),
        (frame(1), "--timeframe"),
        (frame(0), "no rows"),
    ],
)
def test_bars_that_cannot_be_bars_are_refused_by_name_and_place(bad: pd.DataFrame, says: str) -> None:
    with pytest.raises(DataError, match=says):
        BarSeries.from_frame(bad)


def test_bars_of_huge_prices_are_bars() -> None:
    assert BarSeries.from_frame(change("high", 1e308)).bar_count == 5


def test_bars_given_timeframe_has_to_match_the_spacing() -> None:
    with pytest.raises(DataError, match="usual spacing is '1h'"):
        BarSeries.from_frame(frame(), timeframe="1d")
    with pytest.raises(DataError, match="Did you mean"):
        BarSeries.from_frame(frame(), timeframe="1hr")


def test_bars_select_names_the_nearest_symbol_and_refuses_nothing_left() -> None:
    bars = random_series(1, 20, 2)
    with pytest.raises(DataError, match="Did you mean 'S0"):
        bars.select(("S0",))
    with pytest.raises(DataError, match="no bars left"):
        bars.select(start_ns=2**62)
    assert bars.select(("S01",), end_ns=int(bars.times[4])).shape == (5, 1)


def test_bars_hash_is_of_the_content_only() -> None:
    bars = BarSeries.from_frame({"A": frame(), "B": frame()})
    same = BarSeries.from_frame({"B": frame(), "A": frame()})
    assert bars.sha256 == same.sha256
    assert bars.sha256 != BarSeries.from_frame({"A": frame(), "B": change("volume", 11.0)}).sha256


def test_bars_hash_knows_one_unknown_volume_whatever_its_bits() -> None:
    plain = BarSeries.from_frame(frame().drop(columns="volume"))
    other = BarSeries.from_frame(frame().assign(volume=-np.array(np.nan)))
    assert other.volume.tobytes() != plain.volume.tobytes()
    assert plain.sha256 == other.sha256 != BarSeries.from_frame(frame().assign(volume=0.0)).sha256
    assert np.isnan(plain.volume).all()
    with pytest.raises(DataError, match="infinite"):
        BarSeries.from_frame(frame().assign(volume=np.inf))


def test_bars_of_any_layout_become_the_one_the_kernel_knows() -> None:
    bars = random_series(1, 30)
    given = {name: getattr(bars, name) for name in ("high", "low", "close", "volume", "present")}
    fixed = np.asfortranarray(bars.open).astype(np.float32).astype(np.float64)
    fixed.flags.writeable = False
    low = np.minimum(given["low"], fixed)
    high = np.maximum(given["high"], fixed)
    made = BarSeries(
        bars.times, bars.symbols, bars.timeframe, "open", fixed, high, low, given["close"], given["volume"],
        given["present"],
    )  # fmt: skip
    assert made.open.flags.c_contiguous
    assert made.open.flags.writeable
    assert made.open.dtype == np.float64


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"label": "mid"}, "label 'mid'"),
        ({"present": np.ones((3, 1), dtype=bool)}, "present has shape"),
        ({"open": np.array([["a"]] * 30)}, "open has type"),
    ],
)
def test_bars_made_by_hand_pass_the_same_door(changes: dict[str, Any], says: str) -> None:
    bars = random_series(1, 30)
    names = ("times", "symbols", "timeframe", "label", "open", "high", "low", "close", "volume", "present")
    with pytest.raises(DataError, match=says):
        BarSeries(**({name: getattr(bars, name) for name in names} | changes))


@pytest.mark.parametrize(
    ("given", "options", "says"),
    [
        (None, {}, "not a pandas frame"),
        ({"A": None}, {}, "not a pandas frame"),
        ({1: frame(3)}, {}, "symbol 1 is a int"),
        (frame(3).assign(Open=1.0), {}, "two columns have one name"),
        (frame(3), {"label": "mid"}, "label 'mid'"),
        (frame(3), {"timeframe": "5x"}, "timeframe '5x'"),
    ],
)
def test_bars_frame_of_the_wrong_kind_is_refused_by_name(given: Any, options: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        BarSeries.from_frame(given, **options)


@pytest.mark.parametrize("symbols", ["A", "AB"])
def test_bars_from_frame_of_labels_that_ascend_sorts_no_labels(symbols, monkeypatch) -> None:
    sorted_arrays: list[Any] = []
    unique: Any = np.unique

    def note(given: Any, **options: Any) -> Any:
        sorted_arrays.append(given)
        return unique(given, **options)

    monkeypatch.setattr(np, "unique", note)
    bars = BarSeries.from_frame({name: frame(50) for name in symbols})
    assert bars.shape == (50, len(symbols))
    assert not any(np.isin(bars.times, given).any() for given in sorted_arrays)
