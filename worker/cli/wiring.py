"""The parts of the engine that commands start, imported when they are first needed."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.canonical import content_id
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from worker.cli.console import complain
from worker.feeds import selected_bars
from worker.runs.progress import step
from worker.runs.readiness import ready_engine
from worker.runs.store_run import BacktestRunner

if TYPE_CHECKING:
    from services.feeds.port import MarketFeed
    from trading_core.bars import BarSeries
    from worker.studies.scenarios import ScenarioResult


def backtest_runner() -> BacktestRunner:
    """The backtest, with the engine ready for it."""
    ready_engine()
    from worker.models import Overrides
    from worker.runs.backtest import run_backtest

    return partial(run_backtest, own=Overrides(say=complain))


def playbooks(settings: Settings) -> tuple[PlaybookDefinition, ...]:
    """The playbooks of the configured folder, or the embedded ones.

    Raises:
        ConfigError: a file that is not a playbook, with the field and the reason.
    """
    from services.playbooks.loader import load_playbooks

    folder = settings.runtime.playbooks
    return load_playbooks(None if folder is None else Path(folder))


def traded_playbooks(settings: Settings) -> tuple[PlaybookDefinition, ...]:
    """The playbooks of a run; what no market can make right in them is said before it begins."""
    from services.policy_checks.static_checks import list_mistakes

    found = playbooks(settings)
    for mistake in list_mistakes(found, settings):
        complain(mistake.text)
    return found


def scenario_runner() -> "Callable[[], Sequence[ScenarioResult]]":
    """The five human verification scenarios, with the engine ready for them."""
    ready_engine()
    from worker.studies.scenarios import run_scenarios

    return run_scenarios


def load_bars(settings: Settings, tell: Callable[[str], None] = complain) -> "BarSeries":
    """The bars that a configuration selects; see `selected_bars.load_bars`."""
    if settings.runtime.data is None:
        return selected_bars.load_bars(settings, tell)
    with step(f"loading bars of {settings.runtime.data}"):
        bars = selected_bars.load_bars(settings, tell)
    if (irregular := selected_bars.describe_off_phase(bars)) is not None:
        tell(f"{irregular}; `thinktwice data check` lists them")
    return bars


def features_of(symbols: Sequence[str]) -> str:
    """What an engine does before its first bar, in words."""
    return f"features of {len(symbols):,} symbol{'' if len(symbols) == 1 else 's'}"


def tell_of_doubts(bars: "BarSeries", settings: Settings) -> None:
    """Say on stderr which bars a run over recorded bars takes although they are doubtful.

    Raises:
        DataError: there are such, and `data.on_doubt` refuses them.
    """
    from worker.feeds.doubts import check_doubts

    for text in check_doubts(bars, settings.data):
        complain(f"{text}; `thinktwice data check` says more")


def demand_known_symbols(settings: Settings, bars: "BarSeries") -> None:
    """Refuse limits for symbols that the bars do not have, before anything is made.

    Raises:
        ConfigError: a no-trade window or a correlation bucket names an unknown symbol.
    """
    from trading_core.kernel.flags import no_trade_flags
    from trading_core.kernel.fresh import bucket_bits

    no_trade_flags(bars.close_times[:1], bars.symbols, settings.envelope.no_trade_windows)
    bucket_bits(bars.symbols, settings.envelope.correlation_buckets)


def demand_models(settings: Settings, *, goes_on: bool = False) -> None:
    """Refuse a run whose models have no key, price or cassette, before anything is made.

    One that `goes_on` may find the cassette that it was recording.

    Raises:
        ConfigError: one is missing.
    """
    if not settings.uses_models:
        return
    from worker.models import check_models

    check_models(settings, os.environ, goes_on=goes_on)


def open_feed(text: str, settings: Settings, speed: str) -> "MarketFeed":
    """The feed of a paper run.

    Raises:
        ConfigError: there is no such feed, or it cannot be opened.
        DataError: its bar file cannot be used, or `data.on_doubt` refuses bars of it.
        FeedError: its source cannot be reached.
    """
    with step("opening the feed; the first time this may take a minute"):
        from worker.feeds import opening

    pace = None if text.strip() != "replay" and speed == "max" else opening.speed_of(speed)
    series = None
    if text.strip() == "replay":
        series = load_bars(settings)
        tell_of_doubts(series, settings)
    with step(f"opening feed {text}"):
        return opening.open_feed(text, settings, speed=pace, series=series)


def start_notes(settings: Settings, run_id: str) -> Path:
    """Where starts on a run are noted: beside a store that is a file, else in the state of the user."""
    from platformdirs import user_state_path

    from services.store.urls import parse_url

    url = parse_url(settings.runtime.db)
    if url.path is not None:
        return url.path.with_name(f"{url.path.name}.{run_id}.starts")
    return user_state_path("thinktwice") / f"{content_id([url.text])}.{run_id}.starts"
