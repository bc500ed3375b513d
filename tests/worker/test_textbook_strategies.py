"""The seven textbook playbooks trade, entry by entry and exit by exit, what a plain loop over prices trades.

The loop knows no rule language and no engine; its features are written in pandas from their formulas.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from schemas.playbook import PlaybookDefinition
from schemas.settings import DataSettings, EnvelopeSettings, ExecutionSettings, ReflectionSettings, Settings
from services.playbooks.loader import load_playbooks
from services.slow_loop.shadow_ledger import ShadowLedgers
from tests.trading_core.price_paths import columns_of, series, walk
from tests.worker.shared_runs import embedded_bars, run_on
from trading_core.bars import BarSeries
from trading_core.market import Market

NEW_YORK = "America/New_York"
HORIZON = 250
FREE = ExecutionSettings(fee_bps=0.0, slippage_bps=0.0)
BOOKS = {book.id: book for book in load_playbooks(Path("textbook"))}
FIELDS = ("exit_label", "entry_price", "exit_price")
Trade = tuple[str, int, int, float, float]  # symbol, label of entry and of exit, their prices


def moved(now: pd.Series, before: pd.Series) -> pd.Series:
    """Where a value is above another and was not one bar before."""
    above = now > before
    return above & ~above.shift(1, fill_value=False) & now.shift(1).notna() & before.shift(1).notna()


def smoothed(values: pd.Series, n: int) -> pd.Series:
    """Wilder's mean: the plain mean of the first n, then a weight of 1/n for each new value."""
    found, known = pd.Series(np.nan, index=values.index), values.dropna()
    level = known.iloc[:n].mean()
    for place, value in enumerate(known.iloc[n - 1 :]):
        level = level if place == 0 else level + (value - level) / n
        found[known.index[n - 1 + place]] = level
    return found


def true_range(bars: pd.DataFrame, n: int = 14) -> pd.Series:
    before = bars["close"].shift(1)
    ranges = pd.concat([bars.high - bars.low, (bars.high - before).abs(), (bars.low - before).abs()], axis=1)
    return smoothed(ranges.max(axis=1).where(before.notna()), n)


def strength(close: pd.Series, n: int) -> pd.Series:
    change = close.diff()
    gains, losses = smoothed(change.clip(lower=0), n), smoothed(-change.clip(upper=0), n)
    return 100.0 * gains / (gains + losses)


def channel(bars: pd.DataFrame, n: int) -> tuple[pd.Series, pd.Series]:
    """Highest high and lowest low of the n bars before."""
    return bars.high.rolling(n).max().shift(1), bars.low.rolling(n).min().shift(1)


Sides = dict[str, pd.Series]  # setup, stop, and exit or trail


def donchian(bars: pd.DataFrame) -> Sides:
    lowest = channel(bars, 10)[1]
    return {"setup": bars["close"] > channel(bars, 20)[0], "stop": lowest, "exit": bars["close"] < lowest}


def rsi2(bars: pd.DataFrame) -> Sides:
    close = bars["close"]
    setup = (close > close.rolling(200).mean()) & (strength(close, 2) < 10)
    return {"setup": setup, "stop": close - 10 * true_range(bars), "exit": close > close.rolling(5).mean()}


def dual_average(bars: pd.DataFrame) -> Sides:
    fast, slow = bars["close"].rolling(20).mean(), bars["close"].rolling(50).mean()
    return {"setup": moved(fast, slow), "stop": bars["close"] - 10 * true_range(bars), "exit": fast < slow}


def bollinger(bars: pd.DataFrame) -> Sides:
    close, mean = bars["close"], bars["close"].rolling(20).mean()
    lower = mean - 2 * close.rolling(20).std(ddof=0)
    return {"setup": close < lower, "stop": close - 10 * true_range(bars), "exit": close > mean}


def trailing_only(bars: pd.DataFrame) -> Sides:
    level = bars["close"] - 3 * true_range(bars)
    return {"setup": bars["close"] > channel(bars, 50)[0], "stop": level, "trail": level}


def opening_range(bars: pd.DataFrame) -> Sides:
    """Day by day by New York's clock: above the first bar's high within three bars, out from 15:00 on."""
    local = pd.DatetimeIndex(bars.index).tz_convert(NEW_YORK)
    day = pd.Series(local.strftime("%Y-%m-%d"), index=bars.index)
    place = bars.groupby(day.to_numpy()).cumcount()
    first = bars.high.where(place == 0).groupby(day.to_numpy()).transform("first")
    lowest = bars.low.groupby(day.to_numpy()).cummin()
    setup = place.between(1, 3) & (bars["close"] > first)
    late = pd.Series(local.hour >= 15, index=bars.index)
    return {"setup": setup, "stop": lowest - 0.1 * true_range(bars), "exit": late}


def momentum(bars: pd.DataFrame, ranks: pd.Series) -> Sides:
    """`ranks` are those of the symbol's sixty-bar change among all symbols with one, over their number."""
    rank = ranks.reindex(bars.index)
    return {"setup": rank > 0.8, "stop": bars["close"] - 4 * true_range(bars), "exit": rank <= 0.5}


SINGLE: dict[str, Callable[[pd.DataFrame], Sides]] = {
    "donchian": donchian, "rsi2": rsi2, "dual_average": dual_average, "bollinger": bollinger,
    "trailing_only": trailing_only, "opening_range": opening_range,
}  # fmt: skip


