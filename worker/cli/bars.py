"""Bars on the command line: loading them with a word on stderr, and what is doubtful about them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from schemas.settings import Settings
from services.model_calls.quoting import visible
from worker.cli.console import complain
from worker.cli.progress import step
from worker.feeds import selected_bars
from worker.pages.figures import shown_time

if TYPE_CHECKING:
    from trading_core.bars import BarSeries


def load_bars(settings: Settings) -> "BarSeries":
    """The bars that a configuration selects; see `selected_bars.load_bars`."""
    if settings.runtime.data is None:
        return selected_bars.load_bars(settings)
    with step(f"loading bars of {settings.runtime.data}"):
        return selected_bars.load_bars(settings)


def features_of(symbols: Sequence[str]) -> str:
    """What an engine does before its first bar, in words."""
    return f"features of {len(symbols):,} symbol{'' if len(symbols) == 1 else 's'}"


def tell_of_doubts(bars: "BarSeries", settings: Settings) -> None:
    """Say on stderr which bars a run over recorded bars takes although they are implausible."""
    from services.feeds.plausibility import doubted_bars

    if settings.data.plausibility != "live":
        return
    found = [anomaly for _, anomaly in doubted_bars(bars, settings.data)]
    if found:
        first = f"{visible(str(found[0].symbol))} at {shown_time(found[0].label or 0)}"
        complain(
            f"{len(found):,} implausible bar(s) are traded as they are, first {first}: `thinktwice data "
            "check` lists them, data.plausibility = 'always' leaves them out, 'off' takes them without a word"
        )
