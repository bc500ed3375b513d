"""The feed that an operator names: `replay`, `csv` or `ccxt:NAME`."""

import math
from typing import TYPE_CHECKING

from schemas.errors import ConfigError, nearest
from schemas.settings import Settings
from schemas.timeframes import UNEVEN, is_fixed
from services.feeds.port import MarketFeed

if TYPE_CHECKING:
    from trading_core.bars import BarSeries

FEEDS = ("replay", "csv", "ccxt")


def speed_of(text: str) -> float | None:
    """A speed as an operator gives it: seconds of bar time in a second; None for `max`.

    Raises:
        ConfigError: neither `max` nor a number above zero.
    """
    if text.strip().lower() == "max":
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = math.nan
    if not (math.isfinite(speed) and speed > 0.0):
        raise ConfigError(
            f"--speed {text!r} is neither max nor a number above zero: 60 shows an hour in a minute"
        )
    return speed


def open_feed(
    text: str, settings: Settings, *, speed: float | None = None, series: "BarSeries | None" = None
) -> MarketFeed:
    """The feed named `replay`, `csv` or `ccxt:NAME`.

    A replay has a speed, None: as fast as rows are taken, and may have a `series` that is loaded already.

    Raises:
        ConfigError: no such feed, or what it needs is not given or not installed.
        DataError: the file cannot be used.
        FeedError: the source cannot be reached.
    """
    kind, _, name = text.strip().partition(":")
    if kind not in FEEDS or (name and kind != "ccxt"):
        written = ", ".join(FEEDS).replace("ccxt", "ccxt:NAME")
        raise ConfigError(f"--feed {text!r} is not one of {written}.{nearest(text, FEEDS)}")
    if kind != "replay" and speed is not None:
        raise ConfigError(f"--speed {speed:g} is for --feed replay: {text} runs as fast as its bars come")
    if kind == "csv":
        return _csv(settings)
    if kind == "ccxt":
        return _ccxt(name, settings)
    from worker.feeds.replay import ReplayFeed
    from worker.feeds.selected_bars import load_bars

    return ReplayFeed(load_bars(settings) if series is None else series, speed)


def _csv(settings: Settings) -> MarketFeed:
    runtime, data = settings.runtime, settings.data
    if runtime.data is None:
        raise ConfigError("--feed csv follows a file: name it with --data FILE")
    if runtime.columns is not None:
        raise ConfigError(
            "--columns is for recorded bars: --feed csv reads a file whose header has known names"
        )
    _refuse_range("csv", settings)
    from worker.feeds.csv.shape import settled_shape
    from worker.feeds.csv.tail import CsvTailFeed

    shape = settled_shape(
        runtime.data, symbols=data.symbols, timeframe=data.timeframe, tz=runtime.tz, label=data.label
    )
    _refuse_recorded("csv", settings, shape.timeframe)
    return CsvTailFeed(shape, runtime.feed)


def _ccxt(name: str, settings: Settings) -> MarketFeed:
    text = f"ccxt:{name}" if name else "ccxt"
    if not name:
        raise ConfigError(f"--feed {text!r} names no exchange: write it like ccxt:kraken")
    if settings.runtime.data is not None:
        raise ConfigError(f"--data is not used with --feed {text}: its bars come from the exchange")
    if not settings.data.symbols or settings.data.timeframe is None:
        raise ConfigError(f"--feed {text} needs --symbols and --timeframe, for example BTC/USDT and 1m")
    if settings.data.label != "open":
        raise ConfigError(f"--label {settings.data.label!r}: an exchange labels its bars by their open")
    _refuse_range(text, settings)
    _refuse_recorded(text, settings, settings.data.timeframe)
    from worker.feeds.ccxt.feed import CcxtFeed

    return CcxtFeed(name, settings.data.symbols, settings.data.timeframe, settings.runtime.feed)


def _refuse_recorded(text: str, settings: Settings, timeframe: str) -> None:
    data = settings.data
    if timeframe in UNEVEN or data.resample is not None or not is_fixed(timeframe, data.zone):
        raise ConfigError(
            f"bars of {timeframe}: those of {' and '.join(UNEVEN)}, --resample and those of 1d in data.zone "
            f"are for recorded bars: leave them out with --feed {text}, or take --feed replay"
        )


def _refuse_range(text: str, settings: Settings) -> None:
    if settings.runtime.start is not None or settings.runtime.end is not None:
        raise ConfigError(f"--from and --to choose recorded bars: leave them out with --feed {text}")