def held(symbol: str, bars: pd.DataFrame, sides: Sides) -> list[Trade]:
    """Trades of one symbol, bar by bar."""
    labels, opens, lows, closes = (
        pd.DatetimeIndex(bars.index).asi8, *(bars[name].to_numpy() for name in ("open", "low", "close"))
    )  # fmt: skip
    none = pd.Series(False, index=bars.index)
    setup, leaves = sides["setup"].to_numpy(bool), sides.get("exit", none).to_numpy(bool)
    stops, trail = sides["stop"].to_numpy(), sides.get("trail", none * np.nan).to_numpy(float)
    found: list[Trade] = []
    ordered = entry = -1
    stop, is_leaving = 0.0, False
    for row in range(len(bars)):
        if ordered >= 0:
            entry, stop, ordered = row, stops[ordered], -1
        if entry >= 0:
            price = None
            if is_leaving or row - entry >= HORIZON or opens[row] <= stop:
                price = opens[row]
            elif lows[row] <= stop:
                price = stop
            if price is not None:
                found.append((symbol, labels[entry], labels[row], opens[entry], price))
                entry, is_leaving = -1, False
        if entry >= 0:
            is_leaving = leaves[row]
            if stop < trail[row] < closes[row]:
                stop = trail[row]
        elif setup[row] and 0.0 < stops[row] < closes[row]:
            ordered = row
    return found


def frames(bars: BarSeries) -> dict[str, pd.DataFrame]:
    """The bars that each symbol has."""
    index = pd.to_datetime(bars.times, utc=True)
    return {
        symbol: pd.DataFrame(
            {name: getattr(bars, name)[:, s] for name in ("open", "high", "low", "close")}, index=index
        )[bars.present[:, s]]
        for s, symbol in enumerate(bars.symbols)
        if bars.present[:, s].any()
    }


def sides_of(name: str, bars: BarSeries) -> dict[str, tuple[pd.DataFrame, Sides]]:
    """Bars and rules of each symbol."""
    found = frames(bars)
    if name != "cross_sectional_momentum":
        return {symbol: (frame, SINGLE[name](frame)) for symbol, frame in found.items()}
    changes = pd.DataFrame({symbol: frame["close"].pct_change(60) for symbol, frame in found.items()})
    ranks = changes.rank(axis=1, pct=True).where(changes.notna().sum(axis=1) > 1)
    return {symbol: (frame, momentum(frame, ranks[symbol])) for symbol, frame in found.items()}


def textbook(name: str, bars: BarSeries, entered: set[tuple[str, int]] | None = None) -> list[Trade]:
    """What the plain loop trades, by symbol and time; `entered`: at these entries and no others."""
    found: list[Trade] = []
    for symbol, (frame, sides) in sides_of(name, bars).items():
        if entered is not None:
            signals = [(symbol, label) in entered for label in [*pd.DatetimeIndex(frame.index).asi8[1:], 0]]
            sides = {**sides, "setup": pd.Series(signals, index=frame.index) & sides["setup"]}
        found += held(symbol, frame, sides)
    return sorted(found)


@cache
def bars_of(name: str) -> BarSeries:
    """Embedded days; for what is of a day, half hours of New York's exchange over daylight saving."""
    if name != "opening_range":
        return embedded_bars("2003-01-01", "2010-12-31")
    days = pd.bdate_range("2024-02-05", "2024-11-29", tz=NEW_YORK) + pd.Timedelta(hours=9, minutes=30)
    times = np.concatenate([pd.date_range(day, periods=13, freq="30min", unit="ns").asi8 for day in days])
    made = {name: columns_of(walk(seed, times.size), seed) for seed, name in enumerate(("AAA", "BBB"), 5)}
    return replace(series(made, timeframe="30m"), times=times, zone=NEW_YORK)


def on_paper(book: PlaybookDefinition, bars: BarSeries) -> list[Trade]:
    """Trades of the playbook's own rules in the engine, without a policy."""
    market = Market.of(bars, now=int(bars.close_times[-1]))
    ledger = ShadowLedgers(market, FREE, EnvelopeSettings(cooldown_bars=0)).open(book, ("long",), 0)
    return sorted(
        (episode.symbol, episode.entry_label, episode.exit_label, episode.entry_price, episode.exit_price)
        for episode in ledger.advance(bars.shape[0])
    )


def prices(trades: list[Trade]) -> npt.NDArray[np.float64]:
    return np.array([trade[3:] for trade in trades])


@pytest.mark.parametrize("name", BOOKS)
def test_textbook_playbook_trades_what_a_plain_loop_over_prices_trades(name):
    bars = bars_of(name)
    expected, found = textbook(name, bars), on_paper(BOOKS[name], bars)
    assert len(expected) > 50
    assert [trade[:3] for trade in found] == [trade[:3] for trade in expected]
    np.testing.assert_allclose(prices(found), prices(expected), rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "least"), [("opening_range", 0.9), ("trailing_only", 0.9), ("cross_sectional_momentum", 0.8)]
)
def test_run_of_a_textbook_playbook_enters_and_leaves_as_the_plain_loop_does(name, least):
    """A setup that stays true is entered a bar later after an exit, so fewer of its entries are the same."""
    bars = bars_of(name)
    settings = Settings(
        execution=FREE,
        reflection=ReflectionSettings(mode="off"),
        data=DataSettings(zone=bars.zone),
        envelope=EnvelopeSettings(cooldown_bars=0),
    )
    run = run_on(bars, settings, [BOOKS[name]])
    episodes = [payload["episode"] for payload in run.of("episode")]
    made = {(payload["symbol"], payload["entry_label"]): payload for payload in episodes}
    expected = textbook(name, bars)
    assert len([trade for trade in expected if trade[:2] in made]) >= least * len(expected)
    again = {trade[:2]: trade for trade in textbook(name, bars, set(made))}
    left = [(again[key][2:], tuple(made[key][field] for field in FIELDS)) for key in made if key in again]
    same = [trade for trade, episode in left if trade == pytest.approx(episode)]
    assert len(same) >= 0.9 * len(made)  # others: a stop that the strategist tightened
