"""The bars that a configuration selects, and what a run remembers of them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.canonical import ns_to_datetime
from schemas.errors import ConfigError
from schemas.settings import Settings
from schemas.timeframes import zone_entry
from services.model_calls.quoting import count_noun

if TYPE_CHECKING:
    from services.store import RunRecord
    from trading_core.bars import BarSeries

EMBEDDED_TIMEFRAME = "1d"
FRAME = "frame"  # a source of bars: no file has them


def load_bars(settings: Settings, tell: Callable[[str], None] = lambda note: None) -> "BarSeries":
    """The operator's bar file, or the embedded daily bars when none is named; longer ones where asked for.

    `tell` takes what a trader should know of how they were read, and of the longer bars.

    Raises:
        DataError: the file or the selection cannot be used.
        ConfigError: the embedded bars are not what was asked for.
    """
    data, runtime = settings.data, settings.runtime
    if runtime.data is None:
        _check_embedded(settings)
        from worker.feeds.sample_data import load_embedded_bars

        return load_embedded_bars(
            data.symbols or None, runtime.start, runtime.end, data.zone, data.resample, tell
        )
    from worker.feeds.files.files import load_bar_file
    from worker.feeds.files.symbol_rows import Selection

    selection = Selection(
        data.symbols, data.timeframe, runtime.tz, data.label, runtime.start, runtime.end, data.zone,
        data.resample, data.adjusted, runtime.date_format, runtime.decimal, runtime.columns, tell,
    )  # fmt: skip
    return load_bar_file(runtime.data, selection, runtime.max_bytes)


def describe_off_phase(series: "BarSeries") -> str | None:
    """One sentence about labels off the phase of their neighbours; None where there is none."""
    from trading_core.spacing import show_label

    if not (off := series.off_phase()):
        return None
    symbol, labels = next(iter(off.items()))
    return (
        f"{count_noun(sum(map(len, off.values())), 'label')} off the phase of the neighbours, so the spacing "
        f"is irregular, first {symbol} at {show_label(int(labels[0]))}: the bars are traded as they are"
    )


def settings_of_bars(record: "RunRecord", settings: Settings, data: Path | None) -> Settings:
    """The settings with which a stored run's bars are found again, whatever their file is called now."""
    path = record.data["path"] if data is None else str(data)
    runtime = settings.runtime.model_copy(update={"data": path})
    symbols = settings.data.model_copy(update={"symbols": tuple(record.data["symbols"])})
    return settings.model_copy(update={"runtime": runtime, "data": symbols})


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


def describe(bars: "BarSeries", settings: Settings, *, of_frame: bool = False) -> dict[str, Any]:
    """What the run row says of the bars; enough to load and to recognise them again.

    Bars `of_frame` are those of a DataFrame: the store keeps them with the run.
    """
    data = None if of_frame else settings.runtime.data
    return {
        "source": FRAME if of_frame else "embedded" if data is None else "file",
        "path": None if data is None else str(Path(data).resolve()),
        "sha256": bars.sha256,
        "symbols": list(bars.symbols),
        "timeframe": bars.timeframe,
        "label": bars.label,
        "bars": bars.bar_count,
        "start": ns_to_datetime(int(bars.times[0])).isoformat(),
        "end": ns_to_datetime(int(bars.times[-1])).isoformat(),
        **zone_entry(bars.zone),
    } | ({"extra": bars.extra_hashes} if bars.extra else {})
