"""What a run starts from: its bars and playbooks, checked before anything is made.

`tell` takes what a trader should know of them.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from worker.feeds import selected_bars
from worker.runs.progress import step
from worker.runs.readiness import ready_engine
from worker.runs.store_run import BacktestRunner

if TYPE_CHECKING:
    from trading_core.bars import BarSeries

Tell = Callable[[str], None]


def backtest_runner(tell: Tell = lambda note: None) -> BacktestRunner:
    """The backtest, with the engine ready for it."""
    ready_engine()
    from worker.models import Overrides
    from worker.runs.backtest import run_backtest

    return partial(run_backtest, own=Overrides(say=tell))


def playbooks(settings: Settings) -> tuple[PlaybookDefinition, ...]:
    """The playbooks of the configured folder, or the embedded ones.

    Raises:
        ConfigError: a file that is not a playbook, with the field and the reason.
    """
    from services.playbooks.loader import load_playbooks

    folder = settings.runtime.playbooks
    return load_playbooks(None if folder is None else Path(folder))


def traded_playbooks(settings: Settings, tell: Tell) -> tuple[PlaybookDefinition, ...]:
    """The playbooks of a run; what no market can make right in them is told before it begins."""
    from services.policy_checks.static_checks import list_mistakes

    found = playbooks(settings)
    for mistake in list_mistakes(found, settings):
        tell(mistake.text)
    return found


def load_bars(settings: Settings, tell: Tell) -> "BarSeries":
    """The bars that a configuration selects; see `selected_bars.load_bars`."""
    if settings.runtime.data is None:
        return selected_bars.load_bars(settings, tell)
    with step(f"loading bars of {settings.runtime.data}"):
        bars = selected_bars.load_bars(settings, tell)
    if (irregular := selected_bars.describe_off_phase(bars)) is not None:
        tell(f"{irregular}; `thinktwice data check` lists them")
    return bars


def load_traded_bars(settings: Settings, tell: Tell) -> "BarSeries":
    """The bars of a new run; the doubtful ones that it takes are told.

    Raises:
        DataError: they cannot be used, or `data.on_doubt` refuses doubtful ones.
    """
    bars = load_bars(settings, tell)
    from worker.feeds.doubts import check_doubts

    for text in check_doubts(bars, settings.data):
        tell(f"{text}; `thinktwice data check` says more")
    return bars


def prepare_run(settings: Settings, tell: Tell) -> tuple["BarSeries", tuple[PlaybookDefinition, ...]]:
    """Bars and playbooks of a new run over recorded bars, with limits that fit them.

    Raises:
        DataError: the bars cannot be used.
        ConfigError: a playbook is wrong, or a limit is of a symbol that the bars do not have.
    """
    bars = load_traded_bars(settings, tell)
    definitions = traded_playbooks(settings, tell)
    require_known_symbols(settings, bars)
    return bars, definitions


def describe_features(symbols: Sequence[str]) -> str:
    """What an engine does before its first bar, in words."""
    return f"features of {len(symbols):,} symbol{'' if len(symbols) == 1 else 's'}"


def require_known_symbols(settings: Settings, bars: "BarSeries") -> None:
    """Refuse limits for symbols that the bars do not have, before anything is made.

    Raises:
        ConfigError: a no-trade window or a correlation bucket names an unknown symbol.
    """
    from trading_core.kernel.flags import no_trade_flags
    from trading_core.kernel.fresh import bucket_bits

    no_trade_flags(bars.close_times[:1], bars.symbols, settings.envelope.no_trade_windows)
    bucket_bits(bars.symbols, settings.envelope.correlation_buckets)


def require_models(settings: Settings, *, goes_on: bool = False) -> None:
    """Refuse a run whose models have no key, price or cassette, before anything is made.

    One that `goes_on` may find the cassette that it was recording.

    Raises:
        ConfigError: one is missing.
    """
    if not settings.uses_models:
        return
    from worker.models import check_models

    check_models(settings, os.environ, goes_on=goes_on)
