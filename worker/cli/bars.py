"""The bars that a configuration selects, and what a run remembers of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.canonical import ns_to_datetime
from schemas.config import Settings
from schemas.errors import ConfigError
from services.model_calls.quoting import visible
from worker.cli.console import complain
from worker.cli.progress import step
from worker.pages.figures import shown_time

if TYPE_CHECKING:
    from services.store import RunRecord
    from trading_core.bars import BarSeries

EMBEDDED_TIMEFRAME = "1d"


def load_bars(settings: Settings) -> "BarSeries":
    """The operator's bar file, or the embedded daily bars when none is named.

    Raises:
        DataError: the file or the selection cannot be used.
        ConfigError: the embedded bars are not what was asked for.
    """
    data, runtime = settings.data, settings.runtime
    if runtime.data is None:
        _check_embedded(settings)
        from worker.feeds.sample_data import load_embedded_bars

        return load_embedded_bars(data.symbols or None, runtime.start, runtime.end)
    with step(f"loading bars of {runtime.data}"):
        from worker.feeds.files.files import load_bar_file

        return load_bar_file(
            runtime.data,
            symbols=data.symbols or None,
            timeframe=data.timeframe,
            tz=runtime.tz,
            label=data.label,
            start=runtime.start,
            end=runtime.end,
        )


def settings_of_bars(record: "RunRecord", settings: Settings, data: Path | None) -> Settings:
    """The settings with which a stored run's bars are found again, whatever their file is called now."""
    path = record.data["path"] if data is None else str(data)
    runtime = settings.runtime.model_copy(update={"data": path})
    symbols = settings.data.model_copy(update={"symbols": tuple(record.data["symbols"])})
    return settings.model_copy(update={"runtime": runtime, "data": symbols})


def features_of(symbols: Sequence[str]) -> str:
    """What an engine does before its first bar, in words."""
    return f"features of {len(symbols):,} symbol{'' if len(symbols) == 1 else 's'}"


def _check_embedded(settings: Settings) -> None:
    if settings.data.timeframe not in (None, EMBEDDED_TIMEFRAME):
        raise ConfigError(
            f"--timeframe {settings.data.timeframe!r}: the embedded bars are {EMBEDDED_TIMEFRAME}; "
            "name a file with --data"
        )
    if settings.data.label != "open":
        raise ConfigError(
            "--label 'close': the embedded bars are labelled by their open; name a file with --data"
        )


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


def describe(bars: "BarSeries", settings: Settings) -> dict[str, Any]:
    """What the run row says of the bars; enough to load and to recognise them again."""
    data = settings.runtime.data
    return {
        "source": "embedded" if data is None else "file",
        "path": None if data is None else str(Path(data).resolve()),
        "sha256": bars.sha256,
        "symbols": list(bars.symbols),
        "timeframe": bars.timeframe,
        "label": bars.label,
        "bars": bars.bar_count,
        "start": ns_to_datetime(int(bars.times[0])).isoformat(),
        "end": ns_to_datetime(int(bars.times[-1])).isoformat(),
    }
